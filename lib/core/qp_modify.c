/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QP state machine (IBA 10.3.1): which transitions exist, which attributes each requires and
 * allows, which values are legal; then the effect of each transition. A command that is refused
 * leaves the QP unchanged (QPS-14).
 */
#include <errno.h>
#include "completer.h"
#include "core_command.h"
#include "cq.h"
#include "headers.h"
#include "inject.h"
#include "named.h"
#include "np.h"
#include "pacing.h"
#include "qp_impl.h"
#include "qp_modify.h"
#include "requester.h"
#include "responder.h"
#include "rp.h"
#include "seq24.h"
#include "timers.h"
#include "trace.h"
#include "transition.h"
#include "wqe.h"

/** Attributes that must agree with the QP's port. */
#define OF_PORT (ABI_QP_PORT | ABI_QP_PKEY_INDEX | ABI_QP_AV | ABI_QP_PATH_MTU)

/* --- is it allowed? --------------------------------------------------------------------- */

static struct modify_result transition_allowed(
	const struct qp *qp, const struct core_cmd *cmd, unsigned to)
{
	struct modify_result v = transition_check(qp->type, qp->state, to, cmd->mask);

	if (v.refusal != MODIFY_OK)
		return v;
	if (qp->state == ABI_QPS_SQD && to == ABI_QPS_SQD && !completer_drained(qp))
		v.refusal = MODIFY_DRAINING; /* QPS-19: outstanding requests finish as they began */
	else if ((cmd->mask & ABI_QP_CUR_STATE) && cmd->attr.cur_qp_state != qp->state)
		v.refusal = MODIFY_CUR_STATE; /* QPS-13 */
	return v;
}

/* The state that @p cmd leads to. */
static unsigned state_after(const struct qp *qp, const struct core_cmd *cmd)
{
	return cmd->mask & ABI_QP_STATE ? cmd->attr.qp_state : qp->state;
}

/* The port that the QP has after @p cmd, whose transition is valid. An address vector alone sets
 * the port where the transition allows one, as in Linux (QPS-10). */
static unsigned port_after(const struct qp *qp, const struct core_cmd *cmd)
{
	if (cmd->mask & ABI_QP_PORT)
		return cmd->attr.port;
	if ((cmd->mask & ABI_QP_AV) &&
		transition_takes_port(qp->type, qp->state, state_after(qp, cmd)))
		return cmd->path.port + 1u;
	return qp->attr.port;
}

static bool mtu_legal(uint32_t mtu)
{
	return mtu >= PATH_MTU_MIN && mtu <= PATH_MTU_MAX && !(mtu & (mtu - 1));
}

/* QPS-15, for the attributes in the command. The contents of an address vector are checked where it
 * is resolved, in ctl/verbs/qp_modify.c (GID-06, ETH-06, VRB-05).
 * @return the first attribute whose value is illegal, or 0. */
