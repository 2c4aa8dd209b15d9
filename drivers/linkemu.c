/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include "bits.h"
#include "clock.h"
#include "ecn.h"
#include "headers.h"
#include "ioam.h"
#include "frame.h"
#include "linkemu.h"
#include "random.h"

/* The longest time that a packet waits for its successor: the last one of a message has none. */
#define REORDER_WAIT_NS 1000000u

#define PS_PER_S 1000000000000ull
#define FCS	 4u  /* bytes that wait with each packet ... */
#define OVERHEAD 24u /* ... and that it takes on the wire: preamble and gap, too */

struct held {
	struct rte_mbuf *m;
	uint64_t due; /* when it leaves; while it waits, when it came */
};

/* One queue's link. Written by the thread that polls the queue. */
struct linkemu {
	const struct linkemu_config *cfg;
	uint32_t taken; /* the number of `cfg` */
	uint64_t since; /* packets that had arrived before it */
	bool perfect;	/* it impairs nothing */
	/* Written by the control thread: the number of the configuration to use, slot[number %
	 * 2]. */
	_Atomic uint32_t told;
	struct linkemu_config slot[2];
	uint16_t ethdev;
	uint16_t queue;
	const struct rte_eth_rxtx_callback *callback;
	uint16_t queues;	/* on which packets can leave; 0: only its own */
	struct rte_ring *aside; /* packets from the links of other queues */
	struct linkemu *const *links;
	struct tsc_clock clock;
	struct impair impair;  /* cfg->impair with the seed of this link */
	uint64_t spread;       /* random choices of a queue so far */
	struct rte_mbuf *late; /* lets its successor pass */
	uint64_t late_due;
	/* held[head..first) are in flight, in the order in which they leave; held[first..tail) wait
	 * until the link has sent those before them. */
	uint32_t head;
	uint32_t first;
	uint32_t tail;
	struct aqm aqm;	  /* for the waiting frames */
	uint64_t idle_ps; /* when the last bit will have left */
	uint64_t sent;	  /* bytes that left, including those between frames */
	/* When the port's queue was last seen empty: frames found in it arrived since then. */
	uint64_t empty_at;
	struct held held[LINKEMU_HELD];
	struct linkemu_counters count;
};

/* --- the queue in front of a link with a rate ----------------------------------------- */

static void mark(struct linkemu *l, struct rte_mbuf *m)
{
	l->count.marked += ecn_mark(rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_data_len(m));
}

/* As a switch with telemetry does, when @p m leaves. */
static void record(struct linkemu *l, struct rte_mbuf *m)
{
	uint64_t waiting = l->aqm.bytes;

	ioam_add(rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_data_len(m),
		&(struct ioam_node){
			.rate = l->cfg->rate,
			.time = (uint32_t)(l->idle_ps / 1000),
			.sent = (uint32_t)(l->sent / 128),
			.queue = waiting < IOAM_QUEUE_MAX ? (uint32_t)waiting : IOAM_QUEUE_MAX,
		});
}

static void start(struct linkemu *l)
{
	struct held *h = &l->held[l->first++ % LINKEMU_HELD];
	uint64_t from = h->due * 1000, len = rte_pktmbuf_pkt_len(h->m);

	if (aqm_leave(&l->aqm, (uint32_t)len + FCS) == AQM_MARK)
		mark(l, h->m);
	if (l->idle_ps < from)
		l->idle_ps = from;
	record(l, h->m);
	l->sent += len + OVERHEAD;
	if (l->cfg->rate)
		l->idle_ps += (len + OVERHEAD) * 8 * PS_PER_S / l->cfg->rate;
	h->due = l->idle_ps / 1000 + l->cfg->delay_ns;
}

/* Those whose turn came by @p now. However late the worker polls, they leave as if it had not been:
 * each sees the queue of its own time. */
static void start_due(struct linkemu *l, uint64_t now)
{
	while (l->first != l->tail && (l->idle_ps <= now * 1000 || !l->cfg->rate))
		start(l);
}

/* Estimates when a packet that was found at @p now arrived. It is only known that it arrived after
 * the port's queue was last seen empty: assume the moment within that time at which the link falls
 * idle. If all packets of the 60 ms for which a worker was paused arrived at once, they would find
 * the queue full. */
static uint64_t arrival(const struct linkemu *l, uint64_t now)
{
	uint64_t idle = (l->idle_ps + 999) / 1000;

	if (idle < l->empty_at)
		return l->empty_at;
	return idle < now ? idle : now;
}

/* @return false: there was no room, and @p m was dropped. */
static bool admit(struct linkemu *l, struct rte_mbuf *m, uint64_t now)
{
	enum aqm_fate fate;

	start_due(l, now);
	fate = aqm_enter(&l->aqm, rte_pktmbuf_pkt_len(m) + FCS);
	if (fate == AQM_DROP) {
		l->count.dropped++;
		rte_pktmbuf_free(m);
		return false;
	}
	if (fate == AQM_MARK)
		mark(l, m);
	return true;
}

