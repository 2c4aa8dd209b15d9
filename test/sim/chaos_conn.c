/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection's life: UP, until something breaks one side of it; BREAKING, while the other side is
 * left to find out; DRAINING, both in ERR; DOWN; then it is judged and made again, with the same
 * QPs or with new ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "chaos.h"
#include "qp.h"
#include "qp_trace.h"
#include "seq24.h"
#include "timers.h"

#define GONE	  TRAFFIC_MAY(ABI_WC_WR_FLUSH_ERR)
#define RETRY_EXC TRAFFIC_MAY(ABI_WC_RETRY_EXC_ERR)
/* A small CQ that has not overflowed by now never will: nobody polls it, so all waits. */
#define SMALL_TIME (100 * MSEC)

/* --- making it ------------------------------------------------------------------------ */

static void choose_qp(struct chaos_world *w, struct chaos_conn *c, int e)
{
	struct app_qp_spec *q = &c->end[e].spec;
	unsigned h = c->end[e].app == &w->app[B];

	*q = (struct app_qp_spec){
		.sq_depth = pow2(w, 0, 6),
		.rq_depth = pow2(w, 0, 6),
		.max_sge = pick(w, 1, SGE_MAX),
		.max_inline = chance(w, 50) ? pick(w, 1, 256) : 0,
		.window = chance(w, 50) ? pick(w, 1, 64) : 0,
		.sig_all = chance(w, 20),
		.send_cq = w->cq[h][pick(w, 0, w->cqs - 1)],
		.recv_cq = w->cq[h][pick(w, 0, w->cqs - 1)],
	};
	if (q->sq_depth < 8 || q->rq_depth < 8 || !w->action_gap || !chance(w, 6))
		return;
	chaos_actions[ACT_SMALL_CQ]++;
	c->end[e].small = app_cq(c->end[e].app, pow2(w, 0, 2));
	q->send_cq = c->end[e].small;
	if (chance(w, 70))
		q->recv_cq = c->end[e].small;
}

/* Timers and limits. A calm connection survives whatever the links do in a moderate run. */
static void choose_limits(struct chaos_world *w, struct chaos_conn *c, struct abi_qp_attr *a)
{
	a->min_rnr_timer = (uint8_t)(chance(w, 85) ? pick(w, 1, 14) : pick(w, 0, 31));
	if (c->calm) {
		a->timeout = (uint8_t)pick(w, 14, 16);
		a->retry_cnt = 7;
		a->rnr_retry = 7;
		return;
	}
	a->timeout = (uint8_t)pick(w, 8, 17);
	if (w->perfect && chance(w, 10))
		a->timeout = 0; /* infinite */
	a->retry_cnt = (uint8_t)pick(w, 0, 7);
	a->rnr_retry = (uint8_t)pick(w, 0, 7);
}

static void choose_attrs(struct chaos_world *w, struct chaos_conn *c)
{
	uint32_t mtu = pow2(w, 8, 12);

	c->calm = w->moderate && chance(w, 60);
	for (int e = A; e < ENDS; e++) {
		struct abi_qp_attr *a = &c->end[e].attr;
		uint32_t psn = a->sq_psn + w->psn_jump;

		if (!c->made)
			psn = chance(w, 50) ? 0xFFFFFFu - pick(w, 0, 400) : pick(w, 0, 0xFFFFFF);
		*a = app_attr(0, psn & SEQ24_MASK, 0);
		a->path_mtu = mtu;
		choose_limits(w, c, a);
		a->max_rd_atomic = (uint8_t)pick(w, 1, chance(w, 70) ? 16 : 4);
	}
	for (int e = A; e < ENDS; e++) {
		uint8_t *served = &c->end[e].attr.max_dest_rd_atomic;

		*served = c->end[!e].attr.max_rd_atomic;
		if (*served > 1 && w->action_gap && chance(w, 4)) {
			chaos_actions[ACT_TOO_MANY_READS]++;
			*served = (uint8_t)pick(w, 1, *served - 1u);
		}
	}
}

