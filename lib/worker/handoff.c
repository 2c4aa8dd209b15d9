/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames for the inboxes: those that came to the wrong worker, and those from one QP of this
 * daemon to another. */
#include "core.h"
#include "worker_impl.h"

static struct rte_ring *ring_to(const struct worker *w, unsigned kind, uint32_t owner)
{
	return w->dp->worker[owner]->inbox.ring[kind][w->index];
}

void handoff_add(struct worker *w, unsigned kind, uint32_t owner, struct rte_mbuf *m)
{
	struct handoff *h = &w->handoff[kind][owner];

	h->m[h->count++] = m;
	w->laid |= 1u << (kind * WORKER_MAX + owner);
}

bool handoff_half_full(const struct worker *w, unsigned kind, uint32_t owner)
{
	const struct rte_ring *r = ring_to(w, kind, owner);

	return rte_ring_count(r) + w->handoff[kind][owner].count >= rte_ring_get_size(r) / 2;
}

void handoff_copy(struct worker *w, uint32_t owner, const struct rte_mbuf *m, uint16_t from)
{
	unsigned kind = owner == w->index ? INBOX_LOCAL : INBOX_HANDED;
	struct rte_mbuf *copy;

	if (handoff_half_full(w, kind, owner)) {
		core_count_drop(&w->core, DROP_HANDOFF_FULL);
		return;
	}
	copy = rte_pktmbuf_copy(m, w->pool, 0, UINT32_MAX);
	if (!copy) {
		w->stats.no_mbuf++;
		return;
	}
	copy->port = from;
	handoff_add(w, kind, owner, copy);
}

/* Frames from the wire that do not fit into an inbox are lost, as in a full switch, and counted. */
static void lose(struct worker *w, struct handoff *h, unsigned from)
{
	for (unsigned k = from; k < h->count; k++) {
		core_count_drop(&w->core, DROP_HANDOFF_FULL);
		capture_lost(w, h->m[k], DROP_HANDOFF_FULL);
	}
	rte_pktmbuf_free_bulk(&h->m[from], h->count - from);
	h->count = 0;
}

/* A QP can move after the egress of a packet for it was found open. The room in the inbox of its
 * new worker was not checked, so local packets that do not fit wait for the next flush. */
static void keep(struct worker *w, struct handoff *h, unsigned from)
{
	w->stats.local_waits++;
	h->count -= from;
	memmove(h->m, &h->m[from], h->count * sizeof(h->m[0]));
}

static void flush_to(struct worker *w, unsigned kind, uint32_t owner)
{
	struct handoff *h = &w->handoff[kind][owner];
	unsigned taken =
		rte_ring_sp_enqueue_burst(ring_to(w, kind, owner), (void **)h->m, h->count, NULL);

	if (kind == INBOX_LOCAL)
		w->looped |= 1u << owner;
	if (w->dp->idle == IDLE_ADAPTIVE && owner != w->index)
		worker_wake(w->dp->worker[owner]);
	if (likely(taken == h->count))
		h->count = 0;
	else if (kind == INBOX_LOCAL)
		keep(w, h, taken);
	else
		lose(w, h, taken);
}

void handoff_flush(struct worker *w)
{
	for (uint32_t left = w->laid; left; left &= left - 1) {
		unsigned bit = (unsigned)__builtin_ctz(left);
		unsigned kind = bit / WORKER_MAX;
		uint32_t owner = bit % WORKER_MAX;

		flush_to(w, kind, owner);
		if (likely(!w->handoff[kind][owner].count))
			w->laid &= ~(1u << bit);
	}
}

uint32_t handoff_room(const struct worker *w)
{
	uint32_t room = BURST;

	for (uint32_t left = w->laid; left; left &= left - 1) {
		unsigned bit = (unsigned)__builtin_ctz(left);
		const struct handoff *h = &w->handoff[bit / WORKER_MAX][bit % WORKER_MAX];

		room = RTE_MIN(room, RTE_DIM(h->m) - h->count);
	}
	return room;
}

uint32_t handoff_open(struct worker *w)
{
	uint32_t open = LOCAL_EGRESS;

	for (uint32_t left = w->looped; left; left &= left - 1) {
		uint32_t owner = (uint32_t)__builtin_ctz(left);
		const struct rte_ring *r = ring_to(w, INBOX_LOCAL, owner);

		if (rte_ring_empty(r))
			w->looped &= ~(1u << owner);
		else if (rte_ring_free_count(r) < BURST)
			open &= ~(1u << EGRESS_LOCAL(owner));
	}
	return open;
}