/* --- impairments ---------------------------------------------------------------------- */

/* Without a rate, a packet leaves @p delay after @p now and never queues. */
static void hold(struct linkemu *l, struct rte_mbuf *m, uint64_t now, uint64_t delay)
{
	if (l->tail - l->head == LINKEMU_HELD) {
		l->count.overflow++;
		rte_pktmbuf_free(m);
	} else if (!l->cfg->rate) {
		start_due(l, now); /* it had one until now */
		l->held[l->tail++ % LINKEMU_HELD] = (struct held){m, now + delay};
		l->first = l->tail;
	} else {
		uint64_t came = arrival(l, now);

		if (admit(l, m, came))
			l->held[l->tail++ % LINKEMU_HELD] = (struct held){m, came};
	}
}

static void damage(struct linkemu *l, struct rte_mbuf *m, unsigned fate, uint64_t number)
{
	uint32_t len = rte_pktmbuf_data_len(m);

	if (fate & 1u << IMPAIR_CORRUPT) {
		impair_flip(rte_pktmbuf_mtod(m, uint8_t *), len,
			impair_random(&l->impair, number, IMPAIR_CORRUPT));
		l->count.corrupted++;
	}
	if ((fate & 1u << IMPAIR_TRUNCATE) && m->nb_segs == 1) {
		uint64_t where = impair_random(&l->impair, number, IMPAIR_TRUNCATE);

		rte_pktmbuf_trim(m, (uint16_t)(1 + where % len));
		l->count.truncated++;
	}
}

/* Forwards a packet, before the waiting one that it overtakes, if any. If none waits and @p yield
 * is set, it waits to be overtaken by the next one. */
static void forward(struct linkemu *l, struct rte_mbuf *m, bool yield, uint64_t now)
{
	uint64_t delay = l->cfg->delay_ns;

	if (l->late) {
		hold(l, m, now, delay);
		hold(l, l->late, now, delay);
		l->late = NULL;
	} else if (yield) {
		l->late = m;
		l->late_due = now + REORDER_WAIT_NS;
		l->count.reordered++;
	} else {
		hold(l, m, now, delay);
	}
}

static void roce(struct linkemu *l, struct rte_mbuf *m, uint64_t now)
{
	uint64_t number = l->count.packets++ - l->since;
	unsigned fate = impair_choose(&l->impair, number);
	struct rte_mbuf *copy = NULL;

	if (fate & 1u << IMPAIR_LOSE) {
		l->count.lost++;
		rte_pktmbuf_free(m);
		return;
	}
	if (fate & 1u << IMPAIR_DUPLICATE)
		copy = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);
	damage(l, m, fate, number);
	forward(l, m, fate & 1u << IMPAIR_REORDER, now);
	if (copy) {
		l->count.duplicated++;
		forward(l, copy, false, now);
	}
}

/* --- which queue ---------------------------------------------------------------------- */

/* The input of RSS: both addresses and the UDP ports. RoCEv1 has none. */
static uint32_t flow_hash(const struct rte_mbuf *m)
{
	uint32_t h = 2166136261u; /* FNV-1a */
	const uint8_t *from, *to;
	struct pkt p;

	if (frame_parse(&p, rte_pktmbuf_mtod(m, const uint8_t *), rte_pktmbuf_data_len(m)) ||
		p.net == NET_ROCEV1)
		return 0;
	from = p.l3 + (p.net == NET_IPV4 ? IP4_SRC : IP6_SRC);
	to = p.bth - UDP_HLEN + UDP_LEN;
	while (from < to)
		h = (h ^ *from++) * 16777619u;
	return h ^ h >> 15;
}

static uint16_t choose_queue(struct linkemu *l, const struct rte_mbuf *m)
{
	if (!l->queues)
		return l->queue;
	if (l->cfg->spread == LINKEMU_RANDOM)
		return (uint16_t)(random_at(~l->impair.seed, l->spread++) % l->queues);
	return (uint16_t)(flow_hash(m) % l->queues);
}

/* Packets that have arrived leave: here, or by the link of the queue that they choose. */
static uint16_t leave(struct linkemu *l, struct rte_mbuf **pkts, uint16_t room, uint64_t now)
{
	uint16_t out = 0;

	start_due(l, now);
	while (out < room && l->head != l->first && l->held[l->head % LINKEMU_HELD].due <= now) {
		struct rte_mbuf *m = l->held[l->head++ % LINKEMU_HELD].m;
		uint16_t queue = choose_queue(l, m);

		if (queue == l->queue) {
			pkts[out++] = m;
		} else if (!rte_ring_enqueue(l->links[queue]->aside, m)) {
			l->count.spread++;
		} else {
			l->count.overflow++;
			rte_pktmbuf_free(m);
		}
	}
	if (l->aside)
		out += (uint16_t)rte_ring_dequeue_burst(
			l->aside, (void **)(pkts + out), room - out, NULL);
	return out;
}

