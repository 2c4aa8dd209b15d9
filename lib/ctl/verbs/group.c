/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "bits.h"
#include "config/ctl_parts.h"
#include "core.h"
#include "limits.h"
#include "mcast.h"
#include "net/net.h"
#include "net/netport.h"
#include "port.h"
#include "qp.h"
#include "refuse.h"
#include "session/handles.h"
#include "session/quota.h"
#include "session/session.h"
#include "text/sentence.h"
#include "verbs/command.h"
#include "verbs/group.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"
#include "worker.h"

/* Memberships requested from the kernel per groups_poll(), or those of one group if they are more:
 * some 10 us each. */
#define JOINS_STEP 64u

void groups_init(struct groups *g)
{
	list_init(&g->all);
	list_init(&g->again);
	g->n = 0;
	g->serial = 0;
}

/* --- the link ------------------------------------------------------------------------- */

static int add_membership(int fd, const uint8_t mgid[16], uint32_t ifindex)
{
	struct ip_mreqn ip4 = {.imr_ifindex = (int)ifindex};
	struct ipv6_mreq ip6 = {.ipv6mr_interface = ifindex};

	memcpy(&ip4.imr_multiaddr, mgid + 12, sizeof(ip4.imr_multiaddr));
	memcpy(&ip6.ipv6mr_multiaddr, mgid, sizeof(ip6.ipv6mr_multiaddr));
	if (gid_is_ip4(mgid) ? setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &ip4, sizeof(ip4))
			     : setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &ip6, sizeof(ip6)))
		return -errno;
	return 0;
}

/* The sockets are never read and not bound to a port. Once a socket has joined on as many netdevs
 * as allowed, the kernel refuses more (ENOBUFS); then another socket joins. */
