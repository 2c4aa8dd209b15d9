/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QP state machine (IBA 10.3.1): which transitions exist, which attributes each
 * requires and allows, which values are legal; then what each transition does. A command that
 * is refused leaves the QP as it was (QPS-14).
 */
#include <errno.h>
#include "completer.h"
#include "qp.h"
#include "requester.h"
#include "responder.h"
#include "seq24.h"
#include "timers.h"

#define STATES (ABI_QPS_ERR + 1)

struct transition {
	bool valid;
	uint32_t required;
	uint32_t optional;
};

/* QPS-01: [from][to] for RC, which is never in SQE. STATE itself is always allowed. */
static const struct transition rc_table[STATES][STATES] = {
	[ABI_QPS_RESET][ABI_QPS_RESET] = {true, 0, 0},
	[ABI_QPS_RESET][ABI_QPS_INIT] = {true, /* QPS-02 */
		ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS, 0},
	[ABI_QPS_INIT][ABI_QPS_RESET] = {true, 0, 0},
	[ABI_QPS_INIT][ABI_QPS_ERR] = {true, 0, 0},
	[ABI_QPS_INIT][ABI_QPS_INIT] = {true, 0, /* QPS-03 */
		ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS},
	[ABI_QPS_INIT][ABI_QPS_RTR] = {true, /* QPS-04, QPS-05 */
		ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN |
			ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER,
		ABI_QP_ALT_PATH | ABI_QP_ACCESS_FLAGS | ABI_QP_PKEY_INDEX},
	[ABI_QPS_RTR][ABI_QPS_RESET] = {true, 0, 0},
	[ABI_QPS_RTR][ABI_QPS_ERR] = {true, 0, 0},
	[ABI_QPS_RTR][ABI_QPS_RTS] = {true, /* QPS-06, QPS-07 */
		ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY | ABI_QP_SQ_PSN |
			ABI_QP_MAX_QP_RD_ATOMIC,
		ABI_QP_CUR_STATE | ABI_QP_ALT_PATH | ABI_QP_ACCESS_FLAGS | ABI_QP_MIN_RNR_TIMER |
			ABI_QP_PATH_MIG_STATE},
	[ABI_QPS_RTS][ABI_QPS_RESET] = {true, 0, 0},
	[ABI_QPS_RTS][ABI_QPS_ERR] = {true, 0, 0},
	[ABI_QPS_RTS][ABI_QPS_RTS] = {true, 0, /* QPS-08 */
		ABI_QP_CUR_STATE | ABI_QP_ACCESS_FLAGS | ABI_QP_ALT_PATH | ABI_QP_PATH_MIG_STATE |
			ABI_QP_MIN_RNR_TIMER},
	[ABI_QPS_RTS][ABI_QPS_SQD] = {true, 0, ABI_QP_EN_SQD_ASYNC_NOTIFY}, /* QPS-09 */
	[ABI_QPS_SQD][ABI_QPS_RESET] = {true, 0, 0},
	[ABI_QPS_SQD][ABI_QPS_ERR] = {true, 0, 0},
	[ABI_QPS_SQD][ABI_QPS_RTS] = {true, 0, /* QPS-11 */
		ABI_QP_CUR_STATE | ABI_QP_ALT_PATH | ABI_QP_ACCESS_FLAGS | ABI_QP_MIN_RNR_TIMER |
			ABI_QP_PATH_MIG_STATE},
	[ABI_QPS_SQD][ABI_QPS_SQD] = {true, 0, /* QPS-10 */
		ABI_QP_PORT | ABI_QP_AV | ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY |
			ABI_QP_MAX_QP_RD_ATOMIC | ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_ALT_PATH |
			ABI_QP_ACCESS_FLAGS | ABI_QP_PKEY_INDEX | ABI_QP_MIN_RNR_TIMER |
			ABI_QP_PATH_MIG_STATE},
	[ABI_QPS_ERR][ABI_QPS_RESET] = {true, 0, 0},
	[ABI_QPS_ERR][ABI_QPS_ERR] = {true, 0, 0},
};

/* --- may it be? ----------------------------------------------------------------------- */

static bool transition_allowed(const struct qp *qp, const struct core_cmd *cmd, unsigned to)
{
	const struct transition *t;

	if (to >= STATES)
		return false;
	t = &rc_table[qp->state][to];
	if (!t->valid)
		return false; /* QPS-01 */
	if ((cmd->mask & t->required) != t->required)
		return false; /* QPS-12 */
	if (cmd->mask & ~(t->required | t->optional | ABI_QP_STATE))
		return false; /* QPS-12 */
	if (qp->state == ABI_QPS_SQD && to == ABI_QPS_SQD && !completer_drained(qp))
		return false; /* QPS-19: what is under way goes on as it began */
	return !(cmd->mask & ABI_QP_CUR_STATE) || cmd->attr.cur_qp_state == qp->state; /* QPS-13 */
}

