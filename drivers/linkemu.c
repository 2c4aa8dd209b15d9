/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include "bits.h"
#include "clock.h"
#include "frame.h"
#include "linkemu.h"

/* A packet that waits for its successor waits no longer than this: the last one of a message
 * has none. */
#define REORDER_WAIT_NS 1000000u

struct held {
	struct rte_mbuf *m;
	uint64_t due;
};

/* One queue's link. Written by the thread that polls the queue. */
struct linkemu {
	struct linkemu_config cfg;
	uint16_t ethdev;
	uint16_t queue;
	const struct rte_eth_rxtx_callback *callback;
	struct tsc_clock clock;
	uint64_t random;
	struct rte_mbuf *late; /* lets its successor pass */
	uint64_t late_due;
	uint32_t head; /* held[head..tail) are under way, in the order in which they leave */
	uint32_t tail;
	struct held held[LINKEMU_HELD];
	struct linkemu_counters count;
};

/* splitmix64: any seed is a good one. */
static uint64_t next_random(struct linkemu *l)
{
	uint64_t z = l->random += 0x9E3779B97F4A7C15ull;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ z >> 27) * 0x94D049BB133111EBull;
	return z ^ z >> 31;
}

/* One draw each time, happen or not, so that one fault's rate does not move the others. */
static bool happens(struct linkemu *l, double probability)
{
	return (double)(next_random(l) >> 11) * 0x1p-53 < probability;
}

static void hold(struct linkemu *l, struct rte_mbuf *m, uint64_t due)
{
	if (l->tail - l->head == LINKEMU_HELD) {
		l->count.overflow++;
		rte_pktmbuf_free(m);
		return;
	}
	l->held[l->tail++ % LINKEMU_HELD] = (struct held){m, due};
}

static bool lost(struct linkemu *l)
{
	uint64_t i = l->count.packets++;
	bool chance = happens(l, l->cfg.loss);

	return chance || (l->cfg.drop_nth && (i + 1) % l->cfg.drop_nth == 0) ||
	       (i < 64 && l->cfg.drop_mask >> i & 1);
}

static void damage(struct linkemu *l, struct rte_mbuf *m)
{
	bool corrupt = happens(l, l->cfg.corrupt);
	bool cut = happens(l, l->cfg.truncate);
	uint64_t where = next_random(l);
	uint32_t len = rte_pktmbuf_data_len(m);

	if (corrupt) {
		uint32_t bit = (uint32_t)(where % (len * 8));

		rte_pktmbuf_mtod(m, uint8_t *)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		l->count.corrupted++;
	}
	if (cut && m->nb_segs == 1) {
		rte_pktmbuf_trim(m, (uint16_t)(1 + where % len));
		l->count.truncated++;
	}
}

/* Lets a packet go on, behind the one that it overtakes or before the one that it lets pass. */
static void forward(struct linkemu *l, struct rte_mbuf *m, uint64_t now)
{
	uint64_t due = now + l->cfg.delay_ns;
	bool yield = happens(l, l->cfg.reorder);

	if (l->late) {
		hold(l, m, due);
		hold(l, l->late, due);
		l->late = NULL;
	} else if (yield) {
		l->late = m;
		l->late_due = now + REORDER_WAIT_NS;
		l->count.reordered++;
	} else {
		hold(l, m, due);
	}
}

static void roce(struct linkemu *l, struct rte_mbuf *m, uint64_t now)
{
	struct rte_mbuf *copy = NULL;

	if (lost(l)) {
		l->count.lost++;
		rte_pktmbuf_free(m);
		return;
	}
	if (happens(l, l->cfg.dup))
		copy = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);
	damage(l, m);
	forward(l, m, now);
	if (copy) {
		l->count.duplicated++;
		forward(l, copy, now);
	}
}

static uint16_t on_receive(
	uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max, void *arg)
{
	struct linkemu *l = arg;
	uint64_t now = clock_at(&l->clock, rte_rdtsc());
	uint16_t out = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		if (frame_is_roce(rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_data_len(m)))
			roce(l, m, now);
		else
			pkts[out++] = m;
	}
	if (l->late && now >= l->late_due) {
		hold(l, l->late, now);
		l->late = NULL;
	}
	while (out < max && l->head != l->tail && l->held[l->head % LINKEMU_HELD].due <= now)
		pkts[out++] = l->held[l->head++ % LINKEMU_HELD].m;
	return out;
}

struct linkemu *linkemu_attach(uint16_t ethdev, uint16_t queue, const struct linkemu_config *cfg)
{
	struct linkemu *l = rte_zmalloc("linkemu", sizeof(*l), CACHE_LINE);

	if (!l)
		return NULL;
	l->cfg = *cfg;
	l->ethdev = ethdev;
	l->queue = queue;
	l->random = cfg->seed ^ (uint64_t)ethdev << 32 ^ queue;
	clock_init(&l->clock, rte_get_tsc_hz(), rte_rdtsc());
	l->callback = rte_eth_add_rx_callback(ethdev, queue, on_receive, l);
	if (!l->callback) {
		rte_free(l);
		return NULL;
	}
	return l;
}

void linkemu_detach(struct linkemu *l)
{
	if (!l)
		return;
	rte_eth_remove_rx_callback(l->ethdev, l->queue, l->callback);
	rte_free((void *)(uintptr_t)l->callback);
	rte_pktmbuf_free(l->late);
	while (l->head != l->tail)
		rte_pktmbuf_free(l->held[l->head++ % LINKEMU_HELD].m);
	rte_free(l);
}

void linkemu_count(const struct linkemu *l, struct linkemu_counters *sum)
{
	const uint64_t *from = (const uint64_t *)&l->count;
	uint64_t *to = (uint64_t *)sum;

	for (unsigned i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
		to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}
