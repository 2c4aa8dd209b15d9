/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a flow: UP, until an end of it breaks; BREAKING, while the other is left to find out;
 * DRAINING, both in ERR; DOWN, then it is made again, of the same QPs or of others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "chaos.h"
#include "chaos_flow.h"
#include "qp.h"
#include "seq24.h"

#define DOMAIN	 70u /* XRC */
#define STRANGER 71u /* another one */
#define CQ_DEPTH 1024u
#define QKEY	 0x1234567u

struct flow_totals flow_totals;

const char *const flow_service_name[FLOW_SERVICES] = {"RC", "UC", "UD", "XRC"};
const char *const flow_mistake_name[FLOW_MISTAKES] = {"none", "L_Key", "R_Key", "SRQN", "Q_Key",
	"QPN", "AH", "too long", "short receive", "SGEs of a receive"};
const char *const flow_act_name[FLOW_ACTS] = {"receiver to ERR", "receiver reset",
	"receiver destroyed", "sender to ERR", "receives starved", "SRQ limit armed", "SRQ resized",
	"SRQ broken", "XRC SRQ replaced", "AHs replaced", "group changed"};

bool flow_reliable(const struct flow *fl)
{
	return fl->service == FLOW_RC || fl->service == FLOW_XRC;
}

struct flow *flow_of(struct flows *f, const struct app *app, int e, uint32_t qpn)
{
	for (unsigned i = 0; i < f->n; i++) {
		struct flow *fl = &f->flow[i];

		if (fl->app[e] == app && fl->qp[e] && fl->qp[e]->qp->qpn == qpn)
			return fl;
	}
	return NULL;
}

/* --- made ------------------------------------------------------------------------------- */

static struct app_qp_spec spec_of(struct flows *f, const struct chaos_world *w,
	const struct flow *fl, int e, const struct pool *own)
{
	static const uint8_t type[FLOW_SERVICES][ENDS] = {{ABI_QPT_RC, ABI_QPT_RC},
		{ABI_QPT_UC, ABI_QPT_UC}, {ABI_QPT_UD, ABI_QPT_UD},
		{ABI_QPT_XRC_SEND, ABI_QPT_XRC_RECV}};
	unsigned h = fl->app[e] == &w->app[B];
	struct app_qp_spec s = {
		.type = type[fl->service][e],
		.sq_depth = e == A ? 1u << flows_below(f, 5) : 1,
		.rq_depth = own ? own->depth : 1,
		.max_sge = 2,
		.max_inline = 64,
		.window = flows_below(f, 2) ? 1 + flows_below(f, 32) : 0,
		.send_cq = f->send_cq[h],
		.recv_cq = f->recv_cq[h],
	};

	if (e == B && fl->pool && fl->pool->srq)
		s.srq = fl->pool->srq;
	if (e == B && fl->service == FLOW_XRC)
		s.xrcd = DOMAIN;
	return s;
}

static void make_qp(const struct chaos_world *w, struct flows *f, struct flow *fl, int e)
{
	struct pool *own = e == B && fl->pool && !fl->pool->srq ? fl->pool : NULL;

	fl->spec[e] = spec_of(f, w, fl, e, own);
	fl->qp[e] = app_qp(fl->app[e], &fl->spec[e]);
	fl->qp[e]->free_ids = true; /* chaos_send.c and chaos_recv.c know better */
	if (own)
		pool_take_qp(own, fl->qp[e]);
}

