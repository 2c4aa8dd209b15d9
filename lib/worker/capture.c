/* SPDX-License-Identifier: BSD-3-Clause */
/* The control thread's side of captures: they start and stop while workers read their list. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <rte_lcore.h>
#include "capture_impl.h"
#include "worker_impl.h"

/* Populated here, so that no worker waits for the kernel to find a page. */
static bool make_rings(struct capture *c)
{
	for (uint32_t i = 0; i < c->dp->nworkers; i++) {
		void *mem = mmap(NULL, sizeof(struct capture_ring), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		if (mem == MAP_FAILED)
			return false;
		c->ring[i] = mem;
	}
	return true;
}

static void free_capture(struct capture *c)
{
	for (uint32_t i = 0; i < WORKER_MAX; i++)
		if (c->ring[i])
			munmap(c->ring[i], sizeof(struct capture_ring));
	free(c);
}

/* Workers start with the head of their list, and follow each capture's link. */
static void publish(struct capture *c)
{
	for (uint32_t i = 0; i < c->dp->nworkers; i++) {
		struct worker *w = c->dp->worker[i];

		atomic_store_explicit(&c->next,
			atomic_load_explicit(&w->captures, memory_order_relaxed),
			memory_order_relaxed);
		atomic_store_explicit(&w->captures, c, memory_order_release);
	}
}

static void withdraw(struct capture *c)
{
	struct capture *next = atomic_load_explicit(&c->next, memory_order_relaxed);

	for (uint32_t i = 0; i < c->dp->nworkers; i++) {
		_Atomic(struct capture *) *at = &c->dp->worker[i]->captures;
		struct capture *other = atomic_load_explicit(at, memory_order_relaxed);

		while (other && other != c) {
			at = &other->next;
			other = atomic_load_explicit(at, memory_order_relaxed);
		}
		if (other)
			atomic_store_explicit(at, next, memory_order_release);
	}
	worker_grace(c->dp);
}

int capture_start(struct capture **out, struct dataplane *dp, const struct capture_config *cfg)
{
	struct capture *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->cfg = *cfg;
	c->dp = dp;
	if (!make_rings(c)) {
		free_capture(c);
		return -ENOMEM;
	}
	publish(c);
	err = rte_ctrl_thread_create(&c->thread, "rocid-capture", NULL, capture_stream, c);
	if (err) {
		withdraw(c);
		free_capture(c);
		return err;
	}
	*out = c;
	return 0;
}

void capture_stop(struct dataplane *dp, struct capture *c)
{
	atomic_store_explicit(&c->stop, true, memory_order_relaxed);
	withdraw(c);
	pthread_join(c->thread, NULL);
	free_capture(c);
}

uint64_t capture_counts(const struct capture *c, uint64_t *lost)
{
	*lost = 0;
	for (uint32_t i = 0; i < c->dp->nworkers; i++)
		for (uint32_t k = 0; k < c->cfg.ninterfaces; k++)
			*lost += atomic_load_explicit(&c->ring[i]->lost[k], memory_order_relaxed);
	return atomic_load_explicit(&c->sent, memory_order_relaxed);
}
