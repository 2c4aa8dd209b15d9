/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ioam.h
 * In-band telemetry of the queues on a packet's way: an IOAM pre-allocated trace (RFC 9197) in an
 * IPv6 hop-by-hop option (RFC 9486) between the IPv6 header and UDP. Each switch writes one record
 * of 8 bytes, Trace-Type bit 10 alone. The receiver returns the newest trace in a destination
 * option of the same length, of an ACK.
 *
 * Annex A17 allows no extension header (CA17-16), so this is only for ports that agree on it. The
 * ICRC covers the extension header with the data of the hop-by-hop option, which changes on the
 * way, set to ones; those of the destination option as they are (doc/spec-errors.md).
 */
#ifndef IOAM_H
#define IOAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct icrc_ops;

/** Records of a trace. */
#define IOAM_NODES 5u
#define IOAM_NODE  8u /* bytes of one */
/** Bytes of the extension header. */
#define IOAM_LEN (16 + IOAM_NODES * IOAM_NODE)

/** One switch. Time, bytes and queue have fewer bits on the wire: see ioam_add(). */
struct ioam_node {
	uint64_t rate;	/* bit/s of the link by which the packet left; 0: not one of the table's */
	uint32_t time;	/* ns when it left, modulo 2^24 */
	uint32_t sent;	/* bytes / 128 that left by the link, modulo 2^20 */
	uint32_t queue; /* bytes that waited for it, at most IOAM_QUEUE_MAX */
};

#define IOAM_QUEUE_UNIT 80u
#define IOAM_QUEUE_MAX	(IOAM_QUEUE_UNIT * 0xFFFFu)

enum ioam_kind {
	IOAM_NONE,
	IOAM_TRACE, /* of a packet that switches wrote to */
	IOAM_ECHO,  /* that the peer returns */
};

/** The records of a packet, as they were on the wire. */
struct ioam {
	uint8_t kind;			      /* enum ioam_kind */
	uint8_t nodes;			      /* 0 also if there were more than IOAM_NODES */
	uint8_t node[IOAM_NODES * IOAM_NODE]; /* in the order of the way */
};

/**
 * Inserts the extension header into a frame of RoCEv2 over IPv6 that is complete, and seals it
 * again. Its first bytes move IOAM_LEN bytes ahead, where there must be room.
 * @param echo  the records to return, or NULL for an empty trace
 * @return the new start of the frame, whose length is @p len + IOAM_LEN now; NULL: it is not
 *  RoCEv2 over IPv6 without extension headers, and stays as it is.
 */
uint8_t *ioam_push(const struct icrc_ops *ops, uint8_t *frame, size_t len, const struct ioam *echo);

/**
 * Takes the extension header out of a frame, after a check of the ICRC, and seals it again.
 * @return the new start of the frame, whose length is @p len - IOAM_LEN now; NULL: there is no such
 *  header, or the ICRC is wrong, and the frame stays as it is.
 */
uint8_t *ioam_pop(const struct icrc_ops *ops, uint8_t *frame, size_t len, struct ioam *out);

/** The part of a switch: adds @p node to the trace in the frame, if it carries one. After
 *  IOAM_NODES of them it says so (the Overflow flag). */
void ioam_add(uint8_t *frame, size_t len, const struct ioam_node *node);

/** Reads record @p i of @p t, 0 the first switch. */
struct ioam_node ioam_node(const struct ioam *t, unsigned i);

/** @return the QPN that the frame is for, if it carries the extension header; else 0. */
uint32_t ioam_dest_qp(const uint8_t *frame, size_t len);

#endif
