/* SPDX-License-Identifier: BSD-3-Clause */
/* Async events and completion notices: collected here, drained by the shell once a burst. */
#include "qp.h"
#include "trace.h"

static struct core_event *event_slot(struct core *c)
{
	if (c->ev_tail - c->ev_head == EVENT_QUEUE) {
		c->count.events_lost++;
		return NULL;
	}
	return &c->ev[c->ev_tail++ % EVENT_QUEUE];
}

void qp_event(struct core *c, const struct qp *qp, uint32_t type)
{
	struct core_event *e = event_slot(c);

	if (e)
		*e = (struct core_event){
			.type = type, .handle = qp->handle, .session = qp->session};
	if (unlikely(qp->traced))
		trace_async(c, qp, type);
}

static void cq_event(struct core *c, const struct cq *cq, uint32_t type)
{
	struct core_event *e = event_slot(c);

	if (e)
		*e = (struct core_event){.type = type,
			.handle = cq->handle,
			.channel = cq->channel,
			.session = cq->session};
}

void srq_event(struct core *c, const struct srq *srq, uint32_t type)
{
	struct core_event *e = event_slot(c);

	if (e)
		*e = (struct core_event){
			.type = type, .handle = srq->handle, .session = srq->session};
}

void qp_late(struct core *c, const struct qp *qp)
{
	_Atomic uint32_t *slot = &c->late[qp->attr.ah.dgid[15] % LATE_SLOTS];

	/* Others to the same destination need not be told of, and another one's turn comes. */
	if (atomic_load_explicit(slot, memory_order_relaxed))
		return;
	atomic_store_explicit(slot, qp->qpn, memory_order_release);
	c->late_news = true;
}

void qp_overflown(
	struct core *c, struct qp *qp, const struct cq_lane *lane, bool first, uint64_t now)
{
	/* CQ-01: no silent loss. The first one tells of the CQ, each QP of itself. */
	if (first) {
		c->count.cq_overflow++;
		cq_event(c, lane->cq, ABI_EVENT_CQ_ERR);
	}
	if (qp->state != ABI_QPS_ERR) {
		cause_plain(qp, CAUSE_CQ_OVERFLOW, lane->cq->handle);
		qp_event(c, qp, ABI_EVENT_QP_FATAL); /* EVT-03 */
		qp_error(c, qp, now);
	}
}

unsigned core_events(struct core *c, struct core_event out[], unsigned n)
{
	unsigned room = n < EVENT_QUEUE ? n : EVENT_QUEUE;
	unsigned got = 0;

	if (!list_empty(&c->touched)) {
		/* Pairs with the application's fence between arming and its last poll: either it
		 * sees our CQE, or we see its arm (design.md 4). One for all CQs of the burst. */
		atomic_thread_fence(memory_order_seq_cst);
		/* No more than are taken now: the rest waits on its list, and the queue stays free
		 * for what happens once only. */
		while (c->ev_tail - c->ev_head < room) {
			struct list *l = list_pop(&c->touched);
			struct cq_lane *lane;

			if (!l)
				break;
			lane = container_of(l, struct cq_lane, touched);
			if (cq_notify_wanted(lane))
				cq_event(c, lane->cq, ABI_EVENT_COMPLETION);
		}
	}
	while (got < n && c->ev_head != c->ev_tail)
		out[got++] = c->ev[c->ev_head++ % EVENT_QUEUE];
	return got;
}
