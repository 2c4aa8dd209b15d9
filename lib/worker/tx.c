/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_cycles.h>
#include "burst.h"
#include "qp.h"
#include "txd.h"
#include "telemetry.h"
#include "txd_bth.h"
#include "worker_impl.h"

/* A port that accepts no packet for this long (a memif whose peer has ended) no longer holds up its
 * QPs: its packets are lost, as on a wire, until it accepts one again. Longer than the pause of a
 * peer on a busy machine, tens of milliseconds: with 5 ms a tenth of all packets was lost there.
 * QPs of other ports do not wait for it at all. A pause of this worker, or a round, of
 * more than WORKER_PAUSE_NS counts as WORKER_PAUSE_NS, because the worker did not try the port
 * meanwhile. */
#define STALL_NS 100000000u

static void lay_out(struct worker *w, uint32_t from, uint32_t n)
{
	for (uint32_t i = from; i < from + n; i++)
		w->txd[i].frame = rte_pktmbuf_mtod(w->spare[i], uint8_t *);
}

static bool stock(struct worker *w, uint32_t from, uint32_t n)
{
	if (n && rte_pktmbuf_alloc_bulk(w->pool, &w->spare[from], n))
		return false;
	lay_out(w, from, n);
	w->nspare += n;
	return true;
}

/* Only sent buffers are replaced: the others stay in place. */
static bool tx_refill(struct worker *w)
{
	if (!stock(w, 0, w->gap)) { /* the pool is short: work with those that are left */
		memmove(w->spare, &w->spare[w->gap], w->nspare * sizeof(w->spare[0]));
		lay_out(w, 0, w->nspare);
		w->gap = 0;
		return false;
	}
	w->gap = 0;
	return stock(w, w->nspare, BURST - w->nspare);
}

/* @return whether @p m can be an empty buffer: it has no other user, and is as the pool made it. */
static bool is_ours(const struct worker *w, const struct rte_mbuf *m)
{
	return m->pool == w->pool && RTE_MBUF_DIRECT(m) && m->nb_segs == 1 &&
	       rte_mbuf_refcnt_read(m) == 1;
}

void tx_restock(struct worker *w, struct rte_mbuf **m, unsigned n)
{
	uint32_t gap = w->gap;

	while (n && gap) {
		struct rte_mbuf *b = m[--n];

		if (unlikely(!is_ours(w, b))) {
			rte_pktmbuf_free(b);
			continue;
		}
		rte_pktmbuf_reset(b);
		w->spare[--gap] = b;
		w->txd[gap].frame = rte_pktmbuf_mtod(b, uint8_t *);
	}
	w->nspare += w->gap - gap;
	w->gap = gap;
	rte_pktmbuf_free_bulk(m, n);
}

static void drop_backlog(struct worker *w, struct worker_port *p)
{
	w->stats.tx_stalled += p->count - p->sent;
	rte_pktmbuf_free_bulk(&p->backlog[p->sent], p->count - p->sent);
	p->sent = p->count;
}

/* @return how many of the waiting packets the port accepted; a closed port accepts and loses
 * all. */
static uint16_t offer(struct worker *w, struct worker_port *p)
{
	uint16_t n = (uint16_t)(p->count - p->sent);
	uint8_t shut = atomic_load_explicit(&p->shut, memory_order_acquire);

	if (likely(!shut))
		return burst_tx(p, &p->backlog[p->sent], n);
	if (shut & SHUT_DOWN)
		w->stats.port_down += n;
	else
		w->stats.tx_stalled += n;
	rte_pktmbuf_free_bulk(&p->backlog[p->sent], n);
	return n;
}

/* Offers a port the packets that wait for it. Returns true when none is left. */
static bool flush_port(struct worker *w, struct worker_port *p)
{
	uint16_t n = offer(w, p);

	p->sent += n;
	if (n) {
		p->stalled = 0;
	} else if (!p->stalled) {
		p->stalled = w->now | 1; /* not 0 */
	} else if (w->now - p->stalled > STALL_NS && w->now > p->stalled) {
		drop_backlog(w, p);
	}
	if (p->sent < p->count)
		return false;
	p->sent = 0;
	p->count = 0;
	return true;
}

void tx_resumed(struct worker *w, uint64_t pause)
{
	for (uint32_t i = 0; i < w->nports; i++)
		if (w->port[i].stalled)
			w->port[i].stalled += pause - WORKER_PAUSE_NS;
}

/* @return the egresses of the ports for which nothing waits: each can take a burst. */
static uint32_t flush(struct worker *w)
{
	uint32_t open = PORT_EGRESS;

	for (uint32_t i = 0; i < w->nports; i++)
		if (w->port[i].count && !flush_port(w, &w->port[i]))
			open &= ~(1u << EGRESS_PORT(i));
	return open;
}

