/* SPDX-License-Identifier: BSD-3-Clause */
#include "jobs.h"

void rib_jobs_init(struct rib_jobs *j)
{
	pthread_mutex_init(&j->lock, NULL);
	j->first = 0;
	atomic_store(&j->n, 0);
}

void rib_jobs_destroy(struct rib_jobs *j)
{
	pthread_mutex_destroy(&j->lock);
}

bool rib_jobs_put(struct rib_jobs *to, const struct rib_job *job)
{
	bool room;

	pthread_mutex_lock(&to->lock);
	room = to->n < RIB_JOBS;
	if (room) {
		to->job[(to->first + to->n) % RIB_JOBS] = *job;
		to->n++;
	}
	pthread_mutex_unlock(&to->lock);
	return room;
}

static bool take(struct rib_jobs *from, struct rib_job *job, bool youngest)
{
	bool any;

	if (!rib_jobs_count(from))
		return false;
	pthread_mutex_lock(&from->lock);
	any = from->n > 0;
	if (any) {
		from->n--;
		*job = from->job[(from->first + (youngest ? from->n : 0)) % RIB_JOBS];
		from->first = (from->first + !youngest) % RIB_JOBS;
	}
	pthread_mutex_unlock(&from->lock);
	return any;
}

bool rib_jobs_take(struct rib_jobs *from, struct rib_job *job)
{
	return take(from, job, false);
}

bool rib_jobs_take_youngest(struct rib_jobs *from, struct rib_job *job)
{
	return take(from, job, true);
}
