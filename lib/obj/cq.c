/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include "bits.h"
#include "cq.h"

#define ARM_TRIES 16u

void cq_lane_init(struct cq *cq, uint32_t i, struct abi_cq_lane *shared, uint32_t depth)
{
	struct cq_lane *lane = &cq->lane[i];

	memset(lane, 0, sizeof(*lane));
	lane->cq = cq;
	list_init(&lane->touched);
	cq_lane_move(lane, shared, depth);
}

void cq_lane_move(struct cq_lane *lane, struct abi_cq_lane *shared, uint32_t depth)
{
	lane->ring = (struct abi_cqe *)(shared + 1);
	lane->consumer = &shared->consumer;
	lane->depth = depth;
	lane->head = 0; /* CQ-11: the first CQE behind all that are in the old ring */
	lane->seen = 0;
}

uint32_t cq_lane_waiting(const struct cq_lane *lane)
{
	uint32_t n = lane->head - atomic_load_explicit(lane->consumer, memory_order_acquire);

	return n < lane->depth ? n : lane->depth;
}

/* `seen` is the application's word: a wild value makes the lane look full or empty, which
 * harms nobody but the application itself. */
static bool lane_full(struct cq_lane *lane)
{
	if (lane->head - lane->seen < lane->depth)
		return false;
	lane->seen = atomic_load_explicit(lane->consumer, memory_order_acquire);
	return lane->head - lane->seen >= lane->depth;
}

bool cq_push(struct cq_lane *lane, const struct abi_cqe *cqe, uint32_t number)
{
	struct abi_cqe *slot = &lane->ring[lane->head & (lane->depth - 1)];

	if (lane->overflow || lane_full(lane)) {
		lane->overflow = true; /* CQ-01 */
		return false;
	}
	memcpy(slot, cqe, offsetof(struct abi_cqe, mark));
	atomic_store_explicit((_Atomic uint32_t *)&slot->mark,
		abi_cqe_mark(abi_phase(lane->head, lane->depth), number), memory_order_release);
	lane->head++;
	lane->added = true; /* CQ-03 */
	/* CQ-06: an error counts as solicited. */
	lane->added_solicited |= cqe->status != ABI_WC_SUCCESS || (cqe->flags & ABI_WC_SOLICITED);
	return true;
}

bool cq_notify_wanted(struct cq_lane *lane)
{
	_Atomic uint32_t *arm = lane->cq->arm;
	uint32_t seen = atomic_load_explicit(arm, memory_order_relaxed);
	bool any = lane->added;
	bool solicited = lane->added_solicited;

	/* CQ-04: what was there before an arm does not count for it. */
	lane->added = false;
	lane->added_solicited = false;
	/* An application that keeps changing the word may get an event too many, not our time. */
	for (unsigned tries = 0; tries < ARM_TRIES; tries++) {
		/* CQ-03; CQ-05: "any" counts, whatever stands beside it. */
		if (!(any && (seen & ABI_CQ_ARM_ANY)) &&
			!(solicited && (seen & ABI_CQ_ARM_SOLICITED)))
			return false;
		/* CQ-04: one shot, and only the winner notifies. */
		if (atomic_compare_exchange_weak(arm, &seen, seen & ~ABI_CQ_ARM_MASK))
			return true;
	}
	return true;
}
