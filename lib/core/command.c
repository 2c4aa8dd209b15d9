/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of the control thread: qp_modify.c has those that change a QP's attributes. */
#include <errno.h>
#include "completer.h"
#include "core_command.h"
#include "cq.h"
#include "inject.h"
#include "np.h"
#include "pacing.h"
#include "qp_impl.h"
#include "qp_modify.h"
#include "timers.h"
#include "trace.h"
#include "ud.h"
#include "wqe.h"

/** Rounds in which a QP that is about to go may send what was posted. */
#define LAST_ROUNDS 64u

/* QPS-21 */
static void query(const struct qp *qp, struct abi_qp_attr *out)
{
	*out = qp->attr;
	out->qp_state = qp->state;
	out->cur_qp_state = qp->state;
	out->sq_draining = qp->state == ABI_QPS_SQD && !completer_drained(qp);
	out->rq_psn = qp->resp.epsn;
	out->sq_psn = qp->req.psn_new;
}

static void detach_qp(struct core *c, struct qp *qp, uint64_t now)
{
	if (qp->traced)
		trace_gone(c, qp, now);
	qp->state = ABI_QPS_RESET; /* QPS-22: packets that still find it are dropped */
	timers_stop(c, qp);
	pacing_cancel(c, qp);
	qp_make_idle(c, qp);
	qp_undo_urgent(qp);
	qp_events_forget(qp);
	inject_qp(c, qp, NULL);
	np_forget(c, qp);
}

static bool has_unsent(const struct qp *qp)
{
	return !qp->reliable && qp->state == ABI_QPS_RTS &&
	       (qp->req.cur != qp->req.fetched || ring_ready(&qp->sq));
}

/* A program may answer by a datagram, destroy its QP at once and end, as libfabric's rxd does. An
 * RNIC has sent the datagram by then, because the doorbell came before the command. Here it may
 * still be in the send queue, so the worker first spends some rounds on sending.
 * @return whether the command is to be executed again in the next round. */
static bool last_sends(
	struct core *c, struct core_cmd *cmd, struct qp *const qps[], uint32_t n, uint64_t now)
{
	bool more = false;

	for (uint32_t i = 0; i < n && cmd->progress < LAST_ROUNDS; i++) {
		if (!has_unsent(qps[i]))
			continue;
		if (!cmd->progress)
			core_doorbell(c, qps[i], now);
		more = true;
	}
	cmd->progress++;
	return more;
}

/* IP4-05, IP6-02, CNP-14 */
static void follow_port(struct core *c, struct qp *qp, uint64_t now)
{
	const struct port *port = &c->cfg.ports->port[qp->path.port];

	if (qp->path.hdr_len)
		path_set_ect(&qp->path, atomic_load_explicit(&port->rcm, memory_order_relaxed));
	pacing_refresh(c, qp, now);
}

static void set_careful(struct core *c, uint8_t why, bool on)
{
	c->careful = (uint8_t)(on ? c->careful | why : c->careful & ~why);
}

static int one_qp(struct core *c, struct core_cmd *cmd, uint64_t now)
{
	switch (cmd->type) {
	case CORE_CMD_MODIFY_QP:
		return qp_modify(c, cmd->qp, cmd, now);
	case CORE_CMD_REPATH_QP:
		return qp_repath(c, cmd->qp, cmd, now);
	case CORE_CMD_QUERY_QP:
		query(cmd->qp, &cmd->attr);
		return 0;
	case CORE_CMD_GIVE_QP:
		return qp_give(c, cmd->qp, cmd->worker, now);
	case CORE_CMD_TAKE_QP:
		return qp_take(c, cmd->qp);
	case CORE_CMD_DETACH_QP:
		if (last_sends(c, cmd, &cmd->qp, 1, now))
			return -EAGAIN;
		detach_qp(c, cmd->qp, now);
		return 0;
	default:
		return -EINVAL;
	}
}

static int many_qps(struct core *c, struct core_cmd *cmd, uint64_t now)
{
	if (cmd->type == CORE_CMD_SNAPSHOT_QPS)
		return ud_snapshot(c, cmd);
	if (cmd->type == CORE_CMD_DETACH_QPS && last_sends(c, cmd, cmd->qps, cmd->n, now))
		return -EAGAIN;
	for (uint32_t i = 0; i < cmd->n; i++) {
		if (cmd->type == CORE_CMD_READDRESS_QPS)
			qp_readdress(c, cmd->qps[i], cmd, now);
		else if (cmd->type == CORE_CMD_CONGESTION_QPS)
			follow_port(c, cmd->qps[i], now);
		else if (cmd->type == CORE_CMD_RELOAD_PKEYS)
			qp_load_pkey(c, cmd->qps[i]);
		else
			detach_qp(c, cmd->qps[i], now);
	}
	return 0;
}

