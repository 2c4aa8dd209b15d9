/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <rte_malloc.h>
#include "exception.h"
#include "frame.h"
#include "worker_impl.h"

/* Frames of the kernel per round, so that RoCE continues in between. */
#define ROUND 8u

static struct rte_ring *make_ring(const char *what, uint32_t index, int socket, unsigned flags)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "rocid_%s%u", what, index);
	return rte_ring_create(name, EXCEPTION_RING, socket, flags | RING_F_EXACT_SZ);
}

struct exception *exception_create(uint32_t index, int socket)
{
	struct exception *x = rte_zmalloc_socket("exception", sizeof(*x), CACHE_LINE, socket);

	if (!x)
		return NULL;
	x->up = make_ring("up", index, socket, RING_F_SC_DEQ);
	x->down = make_ring("down", index, socket, RING_F_SP_ENQ | RING_F_SC_DEQ);
	x->spent = make_ring("spent", index, socket, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (x->up && x->down && x->spent)
		return x;
	exception_destroy(x);
	return NULL;
}

static void free_ring(struct rte_ring *r)
{
	struct rte_mbuf *m;

	while (r && !rte_ring_dequeue(r, (void **)&m))
		rte_pktmbuf_free(m);
	rte_ring_free(r);
}

void exception_destroy(struct exception *x)
{
	if (!x)
		return;
	free_ring(x->up);
	free_ring(x->down);
	free_ring(x->spent);
	rte_free(x);
}

bool exception_take(struct worker *w, struct rte_mbuf *m)
{
	const struct exception *x = w->dp->exception[(uint8_t)m->port]; /* as origin() writes it */

	/* Malformed RoCE frames are dropped here: the kernel could only answer with errors. A frame
	 * whose VLAN tag did not fit would appear on the wrong network. */
	if (!x || (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) ||
		frame_is_roce(rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_data_len(m)))
		return false;
	if (rte_ring_enqueue(x->up, m)) {
		w->stats.kernel_full++;
		rte_pktmbuf_free(m);
		return true;
	}
	w->stats.to_kernel++;
	return true;
}

static void free_spent(struct exception *x)
{
	struct rte_mbuf *m[BURST];
	unsigned n = rte_ring_dequeue_burst(x->spent, (void **)m, BURST, NULL);

	if (n)
		rte_pktmbuf_free_bulk(m, n);
}

unsigned exception_poll(struct worker *w)
{
	unsigned taken = 0;

	if (w->index) /* the rings have one consumer */
		return 0;
	for (uint32_t i = 0; i < w->nports; i++) {
		struct worker_port *p = &w->port[i];
		struct exception *x = w->dp->exception[i];

		if (likely(!x) || p->count)
			continue;
		free_spent(x);
		p->count =
			(uint16_t)rte_ring_dequeue_burst(x->down, (void **)p->backlog, ROUND, NULL);
		taken += p->count;
	}
	w->stats.from_kernel += taken;
	return taken;
}
