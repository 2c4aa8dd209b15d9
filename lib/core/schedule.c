/* SPDX-License-Identifier: BSD-3-Clause */
/* The transmit schedule: sessions with something to send take turns of a quantum of packets, with
 * another of their QPs each time, so that a thousand QPs of one program get no more than the only
 * QP of another. A doorbell makes a QP ready. QPs whose egress is closed wait at that egress, and
 * QPs that may not send yet wait on the pacing wheel; waiting QPs take no time. */
#include "completer.h"
#include "direct.h"
#include "inject.h"
#include "np.h"
#include "pacing.h"
#include "qp_impl.h"
#include "requester.h"
#include "responder.h"
#include "rp.h"
#include "trace.h"
#include "txd.h"
#include "ud.h"
#include "wqe.h"

_Static_assert((SESSION_MAX & (SESSION_MAX - 1)) == 0, "share_of");
_Static_assert(EGRESS_COUNT <= 32, "core_share.ways");

static struct core_share *share_of(struct core *c, const struct qp *qp)
{
	return &c->share[qp->session & (SESSION_MAX - 1)];
}

/* The egress of its next packet. */
static unsigned egress_of(const struct core *c, const struct qp *qp)
{
	if (unlikely(qp->opc == OPC_UD))
		return ud_egress(c, qp);
	return path_egress(c, &qp->path, qp->attr.dest_qpn);
}

static void put_on(struct core *c, struct qp *qp, unsigned way)
{
	struct core_share *s = share_of(c, qp);
	uint32_t before = s->ways;

	qp->egress = (uint8_t)way;
	list_push(&s->qps[way], &qp->ready);
	s->ways = before | 1u << way;
	if (list_empty(&s->node)) {
		list_push(&c->ready, &s->node);
	} else if (unlikely(!(before & c->open))) { /* it may be on the blocked list */
		list_del(&s->node);
		list_push(&c->ready, &s->node);
	}
}

void qp_make_idle(struct core *c, struct qp *qp)
{
	struct core_share *s = share_of(c, qp);

	list_del(&qp->ready);
	if (list_empty(&s->qps[qp->egress]))
		s->ways &= ~(1u << qp->egress);
	if (!s->ways)
		list_del(&s->node);
}

/* Whether it waits for its departure, and has nothing to do before. */
static NOINLINE bool is_held(struct core *c, struct qp *qp)
{
	if (!pacing_waits(qp))
		return false;
	if (qp->state < ABI_QPS_SQE && !responder_next_is_free(qp))
		return true;
	pacing_cancel(c, qp);
	return false;
}

/* A flush does not wait for a port. */
void qp_make_ready(struct core *c, struct qp *qp)
{
	bool flush = qp->state >= ABI_QPS_SQE;

	if (!list_empty(&qp->ready)) {
		if (likely(!flush) || qp->egress == EGRESS_NONE)
			return;
		qp_make_idle(c, qp);
	}
	if (unlikely(qp->limited) && is_held(c, qp))
		return;
	put_on(c, qp, unlikely(flush) ? EGRESS_NONE : egress_of(c, qp));
}

/* RSP-27: responses to earlier requests leave before it. */
void qp_make_urgent(struct core *c, struct qp *qp)
{
	unsigned way;

	if (unlikely(qp->resp.res_next != qp->resp.res_head)) {
		qp_make_ready(c, qp);
		return;
	}
	if (!list_empty(&qp->urgent))
		return;
	way = path_egress(c, &qp->path, qp->attr.dest_qpn);
	list_push(&c->urgent[way], &qp->urgent);
	c->urgent_ways |= 1u << way;
}

void qp_rerouted(struct core *c, struct qp *qp)
{
	if (!list_empty(&qp->urgent)) {
		list_del(&qp->urgent);
		qp_make_urgent(c, qp);
	}
	if (list_empty(&qp->ready))
		return;
	qp_make_idle(c, qp);
	qp_make_ready(c, qp);
}