/* Impairments restart: `mask` and `nth` count from here. */
static void take(struct linkemu *l, uint32_t number)
{
	uint64_t waiting;

	l->cfg = &l->slot[number % 2];
	l->taken = number;
	l->since = l->count.packets;
	l->perfect = linkemu_is_perfect(l->cfg);
	l->impair = l->cfg->impair;
	l->impair.seed ^= (uint64_t)l->ethdev << 32 ^ l->queue;
	l->spread = 0;
	l->idle_ps = 0; /* packets that wait follow the new configuration */
	waiting = l->aqm.bytes;
	aqm_init(&l->aqm, &l->cfg->aqm, l->impair.seed);
	l->aqm.bytes = waiting;
}

static uint16_t on_receive(
	uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max, void *arg)
{
	struct linkemu *l = arg;
	uint32_t told = atomic_load_explicit(&l->told, memory_order_acquire);
	uint16_t out = 0;
	uint64_t now;

	if (told != l->taken)
		take(l, told);				    /* it applies to waiting packets too */
	if (l->perfect && l->head == l->tail && !l->late) { /* without impairments no packet is
							     * examined */
		l->count.packets += n;
		return n;
	}
	now = clock_at(&l->clock, rte_rdtsc());
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		if (frame_is_roce(rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_data_len(m)))
			roce(l, m, now);
		else
			pkts[out++] = m;
	}
	if (l->late && now >= l->late_due) {
		hold(l, l->late, now, 0);
		l->late = NULL;
	}
	if (n < max)
		l->empty_at = now;
	return (uint16_t)(out + leave(l, pkts + out, (uint16_t)(max - out), now));
}

struct linkemu *linkemu_attach(uint16_t ethdev, uint16_t queue, const struct linkemu_config *cfg)
{
	struct linkemu *l = rte_zmalloc("linkemu", sizeof(*l), CACHE_LINE);

	if (!l)
		return NULL;
	l->slot[0] = *cfg;
	l->ethdev = ethdev;
	l->queue = queue;
	take(l, 0);
	clock_init(&l->clock, rte_get_tsc_hz(), rte_rdtsc());
	l->callback = rte_eth_add_rx_callback(ethdev, queue, on_receive, l);
	if (!l->callback) {
		rte_free(l);
		return NULL;
	}
	return l;
}

int linkemu_join(struct linkemu *const links[], uint16_t n)
{
	char name[RTE_RING_NAMESIZE];

	for (uint16_t q = 0; q < n; q++) {
		struct linkemu *l = links[q];

		if (n < 2 || l->cfg->spread == LINKEMU_STAY)
			continue;
		snprintf(name, sizeof(name), "emu%u.%u", l->ethdev, q);
		l->aside = rte_ring_create(name, LINKEMU_HELD, SOCKET_ID_ANY, RING_F_SC_DEQ);
		if (!l->aside)
			return -ENOMEM;
		l->links = links;
		l->queues = n;
	}
	return 0;
}

const struct linkemu_config *linkemu_config(const struct linkemu *l)
{
	return &l->slot[atomic_load_explicit(&l->told, memory_order_relaxed) % 2];
}

void linkemu_change(struct linkemu *l, const struct linkemu_config *cfg)
{
	uint32_t next = atomic_load_explicit(&l->told, memory_order_relaxed) + 1;
	enum linkemu_spread spread = linkemu_config(l)->spread;

	l->slot[next % 2] = *cfg;
	l->slot[next % 2].spread = spread;
	atomic_store_explicit(&l->told, next, memory_order_release);
}

static void free_aside(struct linkemu *l)
{
	struct rte_mbuf *m;

	while (l->aside && !rte_ring_dequeue(l->aside, (void **)&m))
		rte_pktmbuf_free(m);
	rte_ring_free(l->aside);
}

void linkemu_detach(struct linkemu *l)
{
	if (!l)
		return;
	free_aside(l);
	rte_eth_remove_rx_callback(l->ethdev, l->queue, l->callback);
	rte_free((void *)(uintptr_t)l->callback);
	rte_pktmbuf_free(l->late);
	while (l->head != l->tail)
		rte_pktmbuf_free(l->held[l->head++ % LINKEMU_HELD].m);
	rte_free(l);
}

const char *linkemu_counter_name(unsigned i)
{
	static const char *const name[] = {"packets", "lost", "duplicated", "reordered",
		"corrupted", "truncated", "overflow", "spread", "dropped", "marked"};

	_Static_assert(sizeof(struct linkemu_counters) == 8 * ARRAY_SIZE(name), "name");
	return i < ARRAY_SIZE(name) ? name[i] : NULL;
}

void linkemu_count(const struct linkemu *l, struct linkemu_counters *sum)
{
	const uint64_t *from = (const uint64_t *)&l->count;
	uint64_t *to = (uint64_t *)sum;

	for (unsigned i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
		to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}
