/* SPDX-License-Identifier: BSD-3-Clause */
/** @file requester.h  RC requester: WQEs -> request packets. */
#ifndef REQUESTER_H
#define REQUESTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "abi_ring.h"
#include "abi_wqe.h"
#include "cause.h"
#include "qp.h"
#include "seq24.h"

struct core;
struct txd;

/** Builds the QP's next request packets, up to @p n.  @return how many it may send now. */
unsigned requester_tx(struct core *c, struct qp *qp, struct txd *out, unsigned n, uint64_t now);

/** Builds the first of them, while requests are plain: requester_run.c.  @return how many. */
unsigned requester_run(struct core *c, struct qp *qp, struct txd *out, unsigned n, uint64_t now);

/** Executes WQEs at the cursor that send nothing.  @return whether a packet could be sent then. */
bool requester_waits(struct core *c, struct qp *qp, uint64_t now);

/** @return whether the WQE at the cursor may be sent now, or if that is not fetched yet, may be
 *  fetched. If nothing is posted, the application must ring from now on. */
bool requester_has_work(struct qp *qp);

/** @return whether the next WQE, if there is one, may be one that sends nothing. */
bool requester_next_is_local(const struct qp *qp);

/** Records @p why a WQE cannot be executed.  @return @p status. */
static inline uint8_t wqe_refuse(
	struct send_wqe *w, uint8_t status, enum cause why, uint32_t culprit)
{
	w->cause = (uint8_t)why;
	w->culprit = (uint16_t)culprit;
	return status;
}

/** Lists @p len bytes at offset @p off of @p w, the WQE at the cursor, as the payload of @p t.
 *  @return false when a key fails. */
bool requester_payload(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t,
	uint32_t off, uint32_t len);

/** @return whether the private ring is full: the application posted more than the queue holds, and
 *  everything in it is in flight. */
static inline bool requester_full(const struct qp *qp)
{
	return qp->req.fetched - qp->comp.head == qp->sq.depth;
}

/** Seeks (back or forward) to comp.una, which lies in WQE comp.head: go-back-N after a loss, or a
 *  jump after a late ACK. */
void requester_seek(struct qp *qp);

/** Copies and validates the next WQE of the send queue; the private ring must have room.
 *  @return false when there is none. */
bool requester_fetch(struct core *c, struct qp *qp);

/** @p packets at the cursor need not be sent: direct.c delivered them.
 *  @param complete  they end the WQE there */
void requester_delivered(struct qp *qp, uint32_t packets, bool complete);

/** Requester part of INIT -> RTR -> RTS: the first PSN. */
void requester_start(struct qp *qp, uint32_t psn);

/** SQE -> RTS, after the send queue was flushed: continues with the PSN after the last one sent. */
void requester_resume(struct qp *qp);

/** RESET: initial state, except for the ring's position. */
void requester_reset(struct qp *qp);

/** Discards the WQEs posted to the send queue (RESET), at most @p max.
 *  @return number of entries discarded. */
uint32_t requester_discard(struct qp *qp, uint32_t max);

/** Nothing to fetch: from now on the application must ring.  @return false when something was
 *  posted meanwhile. */
bool requester_idle(struct qp *qp);

/** @return whether all that was posted is sent, and more may only come after a doorbell. A QP that
 *  only responds never touches the send ring and its cache lines. */
static inline bool requester_waits_for_bell(const struct qp *qp)
{
	return qp->req.cur == qp->req.fetched && qp->req.rings;
}

/** The application rang: there may be something to fetch. */
static inline void requester_rung(struct qp *qp)
{
	qp->req.rings = false;
	atomic_store_explicit(&qp->sq.shared->need_doorbell, 0, memory_order_relaxed);
}

static inline bool wqe_is_read(const struct send_wqe *w)
{
	return w->opcode == ABI_WR_RDMA_READ;
}

static inline bool wqe_is_flush(const struct send_wqe *w)
{
	return w->opcode == ABI_WR_FLUSH;
}

static inline bool wqe_is_atomic(const struct send_wqe *w)
{
	return w->opcode == ABI_WR_ATOMIC_CMP_AND_SWP || w->opcode == ABI_WR_ATOMIC_FETCH_AND_ADD;
}

/** @return true when responses of its own complete @p w: no ACKNOWLEDGE does (REQ-38), and
 *  max_rd_atomic limits how many are outstanding (REQ-08, FLU-03). */
static inline bool wqe_has_response(const struct send_wqe *w)
{
	return w->flags & WQE_RESPONSE;
}

/** @return the access rights to local memory that @p w needs (REQ-45). */
static inline uint32_t wqe_local_access(const struct send_wqe *w)
{
	return w->flags & WQE_FETCHES ? ABI_ACCESS_LOCAL_WRITE : 0;
}

/** @return the index of the request of READ @p w that covers @p psn. */
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
