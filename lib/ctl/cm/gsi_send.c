/* SPDX-License-Identifier: BSD-3-Clause */
/* Outgoing MADs of QP1, and the address handles that they need. */
#include <errno.h>
#include <string.h>
#include "abi_ring.h"
#include "abi_wqe.h"
#include "cm/gsi.h"
#include "cm/gsi_impl.h"
#include "config/ctl_parts.h"
#include "net/net.h"
#include "qp.h"
#include "session/message.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/ah_obj.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"
#include "worker.h"

int gsi_sgid_index(const struct ctl *ctl, const struct cm_path *path)
{
	if (path->port >= ctl->net->nports)
		return -1;
	return gid_find(&ctl->net->port[path->port].gids.table, path->local, path->net, path->vid);
}

/* The high bit gives the membership of each end, not the partition. Prefers a full membership of
 * rocid, because limited members cannot communicate with each other (CA17-27). */
int gsi_pkey_index(const struct ctl *ctl, const struct cm_path *path)
{
	const struct port *port = &ctl->dp->ports->port[path->port];
	int found = -1;

	for (uint32_t i = 0; i < port->pkeys; i++) {
		uint16_t own = atomic_load_explicit(&port->pkey[i], memory_order_relaxed);

		if (!pkey_valid(own) || (own ^ path->pkey) & 0x7FFF)
			continue;
		if (own & 0x8000)
			return (int)i;
		if (found < 0)
			found = (int)i;
	}
	return found;
}

/* The rejection of a REQ for a foreign partition is sent in one of our own. */
static int any_pkey_index(const struct ctl *ctl, const struct cm_path *path)
{
	const struct port *port = &ctl->dp->ports->port[path->port];
	int found = gsi_pkey_index(ctl, path);

	for (uint32_t i = 0; i < port->pkeys && found < 0; i++)
		if (pkey_valid(atomic_load_explicit(&port->pkey[i], memory_order_relaxed)))
			found = (int)i;
	return found;
}

/* --- posting ---------------------------------------------------------------------------------- */

static void ring_bell(struct gsi *g, const struct qp_obj *o)
{
	struct abi_queue *q = o->qp->sq.shared;
	uint32_t bell, worker;
	struct abi_doorbell *db;

	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&q->need_doorbell, memory_order_relaxed))
		return;
	bell = atomic_load_explicit(&q->bell, memory_order_relaxed);
	worker = bell && bell <= g->ctl->dp->nworkers ? bell - 1 : o->worker;
	db = (struct abi_doorbell *)(g->session->region.base + sizeof(struct abi_session)) + worker;
	abi_doorbell_ring(db, o->doorbell);
	worker_wake(g->ctl->dp->worker[worker]);
}

static bool is_idle(const struct gsi_port *p)
{
	return !p->qp || atomic_load_explicit(&p->qp->qp->sq.shared->consumer,
				 memory_order_acquire) == p->posted;
}

static bool has_room(const struct gsi_port *p)
{
	const struct ring *sq = &p->qp->qp->sq;
	uint32_t done = atomic_load_explicit(&sq->shared->consumer, memory_order_acquire);

	return p->posted - done < sq->depth;
}

/* CM-01: from QP1 to QP1 with its Q_Key and the path's P_Key, a whole MAD in one packet.
 *
 * The caller checks for room, but not for all MADs that waited for a destination: the protocol
 * repeats lost ones. */
static void post(
	struct gsi *g, const struct gsi_ah *a, uint32_t flow_label, const uint8_t mad[MAD_LEN])
{
	struct gsi_port *p = &g->port[a->path.port];
	const struct ring *sq = &p->qp->qp->sq;
	uint8_t *entry = sq->entries + (size_t)(p->posted & (sq->depth - 1)) * sq->stride;
	struct abi_wqe *w = (struct abi_wqe *)entry;
	uint32_t flags = ABI_WQE_INLINE | (flow_label ? ABI_WQE_LABEL : 0); /* ENT-07 */
	int pkey = any_pkey_index(g->ctl, &a->path);

	if (!has_room(p)) {
		g->full++;
		return;
	}
	if (pkey < 0) /* not in the partition: a send without a valid P_Key would put QP1 in SQE */
		return;
	w->flow_label = flow_label;
	w->wr_id = (uint64_t)a->path.port << 32 | p->posted;
	w->ud.ah = a->handle;
	w->ud.remote_qpn = 1;
	w->ud.remote_qkey = MAD_QKEY;
	w->ud.pkey_index = (uint32_t)pkey;
	memcpy(entry + ABI_WQE_HDR, mad, MAD_LEN);
	atomic_store_explicit((_Atomic uint32_t *)&w->ctl,
		ABI_WQE_CTL(ABI_WR_SEND, MAD_LEN, flags | abi_phase(p->posted, sq->depth)),
		memory_order_release);
	p->posted++;
	atomic_store_explicit(&sq->shared->producer, p->posted, memory_order_release);
	ring_bell(g, p->qp);
}

