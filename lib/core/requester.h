/* SPDX-License-Identifier: BSD-3-Clause */
/** @file requester.h  RC requester: WQEs -> request packets. */
#ifndef REQUESTER_H
#define REQUESTER_H

#include "qp.h"
#include "seq24.h"

/** Builds the QP's next request packet, if it may send one now. */
bool requester_next(struct core *c, struct qp *qp, struct txd *t, uint64_t now);

/** Goes (back, or forward) to comp.una, which lies in WQE comp.head: go-back-N after a loss, or
 *  a jump after a late ACK. */
void requester_seek(struct qp *qp);

/** Copies and validates the next WQE of the send queue; the private ring must have room.
 *  @return false when there is none. */
bool requester_fetch(struct core *c, struct qp *qp);

/** Requester part of INIT -> RTR -> RTS: the first PSN. */
void requester_start(struct qp *qp, uint32_t psn);

/** RESET: all but the ring's position is as new. */
void requester_reset(struct qp *qp);

/** Throws away what is posted to the send queue (RESET). Bounded by @p max entries.
 *  @return entries thrown away. */
uint32_t requester_discard(struct qp *qp, uint32_t max);

/** Nothing to fetch: from now on the application must ring.  @return false when something was
 *  posted meanwhile. */
bool requester_idle(struct qp *qp);

static inline bool wqe_is_read(const struct send_wqe *w)
{
	return w->opcode == ABI_WR_RDMA_READ;
}

/** @return which of the requests of READ @p w covers @p psn. */
static inline uint32_t read_part(const struct send_wqe *w, uint32_t psn)
{
	return (uint32_t)seq24_diff(psn, w->first_psn) / READ_PSNS_MAX;
}

/** @return the last PSN of the READ request of @p w that covers @p psn. */
static inline uint32_t read_last_psn(const struct send_wqe *w, uint32_t psn)
{
	uint32_t off = (uint32_t)seq24_diff(psn, w->first_psn);
	uint32_t last = (off | (READ_PSNS_MAX - 1)); /* end of its part of the WQE */
	uint32_t all = (uint32_t)seq24_diff(w->last_psn, w->first_psn);

	return seq24_add(w->first_psn, last < all ? last : all);
}

#endif
