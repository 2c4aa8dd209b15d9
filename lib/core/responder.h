/* SPDX-License-Identifier: BSD-3-Clause */
/** @file responder.h  RC responder: request packets -> memory, completions and responses. */
#ifndef RESPONDER_H
#define RESPONDER_H

#include <stdbool.h>
#include <stdint.h>
#include "drop.h"
#include "qp.h"

struct core;
struct pkt;
struct txd;

/** Handles a request packet after the checks of ICRC, addresses and QP state.
 *  @return 0 or the reason for the drop. */
enum drop responder_rx(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

/** Receives the first of the @p n (BURST at most) packets @p pkt, the first of which is for @p qp,
 * as long as they are plain WRITEs, plain SENDs, or READs, in sequence: responder_run.c.
 *  @return how many; none is dropped. */
unsigned responder_run(
	struct core *c, struct qp *qp, const struct pkt *pkt, unsigned n, uint64_t now);

/** @return whether responder_next() has anything to look at. */
static inline bool responder_owes(const struct qp *qp)
{
	return qp->resp.owed != OWE_NOTHING || qp->resp.res_next != qp->resp.res_head;
}

/** @return whether the next response is one that carries no data: its rate is not limited. */
bool responder_next_is_free(const struct qp *qp);

/** Builds the QP's next response packet, if one is owed. Responses leave in PSN order: READ
 *  responses first, then the ACK or NAK for the requests after them (RSP-27). */
bool responder_next(struct core *c, struct qp *qp, struct txd *t, uint64_t now);

/** Builds the QP's next responses as long as each is all that a READ asked for, @p n at most: for a
 *  QP that has no requests which would take turns with them.  @return their number */
unsigned responder_read_responses(struct core *c, struct qp *qp, struct txd *out, unsigned n);

/** A valid request arrived: reports the first one in RTR (RSP-46). */
void responder_established(struct core *c, struct qp *qp);

/** @p packets of a message of @p kind, an enum opcode_kind, were executed: direct.c delivered them.
 *  @param complete  they end the message */
void responder_delivered(
	struct core *c, struct qp *qp, uint8_t kind, uint32_t packets, bool complete);

/** Executes the FLUSH that @p pkt asks for, of which va, dma_len, rkey and feth count.
 *  @return why it is refused; CAUSE_NONE: it is not. */
enum cause responder_flush(struct core *c, const struct qp *qp, const struct pkt *pkt);

/** Responder part of INIT -> RTR. */
void responder_start(struct qp *qp, uint32_t psn);

/** The QP went to ERR: what is owed is still sent if a fatal NAK is the reason, else nothing. */
void responder_error(struct qp *qp);

/** RESET: initial state, except for its memory. */
void responder_reset(struct qp *qp);

/** Completes one receive WQE of an ERR QP with WR_FLUSH_ERR, the one in use first (QPS-20).
 *  @return false when the queue is empty. */
bool responder_flush_one(struct core *c, struct qp *qp, uint64_t now);

/** @return the oldest slot with responses to send, or NULL. */
struct resp_res *responder_pending(struct qp_resp *r);

/** Answers the current request with an RNR NAK of timer code @p timer, and does not execute it. */
void responder_not_ready(struct core *c, struct qp *qp, uint8_t timer);

/** Raises a fatal NAK: owed with @p syndrome and PSN @p psn, an async event of type @p event (0:
 *  none), then ERR (RSP-22). */
void responder_fatal(struct core *c, struct qp *qp, uint8_t syndrome, uint32_t psn, uint32_t event,
	uint64_t now);

/** The same when the READ response with PSN @p psn cannot be built or sealed: the NAK replaces it,
 *  and later responses are not sent (RSP-31). */
void responder_read_failed(struct core *c, struct qp *qp, uint8_t syndrome, uint32_t psn,
	uint32_t event, uint64_t now);

/** Discards the WQEs posted to the receive queue (RESET), at most @p max.
 *  @return number of entries discarded. */
uint32_t responder_discard(struct qp *qp, uint32_t max);

#endif
