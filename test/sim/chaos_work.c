/* SPDX-License-Identifier: BSD-3-Clause */
/* The applications' requests: all operations, sizes that matter, mistakes now and then. */
#include "abi_ctl.h"
#include "chaos.h"
#include "qp.h"

#define ENOUGH_PACKETS 20000u /* in a run, for long messages */

static uint32_t length_of(struct chaos_world *w, const struct chaos_conn *c)
{
	uint32_t mtu = c->end[A].attr.path_mtu;
	uint32_t max = c->max_len;
	uint64_t n;

	if (world_packets(w) > ENOUGH_PACKETS && max > 4 * mtu)
		max = 4 * mtu;
	switch (pick(w, 0, 11)) {
	case 0:
		n = 0;
		break;
	case 1:
		n = 1;
		break;
	case 2:
	case 3: /* around a multiple of the MTU */
		n = (uint64_t)mtu * pick(w, 1, 5) + pick(w, 0, 2) - 1;
		break;
	case 4: /* very large now and then */
		n = chance(w, 15) ? max : pick(w, 0, max < 65536 ? max : 65536);
		break;
	case 5:
	case 6:
	case 7:
		n = pick(w, 0, 8 * mtu);
		break;
	default: /* each order of magnitude is as likely as the others */
		n = pick(w, 0, 1u << pick(w, 0, 16));
		break;
	}
	return n < max ? (uint32_t)n : max;
}

/* Makes a mistake, and makes the request one that can show it. */
static void err(struct chaos_world *w, const struct chaos_conn *c, struct traffic_wr *wr)
{
	if (!c->mistakes || c->phase != CONN_UP || pick(w, 0, 999999) >= c->mistakes)
		return;
	wr->mistake = (enum traffic_mistake)pick(w, MISTAKE_NONE + 1, MISTAKE_RECV_LKEY - 1);
	wr->flags &= ~ABI_WQE_INLINE;
	if (wr->len < 2)
		wr->len = pick(w, 2, c->max_len < 64 ? c->max_len : 64);
	switch (wr->mistake) {
	case MISTAKE_LOCAL_ACCESS:
		wr->op = TRAFFIC_READ;
		wr->len = pick(w, 1, 64);
		break;
	case MISTAKE_RKEY:
	case MISTAKE_REMOTE_RANGE:
	case MISTAKE_REMOTE_ACCESS:
	case MISTAKE_REMOTE_PD:
		wr->op = (enum traffic_op)pick(w, TRAFFIC_WRITE, TRAFFIC_FETCH_ADD);
		break;
	case MISTAKE_TOO_LONG:
		wr->op = (enum traffic_op)pick(w, TRAFFIC_SEND, TRAFFIC_SEND_IMM);
		break;
	default:
		break;
	}
}

/* An event will be raised at the peer. */
static void expect_event(struct chaos_conn *c, int e)
{
	const struct traffic_side *me = &c->traffic.side[e];

	switch (me->msg[me->posted - 1].wr.mistake) {
	case MISTAKE_RKEY:
	case MISTAKE_REMOTE_RANGE:
	case MISTAKE_REMOTE_ACCESS:
	case MISTAKE_REMOTE_PD:
		c->end[!e].may_access_err = true;
		break;
	default:
		break;
	}
}

static bool post_message(struct chaos_world *w, struct chaos_conn *c, int e)
{
	const struct app_qp_spec *q = &c->end[e].spec;
	struct traffic_wr wr = {
		.op = (enum traffic_op)pick(w, 0, TRAFFIC_OPS - 1),
		.len = length_of(w, c),
		.sges = chance(w, 80) ? q->max_sge : 0,
	};

	wr.flags |= chance(w, 20) ? ABI_WQE_SOLICITED : 0;
	wr.flags |= chance(w, 8) ? ABI_WQE_FENCE : 0;
	wr.flags |= c->end[e].small || chance(w, 50) ? ABI_WQE_SIGNALED : 0;
	if (!traffic_fetches(wr.op) && wr.len <= q->max_inline && chance(w, 50))
		wr.flags |= ABI_WQE_INLINE;
	err(w, c, &wr);
	if (!traffic_post(&c->traffic, e, &wr))
		return false;
	expect_event(c, e);
	return true;
}

static void post_receives(struct chaos_world *w, struct chaos_conn *c, int e)
{
	const struct chaos_end *end = &c->end[e];

	if (end->starve_until > now_of(w))
		return;
	for (;;) {
		enum traffic_mistake how = MISTAKE_NONE;

		if (c->mistakes && c->phase == CONN_UP && pick(w, 0, 999999) < c->mistakes / 4)
			how = (enum traffic_mistake)pick(w, MISTAKE_RECV_LKEY, MISTAKE_RECV_SGES);
		if (!traffic_post_recv(&c->traffic, e, end->spec.max_sge, how) || chance(w, 10))
			break;
	}
}

void work_post(struct chaos_world *w, struct chaos_conn *c, int e)
{
	const struct app_qp *q = c->end[e].qp;

	if (c->phase > CONN_BREAKING || !q || q->qp->state == ABI_QPS_RESET)
		return;
	post_receives(w, c, e);
	if (!conn_can_post(c, e) || w->winding_up)
		return;
	/* In ERR all is flushed at once: a little of that will do. */
	while (chance(w, c->phase == CONN_UP ? c->post_share : 3))
		if (!post_message(w, c, e))
			break;
}
