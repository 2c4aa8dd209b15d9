/* SPDX-License-Identifier: BSD-3-Clause */
/* Who sends next: sessions that have something take turns, a quantum of packets each, and with
 * each turn another QP of the session, so that a thousand QPs of one program get no more than the
 * only one of another. A doorbell makes a QP one of them. */
#include "qp.h"
#include "requester.h"
#include "responder.h"

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
	if (!list_empty(&s->qps))
		list_push(&c->ready, &s->node);
	return qp;
}

/* Responses and requests of one QP alternate, so that neither starves the other. */
static unsigned qp_tx(struct core *c, struct qp *qp, struct txd out[], unsigned n, uint64_t now)
{
	unsigned got = 0;

	while (got < n) {
		unsigned before = got;

		got += responder_next(c, qp, &out[got], now);
		if (got < n)
			got += requester_next(c, qp, &out[got], now);
		if (got == before)
			break;
	}
	return got;
}

/* One turn of one QP.  @return packets built; puts the QP back when it has more. */
static unsigned qp_turn(struct core *c, struct qp *qp, struct txd out[], unsigned n, uint64_t now)
{
	unsigned quantum = n < QUANTUM ? n : QUANTUM;
	unsigned got = qp_tx(c, qp, out, quantum, now);
	bool more = got == quantum;

	if (got)
		qp->tx_call = c->tx_call;
	if (qp->state == ABI_QPS_ERR) {
		more |= qp_flush(c, qp, QUANTUM, now);
		more |= qp_built_now(c, qp); /* there may be WQEs to fetch next time */
	}
	if (more)
		qp_make_ready(c, qp);
	return got;
}

unsigned core_tx(struct core *c, struct txd out[], unsigned n, uint64_t now)
{
	unsigned got = 0;
	unsigned turns = 2 * BURST; /* QPs that only flush build nothing: bound them too */

	c->tx_call++;
	while (got < n && turns--) {
		struct qp *qp = next_qp(c);

		if (!qp)
			break;
		got += qp_turn(c, qp, &out[got], n - got, now);
	}
	return got;
}

void core_doorbell(struct core *c, struct qp *qp, uint64_t now)
{
	atomic_store_explicit(&qp->sq.shared->need_doorbell, 0, memory_order_relaxed);
	qp_make_ready(c, qp);
}