void core_open_egress(struct core *c, uint32_t open)
{
	open |= 1u << EGRESS_NONE;
	if (unlikely(open & ~c->open))
		list_splice(&c->ready, &c->blocked);
	c->open = open;
}

/* The session whose turn it is. Sessions with nothing for an open egress move to the blocked list
 * until one opens. */
static struct core_share *next_share(struct core *c)
{
	struct list *node;

	while ((node = list_pop(&c->ready))) {
		struct core_share *s = container_of(node, struct core_share, node);

		if (likely(s->ways & c->open))
			return s;
		list_push(&c->blocked, node);
	}
	return NULL;
}

/* The QP whose turn it is; its session moves to the end of the list, and the egress after the
 * session's others. */
static struct qp *next_qp(struct core *c)
{
	struct core_share *s = next_share(c);
	uint32_t ways, later;
	struct list *qps;
	struct qp *qp;

	if (!s)
		return NULL;
	ways = s->ways & c->open;
	later = ways & ~((2u << s->last) - 1);
	s->last = (uint32_t)__builtin_ctz(later ? later : ways);
	qps = &s->qps[s->last];
	qp = container_of(list_pop(qps), struct qp, ready);
	if (list_empty(qps))
		s->ways &= ~(1u << s->last);
	else
		qp_prefetch(container_of(qps->next, struct qp, ready));
	if (s->ways)
		list_push(&c->ready, &s->node);
	return qp;
}

/* The peer of a QP that waited at no port may have moved to another worker since.
 * @return false if the QP now waits at the right egress. Otherwise it may send *room packets: none
 * if that egress is closed and the QP has its turn only to complete something. */
static NOINLINE bool still_leaves(struct core *c, struct qp *qp, unsigned *room)
{
	unsigned way = egress_of(c, qp);

	if (egress_is_open(c, way))
		return true;
	if (qp->egress == EGRESS_NONE) {
		*room = 0;
		return true;
	}
	put_on(c, qp, way);
	return false;
}

/* Responses and requests of one QP alternate, so that neither starves the other. */
static ALWAYS_INLINE unsigned qp_tx(
	struct core *c, struct qp *qp, struct txd out[], unsigned n, uint64_t now)
{
	unsigned got = 0;

	while (got < n) {
		unsigned before = got;
		unsigned most = n - got;

		if (responder_owes(qp)) {
			if (requester_waits_for_bell(qp))
				got += responder_read_responses(c, qp, &out[got], n - got);
			if (got == n)
				break;
			got += responder_next(c, qp, &out[got], now);
			most = got < n;
		}
		got += requester_tx(c, qp, &out[got], most, now);
		if (got == before)
			break;
	}
	return got;
}

/* Whether there is more to send after a turn of @p room packets, if it was used up. If there is no
 * room, or the next WQE sends nothing, executes the WQEs that send nothing, because these need not
 * wait. A QP that has nothing to send, or waits for a response, gets no further turn and does not
 * wait on the wheel. */
static bool has_more(struct core *c, struct qp *qp, unsigned room, uint64_t now)
{
	if (responder_pending(&qp->resp))
		return true;
	if (!room || requester_next_is_local(qp))
		return requester_waits(c, qp, now);
	return requester_has_work(qp);
}

/* Like qp_tx(), for a QP that is limited. Packets without data leave at once.
 * @param more  set when it has more to send that need not wait */
static NOINLINE unsigned limited_tx(
	struct core *c, struct qp *qp, struct txd out[], unsigned n, uint64_t now, bool *more)
{
	uint64_t resent = c->count.retransmits;
	unsigned got = 0;
	unsigned room, built;
	bool at_once;