/* A packet for a QP of this daemon goes to that one's worker. */
static void loop_back(struct worker *w, const struct txd *t, struct rte_mbuf *m)
{
	/* the receiver trusts both, and a name only because this has put it there */
	m->port = origin(t->port, t->named ? PKT_LOCAL_NAMED : PKT_LOCAL);
	m->hash.usr = t->qp->qpn;
	handoff_add(w, INBOX_LOCAL, core_owner(&w->core, txd_dest_qp(t)), m);
}

/* @return the length of the packet with its telemetry, if it gets any. */
static NOINLINE uint16_t with_telemetry(
	struct worker *w, struct txd *t, struct rte_mbuf *m, uint16_t len)
{
	unsigned room = core_telemetry_room(&w->core, t);
	uint16_t longer;

	if (!room || !rte_pktmbuf_prepend(m, (uint16_t)room))
		return len;
	longer = core_telemetry_tx(&w->core, t, len);
	if (longer == len)
		rte_pktmbuf_adj(m, (uint16_t)room);
	return longer;
}

/* Puts packet i, sealed to @p len bytes, into the queue of its egress, if it is not void.
 * @param special  captures or telemetry look at it */
static ALWAYS_INLINE void dispatch(
	struct worker *w, uint32_t i, uint16_t len, bool special, uint64_t now)
{
	struct txd *t = &w->txd[i];
	struct rte_mbuf *m = w->spare[i];
	struct worker_port *p = &w->port[t->port];

	if (unlikely(!len)) {
		if (special && captured(w) && t->sealed == TXD_LOST) {
			m->data_len = t->frame_len;
			m->pkt_len = t->frame_len;
			capture_sent(w, t, m, now);
		}
		rte_pktmbuf_free(m);
		return;
	}
	m->data_len = len;
	m->pkt_len = len;
	if (special) {
		if (captured(w) && !t->named) /* before the capture began */
			capture_sent(w, t, m, now);
		if (core_telemetry(&w->core)) {
			len = with_telemetry(w, t, m, len);
			m->data_len = len;
			m->pkt_len = len;
		}
	}
	if (unlikely(t->group) && core_group_here(&w->core, t)) /* MC-08 */
		handoff_copy(w, w->index, m, origin(t->port, PKT_LOCAL));
	if (t->local)
		loop_back(w, t, m);
	else
		p->backlog[p->count++] = m;
}

/* Seals and dispatches the @p n packets that were built; the other buffers stay in stock. Inlined
 * with a constant for @p special, so that there is no test per packet. */
static ALWAYS_INLINE void dispatch_burst(struct worker *w, uint32_t n, bool special, uint64_t now)
{
	uint16_t len[BURST];

	core_seal_burst(&w->core, w->txd, n, len);
	for (uint32_t i = 0; i < n; i++)
		dispatch(w, i, len[i], special, now);
	w->gap = n;
	w->nspare -= n;
}

/* Whether nothing waits: no packet for a port or an inbox, none that the kernel may have sent, and
 * no QP. */
static bool is_at_rest(const struct worker *w)
{
	if (!core_tx_idle(&w->core) || w->laid)
		return false;
	for (uint32_t i = 0; i < w->nports; i++)
		if (w->port[i].count || (!w->index && w->dp->exception[i]))
			return false;
	return true;
}

unsigned tx_poll(struct worker *w)
{
	unsigned kernel;
	uint32_t open, room;
	uint64_t now;
	unsigned n;
	bool seen;

	if (is_at_rest(w))
		return 0;
	handoff_flush(w);
	open = flush(w);
	kernel = exception_poll(w);
	if (kernel)
		open = flush(w);
	if (!tx_refill(w) && !w->nspare) {
		w->stats.no_mbuf++;
		return kernel;
	}
	now = clock_at(&w->clock, rte_rdtsc()); /* REQ-22 */
	seen = captured(w);
	core_direct(&w->core, !seen);
	core_names(&w->core, !seen);
	core_open_egress(&w->core, open | handoff_open(w));
	room = RTE_MIN(w->nspare, handoff_room(w));
	n = core_tx(&w->core, w->txd, unlikely(worker_is_late(w)) ? (room + 1) / 2 : room, now);
	if (!n)
		return kernel + core_tx_direct(&w->core);
	if (unlikely(captured(w) || core_telemetry(&w->core)))
		dispatch_burst(w, n, true, now);
	else
		dispatch_burst(w, n, false, now);
	handoff_flush(w);
	flush(w);
	return kernel + n;
}

void tx_release(struct worker *w)
{
	flush(w);
	for (uint32_t i = 0; i < w->nports; i++) {
		struct worker_port *p = &w->port[i];

		rte_pktmbuf_free_bulk(&p->backlog[p->sent], p->count - p->sent);
		p->sent = 0;
		p->count = 0;
		p->stalled = 0;
	}
	rte_pktmbuf_free_bulk(&w->spare[w->gap], w->nspare);
	w->gap = 0;
	w->nspare = 0;
}
