/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet thread asks the helper for address handles: its questions, and the answers. */
#include "rib_impl.h"

_Static_assert(RIB_ASKED_PEERS_MAX + RIB_ASKED_GROUPS_MAX <= RIB_JOBS,
	"neither the ring of questions nor that of answers is ever full");

static uint32_t *open_of(struct rib *r, bool group)
{
	return group ? &r->open_groups : &r->open_peers;
}

/* Drops the oldest question if there are too many, or this one if all others have been answered.
 * Programs choose groups, so questions for groups never displace those for peers. */
static void put_question(struct rib *r, const struct rib_job *job, uint64_t now)
{
	bool group = job->ask.group;
	struct rib_jobs *to = &r->ring[group ? RIB_ASKED_GROUPS : RIB_ASKED];
	uint32_t *open = open_of(r, group);
	struct rib_job old = *job;

	if (*open < (group ? RIB_ASKED_GROUPS_MAX : RIB_ASKED_PEERS_MAX)) {
		rib_jobs_put(to, job);
		(*open)++;
		return;
	}
	if (rib_jobs_take(to, &old))
		rib_jobs_put(to, job);
	ipoib_resolved(r->ipoib, old.ask.dest, old.ask.serial, false, now);
}

void rib_ask(struct rib *r, uint64_t now)
{
	struct rib_job job = {.ah = NULL};
	bool any = false;

	while (ipoib_ask(r->ipoib, &job.ask)) {
		put_question(r, &job, now);
		any = true;
	}
	if (any)
		rib_wake(r->wake_helper);
}

/* The handle that was here before belongs to an entry that no longer exists. The helper has rocid
 * destroy it, because rocid may be busy for seconds. Only this thread adds such handles; while
 * there is no room for more, answers wait. */
void rib_take_answers(struct rib *r, uint64_t now)
{
	struct rib_jobs *destroy = &r->ring[RIB_UNUSED];
	struct rib_job job;

	while (rib_jobs_count(destroy) < RIB_JOBS && rib_jobs_take(&r->ring[RIB_ANSWERED], &job)) {
		struct roci_ah **at = &r->q.ah[job.ask.dest];
		struct roci_ah *unused = job.ah;

		(*open_of(r, job.ask.group))--;
		if (ipoib_resolved(r->ipoib, job.ask.dest, job.ask.serial, job.ah, now) && job.ah) {
			unused = *at;
			*at = job.ah;
		}
		if (unused && rib_jobs_put(destroy, &(struct rib_job){.ah = unused}))
			rib_wake(r->wake_helper);
	}
}
