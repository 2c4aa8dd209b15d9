/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <time.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include <rte_pause.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>
#include "ah.h"
#include "cause.h"
#include "core.h"
#include "core_counters.h"
#include "drop.h"
#include "drop_log.h"
#include "tables.h"
#include "icrc.h"
#include "inbox.h"
#include "mr.h"
#include "qp_table.h"
#include "srq.h"
#include "worker_impl.h"

static void *zalloc(size_t size, int socket)
{
	return rte_zmalloc_socket("dataplane", size, CACHE_LINE, socket);
}

static bool make_tables(struct dataplane *dp, int socket)
{
	dp->qps = zalloc(sizeof(*dp->qps), socket);
	dp->mrs = zalloc(sizeof(*dp->mrs), socket);
	dp->ahs = zalloc(sizeof(*dp->ahs), socket);
	dp->mcasts = zalloc(sizeof(*dp->mcasts), socket);
	dp->flows = zalloc(sizeof(*dp->flows), socket);
	dp->srqs = zalloc(sizeof(*dp->srqs), socket);
	dp->ports = zalloc(sizeof(*dp->ports), socket);
	dp->qsbr = zalloc(rte_rcu_qsbr_get_memsize(dp->nworkers), socket);
	dp->events = rte_ring_create_elem(
		"rocid_events", sizeof(struct core_event), EVENT_RING, socket, RING_F_SC_DEQ);
	return dp->qps && dp->mrs && dp->ahs && dp->mcasts && dp->flows && dp->srqs && dp->ports &&
	       dp->qsbr && dp->events;
}

struct dataplane *dataplane_create(uint32_t nworkers, int socket)
{
	struct dataplane *dp = zalloc(sizeof(*dp), socket);

	if (!dp)
		return NULL;
	dp->nworkers = nworkers;
	dp->notifier.fd = -1;
	if (!make_tables(dp, socket) || rte_rcu_qsbr_init(dp->qsbr, nworkers)) {
		dataplane_destroy(dp);
		return NULL;
	}
	dp->icrc = icrc_best();
	dp->tsc = rte_rdtsc();
	dp->mbuf_room = MBUF_ROOM;
	dp->mbufs = 2 * PORT_DESC + inbox_frames(nworkers) + GROUP_HELD + 4 * BURST;
	return dp;
}

void dataplane_destroy(struct dataplane *dp)
{
	if (!dp)
		return;
	rte_ring_free(dp->events);
	rte_free(dp->qsbr);
	rte_free(dp->ports);
	rte_free(dp->flows);
	rte_free(dp->mcasts);
	rte_free(dp->ahs);
	rte_free(dp->srqs);
	rte_free(dp->mrs);
	rte_free(dp->qps);
	rte_free(dp);
}

/* A worker that polls answers within about a microsecond, one that shares the caller's CPU as soon
 * as the caller yields, one that slept some 50 us after it was woken. */
#define SPIN_TURNS    100
#define YIELD_TURNS   400
#define POLL_PAUSE_NS 10000 /* and the kernel's slack, about 50 us */

static bool yield_took_long(void)
{
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	sched_yield();
	clock_gettime(CLOCK_MONOTONIC, &to);
	return (to.tv_sec - from.tv_sec) * 1000000000 + (to.tv_nsec - from.tv_nsec) > YIELD_LONG_NS;
}

void worker_wait(unsigned *turns)
{
	static const struct timespec pause = {.tv_nsec = POLL_PAUSE_NS};

	if (*turns < SPIN_TURNS)
		rte_pause();
	else if (*turns >= YIELD_TURNS)
		nanosleep(&pause, NULL);
	else if (yield_took_long())
		*turns = YIELD_TURNS;
	++*turns;
}

void worker_grace(struct dataplane *dp)
{
	uint64_t token = rte_rcu_qsbr_start(dp->qsbr);
	unsigned turns = 0;

	/* Not rte_rcu_qsbr_synchronize(): it spins, and a worker may be waiting for this CPU. */
	while (!rte_rcu_qsbr_check(dp->qsbr, token, false))
		worker_wait(&turns);
}

/* Counters are plain words with one writer; an aligned 64-bit load does not tear. */
static void add_words(uint64_t *sum, const uint64_t *from, size_t words)
{
	for (size_t i = 0; i < words; i++)
		sum[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

void worker_counters_of(const struct worker *w, struct core_counters *sum)
{
	add_words(
		(uint64_t *)sum, (const uint64_t *)&w->core.count, sizeof(*sum) / sizeof(uint64_t));
	core_sum_ports(sum);
}

void worker_counters(const struct dataplane *dp, struct core_counters *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (uint32_t i = 0; i < dp->nworkers; i++)
		worker_counters_of(dp->worker[i], sum);
}

void worker_stats_of(const struct worker *w, struct worker_stats *sum)
{
	add_words((uint64_t *)sum, (const uint64_t *)&w->stats, sizeof(*sum) / sizeof(uint64_t));
}

void worker_stats(const struct dataplane *dp, struct worker_stats *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (uint32_t i = 0; i < dp->nworkers; i++)
		worker_stats_of(dp->worker[i], sum);
}

const char *worker_stat_name(unsigned i)
{
	static const char *const name[] = {
#define X(field, help) #field,
		WORKER_STATS(X)
#undef X
	};

	return i < ARRAY_SIZE(name) ? name[i] : NULL;
}

const char *worker_stat_help(unsigned i)
{
	static const char *const helps[] = {
#define X(field, help) help,
		WORKER_STATS(X)
#undef X
	};

	return i < ARRAY_SIZE(helps) ? helps[i] : NULL;
}

uint32_t worker_take_late(struct dataplane *dp, uint32_t worker, uint32_t slot)
{
	return atomic_exchange_explicit(
		&dp->worker[worker]->core.late[slot], 0, memory_order_acquire);
}

bool worker_drop_note(const struct dataplane *dp, uint32_t worker, uint32_t why, uint32_t slot,
	struct drop_note *note)
{
	const struct core *c = &dp->worker[worker]->core;

	/* The counters of all reasons are adjacent, the notes are not. */
	return __atomic_load_n(&c->count.drop[why], __ATOMIC_RELAXED) &&
	       drop_note_read(note, &c->cfg.drops->note[why][slot]);
}
