/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "completer.h"
#include "invariants.h"
#include "seq24.h"

/* Everything on READY is a QP of this host, and is there once. */
static void check_ready(const struct core *c)
{
	unsigned n = 0;

	for (const struct list *l = c->ready.next; l != &c->ready; l = l->next) {
		assert_ptr_equal(l->next->prev, l);
		assert_true(++n <= QP_MAX);
	}
}

static void check_requester(const struct qp *qp)
{
	uint32_t out = (qp->req.psn_new - qp->comp.una) & SEQ24_MASK;

	if (qp->state != ABI_QPS_RTS && qp->state != ABI_QPS_SQD)
		return;
	assert_true(out <= (1u << 23) - 1); /* BTH-16 */
	assert_true(seq24_le(qp->comp.una, qp->req.psn));
	assert_true(seq24_le(qp->req.psn, qp->req.psn_new));
	assert_true(qp->req.sent - qp->comp.acked <= qp->win.max + qp->attr.max_rd_atomic);
	assert_true(qp->req.rd_started - qp->comp.rd_done <= qp->attr.max_rd_atomic); /* REQ-08 */
	assert_true(qp->req.fetched - qp->comp.head <= qp->sq.depth);
	assert_true(qp->req.cur - qp->comp.head <= qp->req.fetched - qp->comp.head);
	/* REQ-22, REQ-31: while something is outstanding a timer runs. */
	if (qp->ack_timeout && qp->comp.una != qp->req.psn && qp->comp.una != qp->req.psn_new)
		assert_true(qp->comp.due != 0 && wheel_armed(&qp->timer));
}

void invariants_check(const struct app *a, uint64_t now)
{
	uint64_t due = core_deadline(&a->host->core);

	assert_true(app_guards_ok(a));
	check_ready(&a->host->core);
	for (unsigned i = 0; i < a->qps; i++)
		check_requester(a->qp[i]->qp);
	assert_true(due == 0 || due >> WHEEL_TICK_SHIFT >= now >> WHEEL_TICK_SHIFT);
}
