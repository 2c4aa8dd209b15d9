/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Async events and completion notifications, which the shell takes once per burst. Each is a bit in
 * the object that it concerns, and the object waits on a list: however many objects fail together,
 * there is room for all of their events (EVT-03).
 */
#include "complete.h"
#include "cq.h"
#include "qp_impl.h"
#include "srq.h"
#include "trace.h"

/* In the order in which they occur in the life of a QP. */
static const uint8_t qp_event_types[] = {
	ABI_EVENT_COMM_EST,
	ABI_EVENT_SQ_DRAINED,
	ABI_EVENT_QP_FATAL,
	ABI_EVENT_QP_REQ_ERR,
	ABI_EVENT_QP_ACCESS_ERR,
	ABI_EVENT_QP_LAST_WQE,
};

/* --- recording --------------------------------------------------------------------------- */

void qp_events_take(struct core *c, struct qp *qp)
{
	if (qp->events && list_empty(&qp->troubled))
		list_push(&c->troubled, &qp->troubled);
}

void qp_events_forget(struct qp *qp)
{
	list_del(&qp->troubled);
	qp->events = 0;
}

void qp_event(struct core *c, struct qp *qp, uint32_t type)
{
	qp->events |= 1u << type;
	qp_events_take(c, qp);
	if (unlikely(qp->traced))
		trace_async(c, qp, type);
}

/* By number, not by a list node: QPs of several cores take from one SRQ, and each core may have an
 * event for it. */
void srq_event(struct core *c, struct srq *srq, uint32_t type)
{
	uint32_t slot = SRQN_SLOT(srq->srqn);

	_Static_assert(SRQ_MAX == 64 * 64, "a summary of one word");
	atomic_fetch_or_explicit(&srq->events, 1u << type, memory_order_relaxed);
	c->srq_troubled[slot / 64] |= 1ull << slot % 64;
	c->srq_summary |= 1ull << slot / 64;
}

void qp_late(struct core *c, const struct qp *qp)
{
	_Atomic uint32_t *slot = &c->late[qp->attr.ah.dgid[15] % LATE_SLOTS];

	/* One QP per destination is enough, and other destinations that share the slot get it
	 * later. */
	if (atomic_load_explicit(slot, memory_order_relaxed))
		return;
	atomic_store_explicit(slot, qp->qpn, memory_order_release);
	c->late_news = true;
}

void qp_overflown(struct core *c, struct qp *qp, struct cq_lane *lane, bool first, uint64_t now)
{
	/* CQ-01: no silent loss. The first lost CQE raises the CQ's event; each QP raises its own.
	 */
	if (first) {
		c->count.cq_overflow++;
		lane->cq_err = true;
		if (list_empty(&lane->touched))
			list_push(&c->touched, &lane->touched);
	}
	if (qp->state != ABI_QPS_ERR) {
		cause_plain(qp, CAUSE_CQ_OVERFLOW, lane->cq->handle);
		qp_event(c, qp, ABI_EVENT_QP_FATAL); /* EVT-03 */
		qp_error(c, qp, now);
	}
}

/* --- taking ----------------------------------------------------------------------------- */

static uint32_t first_type(const struct qp *qp)
{
	unsigned i = 0;

	while (i < ARRAY_SIZE(qp_event_types) - 1 && !(qp->events >> qp_event_types[i] & 1))
		i++;
	return qp_event_types[i];
}

static unsigned take_qp_events(struct core *c, struct core_event out[], unsigned n)
{
	unsigned got = 0;

	while (got < n && !list_empty(&c->troubled)) {
		struct qp *qp = container_of(c->troubled.next, struct qp, troubled);
		uint32_t type = first_type(qp);

		out[got++] = (struct core_event){
			.type = type, .handle = qp->handle, .session = qp->session};
		qp->events &= ~(1u << type);
		if (!qp->events)
			list_del(&qp->troubled);
	}
	return got;
}

/* The events of the SRQ in @p slot, whichever core recorded them. SRQ_ERR, which no event may
 * follow, is the lowest bit and is taken last. */
static unsigned take_srq(struct core *c, uint32_t slot, struct core_event out[], unsigned n)
{
	struct srq *srq = atomic_load_explicit(&c->cfg.srqs->slot[slot], memory_order_acquire);
	unsigned got = 0;

	while (srq && got < n) {
		uint32_t events = atomic_load_explicit(&srq->events, memory_order_relaxed);
		uint32_t type;

		if (!events)
			break;
		type = 31 - (uint32_t)__builtin_clz(events);
		/* Another core may have taken it. */
		if (!(atomic_fetch_and_explicit(
			      &srq->events, ~(1u << type), memory_order_relaxed) >>
				    type &
			    1))
			continue;
		out[got++] = (struct core_event){
			.type = type, .handle = srq->handle, .session = srq->session};
	}
	return got;
}

static unsigned take_srq_events(struct core *c, struct core_event out[], unsigned n)
{
	unsigned got = 0;

	while (got < n && c->srq_summary) {
		uint32_t word = (uint32_t)__builtin_ctzll(c->srq_summary);
		uint32_t bit = (uint32_t)__builtin_ctzll(c->srq_troubled[word]);

		got += take_srq(c, 64 * word + bit, out + got, n - got);
		if (got == n)
			break; /* there may be more of this one */
		c->srq_troubled[word] &= ~(1ull << bit);
		if (!c->srq_troubled[word])
			c->srq_summary &= ~(1ull << word);
	}
	return got;
}

static NOINLINE unsigned take_async(struct core *c, struct core_event out[], unsigned n)
{
	unsigned got = take_qp_events(c, out, n);

	return got + take_srq_events(c, out + got, n - got);
}

static struct core_event cq_event(const struct cq *cq, uint32_t type)
{
	return (struct core_event){
		.type = type, .handle = cq->handle, .channel = cq->channel, .session = cq->session};
}

/* CQ events: overflow, and completion notifications. */
static unsigned take_cq_events(struct core *c, struct core_event out[], unsigned n)
{
	unsigned got = 0;

	if (list_empty(&c->touched))
		return 0;
	/* Pairs with the application's fence between arming and its last poll: either it sees our
	 * CQE, or we see its arm (decision 0000.4). One fence for all CQs of the burst. */
	atomic_thread_fence(memory_order_seq_cst);
	while (got < n && !list_empty(&c->touched)) {
		struct cq_lane *lane = container_of(list_pop(&c->touched), struct cq_lane, touched);

		if (lane->cq_err) {
			lane->cq_err = false;
			out[got++] = cq_event(lane->cq, ABI_EVENT_CQ_ERR);
			list_push(&c->touched, &lane->touched); /* for its earlier completions */
		} else if (cq_notify_wanted(lane)) {
			out[got++] = cq_event(lane->cq, ABI_EVENT_COMPLETION);
		}
	}
	return got;
}

/* Neither kind delays the other: each gets half of the room, and what the other leaves. */
unsigned core_events(struct core *c, struct core_event out[], unsigned n)
{
	unsigned got = 0;

	if (unlikely(core_async_wait(c)))
		got = take_async(c, out, list_empty(&c->touched) ? n : (n + 1) / 2);
	got += take_cq_events(c, out + got, n - got);
	if (unlikely(core_async_wait(c)))
		got += take_async(c, out + got, n - got);
	return got;
}
