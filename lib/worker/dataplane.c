/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>
#include "worker_impl.h"

static void *zalloc(size_t size, int socket)
{
	return rte_zmalloc_socket("dataplane", size, CACHE_LINE, socket);
}

static bool make_tables(struct dataplane *dp, int socket)
{
	dp->qps = zalloc(sizeof(*dp->qps), socket);
	dp->mrs = zalloc(sizeof(*dp->mrs), socket);
	dp->ports = zalloc(sizeof(*dp->ports), socket);
	dp->qsbr = zalloc(rte_rcu_qsbr_get_memsize(dp->nworkers), socket);
	dp->events = rte_ring_create_elem(
		"rocid_events", sizeof(struct core_event), EVENT_RING, socket, RING_F_SC_DEQ);
	return dp->qps && dp->mrs && dp->ports && dp->qsbr && dp->events;
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
	dp->mbufs = 2 * PORT_DESC + INBOX_SIZE + 4 * BURST;
	return dp;
}

void dataplane_destroy(struct dataplane *dp)
{
	if (!dp)
		return;
	rte_ring_free(dp->events);
	rte_free(dp->qsbr);
	rte_free(dp->ports);
	rte_free(dp->mrs);
	rte_free(dp->qps);
	rte_free(dp);
}

void worker_grace(struct dataplane *dp)
{
	uint64_t token = rte_rcu_qsbr_start(dp->qsbr);

	/* Not rte_rcu_qsbr_synchronize(): it spins, and a worker may be waiting for this CPU. */
	while (!rte_rcu_qsbr_check(dp->qsbr, token, false))
		sched_yield();
}

/* Counters are plain words with one writer; an aligned 64-bit load does not tear. */
static void add_words(uint64_t *sum, const uint64_t *from, size_t words)
{
	for (size_t i = 0; i < words; i++)
		sum[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

void worker_counters(const struct dataplane *dp, struct core_counters *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (uint32_t i = 0; i < dp->nworkers; i++)
		add_words((uint64_t *)sum, (const uint64_t *)&dp->worker[i]->core.count,
			sizeof(*sum) / sizeof(uint64_t));
}

void worker_stats(const struct dataplane *dp, struct worker_stats *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (uint32_t i = 0; i < dp->nworkers; i++)
		add_words((uint64_t *)sum, (const uint64_t *)&dp->worker[i]->stats,
			sizeof(*sum) / sizeof(uint64_t));
}
