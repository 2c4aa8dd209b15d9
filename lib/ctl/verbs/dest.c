/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "config/ctl_parts.h"
#include "core.h"
#include "hash.h"
#include "headers.h"
#include "limits.h"
#include "loop/loop.h"
#include "net/gids.h"
#include "net/net.h"
#include "net/netport.h"
#include "net/rtnl.h"
#include "path.h"
#include "qp.h"
#include "verbs/ah_obj.h"
#include "verbs/dest.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"

/* The kernel probes a neighbour in use every 15 to 45 s and forgets it after 60 s without use. This
 * period is short enough to count as use. */
#define FRESH_MS 10000u
/* Pauses after a failure, and between two lookups of one entry, however many news arrive. */
#define RETRY_MS 1000u
#define PAUSE_MS 100u
/* Time for a neighbour to answer a probe before the whole link is queried; pauses between probes of
 * one neighbour, and of any. */
#define PROBE_ANSWER_MS 100u
#define PROBE_PAUSE_MS	2000u
#define PROBE_ANY_MS	10u
/* Refreshes are batched at multiples of this. */
#define BATCH_MS 32u
/* Lookups per round: some 20 us each, during which applications wait. */
#define ROUND 64u
/* QPs of one destination that dest_rival() examines. */
#define RIVALS 512u
#define NEVER  UINT64_MAX

/* A tick of the wheel is a millisecond here. */
#define TICKS(ms) ((ms) << WHEEL_TICK_SHIFT)

static const uint8_t none[6];

void dests_init(struct dests *d)
{
	for (unsigned i = 0; i < DEST_BUCKETS; i++) {
		list_init(&d->bucket[i]);
		list_init(&d->hop[i]);
	}
	list_init(&d->late);
	wheel_init(&d->wheel, WHEEL_TICK_SHIFT, TICKS(loop_now_ms()));
}

/* An entry with an unchanged due time keeps its place, so that endless news cannot starve others.
 */
static void set_due(struct dest *d, uint64_t due_ms)
{
	struct wheel *w = &d->ctl->objects->dests->wheel;

	if (due_ms == d->due_ms)
		return;
	d->due_ms = due_ms;
	if (due_ms == NEVER)
		wheel_cancel(w, &d->timer);
	else
		wheel_arm(w, &d->timer, TICKS(due_ms));
}

/* --- resolving ------------------------------------------------------------------------ */

/* The GID of another port of this daemon, such as the other end of a ring pair, needs no neighbour
 * table. */
static bool other_port_mac(
	const struct ctl *ctl, const uint8_t dgid[16], const struct gid_entry *sgid, uint8_t mac[6])
{
	for (uint32_t i = 0; i < ctl->net->nports; i++) {
		const struct gid_table *t = &ctl->net->port[i].gids.table;
		int index = gid_find(t, dgid, sgid->net, sgid->vid);

		if (index < 0)
			continue;
		memcpy(mac, t->entry[index].mac, 6);
		return true;
	}
	return false;
}

int dest_find(struct ctl *ctl, const struct dest_key *key, struct neigh_query *q, bool *local,
	char why[ABI_SENTENCE_MAX])
{
	const struct netport *port = &ctl->net->port[key->port];
	const struct gid_entry *sgid = &port->gids.table.entry[key->sgid];
	bool kernel;
	int err;

	list_init(&q->node);
	q->port = port;
	q->netdev = sgid->ifindex;
	memcpy(q->dgid, key->dgid, 16);
	*local = gid_find(&port->gids.table, key->dgid, sgid->net, sgid->vid) >= 0;
	if (*local) { /* never leaves the daemon */
		memcpy(q->mac, sgid->mac, 6);
		return 0;
	}
	if (memcmp(key->given, none, 6)) {
		memcpy(q->mac, key->given, 6);
		return 0;
	}
	/* ETH-13: the link-local GID of a RoCEv1 port is made from its MAC, and need not be an
	 * address that answers neighbour discovery. */
	if (sgid->net == NET_ROCEV1 && netport_static_neigh(port, key->dgid, q->mac) &&
		gid_to_mac(key->dgid, q->mac))
		return 0;
	/* The kernel has no routes from addresses that it lacks: a static GID, or a removed one. */
	kernel = sgid->valid && port->gids.kernel[key->sgid];
	err = neigh_resolve(&ctl->net->neighs, q, kernel ? sgid->gid : NULL, loop_now_ms(), why);
	if (err == -EHOSTUNREACH && other_port_mac(ctl, key->dgid, sgid, q->mac))
		return 0;
	return err;
}