static uint32_t illegal_value(const struct core *c, const struct core_cmd *cmd)
{
	const struct abi_qp_attr *a = &cmd->attr;
	const uint32_t access = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE |
				ABI_ACCESS_REMOTE_READ | ABI_ACCESS_REMOTE_ATOMIC |
				ABI_ACCESS_FLUSH_GLOBAL | ABI_ACCESS_FLUSH_PERSIST;
	uint32_t m = cmd->mask;

	if ((m & ABI_QP_PORT) && (!a->port || a->port > c->cfg.ports->count))
		return ABI_QP_PORT;
	if ((m & ABI_QP_ACCESS_FLAGS) && (a->access_flags & ~access))
		return ABI_QP_ACCESS_FLAGS;
	if ((m & ABI_QP_PATH_MTU) && !mtu_legal(a->path_mtu))
		return ABI_QP_PATH_MTU;
	if ((m & ABI_QP_AV) && a->ah.sl >= SL_COUNT)
		return ABI_QP_AV; /* ETH-06 */
	if ((m & ABI_QP_TIMEOUT) && a->timeout > 31)
		return ABI_QP_TIMEOUT;
	if ((m & ABI_QP_RETRY_CNT) && a->retry_cnt > 7)
		return ABI_QP_RETRY_CNT;
	if ((m & ABI_QP_RNR_RETRY) && a->rnr_retry > 7)
		return ABI_QP_RNR_RETRY;
	if ((m & ABI_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31)
		return ABI_QP_MIN_RNR_TIMER;
	if ((m & ABI_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > RD_ATOMIC_MAX)
		return ABI_QP_MAX_QP_RD_ATOMIC;
	if ((m & ABI_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > RD_ATOMIC_MAX)
		return ABI_QP_MAX_DEST_RD_ATOMIC;
	return m & (ABI_QP_ALT_PATH | ABI_QP_PATH_MIG_STATE); /* EVT-08: no path migration */
}

/* QPS-15: the P_Key table of @p p has a valid entry at the QP's index. */
static bool pkey_exists(const struct port *p, const struct qp *qp, const struct core_cmd *cmd)
{
	uint16_t index = cmd->mask & ABI_QP_PKEY_INDEX ? cmd->attr.pkey_index : qp->attr.pkey_index;

	return index < p->pkeys && pkey_valid(p->pkey[index]);
}

/* QPS-15, BTH-11, VAL-09: a QP has one port. Its packets leave by that port, with a P_Key of its
 * table, and fit its MTU. A QP that stays at its port keeps its values even when the port's limits
 * have shrunk (doc/decisions/0030).
 * @return the first attribute that does not agree with the port, or 0. */
static uint32_t not_of_port(const struct core *c, const struct qp *qp, const struct core_cmd *cmd)
{
	unsigned port = port_after(qp, cmd);
	const struct port *p = &c->cfg.ports->port[port - 1];
	bool moves = port != qp->attr.port;
	uint32_t m = cmd->mask;
	uint32_t mtu = m & ABI_QP_PATH_MTU ? cmd->attr.path_mtu : qp->attr.path_mtu;

	if ((m & ABI_QP_AV) && cmd->path.port + 1u != port)
		return ABI_QP_AV;
	if (moves && !(m & ABI_QP_AV) && qp->path.hdr_len)
		return ABI_QP_PORT;
	if ((moves || (m & (ABI_QP_PORT | ABI_QP_PKEY_INDEX))) && !pkey_exists(p, qp, cmd))
		return ABI_QP_PKEY_INDEX;
	if ((moves || (m & ABI_QP_PATH_MTU)) && mtu > p->active_mtu)
		return ABI_QP_PATH_MTU;
	return 0;
}

/* QPS-14: everything is checked before anything changes. */
static bool allowed(const struct core *c, const struct qp *qp, struct core_cmd *cmd, unsigned to)
{
	cmd->result = transition_allowed(qp, cmd, to);
	if (cmd->result.refusal != MODIFY_OK)
		return false;
	cmd->result.attrs = illegal_value(c, cmd);
	if (!cmd->result.attrs && (cmd->mask & OF_PORT)) {
		cmd->result.attrs = not_of_port(c, qp, cmd);
		cmd->result.port = (uint8_t)port_after(qp, cmd);
	}
	if (cmd->result.attrs)
		cmd->result.refusal = MODIFY_VALUE;
	return !cmd->result.attrs;
}

/* --- the change ----------------------------------------------------------------------- */

/* Whether the headers of its peer's packets are known: RC over IPv4, without a tag, by the wire. */
static bool peer_is_known(const struct qp *qp)
{
	const struct path *p = &qp->path;

	return qp->opc == OPC_RC && p->net == NET_IPV4 &&
	       !p->vid &&		       /* ETH-07; it is not 0 in RESET, without a path */
	       !p->local &&		       /* SEC-03 */
	       pkey_match(qp->pkey, qp->pkey); /* VAL-08: a limited member accepts only full ones */
}

/* Path or P_Key have changed, and what is expected with them. The rest of classify.c's checks is
 * made for each packet: the MAC by frame_expected(), ICRC and state by core_rx(). */
static void expect_peer(const struct core *c, struct qp *qp)
{
	const uint8_t *ip = qp->path.hdr + qp->path.l3_off;
	const struct expect_spec s = {
		.src_ip = ip + IP4_DST,
		.dst_ip = ip + IP4_SRC,
		.mac = &c->cfg.ports->port[qp->path.port].mac,
		.dest_qp = qp->qpn,
		.pkey = qp->pkey,
		.opc = qp->opc,
		.port = qp->path.port,
	};

	if (peer_is_known(qp))
		expect_set(&qp->expect, &s);
	else
		expect_nothing(&qp->expect);
}

/* BTH-11, VAL-09: reads the current entry at the QP's index. */
void qp_load_pkey(const struct core *c, struct qp *qp)
{
	const struct abi_qp_attr *a = &qp->attr;

	if (a->port) /* 0: it was reset */
		qp->pkey = c->cfg.ports->port[a->port - 1].pkey[a->pkey_index];
	expect_peer(c, qp);
}

static void set_path(struct core *c, struct qp *qp, struct core_cmd *cmd)
{
	qp->attr.ah = cmd->attr.ah;
	cmd->path.sgid = &cmd->sgid;
	cmd->path.src_qpn = qp->qpn;
	cmd->path.dst_qpn = qp->attr.dest_qpn;
	path_init(&qp->path, &cmd->path); /* UDP-11: the source port too */
	expect_peer(c, qp);
	qp_rerouted(c, qp);
}

static void set_addressing(struct core *c, struct qp *qp, struct core_cmd *cmd)
{
	struct abi_qp_attr *q = &qp->attr;
	const struct abi_qp_attr *a = &cmd->attr;

	q->port = (uint8_t)port_after(qp, cmd);
	if (cmd->mask & ABI_QP_PKEY_INDEX)
		q->pkey_index = a->pkey_index;
	if (cmd->mask & (ABI_QP_PORT | ABI_QP_PKEY_INDEX | ABI_QP_AV))
		qp_load_pkey(c, qp);
	if (cmd->mask & ABI_QP_DEST_QPN)
		q->dest_qpn = a->dest_qpn & SEQ24_MASK;
	if (cmd->mask & ABI_QP_AV)
		set_path(c, qp, cmd);
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
	if (m & ABI_QP_QKEY)
		q->qkey = a->qkey;
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

/* QPS-16: initial state, except for the QP's identity. Posted WQEs are discarded; indices continue,
 * so the application need not restart its rings. */
static int reset(struct core *c, struct qp *qp, struct core_cmd *cmd, uint64_t now)
{
	const uint32_t step = 256;
	uint32_t max = qp->sq.depth + qp->rq.depth; /* bounded: the application may keep posting */
	uint32_t n;

	qp->state = ABI_QPS_RESET;
	timers_stop(c, qp);
	pacing_cancel(c, qp);
	qp_make_idle(c, qp);
	qp_undo_urgent(qp);
	if (!named_recalled(c, qp)) {
		cmd->progress |= 1;
		return -EAGAIN;
	}
	n = responder_discard(qp, step) + requester_discard(qp, step);
	cmd->progress += n;
	if (n && cmd->progress < max)
		return -EAGAIN;
	requester_reset(qp);
	completer_reset(qp);
	responder_reset(qp);
	window_init(&qp->win, qp->window_max);
	memset(&qp->why, 0, sizeof(qp->why));
	qp_set_defaults(qp);
	pacing_reset(c, qp, now);
	qp->comm_est = false;
	inject_forget(qp);
	np_restart(c, qp);
	return 0;
}

/* QPS-20. Nobody reads memory of its requests when the command is over. */
static int fail(struct core *c, struct qp *qp, struct core_cmd *cmd, uint64_t now)
{
	if (!cmd->progress)
		cause_plain(qp, CAUSE_COMMAND, 0);
	qp_error(c, qp, now);
	cmd->progress = 1;
	return named_recalled(c, qp) ? 0 : -EAGAIN;
}

/* SQE -> RTS. Everything posted so far is flushed first, as it would have been in SQE (IBA
 * 10.3.1.7); every packet that was built is sealed by now. */
static int recover(struct core *c, struct qp *qp, struct core_cmd *cmd, uint64_t now)
{
	const uint32_t step = 256;
	uint32_t max = 2 * qp->sq.depth; /* bounded: the application may keep posting */
	uint32_t n = 0;

	qp->tx_call = 0;
	while (n < step && completer_flush_one(c, qp, now))
		n++;
	cmd->progress += n;
	if (qp->state != ABI_QPS_SQE) {
		cmd->result =
			(struct modify_result){.refusal = MODIFY_NO_TRANSITION, .state = qp->state};
		return -EINVAL; /* its CQ overflowed */
	}
	if (n == step && cmd->progress < max)
		return -EAGAIN;
	requester_resume(qp);
	cause_forget(qp);
	return 0;
}

static void enter_sqd(struct core *c, struct qp *qp, const struct core_cmd *cmd)
{
	qp->state = ABI_QPS_SQD;
	qp->attr.en_sqd_async_notify = /* QPS-19 */
		(cmd->mask & ABI_QP_EN_SQD_ASYNC_NOTIFY) && cmd->attr.en_sqd_async_notify;
	qp_check_drained(c, qp);
}

static int change(struct core *c, struct qp *qp, struct core_cmd *cmd, uint64_t now)
{
	unsigned to = state_after(qp, cmd);

	bool begun = cmd->progress && (to == ABI_QPS_RESET || to == ABI_QPS_ERR);

	/* The first step of a change in several steps has already changed the state. */
	if (!begun && !allowed(c, qp, cmd, to))
		return -EINVAL;
	if (to == ABI_QPS_RESET)
		return reset(c, qp, cmd, now);
	if (to == ABI_QPS_ERR)
		return fail(c, qp, cmd, now);
	if (qp->state == ABI_QPS_SQE) {
		int err = recover(c, qp, cmd, now);

		if (err)
			return err;
	}
	set_addressing(c, qp, cmd);
	set_limits(qp, cmd);
	if (cmd->mask & (ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY))
		completer_reload_retries(qp);
	if (to == ABI_QPS_SQD && qp->state == ABI_QPS_RTS) {
		enter_sqd(c, qp, cmd);
		return 0;
	}
	if (to == ABI_QPS_RTR) {
		/* QPS-15; datagrams have none */
		responder_start(qp, cmd->mask & ABI_QP_RQ_PSN ? cmd->attr.rq_psn & SEQ24_MASK : 0);
		pacing_restart(c, qp, now);
		rp_restart(c, qp);
	}
	pacing_refresh(c, qp, now);
	if (to == ABI_QPS_RTS && qp->state == ABI_QPS_RTR) {
		requester_start(qp, cmd->attr.sq_psn & SEQ24_MASK);
		completer_start(qp, cmd->attr.sq_psn & SEQ24_MASK);
		qp->why.sq_psn = qp->comp.una;
		qp->why.first_wqe = qp->comp.head;
	}
	qp->state = (uint8_t)to;
	qp_make_ready(c, qp); /* requests posted before RTS are sent now (REQ-21) */
	return 0;
}

int qp_modify(struct core *c, struct qp *qp, struct core_cmd *cmd, uint64_t now)
{
	struct trace_step s;
	int err;

	if (!qp->traced)
		return change(c, qp, cmd, now);
	trace_begin(&s, qp, now);
	err = change(c, qp, cmd, now);
	trace_end(&s, c, qp, now);
	return err;
}

/* A17.4.2: the AV is unchanged, except for its resolved L2 address. */
void qp_readdress(struct core *c, struct qp *qp, const struct core_cmd *cmd, uint64_t now)
{
	if (!qp->path.hdr_len)
		return; /* it was reset meanwhile and has no path */
	path_readdress(&qp->path, cmd->path.dmac, cmd->sgid.mac, cmd->path.local);
	expect_peer(c, qp);
	memcpy(qp->attr.ah.dmac, cmd->path.dmac, 6);
	qp_rerouted(c, qp);
	pacing_refresh(c, qp, now);
}

int qp_repath(struct core *c, struct qp *qp, struct core_cmd *cmd, uint64_t now)
{
	if (!qp->path.hdr_len)
		return -EINVAL;
	set_path(c, qp, cmd);
	pacing_refresh(c, qp, now);
	return 0;
}