/* Whether an undisturbed sender survives a moderate run: conn_init()'s calm one. */
static void choose_limits(const struct chaos_world *w, struct flows *f, struct flow *fl)
{
	uint32_t mtu = 256u << flows_below(f, 5);

	fl->lossy = !w->moderate;
	for (int e = A; e < ENDS; e++) {
		struct abi_qp_attr *a = &fl->attr[e];
		uint32_t psn = fl->posted ? a->sq_psn + w->psn_jump : flows_below(f, 1u << 24);

		*a = app_attr(0, psn & SEQ24_MASK, 0);
		a->path_mtu = mtu;
		a->qkey = QKEY;
		a->min_rnr_timer = (uint8_t)(1 + flows_below(f, 14));
		a->timeout = (uint8_t)(fl->lossy ? 9 + flows_below(f, 6) : 14 + flows_below(f, 2));
		if (fl->lossy)
			a->retry_cnt = (uint8_t)flows_below(f, 8);
		if (fl->lossy && flows_below(f, 2))
			a->rnr_retry = (uint8_t)flows_below(f, 7);
	}
}

static void watch_wire(struct chaos_world *w, const struct flow *fl)
{
	struct wire_end end[ENDS];

	for (int e = A; e < ENDS; e++)
		end[e] = (struct wire_end){
			fl->app[e]->host->id, fl->qp[e]->qp->qpn, fl->attr[e].sq_psn};
	if (fl->service == FLOW_UD)
		wirecheck_datagrams(&w->wire, &end[A]);
	else
		wirecheck_connect_by(&w->wire, &end[A], &end[B], fl->attr[A].path_mtu,
			fl->service == FLOW_UC	  ? WIRE_UC
			: fl->service == FLOW_XRC ? WIRE_XRC
						  : WIRE_RC);
}

static void bring_up(struct chaos_world *w, struct flows *f, struct flow *fl)
{
	bool datagrams = fl->service == FLOW_UD;

	choose_limits(w, f, fl);
	for (int e = A; e < ENDS; e++) {
		struct path_spec path = host_path(fl->app[e]->host, fl->app[!e]->host, 0, w->gid);
		struct abi_qp_attr *a = &fl->attr[e];

		a->dest_qpn = datagrams ? 0 : fl->qp[!e]->qp->qpn;
		a->rq_psn = fl->attr[!e].sq_psn;
		assert_int_equal(app_to_init(fl->qp[e], a, now_of(w)), 0);
		assert_int_equal(app_to_rtr(fl->qp[e], a, datagrams ? NULL : &path, now_of(w)), 0);
		assert_int_equal(app_to_rts(fl->qp[e], a, now_of(w)), 0);
		fl->gone[e] = false;
	}
	watch_wire(w, fl);
	memset(fl->events, 0, sizeof(fl->events));
	memset(&fl->invariants, 0, sizeof(fl->invariants));
	fl->base = fl->posted;
	for (unsigned i = 0; i < POOLS; i++)
		fl->expect[i] = fl->posted;
	fl->failed = fl->recv_failed = 0;
	fl->phase = FLOW_UP;
	if (datagrams && (!fl->ah || flows_below(f, 2)))
		ud_handles(w, f, fl);
	if (datagrams && flows_below(f, 2))
		ud_attach(w, f, fl, true);
}

/* --- of a run --------------------------------------------------------------------------- */

static struct app *any_app(struct chaos_world *w, struct flows *f)
{
	return &w->app[flows_below(f, CHAOS_HOSTS)];
}

/* Two that a target may take from, and one of strangers. */
static void make_xrc_pools(struct chaos_world *w, struct flows *f, uint32_t buf_len)
{
	struct app *app = any_app(w, f);

	for (unsigned i = 0; i < 3; i++) {
		struct pool *p = pool_new(f, app, buf_len);

		p->xrcd = i < 2 ? DOMAIN : STRANGER;
		p->cq = app_cq(app, CQ_DEPTH);
		pool_make_srq(f, p);
	}
}

static struct pool *first_of_domain(struct flows *f)
{
	for (unsigned i = 0; i < f->pools; i++)
		if (f->pool[i].xrcd == DOMAIN)
			return &f->pool[i];
	return NULL;
}

