/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A QP changes its worker. Its QPN, which the peer knows, keeps naming its home; `owner` says which
 * worker handles it. Only the owner can name a successor, between two bursts, so no packet of the
 * QP is half handled and none waits to be sealed; the release store of `owner` hands over all of
 * its state. From then on the successor handles the QP's packets, even before it has run TAKE_QP,
 * which only sets the timer again and schedules the QP. Frames that arrive at any other worker are
 * handed off as always (decision 0040).
 */
#include <errno.h>
#include "cq.h"
#include "inject.h"
#include "mw_wqe.h"
#include "named.h"
#include "np.h"
#include "pacing.h"
#include "qp_impl.h"
#include "rp.h"
#include "trace.h"

static bool ours(const struct core *c, const struct qp *qp)
{
	return qp_owner(qp) == c->cfg.worker;
}

int qp_give(struct core *c, struct qp *qp, uint16_t worker, uint64_t now)
{
	if (!ours(c, qp) || worker >= WORKER_MAX)
		return -EPERM;
	wheel_cancel(&c->wheel, &qp->timer); /* comp.due stays */
	pacing_cancel(c, qp);		     /* its departure stays */
	qp_make_idle(c, qp);
	qp_undo_urgent(qp);
	list_del(&qp->troubled); /* its events stay */
	inject_give(qp);
	np_forget(c, qp);
	qp->tx_call = 0; /* everything built is sealed */
	qp->send_lane = &qp->send_lane->cq->lane[worker];
	qp->recv_lane = &qp->recv_lane->cq->lane[worker];
	qp->queue_run = 0; /* observation starts over */
	mw_wqe_moved(qp);
	named_moved(qp);
	if (qp->traced)
		trace_move(c, qp, worker, now);
	atomic_store_explicit(&qp->owner, worker, memory_order_release);
	return 0;
}

int qp_take(struct core *c, struct qp *qp)
{
	if (!ours(c, qp))
		return -EPERM;
	if (qp->comp.due && !wheel_armed(&qp->timer))
		wheel_arm(&c->wheel, &qp->timer, qp->comp.due);
	qp_events_take(c, qp);
	inject_take(c, qp);
	rp_take(c, qp);
	qp_make_ready(c, qp); /* it may have been ready; and there may be new posts */
	return 0;
}