	while (got < n && responder_next_is_free(qp) && responder_next(c, qp, &out[got], now))
		got++;
	*more = got == n;
	if (*more)
		return got;
	room = pacing_room(c, qp, n - got, now);
	built = room ? qp_tx(c, qp, &out[got], room, now) : 0;
	at_once = pacing_sent(c, qp, &out[got], built, c->count.retransmits != resent, now);
	if (built < room)
		pacing_rest(qp);
	else if (responder_next_is_free(qp))
		*more = true;
	else if (!has_more(c, qp, room, now))
		pacing_rest(qp);
	else if (at_once)
		*more = true;
	else
		pacing_wait(c, qp);
	return got + built;
}

/* Requeues @p qp, unless an event of its turn has done so already. A completion that it owes does
 * not wait for the port of its next packet. */
static void requeue(struct core *c, struct qp *qp, unsigned way)
{
	if (!list_empty(&qp->ready)) {
		if (way != EGRESS_NONE || qp->egress == EGRESS_NONE)
			return;
		qp_make_idle(c, qp);
	}
	put_on(c, qp, way);
}

/* Executes the messages of @p qp that need no frames. If no room is left, the sessions that wait
 * for it have no turn before the next call, so each keeps its place.
 *  @return whether the rest is for another turn. */
static bool direct_tx(struct core *c, struct qp *qp, uint64_t now)
{
	bool more = direct_turn(c, qp, now);

	if (!c->direct_room)
		c->open &= ~(1u << EGRESS_LOCAL(c->cfg.worker));
	return more;
}

/* One turn of one QP.  @return packets built; requeues the QP when it has more. */
static unsigned qp_turn(struct core *c, struct qp *qp, struct txd out[], unsigned n, uint64_t now)
{
	unsigned quantum = n < QUANTUM ? n : QUANTUM;
	bool completes = false;
	bool more = false;
	unsigned got;

	if (unlikely(!qp->reliable) && !qp_built_now(c, qp))
		completer_sent(c, qp, now);
	if (unlikely(qp->path.local || qp->opc == OPC_UD))
		more = direct_tx(c, qp, now);
	if (unlikely(more)) { /* no request by frames before its next turn */
		got = responder_owes(qp) ? responder_next(c, qp, out, now) : 0;
	} else if (unlikely(qp->limited) && qp->state < ABI_QPS_SQE) {
		got = limited_tx(c, qp, out, quantum, now, &more);
	} else {
		got = qp_tx(c, qp, out, quantum, now);
		more = got == quantum;
	}
	if (got)
		qp->tx_call = c->tx_call;
	if (unlikely(qp->state >= ABI_QPS_SQE))
		completes = qp_flush(c, qp, QUANTUM, now);
	/* By the next turn there may be more WQEs to fetch and flush, and what was built now will
	 * have left. */
	if (unlikely(qp->state >= ABI_QPS_SQE || !qp->reliable))
		completes |= qp_built_now(c, qp);
	if (unlikely(completes))
		requeue(c, qp, EGRESS_NONE);
	else if (more)
		requeue(c, qp, egress_of(c, qp));
	return got;
}

/* Before a turn while QPs are traced or have faults. It does not call qp_turn() itself, because a
 * second caller would stop its inlining into core_tx(). A QP with faults sends one packet per turn,
 * so that packets that were held back find their places between the others.
 * @return true when @p out got one that was held back instead; else the turn may build *room */
static NOINLINE bool before_turn(struct core *c, struct qp *qp, struct txd out[], unsigned *room,
	struct trace_step *step, uint64_t now)
{
	if (qp->inject && *room && inject_release(c, qp, out, now)) {
		qp_make_ready(c, qp);
		return true;
	}
	trace_tx_begin(step, qp, now);
	if (qp->inject && *room)
		*room = 1;
	return false;
}

/* @return packets in @p out in the end. */
static NOINLINE unsigned after_turn(struct core *c, struct qp *qp, struct txd out[], unsigned built,
	struct trace_step *step, uint64_t now)
{
	trace_tx_end(step, c, qp, out, built, now);
	return qp->inject && built ? inject_tx(c, qp, out, now) : built;
}