/* --- entries and their QPs ------------------------------------------------------------ */

static struct list *bucket_of(struct dests *d, const struct dest_key *key)
{
	return &d->bucket[hash_words(d->seed, key, sizeof(*key) / sizeof(uint32_t)) % DEST_BUCKETS];
}
_Static_assert(sizeof(struct dest_key) == HASH_WORDS * sizeof(uint32_t), "bucket_of");

/* Neighbours may change by the thousand: one change must not walk all destinations. */
static struct list *hop_of(struct dests *d, uint32_t ifindex, const uint8_t nexthop[16])
{
	uint8_t key[20];

	memcpy(key, nexthop, 16);
	memcpy(key + 16, &ifindex, sizeof(ifindex));
	return &d->hop[hash_words(d->seed, key, sizeof(key) / sizeof(uint32_t)) % DEST_BUCKETS];
}

/* Moves @p d to the bucket of its neighbour after d->query has changed. */
static void set_hop(struct dest *d)
{
	list_del(&d->hop);
	list_push(hop_of(d->ctl->objects->dests, d->query.ifindex, d->query.nexthop), &d->hop);
}

static void found_late(struct neigh_query *q, int err, const char *why);

struct dest *dest_get(struct ctl *ctl, const struct dest_key *key)
{
	struct list *bucket = bucket_of(ctl->objects->dests, key);
	struct dest *d;

