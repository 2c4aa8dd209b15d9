/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults of a QP: the armed ones, and the frames that they hold back. inject_packet.c applies them
 * to a packet. */
#include <errno.h>
#include "classify.h"
#include "drop_log.h"
#include "frame.h"
#include "icrc.h"
#include "inject.h"
#include "mcast.h"
#include "qp_impl.h"
#include "responder.h"
#include "seal.h"
#include "seq24.h"
#include "trace.h"
#include "txd.h"
#include "txd_bth.h"

_Static_assert(FRAME_MAX <= UINT16_MAX, "inject_held.len");

/* --- armed faults -------------------------------------------------------------------- */

/* Discards the frames held back. */
static void drop_held(struct inject *in)
{
	for (unsigned i = 0; i < INJECT_HELD && in->nheld; i++) {
		in->nheld -= in->held[i].len != 0;
		in->held[i].len = 0;
	}
	list_del(&in->node);
}

int inject_qp(struct core *c, struct qp *qp, struct inject *in)
{
	if (qp_owner(qp) != c->cfg.worker)
		return -EPERM;
	if (in && qp->inject)
		return -EBUSY;
	if (in) {
		in->qp = qp;
		list_init(&in->node);
	} else if (qp->inject) {
		drop_held(qp->inject);
	}
	qp->inject = in;
	return 0;
}

static struct inject_rule *find_rule(struct inject *in, uint32_t id)
{
	for (unsigned i = 0; i < INJECT_RULES; i++)
		if (in->rule[i].id == id)
			return &in->rule[i];
	return NULL;
}

/* A free slot, or that of the oldest spent fault. */
static struct inject_rule *find_room(struct inject *in)
{
	struct inject_rule *room = find_rule(in, 0);

	for (unsigned i = 0; i < INJECT_RULES && (!room || room->id); i++) {
		struct inject_rule *r = &in->rule[i];

		if (inject_is_spent(r) && (!room || r->id < room->id))
			room = r;
	}
	return room;
}

int inject_arm(struct qp *qp, const struct abi_fault *fault, uint32_t *id)
{
	struct inject *in = qp->inject;
	struct inject_rule *r = in ? find_room(in) : NULL;

	if (!r)
		return -ENOSPC;
	*r = (struct inject_rule){
		.fault = *fault,
		.id = ++in->ids,
		/* Any seed is good: the state is never 0. */
		.random = {(fault->seed * 2 + 1) * 0x9E3779B97F4A7C15ull},
	};
	*id = r->id;
	return 0;
}

int inject_clear(struct qp *qp, uint32_t id)
{
	struct inject_rule *r = qp->inject && id ? find_rule(qp->inject, id) : NULL;

	if (!r)
		return -ENOENT;
	*r = (struct inject_rule){0};
	return 0;
}

void inject_forget(struct qp *qp)
{
	if (qp->inject)
		drop_held(qp->inject);
}

void inject_give(struct qp *qp)
{
	if (qp->inject)
		list_del(&qp->inject->node);
}

void inject_take(struct core *c, struct qp *qp)
{
	struct inject *in = qp->inject;

	if (in && in->nheld && list_empty(&in->node))
		list_push(&c->held, &in->node);
}

/* --- frames held back ------------------------------------------------------------------ */

/* Holds back frame @p v.  @return its slot, or NULL when there are too many. */
static struct inject_held *hold(struct core *c, struct inject *in, const struct inject_victim *v,
	const uint8_t *bytes, uint64_t now)
{
	struct inject_held *h = in->held;

	if (in->nheld == INJECT_HELD || v->len > FRAME_MAX)
		return NULL;
	while (h->len)
		h++;
	h->due = now + v->time;
	h->order = in->order++;
	h->waits = v->waits;
	h->len = v->len;
	h->direction = v->direction;
	h->fault = v->fault;
	h->port = v->pkt->port;
	h->queue = v->pkt->queue;
	h->source_qp = v->pkt->source_qp;
	memcpy(h->frame, bytes, v->len);
	in->nheld++;
	if (list_empty(&in->node))
		list_push(&c->held, &in->node);
	return h;
}

static void let_go(struct inject *in, struct inject_held *h)
{
	h->len = 0;
	if (!--in->nheld)
		list_del(&in->node);
}

static bool goes_before(const struct inject_held *a, const struct inject_held *b)
{
	return a->due != b->due ? a->due < b->due : (int32_t)(a->order - b->order) < 0;
}

