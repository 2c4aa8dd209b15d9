/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cq.h
 * Completion queues, the daemon's side: one lane per worker, so that no two workers ever write the
 * same ring (decision 0000.4). Overflow is per lane (CQ-01).
 */
#ifndef CQ_H
#define CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "abi_ring.h"
#include "abi_wqe.h"
#include "bits.h"
#include "limits.h"
#include "list.h"

/** Written by its worker only; the ring pointers are set before the CQ is published. */
struct cq_lane {
	struct abi_cqe *ring;
	const _Atomic uint32_t *consumer; /* the application's */
	uint32_t depth;			  /* power of two */
	uint32_t head;			  /* CQEs written */
	uint32_t seen; /* copy of *consumer, refreshed when the lane looks full */
	bool overflow;
	bool cq_err; /* event.c: CQ_ERR is pending */
	/* CQEs of this burst, for cq_notify_wanted() */
	bool added;
	bool added_solicited;
	struct list touched; /* on the core's list of lanes with news */
	struct cq *cq;
	const uint64_t *clock; /* of its worker; or a zero: CQEs have no timestamps */
} __attribute__((aligned(64)));

struct cq {
	_Atomic uint32_t *arm; /* shared with the application */
	uint32_t handle;       /* in its session */
	uint32_t session;      /* number of the session that owns it */
	uint32_t channel;      /* handle of its completion channel, ABI_NO_HANDLE: none */
	uint32_t lanes;
	struct cq_lane lane[WORKER_MAX];
};

/**
 * Sets up lane @p i in memory laid out as in abi_ring.h. Control thread, before the CQ is
 * published.
 * @param depth power of two, at most CQE_MAX
 */
void cq_lane_init(struct cq *cq, uint32_t i, struct abi_cq_lane *shared, uint32_t depth);

/** CQEs of lane @p i get the time at @p clock, which its worker writes. Called after
 * cq_lane_init(), under the same conditions. */
void cq_lane_stamp(struct cq *cq, uint32_t i, const uint64_t *clock);

/** @return whether the lane has no room. `seen` comes from the application: a wild value makes the
 * lane look full or empty, which hurts only the application itself. */
static inline bool cq_lane_full(struct cq_lane *lane)
{
	if (likely(lane->head - lane->seen < lane->depth))
		return false;
	lane->seen = atomic_load_explicit(lane->consumer, memory_order_acquire);
	return lane->head - lane->seen >= lane->depth;
}

/** Appends @p cqe to @p lane, which has room for it and no overflow, as completion @p number of its
 * queue, and fills in its mark. The lane's worker. */
static inline void cq_put(struct cq_lane *lane, const struct abi_cqe *cqe, uint32_t number)
{
	struct abi_cqe *slot = &lane->ring[lane->head & (lane->depth - 1)];

	/* Field by field, so that a caller's constants and registers are stored directly. */
	slot->wr_id = cqe->wr_id;
	slot->byte_len = cqe->byte_len;
	slot->imm = cqe->imm;
	slot->qpn = cqe->qpn;
	slot->src_qp = cqe->src_qp;
	slot->status = cqe->status;
	slot->opcode = cqe->opcode;
	slot->flags = cqe->flags;
	slot->sl = cqe->sl;
	slot->pkey_index = cqe->pkey_index;
	slot->vid = cqe->vid;
	memcpy(slot->smac, cqe->smac, sizeof(slot->smac));
	slot->net = cqe->net;
	slot->reserved0 = 0;
	slot->vendor_err = cqe->vendor_err;
	slot->timestamp = *lane->clock;
	slot->srqn = cqe->srqn;
	atomic_store_explicit((_Atomic uint32_t *)&slot->mark,
		abi_cqe_mark(abi_phase(lane->head, lane->depth), number), memory_order_release);
	lane->head++;
	lane->added = true; /* CQ-03 */
	/* CQ-06: an error counts as solicited. */
	lane->added_solicited |= cqe->status != ABI_WC_SUCCESS || (cqe->flags & ABI_WC_SOLICITED);
}

/**
 * cq_put() if there is room.
 * @return false when the lane is full: nothing was written, the lane is marked as overflowed, and
 * the caller raises CQ_ERR and moves the QP to ERR (CQ-01).
 */
static inline bool cq_push(struct cq_lane *lane, const struct abi_cqe *cqe, uint32_t number)
{
	if (unlikely(lane->overflow || cq_lane_full(lane))) {
		lane->overflow = true; /* CQ-01 */
		return false;
	}
	cq_put(lane, cqe, number);
	return true;
}

/** @return the number of CQEs in @p lane that the application has not reported as taken. The lane's
 *  worker. */
uint32_t cq_lane_waiting(const struct cq_lane *lane);

/**
 * Continues @p lane at the start of a new ring, laid out as for cq_lane_init(). CQEs in the old one
 * stay there for the application (CQ-11); an overflow is remembered. The lane's worker.
 */
void cq_lane_move(struct cq_lane *lane, struct abi_cq_lane *shared, uint32_t depth);

/**
 * Whether CQEs added since the last call must raise an event (CQ-03..06), and if so disarms. Call
 * it after a sequentially consistent fence that follows the burst's last cq_push(), so that an
 * application that arms and then polls cannot miss both (decision 0000.4).
 */
bool cq_notify_wanted(struct cq_lane *lane);

#endif
