/* SPDX-License-Identifier: BSD-3-Clause */
/** @file recv.h  Receive WQEs: qp.resp.wqe, and the receive queue or SRQ that it comes from. */
#ifndef RECV_H
#define RECV_H

#include <stdbool.h>
#include <stdint.h>
#include "cause.h"
#include "drop.h"

struct core;
struct pkt;
struct qp;

/** Copies the next receive WQE to resp.wqe, once.  @return false when none is posted, or the SRQ is
 *  broken. */
bool recv_wqe_take(struct core *c, struct qp *qp);

/** The same for the RC responder alone: with a single caller, the compiler inlines it. */
bool recv_wqe_take_rc(struct core *c, struct qp *qp);

/** @return why there will never be a WQE, however long the peer waits: CAUSE_SRQ_BROKEN (SRQ-08),
 *  CAUSE_XRC_SRQ (XRC-04); CAUSE_NONE: there may be one. */
enum cause recv_wqe_hopeless(const struct core *c, const struct qp *qp);

/** Counts a message that found no WQE. This is not done where WQEs are taken, because a message
 *  that direct.c leaves to frames tries to take one twice. */
void recv_starved(struct core *c, const struct qp *qp);

/** A packet of a service that cannot ask its peer to wait found no WQE: it is lost, and the QP
 * fails if there will never be one (SRQ-08).  @return DROP_NO_RECV_WQE. */
enum drop recv_wqe_missed(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

/** @return whether the XRC SRQ that resp.wqe came from was destroyed. */
bool recv_srq_gone(const struct core *c, const struct qp *qp);

/** @return the number of SGEs per WQE in the queue that resp.wqe came from. */
uint32_t recv_max_sge(const struct core *c, const struct qp *qp);

/** Places the payload of a SEND as resp.wqe says, after what came before it. For the RC responder
 *  alone, as recv_wqe_take_rc().
 *  @return 0 or a completion status. */
uint8_t recv_place(struct core *c, struct qp *qp, const struct pkt *pkt);

/** The region of @p lkey faulted under a SEND that took the receive WQE @p wr_id (responder_run.c):
 *  makes that WQE the current one. Its number is all that the failure needs. */
void recv_fault(struct core *c, struct qp *qp, uint64_t wr_id, uint32_t lkey);

/** Places @p len bytes from @p data as resp.wqe says, at offset @p off of the message.
 *  @return 0 or a completion status. */
uint8_t recv_place_at(
	struct core *c, struct qp *qp, uint64_t off, const uint8_t *data, uint32_t len);

/** Receives a whole SEND of @p len bytes from @p data, without a packet: direct_run.c.
 *  @return false when it does not simply succeed; resp.wqe is then the receive that it took. */
bool recv_whole(struct core *c, struct qp *qp, const uint8_t *data, uint32_t len, bool solicited,
	uint64_t now);

/** Completes resp.wqe.
 *  @param pkt  the LAST or ONLY of its message; NULL when it failed */
void recv_complete(
	struct core *c, struct qp *qp, uint8_t status, const struct pkt *pkt, uint64_t now);

/** The same for a message that @p pkt ended successfully; RC alone, as recv_wqe_take_rc(). */
void recv_complete_rc(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

/** The current request of @p qp, an XRC target, names the SRQ @p srqn. If the QP has no PD, the
 * keys of the request are those of the SRQ's. */
void recv_name(const struct core *c, struct qp *qp, uint32_t srqn);

#endif
