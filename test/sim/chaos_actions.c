/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that befall connections and links in mid-flight. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <cmocka.h>
#include "chaos.h"
#include "completer.h"
#include "core_command.h"
#include "qp.h"

#define SQD_TIME (60 * SEC) /* to finish, or fail, what was started */

/* --- SQD ------------------------------------------------------------------------------ */

static void sqd_begin(struct chaos_world *w, struct chaos_conn *c, int e)
{
	struct chaos_end *end = &c->end[e];
	struct abi_qp_attr a = {.qp_state = ABI_QPS_SQD, .en_sqd_async_notify = chance(w, 75)};

	if (end->qp->qp->state != ABI_QPS_RTS || end->sqd)
		return;
	chaos_actions[ACT_SQD]++;
	assert_int_equal(
		app_modify(end->qp, ABI_QP_STATE | ABI_QP_EN_SQD_ASYNC_NOTIFY, &a, NULL, now_of(w)),
		0);
	end->sqd = SQD_DRAINING;
	end->sqd_until = now_of(w) + SQD_TIME;
	end->sqd_notify = a.en_sqd_async_notify;
	end->events[ABI_EVENT_SQ_DRAINED] = 0;
}

/* QPS-10: what may change while nothing is outstanding. */
static void sqd_modify(struct chaos_world *w, struct chaos_conn *c, int e)
{
	struct chaos_end *end = &c->end[e];
	struct path_spec path = path_any(w, c, e);
	struct abi_qp_attr *a = &end->attr;

	a->timeout = (uint8_t)pick(w, 14, 16);
	if (!c->calm)
		a->retry_cnt = (uint8_t)pick(w, a->retry_cnt, 7);
	if (!c->calm && a->rnr_retry != 7)
		a->rnr_retry = (uint8_t)pick(w, 0, 6);
	a->min_rnr_timer = (uint8_t)pick(w, 1, 14);
	a->max_rd_atomic = (uint8_t)pick(w, 1, a->max_rd_atomic);
	assert_int_equal(app_modify(end->qp,
				 ABI_QP_AV | ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY |
					 ABI_QP_MIN_RNR_TIMER | ABI_QP_MAX_QP_RD_ATOMIC,
				 a, &path, now_of(w)),
		0);
}

/* QPS-19: the event comes when the last started request is complete, if it was asked for. */
static void sqd_drain(struct chaos_world *w, struct chaos_end *end)
{
	const struct qp *qp = end->qp->qp;
	bool drained = completer_drained(qp);

	assert_int_equal(end->events[ABI_EVENT_SQ_DRAINED], drained && end->sqd_notify);
	if (!drained) {
		assert_true(now_of(w) < end->sqd_until);
		return;
	}
	assert_int_equal(qp->comp.una, qp->req.psn_new);
	end->sqd = SQD_DRAINED;
	end->sqd_psn = qp->req.psn_new;
	end->sqd_until = now_of(w) + pick(w, 0, 500) * USEC;
}

void actions_sqd(struct chaos_world *w, struct chaos_conn *c, int e)
{
	struct chaos_end *end = &c->end[e];

	if (end->sqd == SQD_DRAINING) {
		sqd_drain(w, end);
		return;
	}
	assert_int_equal(end->qp->qp->req.psn_new, end->sqd_psn); /* REQ-50: nothing is started */
	if (now_of(w) < end->sqd_until)
		return;
	assert_int_equal(end->events[ABI_EVENT_SQ_DRAINED], end->sqd_notify);
	if (chance(w, 70))
		sqd_modify(w, c, e);
	assert_int_equal(app_to_state(end->qp, ABI_QPS_RTS, now_of(w)), 0);
	end->sqd = SQD_NOT;
}

/* --- what breaks a connection --------------------------------------------------------- */

static void to_err(struct chaos_world *w, struct chaos_conn *c, int e)
{
	chaos_actions[ACT_ERR]++;
	assert_int_equal(app_to_state(c->end[e].qp, ABI_QPS_ERR, now_of(w)), 0);
	conn_side_gone(w, c, e);
}

static void to_reset(struct chaos_world *w, struct chaos_conn *c, int e)
{
	chaos_actions[ACT_RESET]++;
	conn_reset(w, &c->end[e]);
	conn_side_gone(w, c, e);
}

static void destroy(struct chaos_world *w, struct chaos_conn *c, int e)
{
	chaos_actions[ACT_DESTROY]++;
	conn_destroy(w, &c->end[e]);
	conn_side_gone(w, c, e);
}