/* The frame of @p direction that may leave now and was due first; NULL: none. */
static struct inject_held *next_free(struct inject *in, unsigned direction, uint64_t now)
{
	struct inject_held *next = NULL;

	for (unsigned i = 0; i < INJECT_HELD && in->nheld; i++) {
		struct inject_held *h = &in->held[i];

		if (h->len && h->direction == direction && h->due <= now &&
			(!next || goes_before(h, next)))
			next = h;
	}
	return next;
}

/* A packet has passed: counts for those that wait to be overtaken. */
static void pass(struct inject *in, unsigned direction, uint64_t now)
{
	for (unsigned i = 0; i < INJECT_HELD && in->nheld; i++) {
		struct inject_held *h = &in->held[i];

		if (h->len && h->direction == direction && h->waits && !--h->waits)
			h->due = now;
	}
}

static uint64_t next_due(const struct inject *in)
{
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i < INJECT_HELD; i++)
		if (in->held[i].len && in->held[i].due < due)
			due = in->held[i].due;
	return due;
}

uint64_t inject_deadline(const struct core *c)
{
	uint64_t due = UINT64_MAX;

	for (const struct list *l = c->held.next; l != &c->held; l = l->next) {
		uint64_t one = next_due(container_of(l, struct inject, node));

		if (one < due)
			due = one;
	}
	return due;
}

/* --- receiving ---------------------------------------------------------------------------- */

/* By the address, which no fault changes. */
static bool is_to_group(const struct pkt *pkt)
{
	uint8_t sgid[16], dgid[16];

	frame_gids(pkt, sgid, dgid);
	return gid_is_multicast(dgid);
}

/* QP1 has an internal number, which no packet names. A group may have been left since its packet
 * arrived. */
static bool is_for(const struct core *c, const struct qp *qp, const struct pkt *pkt, bool to_group)
{
	if (to_group != (pkt->dest_qp == QPN_MULTICAST))
		return false; /* VAL-17 */
	if (to_group)
		return core_is_receiver(c, pkt, qp->qpn);
	return pkt->dest_qp == (qp->gsi_port ? QPN_GSI : qp->qpn);
}

/* A multicast packet has been counted already, and this QP has its own copy: faults in it concern
 * no other member. */
static uint16_t take(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	if (pkt->dest_qp != QPN_MULTICAST)
		return classify_step(c, qp, pkt, now);
	return classify_member(
		c, qp, pkt, icrc_check(c->cfg.icrc, pkt) ? DROP_NONE : DROP_ICRC, now);
}

/* Receives a frame that was altered or delayed; @p from says how it arrived. If the frame now names
 * another QP, that QP does not get it. */
static uint16_t receive(struct core *c, struct qp *qp, const uint8_t *frame, uint16_t len,
	const struct pkt *from, uint64_t now)
{
	struct pkt pkt = {.port = from->port, .queue = from->queue, .source_qp = from->source_qp};
	enum drop why = frame_parse(&pkt, frame, len);
	bool to_group;

	if (why) {
		core_count_drop(c, why);
		return why;
	}
	to_group = is_to_group(&pkt);
	if (is_for(c, qp, &pkt, to_group))
		return take(c, qp, &pkt, now);
	if (!to_group)
		count_received(c, &pkt);
	drop_count(c, NULL, &pkt, DROP_QPN_UNKNOWN, now);
	return DROP_QPN_UNKNOWN;
}

static void receive_held(struct core *c, struct inject *in, uint64_t now)
{
	struct inject_held *h;

	while ((h = next_free(in, ABI_FAULT_RX, now))) {
		const struct pkt from = {
			.port = h->port, .queue = h->queue, .source_qp = h->source_qp};
		uint16_t len = h->len;

		let_go(in, h); /* the bytes stay until the slot is reused */
		receive(c, in->qp, h->frame, len, &from, now);
	}
}

static uint16_t receive_victim(
	struct core *c, struct qp *qp, const struct inject_victim *v, uint64_t now)
{
	const struct pkt *pkt = v->pkt;

	if (!v->changed)
		return take(c, qp, pkt, now);
	return receive(c, qp, v->frame, v->len, pkt, now);
}

static bool hold_back(
	struct core *c, struct inject *in, const struct inject_victim *v, uint64_t now)
{
	const uint8_t *bytes = v->frame ? v->frame : v->pkt->dmac;

	if (!v->time)
		return false;
	if (hold(c, in, v, bytes, now))
		return true;
	v->holder->missed++;
	return false;
}

