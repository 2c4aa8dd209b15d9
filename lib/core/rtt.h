/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rtt.h
 * Round trips of one QP, measured in software: from the core_tx() call that builds a packet which
 * asks for an ACK, to the core_rx() call that receives the ACK. A NIC's queues are part of it.
 *
 * Written by pacing.c, for algorithms that need it (cc.h).
 */
#ifndef RTT_H
#define RTT_H

#include <stdint.h>
#include "seq24.h"

/** Packets under way that are measured: a power of two. More are not. */
#define RTT_SAMPLES 8u

struct rtt {
	uint32_t first, end; /* of the open samples, modulo RTT_SAMPLES */
	uint64_t last;	     /* ns; 0: none yet */
	uint32_t psn[RTT_SAMPLES];
	uint64_t left_at[RTT_SAMPLES];
};

/** Nothing that is under way counts: it was sent again, or this host stood still. */
static inline void rtt_forget(struct rtt *r)
{
	r->first = r->end;
}

/** A packet leaves, for the first time, that asks for an ACK. */
static inline void rtt_left(struct rtt *r, uint32_t psn, uint64_t now)
{
	uint32_t i = r->end & (RTT_SAMPLES - 1);

	if (r->end - r->first == RTT_SAMPLES)
		return;
	r->psn[i] = psn;
	r->left_at[i] = now;
	r->end++;
}

/** Everything up to @p psn is acknowledged.
 *  @return ns since the newest measured packet up to it left; 0: none */
static inline uint64_t rtt_acked(struct rtt *r, uint32_t psn, uint64_t now)
{
	uint64_t took = 0;

	for (; r->first != r->end; r->first++) {
		uint32_t i = r->first & (RTT_SAMPLES - 1);

		if (seq24_lt(psn, r->psn[i]))
			break;
		took = now - r->left_at[i];
	}
	if (took)
		r->last = took;
	return took;
}

#endif
