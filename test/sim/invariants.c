/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "completer.h"
#include "invariants.h"
#include "opcode.h"
#include "pacing.h"
#include "seq24.h"
#include "wqe.h"

/* --- a host --------------------------------------------------------------------------- */

/* A list that is whole, with at most @p max nodes. */
static void check_list(const struct list *head, unsigned max)
{
	unsigned n = 0;

	for (const struct list *l = head->next; l != head; l = l->next) {
		assert_ptr_equal(l->next->prev, l);
		assert_true(++n <= max);
	}
}

/* A session that has a turn has a QP that wants it. */
static void check_shares(const struct list *shares)
{
	check_list(shares, SESSION_MAX);
	for (const struct list *l = shares->next; l != shares; l = l->next) {
		const struct core_share *s = container_of(l, const struct core_share, node);

		assert_int_not_equal(s->ways, 0);
		for (unsigned way = 0; way < EGRESS_COUNT; way++) {
			assert_int_equal(!list_empty(&s->qps[way]), s->ways >> way & 1);
			check_list(&s->qps[way], QP_MAX);
		}
	}
}

/* And a QP that needs one gets it, at its departure or now. */
static void check_turn(const struct core *c, const struct qp *qp)
{
	assert_false(pacing_waits(qp) && (!qp->limited || !list_empty(&qp->ready) || !c->paced));
	if (!list_empty(&qp->ready))
		assert_false(list_empty(&c->share[qp->session % SESSION_MAX].node));
}

/* No counter goes back. */
static void check_counters(struct app *a)
{
	const struct core_counters *count = &a->host->core.count;
	const uint64_t *now = (const uint64_t *)count;
	const uint64_t *before = (const uint64_t *)&a->counted;
	unsigned back = 0;

	for (size_t i = 0; i < sizeof(*count) / sizeof(*now); i++)
		back += now[i] < before[i];
	assert_int_equal(back, 0);
	a->counted = *count;
}

/* --- a QP ----------------------------------------------------------------------------- */

static bool sends(const struct qp *qp)
{
	return qp->state == ABI_QPS_RTS || qp->state == ABI_QPS_SQD;
}

/* REQ-10: what is fenced has not started while a READ before it is incomplete. */
static void check_fences(const struct qp *qp)
{
	bool read = false;

	for (uint32_t i = qp->comp.head; i != qp->req.fetched; i++) {
		const struct send_wqe *w = qp_wqe(qp, i);

		if (!seq24_lt(w->first_psn, qp->req.psn_new))
			return;
		assert_false(read && (w->flags & ABI_WQE_FENCE));
		read |= w->opcode == ABI_WR_RDMA_READ;
	}
}

static void check_requester(const struct qp *qp)
{
	uint32_t out = (qp->req.psn_new - qp->comp.una) & SEQ24_MASK;

	assert_false((qp->comp.una | qp->req.psn | qp->req.psn_new | qp->resp.epsn | qp->resp.msn) &
		     ~SEQ24_MASK);
	if (!sends(qp))
		return;
	assert_true(out <= (1u << 23) - 1); /* BTH-16 */
	assert_true(seq24_le(qp->comp.una, qp->req.psn));
	assert_true(seq24_le(qp->req.psn, qp->req.psn_new));
	assert_true(qp->win.size <= qp->win.max);
	if (qp->reliable)
		assert_true(qp->req.sent - qp->comp.acked <= qp->win.max + qp->attr.max_rd_atomic);
	assert_true(qp->req.rd_started - qp->comp.rd_done <= qp->attr.max_rd_atomic); /* REQ-08 */
	assert_true(qp->req.fetched - qp->comp.head <= qp->sq.depth);
	assert_true(qp->req.cur - qp->comp.head <= qp->req.fetched - qp->comp.head);
	assert_true(qp->comp.retry_left <= 7 && qp->comp.rnr_left <= 7);
	check_fences(qp);
}

/* A timer runs if, and only if, something is outstanding (REQ-22, REQ-23, REQ-31); between going
 * back and sending again, the turn to send stands for it. */
static void check_timer(const struct qp *qp)
{
	bool outstanding = qp->comp.una != qp->req.psn_new;

	if (qp->comp.due)
		assert_true(sends(qp) && outstanding && wheel_armed(&qp->timer));
	else if (sends(qp) && outstanding && qp->ack_timeout)
		assert_true(qp->req.psn == qp->comp.una &&
			    (!list_empty(&qp->ready) || pacing_waits(qp)));
	assert_true(!qp->comp.rnr_wait || qp->comp.due);
}

/* "Not in the past", as finely as the wheel can tell. */
static void check_due(const struct qp *qp, uint64_t now)
{
	const uint64_t late = 2ull << WHEEL_TICK_SHIFT;

	assert_true(!qp->comp.due || qp->comp.due + late > now);
}

static void check_responder(const struct qp *qp)
{
	const struct qp_resp *r = &qp->resp;

	assert_true(r->res_head - r->res_next <= RD_ATOMIC_MAX);
	assert_true(r->res_head - r->res_done <= RD_ATOMIC_MAX);
	assert_true(r->write_left <= r->write_len || r->open != KIND_WRITE);
	assert_true(!r->have_wqe || r->wqe.invalid || r->recv_off <= r->wqe.length); /* RSP-20 */
}

void invariants_check(struct app *a, uint64_t now)
{
	uint64_t due = core_deadline(&a->host->core);
	bool awake = a->host->paused_until <= now;

	assert_true(app_guards_ok(a));
	check_shares(&a->host->core.ready);
	check_shares(&a->host->core.blocked);
	check_counters(a);
	for (unsigned i = 0; i < a->qps; i++) {
		const struct qp *qp = a->qp[i]->qp;

		check_requester(qp);
		check_turn(&a->host->core, qp);
		check_timer(qp);
		check_responder(qp);
		if (awake)
			check_due(qp, now);
	}
	if (awake)
		assert_true(due == 0 || due >> WHEEL_TICK_SHIFT >= now >> WHEEL_TICK_SHIFT);
}

/* --- a connection --------------------------------------------------------------------- */

void invariants_flow(struct invariants_flow *f, const struct qp *from, const struct qp *to)
{
	struct invariants_flow is = {
		.known = from->state >= ABI_QPS_RTS && to->state >= ABI_QPS_RTR,
		.una = from->comp.una,
		.psn_new = from->req.psn_new,
		.epsn = to->resp.epsn,
		.msn = to->resp.msn,
	};

	/* REQ-36, RSP-01: acknowledged is what arrived, and what arrived was sent. */
	if (is.known) {
		assert_true(seq24_le(is.una, is.epsn));
		/* A message that was delivered directly and moved the receiver to ERR, as its CQ
		 * is full, is sent once more by frames: direct.c. */
		assert_true(to->state == ABI_QPS_ERR || seq24_le(is.epsn, is.psn_new));
		assert_true(seq24_le(is.msn, from->req.ssn)); /* RSP-25 */
	}
	if (is.known && f->known) {
		assert_true(seq24_le(f->una, is.una));
		assert_true(seq24_le(f->psn_new, is.psn_new));
		assert_true(seq24_le(f->epsn, is.epsn));
		assert_true(seq24_le(f->msn, is.msn));
	}
	*f = is;
}