static void make_flow(struct chaos_world *w, struct flows *f, struct pool *shared, bool xrc)
{
	struct flow *fl = &f->flow[f->n];
	uint32_t buf_len = shared->buf_len;

	fl->index = f->n++;
	fl->service = (enum flow_service)flows_below(f, xrc ? FLOW_SERVICES : FLOW_XRC);
	fl->key = random_next(&f->random);
	fl->max_len = buf_len - UD_AREA - flows_below(f, buf_len / 4);
	fl->share = 5 + flows_below(f, 60);
	fl->app[A] = any_app(w, f);
	if (fl->service == FLOW_XRC)
		fl->app[B] = first_of_domain(f)->app;
	else if (fl->service == FLOW_UD && f->pools < POOLS && flows_below(f, 2))
		fl->pool = pool_new(f, any_app(w, f), buf_len);
	else
		fl->pool = shared;
	if (fl->pool)
		fl->app[B] = fl->pool->app;
	flow_memory(f, fl);
	for (int e = A; e < ENDS; e++)
		make_qp(w, f, fl, e);
	bring_up(w, f, fl);
}

void flows_init(struct chaos_world *w, struct flows *f, uint64_t seed)
{
	uint32_t buf_len;
	bool xrc;

	f->random.state = (seed + 3) * 0xA24BAED4963EE407ull | 1;
	for (int i = 0; i < 8; i++)
		random_next(&f->random);
	if (!flows_below(f, 5)) /* the others alone */
		return;
	for (unsigned h = 0; h < CHAOS_HOSTS; h++) {
		f->send_cq[h] = app_cq(&w->app[h], CQ_DEPTH);
		f->recv_cq[h] = app_cq(&w->app[h], CQ_DEPTH);
	}
	ud_init(w, f);
	f->sure = w->perfect;
	f->mistakes = w->action_gap && flows_below(f, 2);
	buf_len = (128u << flows_below(f, 7)) + UD_AREA;
	pool_make_srq(f, pool_new(f, any_app(w, f), buf_len));
	xrc = flows_below(f, 2);
	if (xrc)
		make_xrc_pools(w, f, buf_len);
	for (unsigned n = 1 + flows_below(f, FLOWS); n; n--)
		make_flow(w, f, &f->pool[0], xrc);
}

void flows_fini(struct flows *f)
{
	ud_fini(f);
}

bool flows_loop(const struct flows *f, const struct app *app)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->flow[i].app[A] == app && f->flow[i].app[B] == app)
			return true;
	return false;
}

/* --- broken ----------------------------------------------------------------------------- */

void flow_gone(struct chaos_world *w, struct flow *fl, int e)
{
	w->flows.sure = false;
	fl->gone[e] = true;
	if (fl->phase != FLOW_UP)
		return;
	fl->phase = FLOW_BREAKING;
	fl->until = now_of(w) + random_below(&w->flows.random, 3) * MSEC;
}

static void close_flow(struct chaos_world *w, struct flow *fl)
{
	w->flows.sure &= w->winding_up;
	for (int e = A; e < ENDS; e++) {
		fl->gone[e] = true;
		if (fl->qp[e] && fl->qp[e]->qp->state != ABI_QPS_RESET)
			assert_int_equal(app_to_state(fl->qp[e], ABI_QPS_ERR, now_of(w)), 0);
	}
	fl->phase = FLOW_DRAINING;
	fl->until = now_of(w) + SEC;
}

static bool flushed(const struct flow *fl, int e)
{
	const struct app_qp *q = fl->qp[e];

	if (!q || q->qp->state == ABI_QPS_RESET)
		return true;
	return app_sq_room(q) == q->spec.sq_depth && !q->qp->resp.have_wqe &&
	       (!q->qp->rq.depth || app_rq_room(q) == q->spec.rq_depth) &&
	       list_empty(&q->qp->ready);
}