/* Events that this connection must expect from the start, because of how it is made. */
static void allow(struct chaos_world *w, struct chaos_conn *c, int e)
{
	const struct abi_qp_attr *a = &c->end[e].attr, *peer = &c->end[!e].attr;
	bool slow = a->timeout && a->timeout < 14; /* may fire while all goes well */
	/* Late packets of the former connection may be NAKed, and the NAK taken for an answer to
	 * the new one: it costs a retry. */
	bool stale = c->made && a->retry_cnt < 7;
	uint32_t lost = w->perfect && !slow && !stale ? 0 : RETRY_EXC;

	if (!c->calm)
		traffic_allow(&c->traffic, e, lost, 0);
	if (a->rnr_retry != 7)
		traffic_allow(&c->traffic, e, TRAFFIC_MAY(ABI_WC_RNR_RETRY_EXC_ERR), 0);
	if (a->max_rd_atomic > peer->max_dest_rd_atomic) { /* RSP-30 */
		traffic_allow(&c->traffic, e, TRAFFIC_MAY(ABI_WC_REM_INV_REQ_ERR) | lost, 0);
		traffic_allow(&c->traffic, !e, GONE, GONE);
		c->end[!e].may_req_err = true;
	}
	if (c->end[e].small) { /* CQ-01 */
		c->traffic.side[e].cqes_lost = true;
		traffic_allow(&c->traffic, e, GONE, GONE);
	}
	c->traffic.spec.lossy |= lost != 0;
}

static void make_qps(struct chaos_world *w, struct chaos_conn *c)
{
	for (int e = A; e < ENDS; e++) {
		choose_qp(w, c, e);
		c->end[e].qp = app_qp(c->end[e].app, &c->end[e].spec);
		if (w->trace == c - w->conn)
			qp_trace_begin(c->end[e].qp, "AB"[e], now_of(w));
	}
}

static void watch_wire(struct chaos_world *w, const struct chaos_conn *c)
{
	struct wire_end end[ENDS];

	for (int e = A; e < ENDS; e++)
		end[e] = (struct wire_end){
			c->end[e].app->host->id, c->end[e].qp->qp->qpn, c->end[e].attr.sq_psn};
	wirecheck_connect(&w->wire, &end[A], &end[B], c->end[A].attr.path_mtu);
}

/* RESET to RTR, and one side to RTS at once: the other may wait for the first request. */
static void bring_up(struct chaos_world *w, struct chaos_conn *c)
{
	bool hold = chance(w, 30);
	int late = (int)pick(w, A, B);

	for (int e = A; e < ENDS; e++) {
		struct chaos_end *me = &c->end[e], *peer = &c->end[!e];
		struct path_spec path = path_any(w, c, e);

		me->attr.dest_qpn = peer->qp->qp->qpn;
		me->attr.rq_psn = peer->attr.sq_psn;
		memset(me->events, 0, sizeof(me->events));
		me->una = me->attr.sq_psn;
		me->moved_at = now_of(w);
		me->sqd = SQD_NOT;
		assert_int_equal(app_to_init(me->qp, &me->attr, now_of(w)), 0);
		assert_int_equal(app_to_rtr(me->qp, &me->attr, &path, now_of(w)), 0);
		me->rts_at = hold && e == late ? now_of(w) + pick(w, 0, 2000) * USEC : 0;
		if (!me->rts_at)
			assert_int_equal(app_to_rts(me->qp, &me->attr, now_of(w)), 0);
	}
	c->traffic.spec.lossy = false;
	for (int e = A; e < ENDS; e++)
		allow(w, c, e);
	watch_wire(w, c);
	memset(c->flow, 0, sizeof(c->flow));
	c->phase = CONN_UP;
	c->until = now_of(w) + SMALL_TIME;
	c->made++;
}

void conn_init(struct chaos_world *w, struct chaos_conn *c)
{
	static const uint32_t lens[] = {
		64, 4096, 4096, 16384, 16384, 65536, 65536, 262144, TRAFFIC_MAX};
	struct traffic_spec spec = {
		.seed = random_next(&w->random),
	};
	bool loop = chance(w, 20);

	c->end[A].app = &w->app[chance(w, 50)];
	c->end[B].app = (c->end[A].app == &w->app[A]) == loop ? &w->app[A] : &w->app[B];
	chaos_actions[ACT_LOOPBACK] += loop;
	c->max_len = lens[pick(w, 0, ARRAY_SIZE(lens) - 1)];
	if (c->max_len == TRAFFIC_MAX && c != w->conn) /* one is enough */
		c->max_len = 65536;
	if (c->max_len != TRAFFIC_MAX && chance(w, 60))
		c->max_len = pick(w, c->max_len / 2, c->max_len);
	c->post_share = pick(w, 20, 90);
	c->mistakes = w->action_gap && chance(w, 45) ? pick(w, 2000, 30000) : 0;
	choose_attrs(w, c);
	make_qps(w, c);
	spec.recv_len = c->max_len;
	spec.area = 65536 + 2 * c->max_len + c->max_len / 4;
	traffic_init(&c->traffic, c->end[A].qp, c->end[B].qp, &spec);
	bring_up(w, c);
}

void conn_fini(struct chaos_conn *c)
{
	traffic_fini(&c->traffic);
}

/* --- breaking ------------------------------------------------------------------------- */

bool conn_can_post(const struct chaos_conn *c, int e)
{
	const struct app_qp *q = c->end[e].qp;

	return q && q->qp->state >= ABI_QPS_RTR; /* REQ-21: it goes when RTS comes */
}