static int rate(struct core *c, struct core_cmd *cmd, uint64_t now)
{
	switch (cmd->type) {
	case CORE_CMD_SET_WINDOW:
		cmd->qp->window_max = cmd->n;
		window_limit(&cmd->qp->win, cmd->n);
		return 0;
	case CORE_CMD_SET_RATE:
		pacing_set_rate(c, cmd->qp, cmd->rate, now);
		return 0;
	case CORE_CMD_SHAPE_QP:
		pacing_shape(c, cmd->qp, &cmd->shape, now);
		return 0;
	case CORE_CMD_SET_CC:
		pacing_set_cc(c, cmd->qp, &cmd->cc, now);
		return 0;
	case CORE_CMD_QUERY_RATE:
		pacing_look(c, cmd->qp, &cmd->limit, now);
		return 0;
	default:
		return -EINVAL;
	}
}

static int trace_or_inject(struct core *c, struct core_cmd *cmd)
{
	switch (cmd->type) {
	case CORE_CMD_TRACING:
		set_careful(c, CORE_TRACING, cmd->tracing);
		return 0;
	case CORE_CMD_INJECTING:
		set_careful(c, CORE_INJECTING, cmd->tracing);
		return 0;
	case CORE_CMD_TRACE_QP:
		return trace_qp(c, cmd->qp, cmd->trace);
	case CORE_CMD_INJECT_QP:
		return inject_qp(c, cmd->qp, cmd->inject);
	case CORE_CMD_ARM_FAULT:
		return inject_arm(cmd->qp, cmd->fault, &cmd->n);
	case CORE_CMD_CLEAR_FAULT:
		return inject_clear(cmd->qp, cmd->n);
	default:
		return -EINVAL;
	}
}

static int of_cq(struct core *c, struct core_cmd *cmd)
{
	uint16_t worker = c->cfg.worker;

	switch (cmd->type) {
	case CORE_CMD_DETACH_CQ:
		list_del(&cmd->cq->lane[worker].touched);
		return 0;
	case CORE_CMD_DETACH_CQS:
		for (uint32_t i = 0; i < cmd->n; i++)
			list_del(&cmd->cqs[i]->lane[worker].touched);
		return 0;
	case CORE_CMD_COUNT_CQ:
		cmd->cqes = cq_lane_waiting(&cmd->cq->lane[worker]);
		return 0;
	case CORE_CMD_RESIZE_CQ:
		cq_lane_move(&cmd->cq->lane[worker], cmd->lane, cmd->cqes);
		return 0;
	default:
		return -EINVAL;
	}
}

int core_cmd(struct core *c, struct core_cmd *cmd, uint64_t now)
{
	c->clock = now;
	switch (cmd->type) {
	case CORE_CMD_MODIFY_QP:
	case CORE_CMD_REPATH_QP:
	case CORE_CMD_QUERY_QP:
	case CORE_CMD_GIVE_QP:
	case CORE_CMD_TAKE_QP:
	case CORE_CMD_DETACH_QP:
		return one_qp(c, cmd, now);
	case CORE_CMD_SNAPSHOT_QPS:
	case CORE_CMD_READDRESS_QPS:
	case CORE_CMD_CONGESTION_QPS:
	case CORE_CMD_RELOAD_PKEYS:
	case CORE_CMD_DETACH_QPS:
		return many_qps(c, cmd, now);
	case CORE_CMD_SET_WINDOW:
	case CORE_CMD_SET_RATE:
	case CORE_CMD_SHAPE_QP:
	case CORE_CMD_SET_CC:
	case CORE_CMD_QUERY_RATE:
		return rate(c, cmd, now);
	case CORE_CMD_TRACING:
	case CORE_CMD_INJECTING:
	case CORE_CMD_TRACE_QP:
	case CORE_CMD_INJECT_QP:
	case CORE_CMD_ARM_FAULT:
	case CORE_CMD_CLEAR_FAULT:
		return trace_or_inject(c, cmd);
	case CORE_CMD_DETACH_CQ:
	case CORE_CMD_DETACH_CQS:
	case CORE_CMD_COUNT_CQ:
	case CORE_CMD_RESIZE_CQ:
		return of_cq(c, cmd);
	}
	return -EINVAL;
}