static bool may_be_fatal(const struct flows *f, const struct flow *fl)
{
	for (unsigned i = 0; i < f->pools; i++)
		if (f->pool[i].ever_broken &&
			(f->pool[i].xrcd ? fl->service == FLOW_XRC : fl->pool == &f->pool[i]))
			return true;
	return false;
}

/* SRQ-07, EVT-03, EVT-04: each error raised one event. */
static void judge_events(const struct flows *f, const struct flow *fl)
{
	const unsigned *ev = fl->events[B];
	const struct app_qp *q = fl->qp[B];
	bool shares = fl->service == FLOW_XRC || fl->pool->srq;

	assert_true(
		ev[ABI_EVENT_QP_ACCESS_ERR] + ev[ABI_EVENT_QP_REQ_ERR] + ev[ABI_EVENT_QP_FATAL] <=
		1);
	assert_true(!ev[ABI_EVENT_QP_ACCESS_ERR] || (flow_reliable(fl) && f->mistakes));
	assert_true(!ev[ABI_EVENT_QP_REQ_ERR] || fl->service == FLOW_XRC);
	assert_true(!ev[ABI_EVENT_QP_FATAL] || may_be_fatal(f, fl));
	if (q && q->qp->state == ABI_QPS_ERR)
		assert_int_equal(ev[ABI_EVENT_QP_LAST_WQE], shares);
	assert_true(ev[ABI_EVENT_QP_LAST_WQE] <= shares);
	if (fl->failed == ABI_WC_REM_ACCESS_ERR)
		assert_int_equal(ev[ABI_EVENT_QP_ACCESS_ERR], 1);
	if (fl->failed == ABI_WC_REM_INV_REQ_ERR)
		assert_int_equal(
			ev[ABI_EVENT_QP_REQ_ERR] + (fl->recv_failed == ABI_WC_LOC_LEN_ERR), 1);
	if (fl->failed == ABI_WC_REM_OP_ERR)
		assert_int_equal(
			ev[ABI_EVENT_QP_FATAL] + (fl->recv_failed == ABI_WC_LOC_PROT_ERR ||
							 fl->recv_failed == ABI_WC_LOC_QP_OP_ERR),
			1);
	for (unsigned i = 0; i < ARRAY_SIZE(fl->events[A]); i++)
		assert_int_equal(fl->events[A][i], 0);
}

/* --- again ------------------------------------------------------------------------------ */

static void end_qp(struct chaos_world *w, struct flows *f, struct flow *fl, int e, bool destroy)
{
	wirecheck_forget(&w->wire, fl->app[e]->host->id, fl->qp[e]->qp->qpn);
	if (e == B) {
		ud_attach(w, f, fl, false);
		pool_forget(f, fl->qp[e]);
	}
	if (destroy) {
		app_qp_destroy(fl->qp[e], now_of(w));
		fl->qp[e] = NULL;
		return;
	}
	assert_int_equal(app_to_state(fl->qp[e], ABI_QPS_RESET, now_of(w)), 0);
	if (e == B && fl->pool && !fl->pool->srq)
		pool_take_qp(fl->pool, fl->qp[e]);
}

void flow_end_receiver(struct chaos_world *w, struct flows *f, struct flow *fl, bool destroy)
{
	end_qp(w, f, fl, B, destroy);
	flow_gone(w, fl, B);
}

/* The SRQ makes no sense any more: when nobody uses it, there is another. @return whether it is
 * good */
static bool mend_pool(struct flows *f, struct flow *fl)
{
	struct pool *p = fl->pool;

	if (!p || !p->broken)
		return true;
	for (unsigned i = 0; i < f->n; i++)
		if (f->flow[i].pool == p && f->flow[i].qp[B])
			return false;
	pool_make_srq(f, p);
	return true;
}

