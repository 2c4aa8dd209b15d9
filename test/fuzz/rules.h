/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rules.h
 * The rules for what a QP may send. Sees each frame as it leaves, and remembers enough of the
 * earlier ones to check it: fixed fields, the order of opcodes and PSNs, lengths, that a
 * retransmission repeats its packet, that a READ response belongs to a READ and carries that
 * memory, and that an atomic's response has the right value.
 */
#ifndef RULES_H
#define RULES_H

#include "core.h"
#include "qp.h"

#define RULES_SENT    1024u /* request packets that are remembered; more than a window */
#define RULES_READS   256u
#define RULES_STREAMS 64u

/** A request packet that was sent; a READ that spans PSNs has two, for its first and last PSN. */
struct rules_sent {
	uint32_t life; /* of the QP; others are stale */
	uint32_t psn;
	uint32_t sum; /* bytes of the message so far */
	uint32_t dma_len;
	uint64_t va;
	uint32_t rkey;
	uint32_t imm;
	uint64_t swap_add, compare; /* ATOMIC */
	uint16_t len;
	uint8_t code;
};

/** An ATOMIC that the peer requested and the QP executed. */
struct rules_atomic {
	uint32_t psn;
	uint64_t orig; /* the former value in memory */
};

/** A READ that the peer requested. */
struct rules_read {
	uint32_t psn;
	uint32_t rkey;
	uint32_t dma_len;
	uint64_t va;
};

/** READ responses in progress. Those to a duplicate READ may come between those to a later one. */
struct rules_stream {
	bool open;
	uint32_t first;
	uint32_t next;
	uint32_t sum;
};

struct rules {
	const struct qp *qp;
	const struct mr_table *mrs;
	uint32_t life;
	bool blind; /* a packet was not sealed, so it was not seen here (until the next start) */
	bool requested; /* something was sent since the start */
	uint32_t next;	/* PSN of the next request, if it does not go back */
	bool acked;
	uint32_t msn; /* of the last acknowledgement */
	unsigned streams, reads, atomics;
	struct rules_stream stream[RULES_STREAMS];
	struct rules_read read[RULES_READS];
	struct rules_atomic atomic[RULES_READS];
	struct rules_sent sent[RULES_SENT];
};

/** State of the QP before the call that built the packets. */
struct rules_before {
	uint8_t state;
	bool rnr_wait;
};

/** @p qp starts anew: nothing that it sent before counts. */
void rules_start(struct rules *r, const struct qp *qp, const struct mr_table *mrs);

/** The QP accepted a request to be answered with READ responses. */
void rules_asked(struct rules *r, const struct pkt *p);

/** The QP executed the ATOMIC with PSN @p psn on memory that held @p orig. */
void rules_executed(struct rules *r, uint32_t psn, uint64_t orig);

struct rules_before rules_before(const struct qp *qp);

/** @p qp sent this. @param seen  receives the parsed packet */
void rules_see(struct rules *r, const struct rules_before *b, const uint8_t *frame, size_t len,
	struct pkt *seen);

#endif