bool conn_quiet(const struct chaos_conn *c)
{
	for (int e = A; e < ENDS; e++) {
		const struct app_qp *q = c->end[e].qp;

		if (c->end[e].rts_at || c->end[e].sqd || app_sq_room(q) != q->spec.sq_depth)
			return false;
	}
	return true;
}

void conn_side_gone(struct chaos_world *w, struct chaos_conn *c, int e)
{
	traffic_allow(&c->traffic, e, GONE, GONE);
	traffic_allow(&c->traffic, !e, RETRY_EXC, 0);
	if (c->phase != CONN_UP)
		return;
	c->phase = CONN_BREAKING;
	c->until = now_of(w) + (chance(w, 50) ? 0 : pick(w, 1, 2000)) * MSEC;
}

void conn_close(struct chaos_world *w, struct chaos_conn *c)
{
	for (int e = A; e < ENDS; e++) {
		struct app_qp *q = c->end[e].qp;

		traffic_allow(&c->traffic, e, GONE, GONE);
		if (q && q->qp->state != ABI_QPS_RESET)
			assert_int_equal(app_to_state(q, ABI_QPS_ERR, now_of(w)), 0);
	}
	c->phase = CONN_DRAINING;
	c->until = now_of(w) + SEC;
}

static bool flushed(const struct chaos_conn *c, int e)
{
	const struct app_qp *q = c->end[e].qp;

	if (!q || q->qp->state == ABI_QPS_RESET)
		return true; /* discarded */
	return app_sq_room(q) == q->spec.sq_depth && app_rq_room(q) == q->spec.rq_depth &&
	       !q->qp->resp.have_wqe && list_empty(&q->qp->ready);
}

/* --- judging -------------------------------------------------------------------------- */

/* EVT-03, RSP-22: each error that one side reports raised one event at the other side. */
static void judge_events(const struct chaos_conn *c, int e)
{
	const struct chaos_end *end = &c->end[e];
	const struct traffic_side *me = &c->traffic.side[e], *peer = &c->traffic.side[!e];
	unsigned access = end->events[ABI_EVENT_QP_ACCESS_ERR];
	unsigned req = end->events[ABI_EVENT_QP_REQ_ERR];
	unsigned fatal = end->events[ABI_EVENT_QP_FATAL];

	/* Both when a READ's region goes while its responses still precede the NAK for something
	 * else (RSP-27, RSP-31). */
	assert_true(access <= 1 && req <= 1);
	assert_true(!access || end->may_access_err);
	assert_true(!req || end->may_req_err);
	assert_true(end->events[ABI_EVENT_COMM_EST] <= 1);
	assert_int_equal(fatal, end->overflown && fatal);
	assert_true(fatal <= 1);
	if (peer->failed == ABI_WC_REM_ACCESS_ERR)
		assert_int_equal(access, 1);
	if (peer->failed == ABI_WC_REM_INV_REQ_ERR && !me->cqes_lost)
		assert_int_equal(req + (me->recv_failed == ABI_WC_LOC_LEN_ERR), 1);
	if (peer->failed == ABI_WC_REM_OP_ERR && !me->cqes_lost)
		assert_true(me->recv_failed == ABI_WC_LOC_PROT_ERR ||
			    me->recv_failed == ABI_WC_LOC_QP_OP_ERR);
}

static void judge(struct chaos_conn *c)
{
	for (int e = A; e < ENDS; e++) {
		const struct chaos_end *end = &c->end[e];

		judge_events(c, e);
		if (end->qp && end->qp->qp->state == ABI_QPS_ERR && !end->small)
			traffic_flushed(&c->traffic, e);
	}
}

/* --- the end of QPs ------------------------------------------------------------------- */

void conn_reset(struct chaos_world *w, struct chaos_end *end)
{
	wirecheck_forget(&w->wire, end->app->host->id, end->qp->qp->qpn);
	assert_int_equal(app_to_state(end->qp, ABI_QPS_RESET, now_of(w)), 0);
}

void conn_destroy(struct chaos_world *w, struct chaos_end *end)
{
	wirecheck_forget(&w->wire, end->app->host->id, end->qp->qp->qpn);
	app_qp_destroy(end->qp, now_of(w));
	end->qp = NULL;
}

/* --- again ---------------------------------------------------------------------------- */

static void to_reset(struct chaos_world *w, struct chaos_conn *c)
{
	chaos_actions[ACT_SAME_QP]++;
	for (int e = A; e < ENDS; e++)
		conn_reset(w, &c->end[e]);
}

