/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include "qp.h"
#include "worker_impl.h"

/* A port that takes nothing for this long (a memif whose peer is gone) no longer holds up the
 * others: its packets are lost, as on a wire, until it takes one again. Longer than a peer on a
 * busy machine is usually paused for. */
#define STALL_NS 5000000u

bool tx_refill(struct worker *w)
{
	uint32_t want = BURST - w->nspare;

	if (!want)
		return true;
	if (rte_pktmbuf_alloc_bulk(w->pool, &w->spare[w->nspare], want))
		return false;
	for (uint32_t i = w->nspare; i < BURST; i++)
		w->txd[i].frame = rte_pktmbuf_mtod(w->spare[i], uint8_t *);
	w->nspare = BURST;
	return true;
}

static void drop_backlog(struct worker *w, struct worker_port *p)
{
	w->stats.tx_stalled += p->count - p->sent;
	rte_pktmbuf_free_bulk(&p->backlog[p->sent], p->count - p->sent);
	p->sent = p->count;
}

/* @return how many of what waits the port took; one that is closed takes all, and loses them. */
static uint16_t offer(struct worker *w, struct worker_port *p)
{
	uint16_t n = (uint16_t)(p->count - p->sent);

	if (likely(!atomic_load_explicit(&p->closed, memory_order_acquire)))
		return rte_eth_tx_burst(p->ethdev, p->queue, &p->backlog[p->sent], n);
	w->stats.tx_stalled += n;
	rte_pktmbuf_free_bulk(&p->backlog[p->sent], n);
	return n;
}

/* Offers a port what waits for it.  Returns true when nothing waits any more. */
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

static bool flush(struct worker *w)
{
	bool empty = true;

	for (uint32_t i = 0; i < w->nports; i++)
		if (w->port[i].count && !flush_port(w, &w->port[i]))
			empty = false;
	return empty;
}

/* A packet for a QP of this daemon goes to that one's worker. */
static void loop_back(struct worker *w, const struct txd *t, struct rte_mbuf *m)
{
	m->port = origin(t->port, PKT_NO_QUEUE);
	handoff_add(w, core_owner(&w->core, t->qp->attr.dest_qpn), m);
}

/* Seals packet i and puts it where it leaves.  Returns false when it is void and its buffer
 * can be used again. */
static bool dispatch(struct worker *w, uint32_t i)
{
	struct txd *t = &w->txd[i];
	struct rte_mbuf *m = w->spare[i];
	struct worker_port *p = &w->port[t->port];
	uint16_t len = core_seal(&w->core, t);

	if (unlikely(!len))
		return false;
	m->data_len = len;
	m->pkt_len = len;
	if (t->local)
		loop_back(w, t, m);
	else
		p->backlog[p->count++] = m;
	return true;
}

/* Who has that much to receive does that first: what he sends only makes it more. */
static bool flooded(const struct worker *w)
{
	return rte_ring_count(w->inbox) > INBOX_SIZE / 2;
}

unsigned tx_poll(struct worker *w)
{
	uint32_t left = 0;
	unsigned kernel;
	unsigned n;

	if (!flush(w) || flooded(w))
		return 0;
	kernel = exception_poll(w);
	if (kernel && !flush(w))
		return kernel;
	if (!tx_refill(w) && !w->nspare) {
		w->stats.no_mbuf++;
		return kernel;
	}
	n = core_tx(&w->core, w->txd, w->nspare, clock_at(&w->clock, rte_rdtsc())); /* REQ-22 */
	if (!n)
		return kernel;
	for (uint32_t i = 0; i < w->nspare; i++) {
		if (i < n && dispatch(w, i))
			continue;
		w->spare[left] = w->spare[i];
		w->txd[left++].frame = rte_pktmbuf_mtod(w->spare[i], uint8_t *);
	}
	w->nspare = left;
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
	}
	rte_pktmbuf_free_bulk(w->spare, w->nspare);
	w->nspare = 0;
}
