/* SPDX-License-Identifier: BSD-3-Clause */
#include "bits.h"
#include "cq.h"

#define ARM_TRIES 16u

static const uint64_t no_time;

void cq_lane_init(struct cq *cq, uint32_t i, struct abi_cq_lane *shared, uint32_t depth)
{
	struct cq_lane *lane = &cq->lane[i];

	memset(lane, 0, sizeof(*lane));
	lane->cq = cq;
	lane->clock = &no_time;
	list_init(&lane->touched);
	cq_lane_move(lane, shared, depth);
}

void cq_lane_stamp(struct cq *cq, uint32_t i, const uint64_t *clock)
{
	cq->lane[i].clock = clock;
}

void cq_lane_move(struct cq_lane *lane, struct abi_cq_lane *shared, uint32_t depth)
{
	lane->ring = (struct abi_cqe *)(shared + 1);
	lane->consumer = &shared->consumer;
	lane->depth = depth;
	lane->head = 0; /* CQ-11: its first CQE follows all that are in the old ring */
	lane->seen = 0;
}

uint32_t cq_lane_waiting(const struct cq_lane *lane)
{
	uint32_t n = lane->head - atomic_load_explicit(lane->consumer, memory_order_acquire);

	return n < lane->depth ? n : lane->depth;
}

bool cq_notify_wanted(struct cq_lane *lane)
{
	_Atomic uint32_t *arm = lane->cq->arm;
	uint32_t seen = atomic_load_explicit(arm, memory_order_relaxed);
	bool any = lane->added;
	bool solicited = lane->added_solicited;

	/* CQ-04: CQEs from before an arm do not count for it. */
	lane->added = false;
	lane->added_solicited = false;
	/* An application that keeps changing the word may get one event too many, but cannot delay
	 * us. */
	for (unsigned tries = 0; tries < ARM_TRIES; tries++) {
		/* CQ-03; CQ-05: "any" counts, whatever else is set. */
		if (!(any && (seen & ABI_CQ_ARM_ANY)) &&
			!(solicited && (seen & ABI_CQ_ARM_SOLICITED)))
			return false;
		/* CQ-04: one shot, and only the winner notifies. */
		if (atomic_compare_exchange_weak(arm, &seen, seen & ~ABI_CQ_ARM_MASK))
			return true;
	}
	return true;
}