	for (struct list *n = bucket->next; n != bucket; n = n->next) {
		d = container_of(n, struct dest, node);
		if (!memcmp(&d->key, key, sizeof(*key)))
			return d;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->ctl = ctl;
	d->key = *key;
	d->due_ms = NEVER;
	wheel_timer_init(&d->timer);
	d->query.done = found_late;
	list_init(&d->query.node);
	list_init(&d->qps);
	list_init(&d->late);
	list_init(&d->ahs);
	list_init(&d->late_ahs);
	list_init(&d->turn);
	list_init(&d->hop);
	list_push(bucket, &d->node);
	return d;
}

/* Whether a QP or AH still has to be readdressed. */
static bool is_late(const struct dest *d)
{
	return !list_empty(&d->late) || !list_empty(&d->late_ahs);
}

void dest_release(struct dest *d)
{
	if (!list_empty(&d->qps) || !list_empty(&d->ahs) || is_late(d))
		return;
	neigh_cancel(&d->query);
	set_due(d, NEVER);
	list_del(&d->node);
	list_del(&d->hop);
	list_del(&d->turn);
	free(d);
}

/* Makes the QPs and AHs of @p d send to @p dmac from @p smac, each in its turn. Those still waiting
 * for an earlier change stay in front and get only this one. */
static void apply(struct dest *d, const uint8_t dmac[6], const uint8_t smac[6], bool local)
{
	if (memcmp(d->dmac, none, 6) && memcmp(d->dmac, dmac, 6)) {
		memcpy(d->former, d->dmac, 6);
		d->moved_ms = loop_now_ms();
	}
	if (memcmp(d->dmac, dmac, 6) || memcmp(d->smac, smac, 6) || d->local != local) {
		memmove(d->dmac, dmac, 6);
		memmove(d->smac, smac, 6);
		d->local = local;
		list_splice(&d->late, &d->qps);
		list_splice(&d->late_ahs, &d->ahs);
	}
	if (is_late(d) && list_empty(&d->turn))
		list_push(&d->ctl->objects->dests->late, &d->turn);
}

static void readdress_qps(struct ctl *ctl, struct dest *d)
{
	struct core_cmd cmd = {.type = CORE_CMD_READDRESS_QPS};
	struct qp_obj *o[QPS_CALL_MAX];
	struct list *l;
	uint32_t n = 0;

	memcpy(cmd.path.dmac, d->dmac, 6);
	memcpy(cmd.sgid.mac, d->smac, 6);
	cmd.path.local = d->local;
	while (n < QPS_CALL_MAX && (l = list_pop(&d->late))) {
		o[n++] = container_of(l, struct qp_obj, dest_node);
		list_push(&d->qps, l);
	}
	qps_call(ctl, &cmd, o, n);
}

/* @return false if memory ran short: the remaining AHs stay late. */
static bool readdress_ahs(struct ctl *ctl, struct dest *d)
{
	struct ah_obj *o[QPS_CALL_MAX];
	uint32_t n = 0, done;
	struct list *l;

	while (n < QPS_CALL_MAX && (l = list_pop(&d->late_ahs))) {
		o[n++] = container_of(l, struct ah_obj, dest_node);
		list_push(&d->ahs, l);
	}
	done = ahs_readdress(ctl, o, n, d->dmac, d->smac, d->local);
	for (uint32_t i = done; i < n; i++) {
		list_del(&o[i]->dest_node);
		list_push(&d->late_ahs, &o[i]->dest_node);
	}
	return done == n;
}

/* Readdresses some QPs and AHs of the destination whose turn it is. */
static void readdress_some(struct ctl *ctl)
{
	struct list *turn = list_pop(&ctl->objects->dests->late);
	struct dest *d;

	if (!turn)
		return;
	d = container_of(turn, struct dest, turn);
	readdress_qps(ctl, d);
	if (!readdress_ahs(ctl, d))
		set_due(d, loop_now_ms() + RETRY_MS);
	else if (is_late(d))
		list_push(&ctl->objects->dests->late, &d->turn);
}

static bool is_kernels(const struct dest *d)
{
	return !d->local && !memcmp(d->key.given, none, 6) && d->query.ifindex;
}

/* Lookups by the kernel must be refreshed; others change only with news. */
static void look_again_later(struct dest *d, uint64_t now_ms)
{
	if (d->probed_ms)
		set_due(d, d->probed_ms + PROBE_ANSWER_MS);
	else
		set_due(d, is_kernels(d) ? (now_ms + FRESH_MS) | (BATCH_MS - 1) : NEVER);
}

/* Adopts the neighbour of @p query, which resolved the destination of a new QP or AH. */
static void take_query(struct dest *d, const struct neigh_query *query)
{
	if (d->pending)
		return;
	d->query.ifindex = query->ifindex;
	memcpy(d->query.nexthop, query->nexthop, 16);
	set_hop(d);
	look_again_later(d, loop_now_ms());
}

void dest_join_ah(struct dest *d, struct ah_obj *o, const uint8_t smac[6])
{
	apply(d, o->spec.dmac, smac, o->spec.local);
	list_push(&d->ahs, &o->dest_node);
	o->dest = d;
	take_query(d, &o->query);
}

void dest_leave_ah(struct ah_obj *o)
{
	if (!o->dest)
		return;
	list_del(&o->dest_node);
	dest_release(o->dest);
	o->dest = NULL;
}

void dest_join(struct dest *d, struct qp_obj *o, const struct core_cmd *cmd)
{
	struct dest *old = o->dest; /* may be d */

	if (old)
		list_del(&o->dest_node);
	apply(d, cmd->path.dmac, cmd->sgid.mac, cmd->path.local);
	list_push(&d->qps, &o->dest_node);
	o->dest = d;
	if (old)
		dest_release(old);
	take_query(d, &o->query);
}

void dest_leave(struct qp_obj *o)
{
	if (!o->dest)
		return;
	list_del(&o->dest_node);
	dest_release(o->dest);
	o->dest = NULL;
}

static const struct qp_obj *rival_among(
	const struct list *qps, const struct qp_obj *o, unsigned *left)
{
	for (const struct list *n = qps->next; n != qps && *left; n = n->next) {
		const struct qp_obj *other = container_of(n, const struct qp_obj, dest_node);
		uint8_t state = __atomic_load_n(&other->qp->state, __ATOMIC_RELAXED);

		--*left;
		if (other != o && other->qp->attr.dest_qpn == o->qp->attr.dest_qpn &&
			other->qp->type == o->qp->type && state >= ABI_QPS_RTR &&
			state < ABI_QPS_ERR)
			return other;
	}
	return NULL;
}

const struct qp_obj *dest_rival(const struct qp_obj *o)
{
	unsigned left = RIVALS;
	const struct qp_obj *other;

	if (!o->dest)
		return NULL;
	other = rival_among(&o->dest->qps, o, &left);
	return other ? other : rival_among(&o->dest->late, o, &left);
}

/* --- keeping entries up to date ------------------------------------------------------- */

static const uint8_t *smac_of(const struct dest *d)
{
	return d->ctl->net->port[d->key.port].gids.table.entry[d->key.sgid].mac;
}

/* If the lookup failed, the old destination stays: the peer may well still be there. */
static void take_answer(struct dest *d, int err, bool local)
{
	uint64_t now_ms = loop_now_ms();

	d->checked_ms = now_ms;
	if (!err) {
		apply(d, d->query.mac, smac_of(d), local);
		look_again_later(d, now_ms);
		return;
	}
	apply(d, d->local ? smac_of(d) : d->dmac, smac_of(d), d->local);
	set_due(d, err == -EINPROGRESS ? NEVER : now_ms + RETRY_MS);
}

static void found_late(struct neigh_query *q, int err, const char *why)
{
	struct dest *d = container_of(q, struct dest, query);

	d->pending = false;
	take_answer(d, err, false);
}

void dest_probe(struct dest *d)
{
	struct dests *all = d->ctl->objects->dests;
	uint64_t now_ms = loop_now_ms();

	if (!is_kernels(d) || d->pending || now_ms < d->probe_ms || now_ms < all->probe_ms)
		return;
	all->probe_ms = now_ms + PROBE_ANY_MS;
	d->probe_ms = now_ms + PROBE_PAUSE_MS;
	if (rtnl_neigh_probe(&d->ctl->net->rtnl, d->query.ifindex, d->query.nexthop, false))
		return;
	d->probed_ms = now_ms;
	set_due(d, now_ms + PROBE_ANSWER_MS);
}

static void check(struct dest *d)
{
	char why[ABI_SENTENCE_MAX]; /* unused: the application sees the failed retries of its QP */
	bool local;
	int err;

	if (d->probed_ms && loop_now_ms() >= d->probed_ms + PROBE_ANSWER_MS) {
		d->probed_ms = 0;
		rtnl_neigh_probe(&d->ctl->net->rtnl, d->query.ifindex, d->query.nexthop, true);
	}
	if (d->pending)
		neigh_cancel(&d->query);
	err = dest_find(d->ctl, &d->key, &d->query, &local, why);
	set_hop(d);
	d->pending = err == -EINPROGRESS;
	take_answer(d, err, local);
}

/* News may arrive by the hundred: one lookup covers all within PAUSE_MS. */
static void touch(struct dest *d)
{
	uint64_t due = d->checked_ms + PAUSE_MS;

	if (due < d->due_ms)
		set_due(d, due);
}

static void for_each(struct dests *all, void (*f)(struct dest *d, void *arg), void *arg)
{
	for (uint32_t i = 0; i < DEST_BUCKETS; i++) {
		const struct list *bucket = &all->bucket[i];

		for (struct list *n = bucket->next; n != bucket; n = n->next)
			f(container_of(n, struct dest, node), arg);
	}
}

static void touch_any(struct dest *d, void *arg)
{
	touch(d);
}

void dests_touch_all(struct ctl *ctl)
{
	for_each(ctl->objects->dests, touch_any, NULL);
}

/* The port itself changed. This is rare, and a QP must not keep using a MAC that the port no longer
 * has. */
static void touch_of_port(struct dest *d, void *arg)
{
	if (d->key.port == *(const uint32_t *)arg)
		set_due(d, 0);
}

void dests_touch_port(struct ctl *ctl, uint32_t port)
{
	for_each(ctl->objects->dests, touch_of_port, &port);
}

void dests_touch_neigh(struct ctl *ctl, uint32_t ifindex, const uint8_t nexthop[16])
{
	const struct list *hop = hop_of(ctl->objects->dests, ifindex, nexthop);

	for (struct list *n = hop->next; n != hop; n = n->next) {
		struct dest *d = container_of(n, struct dest, hop);

		/* neigh_poll() handles a pending query */
		if (!d->pending && d->query.ifindex == ifindex &&
			!memcmp(d->query.nexthop, nexthop, 16))
			touch(d);
	}
}

/* Looks up some entries that are due. */
static void check_some(struct dests *all, uint64_t now_ms)
{
	unsigned moves = TIMERS_MOVED;

	for (unsigned i = 0; i < ROUND; i++) {
		struct wheel_timer *t = wheel_expire(&all->wheel, TICKS(now_ms), &moves);
		struct dest *d;

		if (!t)
			return;
		d = container_of(t, struct dest, timer);
		d->due_ms = NEVER;
		check(d);
	}
}

int dests_poll(struct ctl *ctl, uint64_t now_ms)
{
	uint64_t next, now = TICKS(now_ms);
	struct dests *all = ctl->objects->dests;

	check_some(all, now_ms);
	readdress_some(ctl);
	if (!list_empty(&all->late))
		return 0;
	next = wheel_deadline(&all->wheel);
	if (next == WHEEL_NEVER)
		return -1;
	return next > now ? (int)((next - now) >> WHEEL_TICK_SHIFT) : 0;
}
