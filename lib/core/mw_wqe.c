/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding and invalidation of memory windows. These work requests send nothing: they take no PSN,
 * and are executed once, when the requester reaches them, that is when everything before them was
 * sent (REQ-11); a cursor that went back skips them. The WQEs after them are sent only when they
 * are executed, so that a SEND may tell the peer the new key (MW-13). They complete in their turn.
 */
#include "mw_wqe.h"
#include "qp_impl.h"
#include "requester.h"
#include "wqe.h"

static bool fenced(const struct qp *qp, const struct send_wqe *w)
{
	return (w->flags & ABI_WQE_FENCE) && qp->req.rd_started != qp->comp.rd_done; /* REQ-10 */
}

/* All WQEs that wait for one acknowledgement complete when it arrives, in one step. Each incomplete
 * request before the cursor of @p qp has a packet in flight; any excess over these was executed
 * already. */
static bool far_ahead(const struct qp *qp)
{
	uint32_t in_flight = qp->req.sent - qp->comp.acked;

	return qp->req.cur - qp->comp.head >= in_flight + LOCAL_AHEAD;
}

enum mw_result mw_qp_invalidate(struct core *c, struct qp *qp, uint32_t key)
{
	enum mw_result res = mw_invalidate(c->cfg.mrs, key, qp->pd, qp->qpn);

	qp->windows -= res == MW_DONE;
	return res;
}

static enum mw_result execute_bind(struct core *c, struct qp *qp, const struct send_wqe *w)
{
	struct mw_bind b = {
		.mw = w->bind.mw,
		.lkey = w->imm,
		.new_key = w->rkey,
		.access = w->bind.access,
		.addr = w->remote_addr,
		.length = w->bind.length,
	};
	enum mw_result res = mw_bind(c->cfg.mrs, &b, qp->pd, qp->qpn);

	/* Only type 1, which is not counted, may have been bound before. */
	qp->windows += res == MW_DONE;
	return res;
}

/* @return the status of @p w from now on. */
static uint8_t execute(struct core *c, struct qp *qp, struct send_wqe *w)
{
	bool bind = w->opcode == ABI_WR_BIND_MW;
	enum mw_result res = bind ? execute_bind(c, qp, w) : mw_qp_invalidate(c, qp, w->imm);

	/* A READ response from the window may be built and not sealed, or in progress on another
	 * worker. */
	if (res == MW_RETIRED || (res == MW_DONE && qp_built_now(c, qp))) {
		qp->grace = 0;
		return WQE_LOCAL_GRACE;
	}
	switch (res) {
	case MW_DONE:
		return WQE_LOCAL_DONE;
	case MW_AGAIN:
		return WQE_LOCAL;
	default: /* MW-11 */
		return wqe_refuse(
			w, ABI_WC_MW_BIND_ERR, bind ? CAUSE_POST_BIND : CAUSE_POST_INVALIDATE, res);
	}
}

/* Accesses through the former binding may be in progress. */
static bool grace_over(struct core *c, struct qp *qp)
{
	if (!qp->grace)
		qp->grace = core_grace_begin(c);
	return core_grace_over(c, qp->grace);
}

bool mw_wqe_work(struct core *c, struct qp *qp, struct send_wqe *w)
{
	if (w->status == WQE_LOCAL && (fenced(qp, w) || far_ahead(qp)))
		return false; /* progress schedules it again */
	if (w->status == WQE_LOCAL)
		w->status = execute(c, qp, w);
	if (w->status == WQE_LOCAL_GRACE && grace_over(c, qp))
		w->status = WQE_LOCAL_DONE;
	if (w->status == WQE_LOCAL || w->status == WQE_LOCAL_GRACE)
		qp_make_ready(c, qp); /* soon */
	return w->status == WQE_LOCAL_DONE;
}

bool mw_wqe_waits(const struct qp *qp)
{
	return qp_wqe(qp, qp->req.cur)->status == WQE_LOCAL_GRACE;
}

void mw_wqe_moved(struct qp *qp)
{
	qp->grace = 0;
}
