/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MODIFY_QP. The core decides which attributes a transition takes; this file turns the address
 * vector into a path: SGID entry, destination MAC (A17.4.2, GID-05, GID-06). If the kernel has to
 * resolve the destination, the reply is sent later and other commands proceed meanwhile.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "abi_names.h"
#include "bits.h"
#include "config/ctl_parts.h"
#include "core.h"
#include "flow.h"
#include "net/gids.h"
#include "net/neigh.h"
#include "net/net.h"
#include "net/netport.h"
#include "qp.h"
#include "refuse.h"
#include "session/failures.h"
#include "session/quota.h"
#include "session/session.h"
#include "session/sessions.h"
#include "text/sentence.h"
#include "verbs/av.h"
#include "verbs/command.h"
#include "verbs/dest.h"
#include "verbs/group.h"
#include "verbs/qp_cc.h"
#include "verbs/qp_obj.h"
#include "worker.h"

/** Q_Keys that only network managers assign (IBA 10.2.5): as in Linux, unprivileged programs may
 *  not use them. */
#define QKEY_CONTROLLED 0x80000000u

/* --- why the worker refused --------------------------------------------------------------- */

/* The names of the attributes in @p mask, as programs write them; ibv_modify_qp(3) has IBV_ in
 * place of ROCI_. */
static const char *attr_names(uint32_t mask, char text[ABI_SENTENCE_MAX])
{
	static const char *const names[] = {"STATE", "CUR_STATE", "EN_SQD_ASYNC_NOTIFY",
		"ACCESS_FLAGS", "PKEY_INDEX", "PORT", "QKEY", "AV", "PATH_MTU", "TIMEOUT",
		"RETRY_CNT", "RNR_RETRY", "RQ_PSN", "MAX_QP_RD_ATOMIC", "ALT_PATH", "MIN_RNR_TIMER",
		"SQ_PSN", "MAX_DEST_RD_ATOMIC", "PATH_MIG_STATE", "CAP", "DEST_QPN"};
	size_t len = 0;

	for (unsigned i = 0; i < 32 && len < ABI_SENTENCE_MAX; i++) {
		if (!(mask >> i & 1))
			continue;
		if (i < ARRAY_SIZE(names))
			len += (size_t)snprintf(text + len, ABI_SENTENCE_MAX - len, "%sROCI_QP_%s",
				len ? ", " : "", names[i]);
		else
			len += (size_t)snprintf(
				text + len, ABI_SENTENCE_MAX - len, "%sbit %u", len ? ", " : "", i);
	}
	return text;
}

static int explain_transition(const struct qp_obj *o, int err, struct reply *r)
{
	const struct core_cmd *cmd = &o->cmd;
	uint8_t from = cmd->result.state;

	if (from == ABI_QPS_ERR)
		return refuse(r->why, err,
			"a QP in ERR can only go to RESET: see why it failed (roci_qp_error()), "
			"then set it up again");
	if (cmd->mask & ABI_QP_STATE)
		return refuse(r->why, err,
			"a QP in %s cannot go to %s: the states are RESET, INIT, RTR, RTS in "
			"turn; see ibv_modify_qp(3)",
			qp_state_name(from), qp_state_name(cmd->attr.qp_state));
	return refuse(
		r->why, err, "only the state of a QP in %s can be modified", qp_state_name(from));
}