/* Ends the packet's journey: lost, or refused. */
static uint16_t stop(struct core *c, struct qp *qp, const struct inject_victim *v, uint64_t now)
{
	uint16_t verdict = v->lost ? DROP_INJECTED : DROP_NONE;
	struct trace_step s;

	if (v->pkt->dest_qp != QPN_MULTICAST)
		count_received(c, v->pkt);
	if (unlikely(qp->traced))
		trace_rx_begin(&s, c, qp, v->pkt, now);
	if (v->lost)
		drop_count(c, qp, v->pkt, DROP_INJECTED, now);
	else
		responder_not_ready(c, qp, v->timer);
	if (unlikely(qp->traced))
		trace_rx_end(&s, c, qp, verdict, now);
	return verdict;
}

uint16_t inject_rx(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now, uint8_t *fault)
{
	struct inject_victim v = {
		.pkt = pkt,
		.len = (uint16_t)(pkt->l3 - pkt->dmac + pkt->icrc_off + ICRC_LEN),
		.direction = ABI_FAULT_RX,
	};
	uint16_t verdict = DROP_NONE;

	inject_spoil(c, qp, &v, now);
	*fault = v.fault;
	if (v.lost || v.refused)
		return stop(c, qp, &v, now);
	if (!hold_back(c, qp->inject, &v, now))
		verdict = receive_victim(c, qp, &v, now);
	else if (!v.twice)
		return DROP_NONE;
	if (v.twice)
		receive_victim(c, qp, &v, now);
	pass(qp->inject, ABI_FAULT_RX, now);
	receive_held(c, qp->inject, now);
	return verdict;
}

/* --- sending ------------------------------------------------------------------------------ */

/* Fills in what a sealed frame needs to leave. */
static void sealed(struct txd *t, uint16_t len, uint8_t fault)
{
	t->nsegs = 0;
	t->sealed = TXD_SEALED;
	t->fault = fault;
	t->frame_len = len;
}

bool inject_release(struct core *c, struct qp *qp, struct txd *t, uint64_t now)
{
	struct inject *in = qp->inject;
	struct inject_held *h = next_free(in, ABI_FAULT_TX, now);

	if (!h)
		return false;
	memcpy(t->frame, h->frame, h->len);
	t->qp = qp;
	t->l3_off = h->l3_off;
	t->net = h->net;
	t->port = h->port;
	t->local = h->local;
	t->group = h->group;
	t->named = false;
	if (!egress_is_open(c,
		    t->local ? EGRESS_LOCAL(core_owner(c, txd_dest_qp(t))) : EGRESS_PORT(t->port)))
		return false;
	sealed(t, h->len, h->fault);
	let_go(in, h);
	if (unlikely(qp->traced))
		trace_released(c, qp, t, now);
	return true;
}

static bool hold_sent(struct core *c, struct inject *in, const struct inject_victim *v,
	const struct txd *t, uint64_t now)
{
	struct inject_held *h = hold(c, in, v, t->frame, now);

	if (!h) {
		v->holder->missed++;
		return false;
	}
	h->l3_off = t->l3_off;
	h->net = t->net;
	h->local = t->local;
	h->group = t->group;
	return true;
}

unsigned inject_tx(struct core *c, struct qp *qp, struct txd *t, uint64_t now)
{
	struct inject *in = qp->inject;
	struct inject_victim v = {.direction = ABI_FAULT_TX, .frame = t->frame};
	struct pkt pkt = {.port = t->port, .queue = PKT_NO_QUEUE};
	bool held;

	v.len = seal_frame(c, t);
	if (!v.len)
		return 0;
	v.pkt = &pkt;
	if (!frame_parse(&pkt, t->frame, v.len))
		inject_spoil(c, qp, &v, now);
	sealed(t, v.len, v.fault);
	if (v.lost) {
		t->sealed = TXD_LOST;
		return 1;
	}
	held = v.time && hold_sent(c, in, &v, t, now);
	if (held && !v.twice)
		return 0;
	pass(in, ABI_FAULT_TX, now);
	v.time = 0;
	v.waits = 0;
	if (v.twice && !held)
		hold_sent(c, in, &v, t, now); /* its copy follows at once */
	return 1;
}

/* --- time --------------------------------------------------------------------------------- */

void inject_poll(struct core *c, uint64_t now)
{
	struct list *next;

	for (struct list *l = c->held.next; l != &c->held; l = next) {
		struct inject *in = container_of(l, struct inject, node);

		next = l->next;
		receive_held(c, in, now);
		if (next_free(in, ABI_FAULT_TX, now))
			qp_make_ready(c, in->qp);
	}
}
