/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_common.h>
#include <rte_malloc.h>
#include "bits.h"
#include "inbox.h"

/* Room for two bursts. */
#define RING_MIN (2 * BURST)

/* With few workers each may have a window or two waiting at another one. Local frames need less:
 * their QPs wait while the ring is full. */
static uint32_t ring_size(uint32_t nworkers, unsigned kind)
{
	uint32_t size = rte_align32prevpow2(INBOX_SIZE / nworkers);

	size = RTE_MIN(RTE_MAX(size, 2 * RING_MIN), INBOX_SIZE / 2);
	return kind == INBOX_LOCAL && nworkers > 1 ? size / 2 : size;
}

uint32_t inbox_frames(uint32_t nworkers)
{
	return (nworkers - 1) * ring_size(nworkers, INBOX_HANDED) +
	       nworkers * ring_size(nworkers, INBOX_LOCAL);
}

static size_t ring_bytes(uint32_t size)
{
	return RTE_ALIGN_CEIL((size_t)rte_ring_get_memsize(size), CACHE_LINE);
}

static size_t inbox_bytes(uint32_t nworkers)
{
	return (nworkers - 1) * ring_bytes(ring_size(nworkers, INBOX_HANDED)) +
	       nworkers * ring_bytes(ring_size(nworkers, INBOX_LOCAL));
}

bool inbox_create(struct inbox *in, uint32_t self, uint32_t nworkers, int socket)
{
	uint8_t *at = rte_zmalloc_socket("inbox", inbox_bytes(nworkers), CACHE_LINE, socket);

	in->memory = at;
	if (!at)
		return false;
	in->nworkers = nworkers;
	for (unsigned kind = 0; kind < INBOX_KINDS; kind++)
		for (uint32_t i = 0; i < nworkers; i++) {
			uint32_t size = ring_size(nworkers, kind);

			if (kind == INBOX_HANDED && i == self)
				continue;
			in->ring[kind][i] = (struct rte_ring *)at;
			if (rte_ring_init(in->ring[kind][i], "inbox", size,
				    RING_F_SP_ENQ | RING_F_SC_DEQ))
				return false;
			at += ring_bytes(size);
		}
	return true;
}

void inbox_destroy(struct inbox *in)
{
	rte_free(in->memory);
	in->memory = NULL;
}

bool inbox_empty(const struct inbox *in)
{
	bool empty = true;

	for (unsigned kind = 0; kind < INBOX_KINDS; kind++)
		for (uint32_t i = 0; i < in->nworkers; i++)
			if (in->ring[kind][i])
				empty &= rte_ring_empty(in->ring[kind][i]);
	return empty;
}

static unsigned take_kind(struct inbox *in, unsigned kind, struct rte_mbuf *m[])
{
	uint32_t source = in->turn[kind];
	unsigned n = 0;

	for (uint32_t i = 0; i < in->nworkers && n < BURST; i++) {
		struct rte_ring *r = in->ring[kind][source];

		if (r && !rte_ring_empty(r)) /* as in most rounds */
			n += rte_ring_sc_dequeue_burst(r, (void **)&m[n], BURST - n, NULL);
		if (++source == in->nworkers)
			source = 0;
	}
	in->turn[kind] = source; /* the source that filled the burst is last next time */
	return n;
}

unsigned inbox_take(struct inbox *in, struct rte_mbuf *m[])
{
	for (unsigned tries = 0; tries < INBOX_KINDS; tries++) {
		unsigned n = take_kind(in, in->kind, m);

		in->kind = !in->kind;
		if (n)
			return n;
	}
	return 0;
}