/* Explains attributes that contradict each other (QPS-15). */
static int explain_port(const struct qp_obj *o, unsigned port, int err, struct reply *r)
{
	const struct core_cmd *cmd = &o->cmd;
	uint32_t active = o->session->ctl->net->port[port - 1].shared->active_mtu;

	if (cmd->result.attrs == ABI_QP_AV)
		return refuse(r->why, err,
			"the address vector uses port %u, but the QP has port %u: give both the "
			"same port number",
			cmd->path.port + 1u, port);
	if (cmd->result.attrs == ABI_QP_PORT)
		return refuse(r->why, err,
			"the QP's address vector uses port %u: set an address vector of port %u "
			"together with the port (ROCI_QP_AV)",
			o->qp->path.port + 1u, port);
	if (cmd->result.attrs == ABI_QP_PKEY_INDEX)
		return refuse(r->why, err,
			"entry %u of port %u's P_Key table is empty, or beyond its end: `rocictl "
			"show pkeys` lists the entries, and 0 is usual",
			cmd->mask & ABI_QP_PKEY_INDEX ? cmd->attr.pkey_index
						      : o->qp->attr.pkey_index,
			port);
	if (cmd->mask & ABI_QP_PATH_MTU)
		return refuse(r->why, err,
			"a path MTU of %u is above the %u that port %u supports: use that, or "
			"raise the MTU of its network device to %u",
			cmd->attr.path_mtu, active, port, cmd->attr.path_mtu + 96);
	return refuse(r->why, err,
		"the QP's path MTU of %u is above the %u that port %u supports: raise the MTU of "
		"its network device to %u, or set up the QP again on that port",
		o->qp->attr.path_mtu, active, port, o->qp->attr.path_mtu + 96);
}

static int explain_value(const struct qp_obj *o, int err, struct reply *r)
{
	const struct core_cmd *cmd = &o->cmd;
	unsigned port = cmd->result.port;
	char text[ABI_SENTENCE_MAX];

	if (cmd->result.attrs & (ABI_QP_ALT_PATH | ABI_QP_PATH_MIG_STATE))
		return refuse(r->why, err, "rocid does not migrate paths: leave %s out of the mask",
			attr_names(cmd->result.attrs, text));
	if (port)
		return explain_port(o, port, err, r);
	return refuse(r->why, err,
		"the value of %s is out of range: see roci_query_device() for the limits, and "
		"ibv_modify_qp(3) for the rest",
		attr_names(cmd->result.attrs, text));
}

/* Explains the core's refusal (QPS-12). */
static int explain(const struct qp_obj *o, int err, struct reply *r)
{
	const struct core_cmd *cmd = &o->cmd;
	const struct modify_result *v = &cmd->result;
	uint8_t to = cmd->mask & ABI_QP_STATE ? cmd->attr.qp_state : v->state;
	char text[ABI_SENTENCE_MAX];

	if (err != -EINVAL)
		return refuse(
			r->why, err, "the worker could not modify the QP: %s", strerror(-err));
	switch (v->refusal) {
	case MODIFY_MISSING:
		return refuse(r->why, err, "%s needs %s: set the value and its bit in the mask",
			qp_state_name(to), attr_names(v->attrs, text));
	case MODIFY_FORBIDDEN:
		return refuse(r->why, err,
			"%s -> %s of a QP of type %s does not take %s: leave it out of the mask",
			qp_state_name(v->state), qp_state_name(to), qp_type_name(o->qp->type),
			attr_names(v->attrs, text));
	case MODIFY_CUR_STATE:
		return refuse(r->why, err, "the QP is in %s, not in %s as cur_qp_state says",
			qp_state_name(v->state), qp_state_name(cmd->attr.cur_qp_state));
	case MODIFY_DRAINING: /* QPS-19 */
		return refuse(r->why, err,
			"the send queue is still draining: wait for SQ_DRAINED, or until query_qp "
			"reports sq_draining 0");
	case MODIFY_VALUE:
		return explain_value(o, err, r);
	default:
		return explain_transition(o, err, r);
	}
}

/* --- execution -------------------------------------------------------------------------- */

/* Has the worker execute o->cmd. */
static int execute(struct qp_obj *o, struct reply *r)
{
	int err = worker_call(o->session->ctl->dp->worker[o->worker], &o->cmd);

	if (err)
		return explain(o, err, r);
	if (o->cc && o->cmd.mask & ABI_QP_PORT)
		qp_cc_follow(o);
	return 0;
}

/* Withdraws the flow by which Fast CNPs find the QP; @p o may be given another one then. */
static void leave_flow(struct qp_obj *o)
{
	struct dataplane *dp = o->session->ctl->dp;

	if (!o->flow.added)
		return;
	flow_remove(dp->flows, &o->flow);
	worker_grace(dp);
}

/* FCN-08 */
static void join_flow(struct qp_obj *o)
{
	leave_flow(o);
	if (core_flow(&o->flow, o->qp))
		flow_add(o->session->ctl->dp->flows, &o->flow);
}