static int join_on(struct group *g, uint32_t ifindex)
{
	struct group_joins *j = &g->joins;
	int err = j->n ? add_membership(j->fd[j->n - 1], g->mgid, ifindex) : -ENOBUFS;
	int fd;

	if (err != -ENOBUFS || j->n == GROUP_SOCKETS)
		return err;
	fd = socket(gid_is_ip4(g->mgid) ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	j->fd[j->n++] = fd;
	return add_membership(fd, g->mgid, ifindex);
}

/* Notifies the port's owner once, not for each group. */
static void take_result(struct ctl *ctl, uint32_t port, int err)
{
	struct netport *p = &ctl->net->port[port];

	if (!err || err == -ENODEV || p->join_refused) /* ENODEV: news of it will follow */
		return;
	p->join_refused = true;
	net_tell_owner(ctl->net, port, CTL_NETDEV_UNJOINED);
}

static void close_joins(const struct group_joins *j)
{
	for (uint32_t i = 0; i < j->n; i++)
		close(j->fd[i]);
}

/* MC-03, on each VLAN of the port: an attachment does not specify a VLAN, and packets from all of
 * them are delivered. It takes new sockets each time because the old ones count removed netdevs;
 * they are closed last so that no leave is sent if the group stays joined. */
static void join(struct ctl *ctl, struct group *g)
{
	const struct netport *p = &ctl->net->port[g->port];
	const struct group_joins before = g->joins;

	g->joins.n = 0;
	if (p->ifindex) {
		take_result(ctl, g->port, join_on(g, p->ifindex));
		if (!g->joins.n) { /* out of descriptors: keep the old sockets */
			g->joins = before;
			return;
		}
		for (uint32_t i = 0; i < p->nvlans; i++)
			take_result(ctl, g->port, join_on(g, p->vlan[i].ifindex));
	}
	close_joins(&before);
}

/* MC-02: sets the MACs of all groups of a port, whose own filter might drop them. */
static void filter(struct ctl *ctl, uint32_t port)
{
	uint8_t macs[MCAST_GROUP_MAX][6];
	uint32_t n = 0;

	for (struct list *l = ctl->objects->groups->all.next; l != &ctl->objects->groups->all;
		l = l->next) {
		const struct group *g = container_of(l, struct group, node);

		if (g->port == port)
			mcast_mac(macs[n++], g->mgid);
	}
	port_set_groups(ctl->dp, port, macs, n);
}

/* --- groups --------------------------------------------------------------------------- */

static struct group *find(const struct ctl *ctl, uint32_t port, const uint8_t mgid[16])
{
	for (struct list *l = ctl->objects->groups->all.next; l != &ctl->objects->groups->all;
		l = l->next) {
		struct group *g = container_of(l, struct group, node);

		if (g->port == port && !memcmp(g->mgid, mgid, sizeof(g->mgid)))
			return g;
	}
	return NULL;
}

/* The group, and the sockets that may have to join it. */
static const struct charge group_charge[] = {{CTL_GROUPS, 1}, {CTL_DESCRIPTORS, GROUP_SOCKETS}};

/* Returns NULL with a sentence. */
static struct group *make(struct session *s, uint32_t port, const uint8_t mgid[16], int *err,
	char why[ABI_SENTENCE_MAX])
{
	struct ctl *ctl = s->ctl;
	struct group *g;

	*err = quota_take(s, group_charge, ARRAY_SIZE(group_charge), why);
	if (*err)
		return NULL;
	g = ctl->objects->groups->n < MCAST_GROUP_MAX ? calloc(1, sizeof(*g)) : NULL;
	if (!g) {
		quota_give(s, group_charge, ARRAY_SIZE(group_charge));
		*err = refuse(why, -ENOSPC, "no room for another multicast group: leave some");
		return NULL;
	}
	g->payer = s;
	list_init(&g->again);
	list_init(&g->members);
	g->port = port;
	memcpy(g->mgid, mgid, sizeof(g->mgid));
	list_push(&ctl->objects->groups->all, &g->node);
	ctl->objects->groups->n++;
	return g;
}

/* Frees @p g once its last member has left. */
static void release(struct ctl *ctl, struct group *g)
{
	if (g->nmembers)
		return;
	close_joins(&g->joins);
	quota_give(g->payer, group_charge, ARRAY_SIZE(group_charge));
	list_del(&g->again);
	list_del(&g->node);
	ctl->objects->groups->n--;
	filter(ctl, g->port);
	free(g);
}

/* Makes a copy of @p g for workers; NULL if it has no member, or if memory is short. */
static struct mcast_group *picture(const struct group *g)
{
	struct mcast_group *seen;

	if (!g->nmembers)
		return NULL;
	seen = calloc(1, sizeof(*seen) + g->nmembers * sizeof(seen->member[0]));
	if (!seen)
		return NULL;
	memcpy(seen->mgid, g->mgid, sizeof(seen->mgid));
	seen->port = g->port;
	for (struct list *l = g->members.next; l != &g->members; l = l->next) {
		const struct member *m = container_of(l, struct member, in_group);

		seen->member[seen->n++] = (struct mcast_member){
			.qp = m->qp->qp, .session = m->qp->qp->session, .serial = m->serial};
	}
	return seen;
}

/* Publishes @p seen to workers in place of the present copy of @p g. */
static void publish(struct ctl *ctl, struct group *g, struct mcast_group *seen)
{
	struct mcast_group *old = g->seen;

	if (!old && !seen)
		return;
	mcast_replace(ctl->dp->mcasts, old, seen);
	g->seen = seen;
	if (!old)
		return;
	worker_grace(ctl->dp);
	free(old);
}

static struct member *find_member(const struct qp_obj *o, const uint8_t mgid[16])
{
	for (const struct list *l = o->members.next; l != &o->members; l = l->next) {
		struct member *m = container_of(l, struct member, in_qp);

		if (!memcmp(m->group->mgid, mgid, 16))
			return m;
	}
	return NULL;
}

static bool has_session(const struct group *g, const struct session *s)
{
	for (const struct list *l = g->members.next; l != &g->members; l = l->next)
		if (container_of(l, struct member, in_group)->qp->session == s)
			return true;
	return false;
}

/* If the payer has no member left in the group, charges the session of the first member. */
static void pass_on(struct group *g)
{
	struct session *next;

	if (!g->nmembers || has_session(g, g->payer))
		return;
	next = container_of(g->members.next, struct member, in_group)->qp->session;
	quota_pass(g->payer, next, group_charge, ARRAY_SIZE(group_charge));
	g->payer = next;
}

static void forget(struct member *m)
{
	list_del(&m->in_group);
	list_del(&m->in_qp);
	m->group->nmembers--;
	m->qp->nmembers--;
	quota_give_one(m->qp->session, CTL_ATTACHMENTS);
	pass_on(m->group);
	free(m);
}

/* If there is no memory for a new copy, the whole group is withdrawn: losing packets is better than
 * using freed memory. The next attachment publishes it again. */
static void leave(struct ctl *ctl, struct member *m)
{
	struct group *g = m->group;

	forget(m);
	publish(ctl, g, picture(g));
	release(ctl, g);
}

/* After the other members of its session, or last. */
static void insert(struct group *g, struct member *m)
{
	struct list *at = &g->members;

	for (struct list *l = g->members.next; l != &g->members; l = l->next)
		if (container_of(l, struct member, in_group)->qp->session == m->qp->session)
			at = l->next;
	list_push(at, &m->in_group);
}

/* A user other than root may take at most half of the places in a group, to leave some for others.
 */
static int check_members(const struct group *g, const struct session *s, char *why)
{
	uint32_t own = 0;

	if (g->nmembers >= MCAST_MEMBERS_MAX)
		return refuse(why, -ENOSPC,
			"the multicast group has %u QPs here, which is the maximum: detach some",
			g->nmembers);
	for (const struct list *l = g->members.next; l != &g->members; l = l->next)
		own += container_of(l, struct member, in_group)->qp->session->account == s->account;
	if (!s->peer.uid || own < MCAST_MEMBERS_MAX / 2)
		return 0;
	return refuse(why, -EDQUOT,
		"%u QPs of user %u are in the multicast group, which is the maximum per user: "
		"detach some",
		own, s->peer.uid);
}

int group_attach(struct ctl *ctl, struct qp_obj *o, uint32_t port, const uint8_t mgid[16],
	char why[ABI_SENTENCE_MAX])
{
	struct mcast_group *seen;
	struct member *m;
	struct group *g;
	bool fresh;
	int err;

	if (find_member(o, mgid))
		return 0; /* MC-05; its port cannot have changed since (verbs/qp_modify.c) */
	g = find(ctl, port, mgid);
	fresh = !g;
	err = g ? check_members(g, o->session, why) : 0;
	if (!err)
		err = quota_take_one(o->session, CTL_ATTACHMENTS, why);
	if (err)
		return err;
	if (!g)
		g = make(o->session, port, mgid, &err, why);
	m = g ? calloc(1, sizeof(*m)) : NULL;
	if (!m) {
		if (g)
			release(ctl, g);
		quota_give_one(o->session, CTL_ATTACHMENTS);
		return err ? err : refuse_memory(why);
	}
	*m = (struct member){.group = g, .qp = o, .serial = ++ctl->objects->groups->serial};
	insert(g, m);
	list_push(&o->members, &m->in_qp);
	g->nmembers++;
	o->nmembers++;
	seen = picture(g);
	if (!seen) {
		forget(m);
		release(ctl, g);
		return refuse_memory(why);
	}
	publish(ctl, g, seen);
	if (fresh) {
		join(ctl, g);
		filter(ctl, port);
	}
	return 0;
}

int group_detach(struct ctl *ctl, struct qp_obj *o, const uint8_t mgid[16])
{
	struct member *m = find_member(o, mgid);

	if (!m)
		return -EINVAL;
	leave(ctl, m);
	return 0;
}

uint32_t group_detach_some(struct ctl *ctl, struct qp_obj *o, uint32_t max)
{
	uint32_t n = 0;

	for (; n < max && !list_empty(&o->members); n++)
		leave(ctl, container_of(o->members.next, struct member, in_qp));
	return n;
}

int group_port(const struct qp_obj *o)
{
	if (list_empty(&o->members))
		return -1;
	return (int)container_of(o->members.next, struct member, in_qp)->group->port;
}

void groups_join_again(struct ctl *ctl, uint32_t port)
{
	ctl->net->port[port].join_refused = false;
	for (struct list *l = ctl->objects->groups->all.next; l != &ctl->objects->groups->all;
		l = l->next) {
		struct group *g = container_of(l, struct group, node);

		if (g->port == port && list_empty(&g->again))
			list_push(&ctl->objects->groups->again, &g->again);
	}
	filter(ctl, port);
}

bool groups_poll(struct ctl *ctl)
{
	struct list *l;

	for (uint32_t n = 0; n < JOINS_STEP && (l = list_pop(&ctl->objects->groups->again));) {
		struct group *g = container_of(l, struct group, again);

		join(ctl, g);
		n += 1 + ctl->net->port[g->port].nvlans;
	}
	return !list_empty(&ctl->objects->groups->again);
}

/* --- commands: attach and detach QPs (A17.5.6; no MLIDs: VRB-01) ------------------------ */

/* The QP of a request, which must be a datagram QP with a port (MC-01). */
static struct qp_obj *find_qp_obj(
	struct session *s, const struct abi_mcast *in, struct reply *r, uint32_t *port, int *err)
{
	struct core_cmd cmd = {.type = CORE_CMD_QUERY_QP};
	struct qp_obj *o = handle_get(&s->qps, in->qp);
	char text[GID_TEXT];

	*err = -EINVAL;
	if (!o) {
		refuse(r->why, 0, "there is no QP %u", in->qp);
		return NULL;
	}
	if (o->qp->type != ABI_QPT_UD) {
		refuse(r->why, 0, "only QPs of type UD can use multicast: create one");
		return NULL;
	}
	if (!gid_is_multicast(in->mgid)) {
		refuse(r->why, 0,
			"%s is not a multicast GID: it must begin with ff, or be an IPv4 multicast "
			"address in its mapped form",
			gid_text(in->mgid, text));
		return NULL;
	}
	cmd.qp = o->qp;
	*err = worker_call(s->ctl->dp->worker[o->worker], &cmd);
	if (!*err && !cmd.attr.port) {
		*err = -EINVAL;
		refuse(r->why, 0, "a QP in RESET has no port yet: move it to INIT first");
	}
	*port = cmd.attr.port - 1u;
	return *err ? NULL : o;
}

int cmd_attach_mcast(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_mcast in;
	struct qp_obj *o;
	uint32_t port;
	int err;

	memcpy(&in, q->body, sizeof(in));
	o = find_qp_obj(s, &in, r, &port, &err);
	return o ? group_attach(s->ctl, o, port, in.mgid, r->why) : err;
}

int cmd_detach_mcast(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_mcast in;
	struct qp_obj *o;
	char text[GID_TEXT];

	memcpy(&in, q->body, sizeof(in));
	o = object_named(&s->qps, in.qp, "QP", r);
	if (!o)
		return -EINVAL;
	if (!group_detach(s->ctl, o, in.mgid))
		return 0;
	return refuse(r->why, -EINVAL, "the QP is not attached to multicast group %s",
		gid_text(in.mgid, text));
}