/* --- destinations ----------------------------------------------------------------------------- */

/* SEC-03: without the flow label, which a station can vary at will; each MAD has its own. */
static bool same(const struct cm_path *a, const struct cm_path *b)
{
	return a->port == b->port && a->net == b->net && a->vid == b->vid && a->pkey == b->pkey &&
	       a->tclass == b->tclass && !memcmp(a->remote, b->remote, 16) &&
	       !memcmp(a->local, b->local, 16);
}

static void drop(struct gsi *g, struct gsi_ah *a)
{
	struct ah_obj *o = a->handle ? handle_get(&g->ctl->objects->ahs, a->handle) : NULL;

	if (o) {
		ah_unpublish(o);
		worker_grace(g->ctl->dp);
		ah_release(o);
	}
	*a = (struct gsi_ah){0};
}

static struct gsi_ah *known(struct gsi *g, const struct cm_path *path)
{
	for (uint32_t i = 0; i < GSI_AHS; i++)
		if (g->ah[i].used && same(&g->ah[i].path, path))
			return &g->ah[i];
	return NULL;
}

/* @return a place for @p path, perhaps that of the least recently used destination. No request that
 * waits to be sent may use that (UD-16). */
static struct gsi_ah *place(struct gsi *g, const struct cm_path *path)
{
	struct gsi_ah *oldest = NULL;

	for (uint32_t i = 0; i < GSI_AHS; i++) {
		struct gsi_ah *a = &g->ah[i];

		if (!a->asked &&
			(!oldest || !a->used || (oldest->used && a->last_ms < oldest->last_ms)))
			oldest = a;
	}
	if (!oldest || (oldest->used && !is_idle(&g->port[oldest->path.port])))
		return NULL;
	drop(g, oldest);
	oldest->used = true;
	oldest->path = *path;
	return oldest;
}

static void attributes(const struct cm_path *p, uint8_t sgid_index, struct abi_ah_attr *to)
{
	*to = (struct abi_ah_attr){.sgid_index = sgid_index,
		.traffic_class = p->tclass,
		.hop_limit = p->hop_limit,
		.port = (uint8_t)(p->port + 1),
		.is_global = 1};
	memcpy(to->dgid, p->remote, 16);
}

void gsi_resolved(struct gsi *g, uint32_t index, int32_t status, uint32_t handle)
{
	struct gsi_ah *a = &g->ah[index % GSI_AHS];

	g->nasked -= a->asked;
	a->asked = false;
	if (status) {
		g->unresolved += a->npending;
		*a = (struct gsi_ah){0};
		return;
	}
	a->handle = handle;
	for (uint32_t i = 0; i < a->npending; i++)
		post(g, a, a->pending[i].flow_label, a->pending[i].mad);
	a->npending = 0;
}

static void resolve(struct gsi *g, struct gsi_ah *a, int sgid_index)
{
	struct request q = {.msg = {.type = ABI_CREATE_AH, .seq = (uint32_t)(a - g->ah)},
		.body_len = sizeof(struct abi_create_ah),
		.fd = -1};
	struct abi_create_ah body = {.pd = g->pd};
	struct abi_handle_reply out = {0};
	struct reply r = {0};
	int err;

	attributes(&a->path, (uint8_t)sgid_index, &body.attr);
	memcpy(q.body, &body, sizeof(body));
	a->asked = true;
	g->nasked++;
	err = g->ctl->sessions->ops->run(g->session, &q, &r);
	if (err == DEFERRED)
		return;
	memcpy(&out, r.body, sizeof(out));
	gsi_resolved(g, q.msg.seq, err, out.handle);
}

/* --- queueing --------------------------------------------------------------------------------- */

/* Most destinations that may be resolving at once: forged addresses make rocid resolve those that
 * it answers, and must not block those to which programs connect. */
static uint32_t lookups(const uint8_t mad[MAD_LEN])
{
	switch (mad_attr(mad)) {
	case CM_REQ:
	case CM_SIDR_REQ:
	case CM_DREQ:
		return GSI_OWN;
	default:
		return GSI_ASKED;
	}
}

