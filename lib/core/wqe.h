/* SPDX-License-Identifier: BSD-3-Clause */
/** @file wqe.h  The rings of a QP, shared and private, and what lies in their slots. */
#ifndef WQE_H
#define WQE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi_ring.h"
#include "qp.h"

/** @return the next entry of @p r to take. */
static inline uint8_t *ring_slot(const struct ring *r)
{
	return r->entries + (size_t)(r->next & (r->depth - 1)) * r->stride;
}

/** @return true when that entry has been posted: its first word, which is written last, has the
 *  mark of this lap. */
static inline bool ring_ready(const struct ring *r)
{
	uint32_t ctl = atomic_load_explicit((_Atomic uint32_t *)ring_slot(r), memory_order_acquire);

	return (ctl & ABI_WQE_PHASE) == abi_phase(r->next, r->depth);
}

static inline struct send_wqe *qp_wqe(const struct qp *qp, uint32_t idx)
{
	return (struct send_wqe *)(qp->sq_private +
				   (size_t)(idx & (qp->sq.depth - 1)) * qp->sq_slot_size);
}

static inline struct abi_sge *wqe_sge(struct send_wqe *w)
{
	return (struct abi_sge *)(w + 1);
}

/** The peer's SRQ that the message of @p w is for: stored at the end of the slots of XRC QPs. */
static inline uint32_t *wqe_srqn(const struct qp *qp, struct send_wqe *w)
{
	return (uint32_t *)((uint8_t *)w + qp->sq_slot_size) - 1;
}

static inline uint8_t *wqe_inline(struct send_wqe *w)
{
	return (uint8_t *)(w + 1);
}

/** Prefetches the slot of the next WQE of @p qp, and its copy's destination. */
static inline void qp_prefetch_post(const struct qp *qp)
{
	__builtin_prefetch(ring_slot(&qp->sq));
	__builtin_prefetch(qp_wqe(qp, qp->sq.next), 1);
}

#endif
