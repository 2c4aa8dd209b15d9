/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MODIFY_QP. Which attributes a transition takes is the core's business; here
 * the address vector becomes a path: SGID entry, destination MAC (A17.4.2, GID-05, GID-06).
 * When the kernel has to look for the destination, the reply comes later and other commands
 * go on.
 */
#include <errno.h>
#include <string.h>
#include "bits.h"
#include "command.h"
#include "object.h"
#include "session.h"

#define SL_MAX 7
/** For a hop limit of 0: what Linux uses (doc/decisions/0020-hop-limit.md, IP4-18). */
#define HOP_LIMIT_DEFAULT 64

void gid_hold_set(struct gid_hold *h, struct gids *gids, uint32_t index)
{
	if (gids)
		gids->users[index]++;
	if (h->gids)
		h->gids->users[h->index]--;
	h->gids = gids;
	h->index = index;
}

static const char *state_name(uint8_t state)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return state < ARRAY_SIZE(names) ? names[state] : "no state";
}

/* The worker refused: says what is known about why. */
static int explain(struct qp_obj *o, int err, struct reply *r)
{
	const struct core_cmd *cmd = &o->cmd;
	struct core_cmd query = {.type = CORE_CMD_QUERY_QP, .qp = o->qp};
	struct ctl *ctl = o->session->ctl;
	uint32_t port = (cmd->mask & ABI_QP_AV) ? cmd->path.port : 0;

	if (err != -EINVAL)
		return refuse(
			r->why, err, "the worker could not modify the QP: %s", strerror(-err));
	if ((cmd->mask & ABI_QP_PATH_MTU) &&
		cmd->attr.path_mtu > ctl->port[port].shared->active_mtu)
		return refuse(r->why, err,
			"a path MTU of %u is above the %u that port %u can do: use that, or raise "
			"the MTU of its network device to %u",
			cmd->attr.path_mtu, ctl->port[port].shared->active_mtu, port + 1,
			cmd->attr.path_mtu + 96);
	worker_call(ctl->dp->worker[o->worker], &query);
	if (query.attr.sq_draining &&
		(!(cmd->mask & ABI_QP_STATE) || cmd->attr.qp_state == ABI_QPS_SQD))
		return refuse(r->why, err, /* QPS-19 */
			"the send queue still drains: wait for SQ_DRAINED, or until query_qp says "
			"that sq_draining is 0");
	if (!(cmd->mask & ABI_QP_STATE))
		return refuse(r->why, err,
			"a QP in state %s does not take the attributes 0x%x, or a value is out of "
			"range: see ibv_modify_qp(3)",
			state_name(query.attr.qp_state), cmd->mask);
	return refuse(r->why, err,
		"a QP in state %s does not go to %s with the attributes 0x%x: one is missing, not "
		"allowed there or out of range, or the states are not RESET, INIT, RTR, RTS in "
		"turn; see ibv_modify_qp(3)",
		state_name(query.attr.qp_state), state_name(cmd->attr.qp_state), cmd->mask);
}

/* Has the worker execute o->cmd. */
static int execute(struct qp_obj *o, struct reply *r)
{
	int err = worker_call(o->session->ctl->dp->worker[o->worker], &o->cmd);

	return err ? explain(o, err, r) : 0;
}

/* The same with an address vector, whose GID and destination the QP then has instead of others. */
static int execute_av(struct qp_obj *o, struct reply *r)
{
	struct dest *d = dest_get(o->session->ctl, &o->key);
	int err;

	o->cmd.sgid = o->wanted.gids->table.entry[o->wanted.index]; /* its MAC may be new */
	err = d ? execute(o, r) : refuse(r->why, -ENOMEM, "rocid is out of memory");
	if (!err) {
		gid_hold_set(&o->hold, o->wanted.gids, o->wanted.index);
		dest_join(d, o, &o->cmd);
	} else if (d) {
		dest_release(d);
	}
	gid_hold_set(&o->wanted, NULL, 0);
	return err;
}

static int execute_without_av(struct qp_obj *o, struct reply *r)
{
	const struct core_cmd *cmd = &o->cmd;
	int err = execute(o, r);

	if (!err && (cmd->mask & ABI_QP_STATE) && cmd->attr.qp_state == ABI_QPS_RESET) {
		dest_leave(o);
		gid_hold_set(&o->hold, NULL, 0);
	}
	return err;
}

static bool gid_unicast(const uint8_t gid[16])
{
	static const uint8_t none[16];

	if (gid_is_ip4(gid))
		return gid[12] != 0 && gid[12] < 224;
	return gid[0] != 0xFF && memcmp(gid, none, sizeof(none));
}

