/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ioam.h
 * In-band telemetry of the queues on a packet's path: an IOAM pre-allocated trace (RFC 9197) in an
 * IPv6 hop-by-hop option (RFC 9486) between the IPv6 header and UDP. Each switch writes one 8-byte
 * record, Trace-Type bit 10 only. The receiver returns the newest trace in an ACK, in a destination
 * option of the same length.
 *
 * Annex A17 allows no extension header (CA17-16), so this is only for ports that agree on it. The
 * ICRC covers the extension header; the data of the hop-by-hop option, which change en route, count
 * as ones, those of the destination option as they are (doc/spec-errors.md).
 */
#ifndef IOAM_H
#define IOAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct icrc_ops;

/** Records per trace. */
#define IOAM_NODES 5u
#define IOAM_NODE  8u /* bytes per record */
/** Bytes of the extension header. */
#define IOAM_LEN (16 + IOAM_NODES * IOAM_NODE)

/** One switch's record. Time, bytes and queue have fewer bits on the wire: see ioam_add(). */
struct ioam_node {
	uint64_t rate;	/* bit/s of the egress link; 0: not in the table */
	uint32_t time;	/* departure in ns, modulo 2^24 */
	uint32_t sent;	/* bytes / 128 sent on the link, modulo 2^20 */
	uint32_t queue; /* bytes queued for it, at most IOAM_QUEUE_MAX */
};

#define IOAM_QUEUE_UNIT 80u
#define IOAM_QUEUE_MAX	(IOAM_QUEUE_UNIT * 0xFFFFu)

enum ioam_kind {
	IOAM_NONE,
	IOAM_TRACE, /* written by switches on the path */
	IOAM_ECHO,  /* returned by the peer */
};

/** The records of a packet, as on the wire. */
struct ioam {
	uint8_t kind;			      /* enum ioam_kind */
	uint8_t nodes;			      /* 0 also if there were more than IOAM_NODES */
	uint8_t node[IOAM_NODES * IOAM_NODE]; /* in path order */
};

/**
 * Inserts the extension header into a complete frame of RoCEv2 over IPv6, and recomputes the ICRC.
 * The first bytes of the frame move IOAM_LEN bytes towards lower addresses, where there must be
 * room.
 * @param echo  the records to return, or NULL for an empty trace
 * @return the new start of the frame, now of @p len + IOAM_LEN bytes; NULL: it is not RoCEv2 over
 * IPv6 without extension headers, and is unchanged.
 */
uint8_t *ioam_push(const struct icrc_ops *ops, uint8_t *frame, size_t len, const struct ioam *echo);

/**
 * Checks the ICRC, removes the extension header and recomputes the ICRC.
 * @return the new start of the frame, now of @p len - IOAM_LEN bytes; NULL: there is no such
 * header, or the ICRC is wrong, and the frame is unchanged.
 */
uint8_t *ioam_pop(const struct icrc_ops *ops, uint8_t *frame, size_t len, struct ioam *out);

/** A switch's part: adds @p node to the trace in the frame, if it carries one. If IOAM_NODES are
 *  there already, sets the Overflow flag. */
void ioam_add(uint8_t *frame, size_t len, const struct ioam_node *node);

/** Reads record @p i of @p t; 0 is the first switch. */
struct ioam_node ioam_node(const struct ioam *t, unsigned i);

/** @return whether the frame carries the extension header and has the right ICRC. */
bool ioam_check(const struct icrc_ops *ops, const uint8_t *frame, size_t len);

/** @return the BTH of the frame if it carries the extension header, else NULL. */
const uint8_t *ioam_bth(const uint8_t *frame, size_t len);

/** @return the destination QPN of the frame if it carries the extension header, else 0. */
uint32_t ioam_dest_qp(const uint8_t *frame, size_t len);

#endif
