/* SPDX-License-Identifier: BSD-3-Clause */
/** @file recv.h  Receive WQEs: qp.resp.wqe and the receive queue behind it. */
#ifndef RECV_H
#define RECV_H

#include "qp.h"

/** Copies the next receive WQE to resp.wqe, once.  @return false when none is posted. */
bool recv_wqe_take(struct qp *qp);

/** Puts the payload of a SEND where resp.wqe says, behind what came before it.
 *  @return 0 or a completion status. */
uint8_t recv_place(struct core *c, struct qp *qp, const struct pkt *pkt);

/** Completes resp.wqe.
 *  @param pkt  the LAST or ONLY of its message; NULL when it failed */
void recv_complete(
	struct core *c, struct qp *qp, uint8_t status, const struct pkt *pkt, uint64_t now);

#endif
