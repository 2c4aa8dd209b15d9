/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file jobs.h
 * Rings of jobs between the two threads of a netdev: each has a lock of its own, which is held for
 * a copy. A look into an empty ring takes no lock.
 */
#ifndef RIB_JOBS_H
#define RIB_JOBS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "ipoib.h"

#define RIB_JOBS NEIGH_MAX

struct roci_ah;

/** A question to the helper thread, and its answer. */
struct rib_job {
	struct ipoib_ask ask;
	struct roci_ah *ah; /* the answer; NULL: none */
};

struct rib_jobs {
	pthread_mutex_t lock;
	uint32_t first;	    /* under lock */
	_Atomic uint32_t n; /* written under lock */
	struct rib_job job[RIB_JOBS];
};

void rib_jobs_init(struct rib_jobs *j);
void rib_jobs_destroy(struct rib_jobs *j);

/** @return false: it is full, and @p job is not in it. */
bool rib_jobs_put(struct rib_jobs *to, const struct rib_job *job);

/** Takes the oldest. @return false: it is empty. */
bool rib_jobs_take(struct rib_jobs *from, struct rib_job *job);
bool rib_jobs_take_youngest(struct rib_jobs *from, struct rib_job *job);

/** @return how many there were a moment ago: now at least as many if only other threads put, and at
 *  most as many if only other threads take. */
static inline uint32_t rib_jobs_count(const struct rib_jobs *in)
{
	return atomic_load_explicit(&in->n, memory_order_relaxed);
}

#endif
