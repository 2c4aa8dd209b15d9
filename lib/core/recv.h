/* SPDX-License-Identifier: BSD-3-Clause */
/** @file recv.h  Receive WQEs: qp.resp.wqe, the receive queue or the SRQ behind it. */
#ifndef RECV_H
#define RECV_H

#include "qp.h"

/** Copies the next receive WQE to resp.wqe, once.  @return false when none is posted, or the SRQ is
 *  broken. */
bool recv_wqe_take(struct core *c, struct qp *qp);

/** The same for RC's responder alone: what one place calls is compiled into it. */
bool recv_wqe_take_rc(struct core *c, struct qp *qp);

/** Why there will be no WQE, however long the peer waits: CAUSE_SRQ_BROKEN (SRQ-08), CAUSE_XRC_SRQ
 *  (XRC-04), or CAUSE_NONE: there will be. */
enum cause recv_wqe_hopeless(const struct core *c, const struct qp *qp);

/** A packet of a service that asks nobody to wait found no WQE: it is lost, and the QP fails if
 * there will be none (SRQ-08).  @return DROP_NO_RECV_WQE. */
enum drop recv_wqe_missed(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

/** @return whether the XRC SRQ that resp.wqe came from was destroyed. */
bool recv_srq_gone(const struct core *c, const struct qp *qp);

/** @return how many SGEs the queue has room for that resp.wqe came from. */
uint32_t recv_max_sge(const struct core *c, const struct qp *qp);

/** Puts the payload of a SEND where resp.wqe says, behind what came before it.
 *  RC's responder alone, as recv_wqe_take_rc().
 *  @return 0 or a completion status. */
uint8_t recv_place(struct core *c, struct qp *qp, const struct pkt *pkt);

/** Puts @p len bytes at @p data where resp.wqe says, behind @p off others.
 *  @return 0 or a completion status. */
uint8_t recv_place_at(
	struct core *c, struct qp *qp, uint64_t off, const uint8_t *data, uint32_t len);

/** Completes resp.wqe.
 *  @param pkt  the LAST or ONLY of its message; NULL when it failed */
void recv_complete(
	struct core *c, struct qp *qp, uint8_t status, const struct pkt *pkt, uint64_t now);

/** The same of a message that @p pkt ended well, as recv_wqe_take_rc(). */
void recv_complete_rc(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

#endif