static bool mtu_legal(const struct core *c, const struct core_cmd *cmd)
{
	uint32_t mtu = cmd->attr.path_mtu;

	if (mtu < PATH_MTU_MIN || mtu > PATH_MTU_MAX || (mtu & (mtu - 1)))
		return false;
	return mtu <= c->cfg.ports->port[cmd->path.port].active_mtu;
}

/* QPS-15, for the attributes that come with the command. What an address vector may name is
 * checked where it is resolved, in ctl/cmd_modify.c (GID-06, ETH-06, VRB-05). */
static bool values_legal(const struct core *c, const struct qp *qp, const struct core_cmd *cmd)
{
	const struct abi_qp_attr *a = &cmd->attr;
	const uint32_t access = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE |
				ABI_ACCESS_REMOTE_READ | ABI_ACCESS_REMOTE_ATOMIC |
				ABI_ACCESS_FLUSH_GLOBAL | ABI_ACCESS_FLUSH_PERSIST;
	uint32_t m = cmd->mask;
	uint8_t port = m & ABI_QP_PORT ? a->port : qp->attr.port;
	uint16_t pkey = m & ABI_QP_PKEY_INDEX ? a->pkey_index : qp->attr.pkey_index;

	if ((m & ABI_QP_PORT) && (!a->port || a->port > c->cfg.ports->count))
		return false;
	if ((m & (ABI_QP_PORT | ABI_QP_PKEY_INDEX)) && pkey >= c->cfg.ports->port[port - 1].pkeys)
		return false;
	if ((m & ABI_QP_ACCESS_FLAGS) && (a->access_flags & ~access))
		return false;
	if ((m & ABI_QP_PATH_MTU) && !mtu_legal(c, cmd))
		return false;
	if ((m & ABI_QP_AV) && cmd->path.sl > 7)
		return false; /* ETH-06 */
	if ((m & ABI_QP_TIMEOUT) && a->timeout > 31)
		return false;
	if ((m & ABI_QP_RETRY_CNT) && a->retry_cnt > 7)
		return false;
	if ((m & ABI_QP_RNR_RETRY) && a->rnr_retry > 7)
		return false;
	if ((m & ABI_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31)
		return false;
	if ((m & ABI_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > RD_ATOMIC_MAX)
		return false;
	if ((m & ABI_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > RD_ATOMIC_MAX)
		return false;
	return !(m & (ABI_QP_ALT_PATH | ABI_QP_PATH_MIG_STATE)); /* EVT-08: no path migration */
}

/* --- doing it ------------------------------------------------------------------------- */

static void set_addressing(struct core *c, struct qp *qp, struct core_cmd *cmd)
{
	struct abi_qp_attr *q = &qp->attr;
	const struct abi_qp_attr *a = &cmd->attr;

	if (cmd->mask & ABI_QP_PORT)
		q->port = a->port;
	if (cmd->mask & ABI_QP_PKEY_INDEX)
		q->pkey_index = a->pkey_index;
	if (cmd->mask & (ABI_QP_PORT | ABI_QP_PKEY_INDEX))
		qp->pkey = c->cfg.ports->port[q->port - 1].pkey[q->pkey_index];
	if (cmd->mask & ABI_QP_DEST_QPN)
		q->dest_qpn = a->dest_qpn & SEQ24_MASK;
	if (!(cmd->mask & ABI_QP_AV))
		return;
	q->ah = a->ah;
	cmd->path.sgid = &cmd->sgid;
	cmd->path.src_qpn = qp->qpn;
	cmd->path.dst_qpn = q->dest_qpn;
	path_init(&qp->path, &cmd->path); /* UDP-11: the source port too */
}

static void set_limits(struct qp *qp, const struct core_cmd *cmd)
{
	struct abi_qp_attr *q = &qp->attr;
	const struct abi_qp_attr *a = &cmd->attr;
	uint32_t m = cmd->mask;

	if (m & ABI_QP_ACCESS_FLAGS)
		q->access_flags = a->access_flags;
	if (m & ABI_QP_PATH_MTU) {
		q->path_mtu = a->path_mtu;
		qp->mtu_shift = (uint8_t)__builtin_ctz(a->path_mtu);
	}
	if (m & ABI_QP_TIMEOUT) {
		q->timeout = a->timeout;
		qp->ack_timeout = timers_ack_timeout(a->timeout);
	}
	if (m & ABI_QP_RETRY_CNT)
		q->retry_cnt = a->retry_cnt;
	if (m & ABI_QP_RNR_RETRY)
		q->rnr_retry = a->rnr_retry;
	if (m & ABI_QP_MIN_RNR_TIMER)
		q->min_rnr_timer = a->min_rnr_timer;
	if (m & ABI_QP_MAX_QP_RD_ATOMIC)
		q->max_rd_atomic = a->max_rd_atomic;
	if (m & ABI_QP_MAX_DEST_RD_ATOMIC)
		q->max_dest_rd_atomic = a->max_dest_rd_atomic;
}

/* QPS-16: as new, but for what identifies it. What is posted is thrown away; indices go on, so
 * the application need not start its rings anew. */
static int reset(struct core *c, struct qp *qp, struct core_cmd *cmd)
{
	const uint32_t step = 256;
	uint32_t max = qp->sq.depth + qp->rq.depth; /* it may go on posting: not for ever */
	uint32_t n;

	qp->state = ABI_QPS_RESET;
	timers_stop(c, qp);
	qp_make_idle(c, qp);
	n = responder_discard(qp, step) + requester_discard(qp, step);
	cmd->progress += n;
	if (n && cmd->progress < max)
		return -EAGAIN;
	requester_reset(qp);
	completer_reset(qp);
	responder_reset(qp);
	window_init(&qp->win, qp->window_max);
	memset(&qp->attr, 0, sizeof(qp->attr));
	memset(&qp->path, 0, sizeof(qp->path));
	qp->comm_est = false;
	return 0;
}

static void enter_sqd(struct core *c, struct qp *qp, const struct core_cmd *cmd)
{
	qp->state = ABI_QPS_SQD;
	qp->attr.en_sqd_async_notify = /* QPS-19 */
		(cmd->mask & ABI_QP_EN_SQD_ASYNC_NOTIFY) && cmd->attr.en_sqd_async_notify;
	qp_check_drained(c, qp);
}

static int modify(struct core *c, struct qp *qp, struct core_cmd *cmd, uint64_t now)
{
	unsigned to = cmd->mask & ABI_QP_STATE ? cmd->attr.qp_state : qp->state;

	/* A reset that takes several steps has changed the state with its first. */
	if (!cmd->progress && (!transition_allowed(qp, cmd, to) || !values_legal(c, qp, cmd)))
		return -EINVAL; /* QPS-14: nothing is touched before both have been asked */
	if (to == ABI_QPS_RESET)
		return reset(c, qp, cmd);
	if (to == ABI_QPS_ERR) {
		qp_error(c, qp, now);
		return 0;
	}
	set_addressing(c, qp, cmd);
	set_limits(qp, cmd);
	if (cmd->mask & (ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY))
		completer_reload_retries(qp);
	if (to == ABI_QPS_SQD && qp->state == ABI_QPS_RTS) {
		enter_sqd(c, qp, cmd);
		return 0;
	}
	if (to == ABI_QPS_RTR)
		responder_start(qp, cmd->attr.rq_psn & SEQ24_MASK); /* QPS-15 */
	if (to == ABI_QPS_RTS && qp->state == ABI_QPS_RTR) {
		requester_start(qp, cmd->attr.sq_psn & SEQ24_MASK);
		completer_start(qp, cmd->attr.sq_psn & SEQ24_MASK);
	}
	qp->state = (uint8_t)to;
	qp_make_ready(c, qp); /* what was posted before RTS goes now (REQ-21) */
	return 0;
}

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

static void detach_qp(struct core *c, struct qp *qp)
{
	qp->state = ABI_QPS_RESET; /* QPS-22: packets that still find it are dropped */
	timers_stop(c, qp);
	qp_make_idle(c, qp);
}

/* A17.4.2: the AV stays what it was, but for the L2 address that was found for it. */
static void readdress(struct qp *qp, const struct core_cmd *cmd)
{
	if (!qp->path.hdr_len)
		return; /* it was reset meanwhile and leads nowhere */
	path_readdress(&qp->path, cmd->path.dmac, cmd->sgid.mac, cmd->path.local);
	memcpy(qp->attr.ah.dmac, cmd->path.dmac, 6);
}

int core_cmd(struct core *c, struct core_cmd *cmd, uint64_t now)
{
	switch (cmd->type) {
	case CORE_CMD_MODIFY_QP:
		return modify(c, cmd->qp, cmd, now);
	case CORE_CMD_QUERY_QP:
		query(cmd->qp, &cmd->attr);
		return 0;
	case CORE_CMD_READDRESS_QPS:
		for (uint32_t i = 0; i < cmd->n; i++)
			readdress(cmd->qps[i], cmd);
		return 0;
	case CORE_CMD_DETACH_QP:
		detach_qp(c, cmd->qp);
		return 0;
	case CORE_CMD_GIVE_QP:
		return qp_give(c, cmd->qp, cmd->worker);
	case CORE_CMD_TAKE_QP:
		return qp_take(c, cmd->qp);
	case CORE_CMD_DETACH_QPS:
		for (uint32_t i = 0; i < cmd->n; i++)
			detach_qp(c, cmd->qps[i]);
		return 0;
	case CORE_CMD_DETACH_CQ:
		list_del(&cmd->cq->lane[c->cfg.worker].touched);
		return 0;
	case CORE_CMD_DETACH_CQS:
		for (uint32_t i = 0; i < cmd->n; i++)
			list_del(&cmd->cqs[i]->lane[c->cfg.worker].touched);
		return 0;
	case CORE_CMD_COUNT_CQ:
		cmd->cqes = cq_lane_waiting(&cmd->cq->lane[c->cfg.worker]);
		return 0;
	case CORE_CMD_RESIZE_CQ:
		cq_lane_move(&cmd->cq->lane[c->cfg.worker], cmd->lane, cmd->cqes);
		return 0;
	}
	return -EINVAL;
}
