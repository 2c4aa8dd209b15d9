/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include "core.h"
#include "drop_log.h"
#include "qp_table.h"
#include "worker_impl.h"

#define POOL_CACHE 128u

static bool make_buffers(struct worker *w, int socket)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "rocid_mbufs%u", w->index);
	w->pool = rte_pktmbuf_pool_create(name, w->dp->mbufs + 2 * POOL_CACHE, POOL_CACHE, 0,
		(uint16_t)(RTE_PKTMBUF_HEADROOM + w->dp->mbuf_room), socket);
	return w->pool && inbox_create(&w->inbox, w->index, w->dp->nworkers, socket);
}

struct worker *worker_create(struct dataplane *dp, uint32_t index, int socket)
{
	struct worker *w = rte_zmalloc_socket("worker", sizeof(*w), CACHE_LINE, socket);
	struct core_config cfg = {
		.worker = (uint16_t)index,
		.workers = (uint16_t)dp->nworkers,
		.icrc = dp->icrc,
		.qps = dp->qps,
		.mrs = dp->mrs,
		.ahs = dp->ahs,
		.mcasts = dp->mcasts,
		.flows = dp->flows,
		.srqs = dp->srqs,
		.ports = dp->ports,
	};

	if (!w)
		return NULL;
	w->dp = dp;
	w->index = index;
	if (sleeper_open(w) || !make_buffers(w, socket)) {
		worker_destroy(w);
		return NULL;
	}
	clock_init(&w->clock, rte_get_tsc_hz(), dp->tsc);
	w->passed_bell = (struct worker_doorbell){.shared = &w->passed, .qp = dp->qps->slot};
	atomic_init(&w->passed_slot.db, &w->passed_bell);
	w->now = clock_at(&w->clock, rte_rdtsc());
	cfg.faults = &w->faults;
	cfg.drops = rte_zmalloc_socket("drops", sizeof(*cfg.drops), CACHE_LINE, socket);
	if (!cfg.drops) {
		worker_destroy(w);
		return NULL;
	}
	core_init(&w->core, &cfg, w->now);
	dp->worker[index] = w;
	return w;
}

bool worker_running(const struct worker *w)
{
	return atomic_load_explicit(&w->running, memory_order_acquire);
}

void worker_stop(struct worker *w)
{
	atomic_store_explicit(&w->stop, true, memory_order_relaxed);
	worker_wake(w);
}

void worker_destroy(struct worker *w)
{
	if (!w)
		return;
	inbox_destroy(&w->inbox); /* frames there and in `held` are freed with their pools */
	rte_mempool_free(w->pool);
	sleeper_close(w);
	if (w->dp->worker[w->index] == w)
		w->dp->worker[w->index] = NULL;
	rte_free(w->core.cfg.drops);
	rte_free(w);
}

const uint64_t *worker_clock(const struct worker *w)
{
	return &w->core.clock;
}
