/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC target (IBA A14). It is the RC responder, except for the source and the completion of
 * receives: each SEND, and each WRITE with immediate data, names an SRQ of the QP's domain
 * (recv.c). The SRQ number in other requests is ignored, unless the target has no PD: then the keys
 * of a request are those of the SRQ's PD (decision 0108).
 *
 * The initiator is the RC requester and completer; packet.h adds the XRCETH to requests, with the
 * number that its request names.
 */
#include "xrc.h"
#include "headers.h"
#include "pkt.h"
#include "recv.h"
#include "responder.h"
#include "wqe.h"

uint32_t xrc_srqn(const struct qp *qp)
{
	return *wqe_srqn(qp, qp_wqe(qp, qp->req.cur));
}

bool xrc_request(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	if (unlikely(qp->resp.have_wqe && pkt->psn == qp->resp.epsn && recv_srq_gone(c, qp))) {
		cause_request(c, qp, pkt, CAUSE_XRC_SRQ); /* XRC-04 */
		responder_fatal(c, qp, NAK_INVALID_REQ, pkt->psn, ABI_EVENT_QP_REQ_ERR, now);
		return false;
	}
	recv_name(c, qp, pkt->srqn);
	return true;
}