/* Something of side @p e must be under way, or nothing is shown. */
static void dereg(struct chaos_world *w, struct chaos_conn *c, int e, enum traffic_region region)
{
	const struct qp *qp = c->end[region == REGION_RECV ? !e : e].qp->qp;

	if (qp->comp.una == qp->req.psn_new)
		return;
	chaos_actions[ACT_DEREG_LOCAL + region]++;
	traffic_dereg(&c->traffic, e, region);
	if (region == REGION_TARGET)
		c->end[!e].may_access_err = true;
}

/* RSP-08: the peer's WRITEs or READs are refused from now on. */
static void take_access(struct chaos_world *w, struct chaos_conn *c, int e)
{
	struct chaos_end *end = &c->end[e];
	static const uint32_t rights[] = {ABI_ACCESS_REMOTE_WRITE, ABI_ACCESS_REMOTE_READ,
		ABI_ACCESS_REMOTE_ATOMIC, ABI_ACCESS_FLUSH_GLOBAL};
	uint32_t access = rights[pick(w, 0, ARRAY_SIZE(rights) - 1)];

	if (end->qp->qp->state != ABI_QPS_RTS)
		return;
	chaos_actions[ACT_ACCESS]++;
	end->attr.access_flags &= ~access;
	assert_int_equal(app_modify(end->qp, ABI_QP_ACCESS_FLAGS, &end->attr, NULL, now_of(w)), 0);
	end->may_req_err = true;
	traffic_refuse(&c->traffic, e, access);
}

/* --- what does not -------------------------------------------------------------------- */

static void min_rnr(struct chaos_world *w, struct chaos_end *end)
{
	if (end->qp->qp->state != ABI_QPS_RTS)
		return;
	chaos_actions[ACT_MIN_RNR]++;
	end->attr.min_rnr_timer = (uint8_t)pick(w, 1, 16);
	assert_int_equal(app_modify(end->qp, ABI_QP_MIN_RNR_TIMER, &end->attr, NULL, now_of(w)), 0);
}

static void starve(struct chaos_world *w, struct chaos_end *end)
{
	chaos_actions[ACT_STARVE]++;
	end->starve_until = now_of(w) + pick(w, 1, chance(w, 20) ? 100000 : 2000) * USEC;
}

/* QPS-12..15: no such transition, attribute or value; the QP continues as before. */
static void refused(struct chaos_world *w, struct chaos_end *end)
{
	static const struct {
		uint32_t mask;
		struct abi_qp_attr attr;
	} bad[] = {
		{ABI_QP_STATE, {.qp_state = ABI_QPS_INIT}},
		{ABI_QP_STATE, {.qp_state = ABI_QPS_SQE}},
		{ABI_QP_STATE, {.qp_state = ABI_QPS_ERR + 1}},
		{ABI_QP_PATH_MTU, {.path_mtu = 1024}},
		{ABI_QP_SQ_PSN, {.sq_psn = 1}},
		{ABI_QP_DEST_QPN, {.dest_qpn = 1}},
		{ABI_QP_MIN_RNR_TIMER, {.min_rnr_timer = 32}},
		{ABI_QP_STATE | ABI_QP_MIN_RNR_TIMER,
			{.qp_state = ABI_QPS_RESET, .min_rnr_timer = 1}},
		{ABI_QP_ACCESS_FLAGS, {.access_flags = 1u << 31}},
	};
	unsigned i = pick(w, 0, ARRAY_SIZE(bad) - 1);
	uint8_t state = end->qp->qp->state;

	chaos_actions[ACT_REFUSED]++;
	assert_int_equal(app_modify(end->qp, bad[i].mask, &bad[i].attr, NULL, now_of(w)), -EINVAL);
	assert_int_equal(end->qp->qp->state, state);
}

