/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames for the inboxes: those that came to the wrong worker, and those from one QP of this
 * daemon to another. */
#include "worker_impl.h"

void handoff_add(struct worker *w, uint32_t owner, struct rte_mbuf *m)
{
	struct handoff *h = &w->handoff[owner];

	h->m[h->count++] = m;
}

void handoff_copy(struct worker *w, uint32_t owner, const struct rte_mbuf *m, uint16_t from)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(m, w->pool, 0, UINT32_MAX);

	if (!copy) {
		w->stats.no_mbuf++;
		return;
	}
	copy->port = from;
	handoff_add(w, owner, copy);
}

/* What an inbox does not take is lost, as in a full switch, and counted. */
void handoff_flush(struct worker *w)
{
	for (uint32_t i = 0; i < w->dp->nworkers; i++) {
		struct handoff *h = &w->handoff[i];
		unsigned taken;

		if (likely(!h->count))
			continue;
		taken = rte_ring_enqueue_burst(
			w->dp->worker[i]->inbox, (void **)h->m, h->count, NULL);
		if (w->dp->idle == IDLE_ADAPTIVE && i != w->index)
			worker_wake(w->dp->worker[i]);
		for (unsigned k = taken; k < h->count; k++) {
			core_count_drop(&w->core, DROP_HANDOFF_FULL);
			capture_lost(w, h->m[k], DROP_HANDOFF_FULL);
		}
		rte_pktmbuf_free_bulk(&h->m[taken], h->count - taken);
		h->count = 0;
	}
}
