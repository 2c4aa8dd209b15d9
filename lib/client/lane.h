/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lane.h
 * The consumer side of a CQ's lanes (abi_ring.h), for the files that take from them; cq.lock is
 * held.
 */
#ifndef LANE_H
#define LANE_H

#include "client.h"

static inline struct cq *cq_of(struct roci_cq *cq)
{
	return (struct cq *)cq;
}

static inline struct abi_cq_lane *ring_lane(const struct cq_ring *ring, uint32_t i)
{
	return (struct abi_cq_lane *)(ring->first_lane + (size_t)i * ring->lane_stride);
}

static inline bool ready(struct abi_cqe *ring, uint32_t depth, uint32_t idx)
{
	struct abi_cqe *e = &ring[idx & (depth - 1)];
	uint32_t mark = atomic_load_explicit((_Atomic uint32_t *)&e->mark, memory_order_acquire);

	return (mark & 1) == abi_phase(idx, depth);
}

static inline bool lane_ready(const struct lane *lane)
{
	return ready(lane->ring, lane->from->depth, lane->head);
}

static inline void publish(struct lane *lane)
{
	if (lane->published == lane->head)
		return;
	lane->published = lane->head;
	atomic_store_explicit(lane->consumer, lane->head, memory_order_release);
}

/** CQ-11: moves an empty lane to the ring that replaced its own.  @return whether there was one. */
bool lane_advance(struct cq *cq, uint32_t i);

#endif