static void to_new(struct chaos_world *w, struct chaos_conn *c)
{
	chaos_actions[ACT_NEW_QP]++;
	for (int e = A; e < ENDS; e++) {
		if (c->end[e].qp)
			conn_destroy(w, &c->end[e]);
		if (c->end[e].small)
			app_cq_destroy(c->end[e].app, c->end[e].small);
		c->end[e].small = NULL;
		c->end[e].overflown = false;
	}
	make_qps(w, c);
}

static void again(struct chaos_world *w, struct chaos_conn *c)
{
	bool same = c->end[A].qp && c->end[B].qp && !c->end[A].small && !c->end[B].small;

	judge(c);
	if (same && chance(w, 50))
		to_reset(w, c);
	else
		to_new(w, c);
	choose_attrs(w, c);
	for (int e = A; e < ENDS; e++) {
		c->end[e].may_access_err = c->end[e].may_req_err = false;
		c->end[e].starve_until = 0;
	}
	traffic_restart(&c->traffic, c->end[A].qp, c->end[B].qp);
	if (w->winding_up)
		c->phase = CONN_OVER;
	else
		bring_up(w, c);
}

/* --- watching ------------------------------------------------------------------------- */

/* RTR -> RTS of the side that was held back; RSP-46: an event says if a request came. */
static void end_hold(struct chaos_world *w, struct chaos_end *end)
{
	bool heard = end->qp->qp->resp.epsn != end->attr.rq_psn;

	if (end->qp->qp->state == ABI_QPS_RTR) {
		assert_int_equal(end->events[ABI_EVENT_COMM_EST], heard);
		assert_int_equal(end->qp->qp->req.sent, 0);
		chaos_actions[ACT_RTR_HOLD] += heard;
		assert_int_equal(app_to_rts(end->qp, &end->attr, now_of(w)), 0);
	}
	end->rts_at = 0;
}

/* How long nothing may be acknowledged although something is outstanding: all retries, and what the
 * peer may keep it waiting with RNR NAKs meanwhile. */
static uint64_t patience(const struct chaos_conn *c, int e)
{
	uint64_t timeout = timers_ack_timeout(c->end[e].attr.timeout);
	uint64_t rnr = timers_rnr_usec(c->end[!e].attr.min_rnr_timer) * USEC;

	return 12 * timeout + 12 * rnr + 2 * SEC;
}

static void watch(struct chaos_world *w, struct chaos_conn *c, int e)
{
	struct chaos_end *end = &c->end[e];
	const struct qp *qp = end->qp->qp;
	bool waiting = c->end[!e].starve_until > now_of(w) || c->end[!e].small;

	if (qp->comp.una != end->una || qp->comp.una == qp->req.psn_new || waiting) {
		end->una = qp->comp.una;
		end->moved_at = now_of(w);
	}
	if (!end->attr.timeout && now_of(w) - end->moved_at > SEC)
		conn_side_gone(w, c, e); /* nobody else would ever notice */
	else if (now_of(w) - end->moved_at > patience(c, e))
		fail_msg("side %d: nothing was acknowledged for %llu ms", e,
			(unsigned long long)((now_of(w) - end->moved_at) / MSEC));
}

static void watch_up(struct chaos_world *w, struct chaos_conn *c)
{
	if ((c->end[A].small || c->end[B].small) && (w->winding_up || now_of(w) >= c->until)) {
		conn_close(w, c);
		return;
	}
	for (int e = A; e < ENDS && c->phase == CONN_UP; e++) {
		struct chaos_end *end = &c->end[e];

		if (end->rts_at && end->rts_at <= now_of(w))
			end_hold(w, end);
		if (end->qp->qp->state == ABI_QPS_ERR || traffic_broken(&c->traffic, e))
			conn_side_gone(w, c, e);
		else if (conn_can_post(c, e))
			watch(w, c, e);
	}
	for (int e = A; e < ENDS && c->phase == CONN_UP; e++)
		if (c->end[e].sqd)
			actions_sqd(w, c, e);
}

void conn_turn(struct chaos_world *w, struct chaos_conn *c)
{
	switch (c->phase) {
	case CONN_UP:
		watch_up(w, c);
		break;
	case CONN_BREAKING:
		if (now_of(w) >= c->until ||
			(traffic_broken(&c->traffic, A) && traffic_broken(&c->traffic, B)))
			conn_close(w, c);
		break;
	case CONN_DRAINING:
		assert_true(now_of(w) < c->until); /* QPS-20: flushed at once */
		if (!flushed(c, A) || !flushed(c, B))
			break;
		c->phase = CONN_DOWN;
		c->until = now_of(w) + pick(w, 0, 300) * USEC;
		break;
	case CONN_DOWN:
		if (now_of(w) >= c->until)
			again(w, c);
		break;
	case CONN_OVER:
		break;
	}
}