/* @return false: the MAD has to wait. */
static bool send_now(struct gsi *g, const struct cm_path *to, const uint8_t mad[MAD_LEN])
{
	int sgid = gsi_sgid_index(g->ctl, to);
	struct gsi_ah *a;

	if (sgid < 0 || !g->session || !g->port[to->port].qp) {
		g->unresolved++;
		return true;
	}
	if (!g->paced || !has_room(&g->port[to->port]))
		return false;
	a = known(g, to);
	/* Destinations that never resolve, such as forged sources, delay nobody else. */
	if (!a && g->nasked >= lookups(mad)) {
		g->unresolved++;
		return true;
	}
	if (!a)
		a = place(g, to);
	if (!a)
		return false;
	g->paced--;
	a->last_ms = loop_now_ms();
	if (a->handle) {
		post(g, a, to->flow_label, mad);
	} else if (a->npending == GSI_PENDING) { /* the protocol repeats lost MADs */
		g->full++;
	} else {
		a->pending[a->npending].flow_label = to->flow_label;
		memcpy(a->pending[a->npending++].mad, mad, MAD_LEN);
		if (!a->asked)
			resolve(g, a, sgid);
	}
	return true;
}

/* When a program with a thousand connections ends, it sends a thousand DREQs, most of which the
 * peer's QP1 would lose if they came at once. */
static void refill(struct gsi *g)
{
	uint64_t now = loop_now_ms(), passed = now - g->paced_ms;

	if (passed >= GSI_BURST / GSI_PACE)
		g->paced = GSI_BURST;
	else
		g->paced = RTE_MIN(g->paced + (uint32_t)passed * GSI_PACE, GSI_BURST);
	g->paced_ms = now;
}

static struct gsi_waiting *enqueue(struct gsi *g, struct gsi_turn *t)
{
	uint32_t i = g->free;

	if (g->nwaiting == g->touched) /* memory that was never used stays untouched */
		i = g->touched++;
	else
		g->free = g->waiting[i].next;
	if (t->n++)
		g->waiting[t->last].next = i;
	else
		t->first = i;
	t->last = i;
	g->nwaiting++;
	return &g->waiting[i];
}

static void dequeue(struct gsi *g, struct gsi_turn *t)
{
	struct gsi_waiting *w = &g->waiting[t->first];
	uint32_t i = t->first;

	t->first = w->next;
	t->n--;
	w->next = g->free;
	g->free = i;
	g->nwaiting--;
}

/* The queue of @p sender. More senders than queues share them. */
static struct gsi_turn *turn_of(struct gsi *g, uint32_t sender)
{
	struct gsi_turn *empty = NULL;

	for (uint32_t i = 0; i < GSI_TURNS; i++) {
		struct gsi_turn *t = &g->turn[i];

		if (t->n && t->sender == sender)
			return t;
		if (!t->n && !empty)
			empty = t;
	}
	if (!empty)
		return &g->turn[sender % GSI_TURNS];
	empty->sender = sender;
	return empty;
}

static struct gsi_turn *next_turn(struct gsi *g)
{
	do
		g->last_turn = (g->last_turn + 1) % GSI_TURNS;
	while (!g->turn[g->last_turn].n);
	return &g->turn[g->last_turn];
}

/* Users take turns: one whose programs have thousands of MADs sent delays the MAD of another by one
 * of its own. A port that is full holds up only the queues that begin with a MAD for it. */
bool gsi_flush(struct gsi *g)
{
	if (!g->nwaiting)
		return false;
	refill(g);
	/* some are dropped, which takes time, too */
	for (uint32_t n = 0; n < GSI_BURST && g->nwaiting && g->paced; n++) {
		struct gsi_turn *t = next_turn(g);
		const struct gsi_waiting *w = &g->waiting[t->first];

		if (send_now(g, &w->to, w->mad))
			dequeue(g, t);
	}
	return g->nwaiting;
}

/* A sender may hold no more places than it leaves to the others. */
void gsi_send(struct gsi *g, const struct cm_path *to, const uint8_t mad[MAD_LEN])
{
	struct gsi_waiting *w;
	struct gsi_turn *t;

	refill(g);
	if (!g->nwaiting && send_now(g, to, mad))
		return;
	t = turn_of(g, to->sender);
	if (t->n >= GSI_WAITING - g->nwaiting) {
		g->full++;
		return;
	}
	w = enqueue(g, t);
	w->to = *to;
	memcpy(w->mad, mad, MAD_LEN);
}
