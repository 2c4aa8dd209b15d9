/* SPDX-License-Identifier: BSD-3-Clause */
/* Who sends next: sessions that have something take turns, a quantum of packets each, and with
 * each turn another QP of the session, so that a thousand QPs of one program get no more than the
 * only one of another. A doorbell makes a QP one of them. */
#include "completer.h"
#include "inject.h"
#include "qp.h"
#include "requester.h"
#include "responder.h"
#include "trace.h"

/* Packets that one QP sends before the next has its turn; also what is flushed a turn. Large
 * enough to keep a QP's lines warm, small enough that a burst serves several. */
#define QUANTUM 8u

_Static_assert((SESSION_MAX & (SESSION_MAX - 1)) == 0, "share_of");

static struct core_share *share_of(struct core *c, const struct qp *qp)
{
	return &c->share[qp->session & (SESSION_MAX - 1)];
}

void qp_make_ready(struct core *c, struct qp *qp)
{
	struct core_share *s = share_of(c, qp);

	if (!list_empty(&qp->ready))
		return;
	list_push(&s->qps, &qp->ready);
	if (list_empty(&s->node))
		list_push(&c->ready, &s->node);
}

void qp_make_idle(struct core *c, struct qp *qp)
{
	struct core_share *s = share_of(c, qp);

	list_del(&qp->ready);
	if (list_empty(&s->qps))
		list_del(&s->node);
}

/* The QP whose turn it is; its session goes behind the others'. */
static struct qp *next_qp(struct core *c)
{
	struct list *node = list_pop(&c->ready);
	struct core_share *s;
	struct qp *qp;

	if (!node)
		return NULL;
	s = container_of(node, struct core_share, node);
	qp = container_of(list_pop(&s->qps), struct qp, ready);
	if (!list_empty(&s->qps)) {
		list_push(&c->ready, &s->node);
		qp_prefetch(container_of(s->qps.next, struct qp, ready));
	}
	return qp;
}

/* Responses and requests of one QP alternate, so that neither starves the other. */
static unsigned qp_tx(struct core *c, struct qp *qp, struct txd out[], unsigned n, uint64_t now)
{
	unsigned got = 0;

	while (got < n) {
		unsigned before = got;
		unsigned most = n - got;

		if (responder_owes(qp)) {
			got += responder_next(c, qp, &out[got], now);
			most = got < n;
		}
		got += requester_tx(c, qp, &out[got], most, now);
		if (got == before)
			break;
	}
	return got;
}

/* One turn of one QP.  @return packets built; puts the QP back when it has more. */
static unsigned qp_turn(struct core *c, struct qp *qp, struct txd out[], unsigned n, uint64_t now)
{
	unsigned quantum = n < QUANTUM ? n : QUANTUM;
	unsigned got;
	bool more;

	if (unlikely(!qp->reliable) && !qp_built_now(c, qp))
		completer_sent(c, qp, now);
	got = qp_tx(c, qp, out, quantum, now);
	more = got == quantum;
	if (got)
		qp->tx_call = c->tx_call;
	if (unlikely(qp->state >= ABI_QPS_SQE))
		more |= qp_flush(c, qp, QUANTUM, now);
	/* Next time there may be WQEs to fetch that are to be flushed, and what was built now will
	 * have left. */
	if (unlikely(qp->state >= ABI_QPS_SQE || !qp->reliable))
		more |= qp_built_now(c, qp);
	if (more)
		qp_make_ready(c, qp);
	return got;
}

/* Around a turn while QPs are traced or have faults: not in its place, because a second caller of
 * qp_turn() would take that out of core_tx(). One that has faults sends a packet a turn, so that
 * those which are held back find their places between them.
 * @return packets that the turn may build; 0: one that was held back is in @p out instead */
static NOINLINE unsigned before_turn(struct core *c, struct qp *qp, struct txd out[], unsigned room,
	struct trace_step *step, uint64_t now)
{
	if (qp->inject && inject_release(c, qp, out, now)) {
		qp_make_ready(c, qp);
		return 0;
	}
	trace_tx_begin(step, qp, now);
	return qp->inject ? 1 : room;
}

/* @return packets in @p out after all. */
static NOINLINE unsigned after_turn(struct core *c, struct qp *qp, struct txd out[], unsigned built,
	struct trace_step *step, uint64_t now)
{
	trace_tx_end(step, c, qp, out, built, now);
	return qp->inject && built ? inject_tx(c, qp, out, now) : built;
}

unsigned core_tx(struct core *c, struct txd out[], unsigned n, uint64_t now)
{
	unsigned got = 0;
	unsigned turns = 2 * BURST; /* QPs that only flush build nothing: bound them too */
	struct trace_step step;

	if (unlikely(c->careful))
		inject_poll(c, now);
	c->tx_call++;
	c->tx_now = now;
	while (got < n && turns--) {
		struct qp *qp = next_qp(c);
		unsigned room = n - got;
		unsigned built;

		if (!qp)
			break;
		if (unlikely(c->careful)) {
			room = before_turn(c, qp, &out[got], room, &step, now);
			if (!room) {
				got++;
				continue;
			}
		}
		built = qp_turn(c, qp, &out[got], room, now);
		if (unlikely(c->careful))
			built = after_turn(c, qp, &out[got], built, &step, now);
		got += built;
	}
	return got;
}

void core_doorbell(struct core *c, struct qp *qp, uint64_t now)
{
	requester_rung(qp);
	qp_prefetch_post(qp);
	if (unlikely(qp->traced))
		trace_doorbell(c, qp, now);
	qp_make_ready(c, qp);
}