static void again(struct chaos_world *w, struct flows *f, struct flow *fl)
{
	bool broken = fl->pool && fl->pool->broken;
	/* A UC packet of the connection before may begin a message of the next (UC-04). */
	bool fresh = broken || fl->service == FLOW_UC || flows_below(f, 2);

	if (fl->qp[B] && (fresh || fl->qp[B]->qp->state != ABI_QPS_RESET))
		end_qp(w, f, fl, B, fresh);
	if (fl->qp[A] && fl->qp[A]->qp->state != ABI_QPS_RESET)
		end_qp(w, f, fl, A, fresh && fl->service != FLOW_UD);
	if (w->winding_up) {
		fl->phase = FLOW_OVER;
		return;
	}
	if (!mend_pool(f, fl))
		return;
	flow_totals.again++;
	for (int e = A; e < ENDS; e++)
		if (!fl->qp[e])
			make_qp(w, f, fl, e);
	bring_up(w, f, fl);
}

/* --- turns ------------------------------------------------------------------------------ */

/* SQE: all is flushed, so it may send again (QPS-11). */
static void recover(struct chaos_world *w, struct flow *fl)
{
	if (fl->qp[A]->qp->state != ABI_QPS_SQE || fl->done != fl->posted)
		return;
	assert_int_equal(app_to_state(fl->qp[A], ABI_QPS_RTS, now_of(w)), 0);
	fl->failed = 0;
	flow_totals.recovered++;
}

static void turn_up(struct chaos_world *w, struct flows *f, struct flow *fl)
{
	bool broken = fl->pool && fl->pool->broken;

	for (int e = A; e < ENDS; e++)
		if (fl->qp[e]->qp->state == ABI_QPS_ERR) {
			f->sure = false;
			fl->phase = FLOW_BREAKING;
			fl->until = now_of(w) + flows_below(f, 3) * MSEC;
			return;
		}
	recover(w, fl);
	if (w->winding_up ? f->quiet && app_sq_room(fl->qp[A]) == fl->qp[A]->spec.sq_depth
			  : broken && !flows_below(f, 100))
		close_flow(w, fl);
	else if (!w->winding_up)
		flow_post(f, fl);
}

static void flow_turn(struct chaos_world *w, struct flows *f, struct flow *fl)
{
	switch (fl->phase) {
	case FLOW_UP:
		turn_up(w, f, fl);
		break;
	case FLOW_BREAKING:
		if (now_of(w) >= fl->until)
			close_flow(w, fl);
		break;
	case FLOW_DRAINING:
		assert_true(now_of(w) < fl->until); /* QPS-20: flushed at once */
		if (!flushed(fl, A) || !flushed(fl, B))
			break;
		flow_settle(fl);
		flow_recall_word(fl);
		judge_events(f, fl);
		fl->phase = FLOW_DOWN;
		fl->until = now_of(w) + flows_below(f, 300) * USEC;
		break;
	case FLOW_DOWN:
		if (now_of(w) >= fl->until)
			again(w, f, fl);
		break;
	case FLOW_OVER:
		break;
	}
}

/* Datagrams that were sent, and that somebody would have taken: who lost them? MC-04 */
static void judge_lost(const struct chaos_world *w, const struct flows *f)
{
	uint64_t lost = 0, refused = 0;

	for (unsigned i = 0; i < f->n; i++) {
		refused += f->flow[i].refused;
		lost += ud_missing(f, &f->flow[i]);
	}
	for (unsigned h = 0; h < CHAOS_HOSTS; h++)
		refused += w->host[h]->core.count.drop[DROP_NO_RECV_WQE]; /* UD-13 */
	flow_totals.sure++;
	if (lost > refused)
		fail_msg("%llu datagrams were lost, and only %llu had no receive",
			(unsigned long long)lost, (unsigned long long)refused);
}