/* The same with an address vector, whose GID and destination replace the QP's former ones. */
static int execute_av(struct qp_obj *o, struct reply *r)
{
	struct dest *d = dest_get(o->session->ctl, &o->key);
	int err;

	/* The entry's MAC may be new, as may be the port's congestion control. */
	o->cmd.sgid = o->wanted.gids->table.entry[o->wanted.index];
	o->cmd.path.ect = av_ect(o->session->ctl, o->cmd.path.port);
	err = d ? execute(o, r) : refuse_memory(r->why);
	if (!err) {
		gid_hold_set(&o->hold, o->wanted.gids, o->wanted.index);
		dest_join(d, o, &o->cmd);
		join_flow(o);
		o->sport = 0; /* UDP-11 */
	} else if (d) {
		dest_release(d);
	}
	gid_hold_set(&o->wanted, NULL, 0);
	return err;
}

static int execute_without_av(struct qp_obj *o, struct reply *r)
{
	const struct core_cmd *cmd = &o->cmd;
	struct ctl *ctl = o->session->ctl;
	int err;

	if ((cmd->mask & ABI_QP_STATE) && cmd->attr.qp_state == ABI_QPS_RESET)
		failure_keep(ctl, o);
	else if ((cmd->mask & ABI_QP_STATE) && cmd->attr.qp_state == ABI_QPS_RTS)
		failure_of_qp(ctl, o); /* before SQE -> RTS clears the cause */
	err = execute(o, r);

	if (!err && (cmd->mask & ABI_QP_STATE) && cmd->attr.qp_state == ABI_QPS_RESET) {
		dest_leave(o);
		leave_flow(o);
		gid_hold_set(&o->hold, NULL, 0);
	}
	return err;
}

static void set_dmac(struct core_cmd *cmd, const uint8_t mac[6])
{
	memcpy(cmd->path.dmac, mac, 6);
	memcpy(cmd->attr.ah.dmac, mac, 6); /* for QUERY_QP */
}

/* The kernel answered or timed out: finishes the command and sends its reply. */
static void resolved(struct neigh_query *q, int err, const char *why)
{
	struct qp_obj *o = container_of(q, struct qp_obj, query);
	struct reply r = {0};

	o->resolving = false;
	quota_give_one(o->session, CTL_LOOKUPS);
	if (err) {
		gid_hold_set(&o->wanted, NULL, 0);
		refuse(r.why, err, "%s", why);
	} else {
		set_dmac(&o->cmd, q->mac);
		err = execute_av(o, &r);
	}
	session_reply(o->session, &o->request, err, &r);
}

/* Finds the destination MAC.  @return 0, DEFERRED or a negative errno with a sentence. */
static int find_dmac(struct session *s, struct qp_obj *o, const struct request *q, struct reply *r)
{
	struct core_cmd *cmd = &o->cmd;
	const struct abi_ah_attr *ah = &cmd->attr.ah;
	int err;

	err = av_dest_key(s->ctl, ah, &o->key, r->why);
	if (err)
		return err;
	o->query = (struct neigh_query){.done = resolved};
	err = av_find(s, &o->key, &o->query, &cmd->path.local, r->why);
	if (!err)
		set_dmac(cmd, o->query.mac);
	if (err != DEFERRED)
		return err;
	o->resolving = true;
	o->request = q->msg;
	return DEFERRED;
}

static int modify_with_av(
	struct session *s, struct qp_obj *o, const struct request *q, struct reply *r)
{
	const struct abi_ah_attr *ah = &o->cmd.attr.ah;
	const struct gid_entry *sgid;
	struct netport *port;
	char text[GID_TEXT];
	int err = av_check(s->ctl, ah, r->why);

	if (err)
		return err;
	if (!av_is_unicast(ah->dgid))
		return refuse(r->why, -EINVAL,
			"the destination GID %s does not address a single host: set the peer's GID",
			gid_text(ah->dgid, text));
	port = &s->ctl->net->port[ah->port - 1];
	sgid = gids_select(&port->gids, ah->sgid_index, ah->dgid, r->why);
	if (!sgid)
		return -EINVAL; /* QPS-15 */
	o->cmd.sgid = *sgid;
	av_path(s->ctl, ah, &o->cmd.path);
	gid_hold_set(&o->wanted, &port->gids, ah->sgid_index);
	err = find_dmac(s, o, q, r);
	if (err == DEFERRED)
		return err;
	if (err) {
		gid_hold_set(&o->wanted, NULL, 0);
		return err;
	}
	return execute_av(o, r);
}

