/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path of the completer: one ACK often covers a run of SENDs and WRITEs of one packet
 * each, which just succeed. Their CQEs are written in one loop, after which the cursor moves once.
 * Any other WQE ends the run: completer.c continues there.
 */
#include "completer.h"
#include "core.h"
#include "cq.h"
#include "qp.h"
#include "seq24.h"
#include "wqe.h"

/* Whether the ACK of @p psn completes @p w, whose first packet is @p una, and nothing else has to
 * be done about it. */
static ALWAYS_INLINE bool is_plain(const struct send_wqe *w, uint32_t una, uint32_t psn)
{
	return w->first_psn == una && w->last_psn == una && seq24_le(una, psn) &&
	       (w->opcode == ABI_WR_RDMA_WRITE || w->opcode == ABI_WR_SEND) && !w->status;
}

/* REQ-35, CQ-08, CQ-09.  @return false when there is no room (CQ-01). */
static ALWAYS_INLINE bool complete(struct qp *qp, const struct send_wqe *w)
{
	const struct abi_cqe cqe = {
		.wr_id = w->wr_id,
		.byte_len = w->length,
		.qpn = qp->qpn,
		.status = ABI_WC_SUCCESS,
		.opcode = w->opcode == ABI_WR_SEND ? ABI_WC_SEND : ABI_WC_RDMA_WRITE,
	};

	if (!qp->sq_sig_all && !(w->flags & ABI_WQE_SIGNALED)) /* REQ-14 */
		return true;
	if (unlikely(cq_lane_full(qp->send_lane)))
		return false;
	cq_put(qp->send_lane, &cqe, qp->comp.cqes);
	qp->comp.cqes++;
	return true;
}

void completer_run(struct core *c, struct qp *qp, uint32_t psn)
{
	struct qp_comp *k = &qp->comp;
	struct cq_lane *lane = qp->send_lane;
	uint32_t before = k->cqes, head = k->head;

	if (!c->fast_paths || qp->traced || lane->overflow)
		return;
	for (; head != qp->req.fetched; head++) {
		const struct send_wqe *w = qp_wqe(qp, head);

		if (!is_plain(w, k->una, psn) || !complete(qp, w))
			break;
		k->una = seq24_add(k->una, 1);
	}
	if (head == k->head)
		return;
	k->acked += head - k->head;
	k->head = head;
	if (k->cqes != before && list_empty(&lane->touched))
		list_push(&c->touched, &lane->touched);
	atomic_store_explicit(&qp->sq.shared->consumer, head, memory_order_release);
}