/* Builds the ACK or NAK that @p qp owes, unless its peer has moved to a worker whose inbox has no
 * room. */
static unsigned urgent_turn(struct core *c, struct qp *qp, struct txd *t, uint64_t now)
{
	unsigned got;

	if (!responder_next_is_free(qp))
		return 0; /* its turn has sent it */
	if (unlikely(!egress_is_open(c, path_egress(c, &qp->path, qp->attr.dest_qpn)))) {
		qp_make_urgent(c, qp);
		return 0;
	}
	got = responder_next(c, qp, t, now);
	if (got)
		qp->tx_call = c->tx_call;
	if (unlikely(responder_owes(qp)))
		qp_make_ready(c, qp);
	return got;
}

/* ACKs and NAKs that are owed, @p n at most. */
static NOINLINE unsigned urgent_tx(struct core *c, struct txd out[], unsigned n, uint64_t now)
{
	uint32_t ways = c->urgent_ways & c->open;
	unsigned got = 0;

	for (; ways; ways &= ways - 1) {
		unsigned way = (unsigned)__builtin_ctz(ways);
		struct list *node;

		while (got < n && (node = list_pop(&c->urgent[way])))
			got += urgent_turn(
				c, container_of(node, struct qp, urgent), &out[got], now);
		if (list_empty(&c->urgent[way]))
			c->urgent_ways &= ~(1u << way);
	}
	return got;
}

/* With faults or traces: ACKs and NAKs wait for the turns of their QPs. */
static void undo_urgent(struct core *c)
{
	struct list *node;

	for (unsigned way = 0; way < EGRESS_COUNT; way++)
		while ((node = list_pop(&c->urgent[way])))
			qp_make_ready(c, container_of(node, struct qp, urgent));
	c->urgent_ways = 0;
}

/* These leave first: CNPs, at most a quarter of a burst, then ACKs and NAKs, at most half of it, so
 * that those of one session do not block the data of others. */
static NOINLINE unsigned first_tx(struct core *c, struct txd out[], unsigned n, uint64_t now)
{
	unsigned got = np_tx(c, out, n);

	if (unlikely(c->careful))
		undo_urgent(c);
	else if (got < n)
		got += urgent_tx(c, &out[got], n < 2 ? n : n / 2, now);
	return got;
}

unsigned core_tx(struct core *c, struct txd out[], unsigned n, uint64_t now)
{
	unsigned got = 0;
	unsigned turns = 2 * BURST; /* also bounds QPs that only flush */
	uint32_t open = c->open;
	struct trace_step step;

	c->clock = now;
	if (unlikely(c->careful))
		inject_poll(c, now);
	if (unlikely(now >= c->lately_until))
		rp_round(c, now);
	c->tx_call++;
	c->tx_now = now;
	c->direct_room = DIRECT_ROUND;
	if (unlikely(c->paced))
		pacing_expire(c, now);
	if (core_tx_urgent(c))
		got = first_tx(c, out, n, now);
	while (got < n && turns--) {
		struct qp *qp = next_qp(c);
		unsigned room = n - got;
		unsigned built;

		if (!qp)
			break;
		if (unlikely(qp->egress >= EGRESS_LOCAL(0)) && !still_leaves(c, qp, &room))
			continue;
		if (unlikely(c->careful) && before_turn(c, qp, &out[got], &room, &step, now)) {
			got++;
			continue;
		}
		built = qp_turn(c, qp, &out[got], room, now);
		if (unlikely(c->careful))
			built = after_turn(c, qp, &out[got], built, &step, now);
		got += built;
	}
	if (unlikely(got < n && (c->urgent_ways & c->open)))
		got += urgent_tx(c, &out[got], n - got, now);
	if (unlikely(c->open != open)) /* direct_tx() */
		core_open_egress(c, open);
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