/* Winding up: what is on its way is to arrive. */
static void look_for_quiet(const struct chaos_world *w, struct flows *f)
{
	if (!w->winding_up || f->quiet)
		return;
	for (unsigned i = 0; i < f->n; i++)
		if (f->flow[i].phase == FLOW_UP &&
			app_sq_room(f->flow[i].qp[A]) != f->flow[i].spec[A].sq_depth)
			return;
	for (unsigned from = 0; from < CHAOS_HOSTS; from++)
		for (unsigned to = 0; to < CHAOS_HOSTS; to++)
			if (w->link[from][to].used)
				return;
	f->quiet = true;
	if (f->sure)
		judge_lost(w, f);
}

void flows_turn(struct chaos_world *w, struct flows *f)
{
	look_for_quiet(w, f);
	for (unsigned i = 0; i < f->n; i++)
		flow_turn(w, f, &f->flow[i]);
	flows_act(w, f);
	for (unsigned i = 0; i < f->pools; i++) {
		/* An XRC SRQ that failed has no QPs to wait for. */
		if (f->pool[i].xrcd && f->pool[i].errors && !flows_below(f, 50))
			pool_renew(f, &f->pool[i]);
		pool_post(w, f, &f->pool[i]);
		pool_before(&f->pool[i]);
	}
}

bool flows_over(const struct flows *f)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->flow[i].phase != FLOW_OVER)
			return false;
	return true;
}

/* --- what a step leaves ----------------------------------------------------------------- */

bool flows_event(struct flows *f, const struct app *app, const struct core_event *ev)
{
	for (unsigned i = 0; i < f->pools; i++) {
		struct pool *p = &f->pool[i];

		if (p->app != app || !p->srq || p->srq->srq.handle != ev->handle)
			continue;
		assert_true(
			ev->type == ABI_EVENT_SRQ_LIMIT_REACHED || ev->type == ABI_EVENT_SRQ_ERR);
		flow_totals.event[ev->type]++;
		*(ev->type == ABI_EVENT_SRQ_ERR ? &p->errors : &p->limit_events) += 1;
		return true;
	}
	for (unsigned i = 0; i < f->n; i++)
		for (int e = A; e < ENDS; e++) {
			struct flow *fl = &f->flow[i];

			if (fl->app[e] != app || !fl->qp[e] || fl->qp[e]->qp->handle != ev->handle)
				continue;
			flow_totals.event[ev->type % 32]++;
			fl->events[e][ev->type % 32]++;
			return true;
		}
	return false;
}

static void take_cq(struct chaos_world *w, struct flows *f, struct app *app, struct app_cq *cq)
{
	struct abi_cqe cqe;

	while (app_poll(app, cq, &cqe)) {
		struct flow *fl;

		world_digest(w, cqe.wr_id << 8 ^ cqe.status ^ (uint64_t)cqe.qpn << 32);
		if (cqe.opcode & ABI_WC_RECV) {
			flow_received(w, f, app, &cqe);
			continue;
		}
		fl = flow_of(f, app, A, cqe.qpn);
		assert_non_null(fl);
		flow_sent(fl, &cqe);
	}
}

/* First what arrived: it has before its sender knows. */
void flows_take(struct chaos_world *w, struct flows *f)
{
	if (!f->n)
		return;
	for (unsigned i = 0; i < f->pools; i++)
		if (f->pool[i].cq)
			take_cq(w, f, f->pool[i].app, f->pool[i].cq);
	for (unsigned h = 0; h < CHAOS_HOSTS; h++)
		take_cq(w, f, &w->app[h], f->recv_cq[h]);
	for (unsigned h = 0; h < CHAOS_HOSTS; h++)
		take_cq(w, f, &w->app[h], f->send_cq[h]);
	for (unsigned i = 0; i < f->pools; i++)
		pool_check(f, &f->pool[i]);
	for (unsigned i = 0; i < f->n; i++) {
		struct flow *fl = &f->flow[i];

		if (fl->phase == FLOW_UP && flow_reliable(fl))
			invariants_flow(&fl->invariants, fl->qp[A]->qp, fl->qp[B]->qp);
	}
}
