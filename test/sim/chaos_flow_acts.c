/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that befall flows and their receives in mid-flight. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "chaos.h"
#include "chaos_flow.h"

static void act_on_flow(struct chaos_world *w, struct flows *f, struct flow *fl, enum flow_act act)
{
	if (fl->phase != FLOW_UP)
		return;
	flow_totals.act[act]++;
	switch (act) {
	case FLOW_RECEIVER_ERR:
	case FLOW_SENDER_ERR:
		flow_gone(w, fl, act == FLOW_SENDER_ERR ? A : B);
		assert_int_equal(app_to_state(fl->qp[act == FLOW_SENDER_ERR ? A : B], ABI_QPS_ERR,
					 now_of(w)),
			0);
		break;
	default:
		flow_end_receiver(w, f, fl, act == FLOW_RECEIVER_DESTROY);
		break;
	}
}

static void act_on_pool(struct chaos_world *w, struct flows *f, struct pool *p, enum flow_act act)
{
	if (act == FLOW_STARVE) {
		flow_totals.act[act]++;
		p->starve_until = now_of(w) + flows_below(f, 5000) * USEC;
	}
	if (!p->srq || p->broken)
		return;
	switch (act) {
	case FLOW_LIMIT:
		pool_arm(f, p);
		break;
	case FLOW_RESIZE:
		pool_resize(f, p);
		break;
	case FLOW_BREAK:
		if (f->mistakes)
			pool_break(f, p);
		break;
	case FLOW_SRQ_NEW:
		if (!p->xrcd)
			return;
		flow_totals.act[act]++;
		pool_renew(f, p);
		break;
	default:
		break;
	}
}

static void act_on_datagrams(
	struct chaos_world *w, struct flows *f, struct flow *fl, enum flow_act act)
{
	if (fl->service != FLOW_UD || fl->phase != FLOW_UP)
		return;
	if (act == FLOW_AH_NEW && fl->ahs < FLOW_AHS)
		ud_handles(w, f, fl);
	else if (act == FLOW_ATTACH) {
		f->sure = false; /* some are on their way */
		ud_attach(w, f, fl, !fl->member);
	} else
		return;
	flow_totals.act[act]++;
}

void flows_act(struct chaos_world *w, struct flows *f)
{
	static const enum flow_act menu[] = {FLOW_RECEIVER_ERR, FLOW_RECEIVER_RESET,
		FLOW_RECEIVER_DESTROY, FLOW_SENDER_ERR, FLOW_STARVE, FLOW_STARVE, FLOW_LIMIT,
		FLOW_LIMIT, FLOW_LIMIT, FLOW_LIMIT, FLOW_RESIZE, FLOW_RESIZE, FLOW_RESIZE,
		FLOW_BREAK, FLOW_SRQ_NEW, FLOW_AH_NEW, FLOW_AH_NEW, FLOW_ATTACH, FLOW_ATTACH};
	enum flow_act act;

	if (!f->n || !w->action_gap || w->winding_up || flows_below(f, 20 * w->action_gap))
		return;
	act = menu[flows_below(f, ARRAY_SIZE(menu))];
	if (act <= FLOW_SENDER_ERR)
		act_on_flow(w, f, &f->flow[flows_below(f, f->n)], act);
	else if (act <= FLOW_SRQ_NEW)
		act_on_pool(w, f, &f->pool[flows_below(f, f->pools)], act);
	else
		act_on_datagrams(w, f, &f->flow[flows_below(f, f->n)], act);
}