/* MC-04: a group's packets arrive at the port that its QPs had when they were attached. */
static int check_groups(const struct qp_obj *o, const struct abi_modify_qp *in, struct reply *r)
{
	int port = group_port(o);

	if (port < 0 || !(in->mask & ABI_QP_PORT) || in->attr.port == port + 1)
		return 0;
	return refuse(r->why, -EBUSY,
		"the QP is attached to multicast groups of port %d: detach it from them before you "
		"change its port",
		port + 1);
}

int cmd_modify_qp(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_modify_qp in;
	struct qp_obj *o;
	int err;

	memcpy(&in, q->body, sizeof(in));
	o = handle_get(&s->qps, in.handle);
	if (!o)
		return refuse(r->why, -EINVAL, "there is no QP %u", in.handle);
	if (o->resolving)
		return refuse(r->why, -EBUSY,
			"the QP's last modify_qp is still resolving its destination: wait for it");
	err = check_groups(o, &in, r);
	if (err)
		return err;
	o->cmd = (struct core_cmd){
		.type = CORE_CMD_MODIFY_QP,
		.qp = o->qp,
		.mask = in.mask,
		.attr = in.attr,
	};
	if ((in.mask & ABI_QP_QKEY) && in.attr.qkey & QKEY_CONTROLLED && !session_privileged(s))
		return refuse(r->why, -EPERM,
			"Q_Keys with bit 31 set are for privileged programs: use one below "
			"0x80000000");
	if (in.mask & ABI_QP_AV)
		return modify_with_av(s, o, q, r);
	return execute_without_av(o, r);
}

int cmd_limit_qp(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_limit_qp in;
	struct core_cmd cmd = {.type = CORE_CMD_SHAPE_QP};
	struct qp_obj *o;

	memcpy(&in, q->body, sizeof(in));
	o = handle_get(&s->qps, in.handle);
	if (!o)
		return refuse(r->why, -EINVAL, "there is no QP %u", in.handle);
	if (in.rate && (in.rate < ABI_RATE_MIN || in.rate > ABI_RATE_MAX))
		return refuse(r->why, -EINVAL,
			"a rate of %u kbit/s is out of range: use %u to %u, or 0 for no limit",
			in.rate, ABI_RATE_MIN, ABI_RATE_MAX);
	cmd.qp = o->qp;
	cmd.shape = (struct core_shape){in.rate * 1000ull, in.burst, in.packet};
	return worker_call(s->ctl->dp->worker[o->worker], &cmd);
}

static void call_session(struct ctl *ctl, const struct session *s, const struct core_cmd *cmd)
{
	struct qp_obj *o[QPS_CALL_MAX];
	uint32_t cursor = 0;
	uint32_t n;

	do {
		n = 0;
		while (n < QPS_CALL_MAX && (o[n] = handle_next(&s->qps, &cursor)))
			n++;
		qps_call(ctl, cmd, o, n);
	} while (n == QPS_CALL_MAX);
}

static void call_all(struct ctl *ctl, enum core_cmd_type type)
{
	const struct core_cmd cmd = {.type = type};

	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (ctl->sessions->session[i])
			call_session(ctl, ctl->sessions->session[i], &cmd);
}

void qps_reload_pkeys(struct ctl *ctl)
{
	call_all(ctl, CORE_CMD_RELOAD_PKEYS);
}

static void follow_ports(const struct session *s)
{
	uint32_t cursor = 0;
	struct qp_obj *o;

	while ((o = handle_next(&s->qps, &cursor)))
		if (o->cc)
			qp_cc_follow(o);
}

void qps_congestion(struct ctl *ctl)
{
	call_all(ctl, CORE_CMD_CONGESTION_QPS);
	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (ctl->sessions->session[i])
			follow_ports(ctl->sessions->session[i]);
}
