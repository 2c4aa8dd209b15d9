/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file drop_log.h
 * Why was a packet dropped? The facts from which the control thread explains it in a sentence, as
 * in cause.h for failures.
 *
 * A core keeps a few notes of the latest drops for each reason; a slot stays with one QPN for at
 * least DROP_NOTE_NS. So a flood of dropped packets costs one more cache line per packet, and hides
 * no drop for another reason.
 */
#ifndef DROP_LOG_H
#define DROP_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "drop.h"

struct core;
struct pkt;
struct qp;

/** QPNs that are noted separately per reason (a power of two). */
#define DROP_NOTES 8u
/** How long a note stays with one QPN at least, and the interval between its rewrites. */
#define DROP_NOTE_NS 10000000u

/** The latest packet dropped for a reason. Written by the worker; others read it with
 *  drop_note_read(). */
struct drop_note {
	_Atomic uint32_t version; /* odd while it is being written */
	uint32_t count;		  /* packets for this QPN since it got the note */
	uint64_t due;		  /* may be rewritten from then on */
	uint64_t time;
	uint32_t dest_qp;
	uint32_t source_qp; /* the sender, if it is a QP of this daemon; else 0 */
	uint32_t psn;
	uint32_t epsn; /* of the QP, as the following; 0 without a QP */
	uint32_t una;
	uint16_t pkey;
	uint16_t qp_pkey;
	uint16_t vid;
	uint8_t opcode; /* of the BTH */
	uint8_t syndrome;
	uint8_t net; /* enum net_type */
	uint8_t port;
	uint8_t state;	 /* of the QP: enum abi_qp_state */
	bool has_qp;	 /* the QP exists */
	bool begun;	 /* the QP had accepted a request before */
	bool heard;	 /* the QP's peer had acknowledged one before */
	uint8_t dmac[6]; /* destination */
	uint8_t smac[6];
	uint8_t sgid[16];
	uint8_t dgid[16];
};

struct drop_log {
	struct drop_note note[DROP_MAX][DROP_NOTES];
};

/** Counts a packet that is dropped because of @p why. @p qp may be NULL. */
void drop_count(
	struct core *c, const struct qp *qp, const struct pkt *pkt, enum drop why, uint64_t now);

/** Copies @p from, which a worker may be writing.
 *  @return false when it is empty, or the worker was paused while it wrote. Any thread. */
bool drop_note_read(struct drop_note *to, const struct drop_note *from);

#endif