/* QPS-21 */
static void query(struct chaos_world *w, struct chaos_end *end)
{
	struct core_cmd cmd = {.type = CORE_CMD_QUERY_QP, .qp = end->qp->qp};
	const struct abi_qp_attr *a = &cmd.attr, *set = &end->attr;

	chaos_actions[ACT_QUERY]++;
	assert_int_equal(core_cmd(&end->app->host->core, &cmd, now_of(w)), 0);
	assert_int_equal(a->dest_qpn, set->dest_qpn);
	assert_int_equal(a->path_mtu, set->path_mtu);
	assert_int_equal(a->min_rnr_timer, set->min_rnr_timer);
	assert_int_equal(a->max_dest_rd_atomic, set->max_dest_rd_atomic);
	assert_int_equal(a->access_flags, set->access_flags);
	if (a->qp_state == ABI_QPS_RTR)
		return;
	assert_int_equal(a->qp_state, end->sqd ? ABI_QPS_SQD : ABI_QPS_RTS);
	assert_int_equal(a->timeout, set->timeout);
	assert_int_equal(a->retry_cnt, set->retry_cnt);
	assert_int_equal(a->rnr_retry, set->rnr_retry);
	assert_int_equal(a->max_rd_atomic, set->max_rd_atomic);
}

static void disturb_link(struct chaos_world *w, enum chaos_action action)
{
	struct sim_link *l = &w->link[pick(w, A, B)][pick(w, A, B)];
	struct link_impair f;

	if (w->perfect)
		return;
	chaos_actions[action]++;
	if (action == ACT_PAUSE) {
		link_pause(l, now_of(w) + pick(w, 1, w->moderate ? 20000 : 500000) * USEC);
		return;
	}
	if (action == ACT_STALL) {
		host_pause(w->host[pick(w, A, B)],
			now_of(w) + pick(w, 1, w->moderate ? 10000 : 200000) * USEC);
		return;
	}
	f = world_impair(w);
	link_set_impair(l, &f);
}

/* --- one of them ---------------------------------------------------------------------- */

static void act(struct chaos_world *w, struct chaos_conn *c, int e, enum chaos_action action)
{
	switch (action) {
	case ACT_SQD:
		sqd_begin(w, c, e);
		break;
	case ACT_ERR:
		to_err(w, c, e);
		break;
	case ACT_RESET:
		to_reset(w, c, e);
		break;
	case ACT_DESTROY:
		destroy(w, c, e);
		break;
	case ACT_DEREG_LOCAL:
	case ACT_DEREG_TARGET:
	case ACT_DEREG_RECV:
		dereg(w, c, e, (enum traffic_region)(action - ACT_DEREG_LOCAL));
		break;
	case ACT_ACCESS:
		take_access(w, c, e);
		break;
	case ACT_MIN_RNR:
		min_rnr(w, &c->end[e]);
		break;
	case ACT_STARVE:
		starve(w, &c->end[e]);
		break;
	case ACT_REFUSED:
		refused(w, &c->end[e]);
		break;
	case ACT_QUERY:
		query(w, &c->end[e]);
		break;
	case ACT_REPATH:
		path_change(w, c, e);
		break;
	case ACT_PKEY:
		path_change_pkey(w);
		break;
	case ACT_NOTICE:
		notice_any(w, c, e);
		break;
	default:
		disturb_link(w, action);
		break;
	}
}

void actions_turn(struct chaos_world *w)
{
	/* Events that leave connections alive are more frequent than those that break them. */
	static const enum chaos_action menu[] = {ACT_SQD, ACT_SQD, ACT_SQD, ACT_ERR, ACT_RESET,
		ACT_DESTROY, ACT_DEREG_LOCAL, ACT_DEREG_TARGET, ACT_DEREG_RECV, ACT_ACCESS,
		ACT_MIN_RNR, ACT_MIN_RNR, ACT_PAUSE, ACT_PAUSE, ACT_STALL, ACT_IMPAIR, ACT_IMPAIR,
		ACT_STARVE, ACT_STARVE, ACT_STARVE, ACT_REFUSED, ACT_QUERY, ACT_REPATH, ACT_REPATH,
		ACT_PKEY, ACT_PKEY, ACT_NOTICE, ACT_NOTICE, ACT_NOTICE, ACT_NOTICE, ACT_NOTICE,
		ACT_NOTICE, ACT_NOTICE, ACT_NOTICE, ACT_NOTICE, ACT_NOTICE};
	struct chaos_conn *c = &w->conn[pick(w, 0, w->conns - 1)];
	int e = (int)pick(w, A, B);

	if (!w->action_gap || w->winding_up || world_messages(w) < w->next_action)
		return;
	if (c->phase != CONN_UP)
		return;
	if (c->end[e].small) /* its CQEs are not taken, but must be before the QP goes */
		return;
	w->next_action = world_messages(w) + pick(w, 1, 2 * w->action_gap);
	act(w, c, e, menu[pick(w, 0, ARRAY_SIZE(menu) - 1)]);
}