static int check_av(struct session *s, const struct abi_ah_attr *ah, struct reply *r)
{
	char text[GID_TEXT];

	if (ah->port < 1 || ah->port > s->ctl->nports) /* QPS-15 */
		return refuse(r->why, -EINVAL,
			"the address vector names port %u: this rocid has 1 to %u", ah->port,
			s->ctl->nports);
	if (!ah->is_global) /* VRB-05 */
		return refuse(r->why, -EINVAL,
			"the address vector has no GRH: set is_global, RoCE needs it");
	if (ah->sl > SL_MAX) /* ETH-06 */
		return refuse(r->why, -EINVAL,
			"service level %u does not exist on RoCE: use 0 to %u", ah->sl, SL_MAX);
	if (!gid_unicast(ah->dgid))
		return refuse(r->why, -EINVAL,
			"the destination GID %s is no single host's: set the peer's GID",
			gid_text(ah->dgid, text));
	return 0;
}

static void path_from_av(struct core_cmd *cmd, const struct gid_entry *sgid)
{
	const struct abi_ah_attr *ah = &cmd->attr.ah;
	struct path_spec *p = &cmd->path;

	cmd->sgid = *sgid;
	p->sgid = &cmd->sgid;
	memcpy(p->dgid, ah->dgid, sizeof(p->dgid));
	p->traffic_class = ah->traffic_class;
	p->hop_limit = ah->hop_limit ? ah->hop_limit : HOP_LIMIT_DEFAULT;
	p->sl = ah->sl;
	p->port = (uint8_t)(ah->port - 1);
	p->flow_label = ah->flow_label;
}

static void set_dmac(struct core_cmd *cmd, const uint8_t mac[6])
{
	memcpy(cmd->path.dmac, mac, 6);
	memcpy(cmd->attr.ah.dmac, mac, 6); /* what QUERY_QP then tells */
}

/* The kernel answered, or not: finishes the command and sends its reply. */
static void resolved(struct neigh_query *q, int err, const char *why)
{
	struct qp_obj *o = container_of(q, struct qp_obj, query);
	struct reply r = {0};

	o->resolving = false;
	o->session->resolving--;
	if (err) {
		gid_hold_set(&o->wanted, NULL, 0);
		refuse(r.why, err, "%s", why);
	} else {
		set_dmac(&o->cmd, q->mac);
		err = execute_av(o, &r);
	}
	session_reply(o->session, &o->request, err, &r);
}

/* The MAC that the application gave, if it gave one (ETH-11); never zeroes (ETH-12). */
static int check_dmac(const uint8_t dmac[6], struct dest_key *key, struct reply *r)
{
	static const uint8_t unknown[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

	if (!memcmp(dmac, unknown, 6))
		return 0;
	if (dmac[0] & 1)
		return refuse(r->why, -EINVAL,
			"the destination MAC is a group's: set the peer's, or all ones to have it "
			"looked up");
	memcpy(key->given, dmac, 6);
	return 0;
}

/* Finds the destination MAC.  @return 0, DEFERRED or a negative errno with a sentence. */
static int find_dmac(struct session *s, struct qp_obj *o, const struct request *q, struct reply *r)
{
	struct core_cmd *cmd = &o->cmd;
	const struct abi_ah_attr *ah = &cmd->attr.ah;
	int err;

	o->key = (struct dest_key){.port = cmd->path.port, .sgid = ah->sgid_index};
	memcpy(o->key.dgid, ah->dgid, 16);
	err = check_dmac(ah->dmac, &o->key, r);
	if (err)
		return err;
	o->query = (struct neigh_query){.done = resolved};
	err = dest_find(s->ctl, &o->key, &o->query, &cmd->path.local, r->why);
	if (!err)
		set_dmac(cmd, o->query.mac);
	if (err != -EINPROGRESS)
		return err;
	if (s->resolving >= SESSION_RESOLVE_MAX) {
		neigh_cancel(&o->query);
		return refuse(r->why, -EBUSY,
			"%u QPs of the application still look for their destinations: wait for "
			"some",
			s->resolving);
	}
	o->resolving = true;
	s->resolving++;
	o->request = q->msg;
	return DEFERRED;
}

static int modify_with_av(
	struct session *s, struct qp_obj *o, const struct request *q, struct reply *r)
{
	const struct abi_ah_attr *ah = &o->cmd.attr.ah;
	const struct gid_entry *sgid;
	struct netport *port;
	int err = check_av(s, ah, r);

	if (err)
		return err;
	port = &s->ctl->port[ah->port - 1];
	sgid = gids_select(&port->gids, ah->sgid_index, ah->dgid, r->why);
	if (!sgid)
		return -EINVAL; /* QPS-15 */
	path_from_av(&o->cmd, sgid);
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

int cmd_modify_qp(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_modify_qp in;
	struct qp_obj *o;

	memcpy(&in, q->body, sizeof(in));
	o = handle_get(&s->qps, in.handle);
	if (!o)
		return refuse(r->why, -EINVAL, "there is no QP %u", in.handle);
	if (o->resolving)
		return refuse(r->why, -EBUSY,
			"the QP's last modify_qp still looks for its destination: wait for it");
	o->cmd = (struct core_cmd){
		.type = CORE_CMD_MODIFY_QP,
		.qp = o->qp,
		.mask = in.mask,
		.attr = in.attr,
	};
	if (in.mask & ABI_QP_AV)
		return modify_with_av(s, o, q, r);
	return execute_without_av(o, r);
}
