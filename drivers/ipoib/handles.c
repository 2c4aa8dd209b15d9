/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles. The kernel resolves the GIDs of peers, several at a time: rocid reports at once
 * whether one is resolved (ABI_AH_AT_ONCE) and is asked again after a pause. So addresses that
 * nobody answers for, on which the kernel waits for seconds, delay no other peer. */
#include <errno.h>
#include <string.h>
#include "rib_impl.h"

/* Time limit for resolving a peer: the kernel's own. */
#define PATIENCE_MS    3000u
#define PAUSE_FIRST_MS 1u
#define PAUSE_LAST_MS  256u
/* Neighbour lookups started at once; later ones follow one per BEGIN_PAUSE_MS. Each occupies an
 * entry of the kernel's neighbour table for some seconds, and the whole host shares 1,024. */
#define BEGIN_AT_ONCE  32u
#define BEGIN_PAUSE_MS 10u
/* Groups that handles are made for, one after the other: some milliseconds. */
#define GROUPS_PER_TURN 64u

static void answer(struct rib *r, struct rib_job *job, struct roci_ah *ah)
{
	job->ah = ah;
	rib_jobs_put(&r->ring[RIB_ANSWERED], job);
	rib_wake(r->wake);
}

/* The place of the last is that of @p w. */
static void end(struct rib_asking *a, struct rib_wanted *w)
{
	*w = a->wanted[--a->n];
}

/* @return whether there is an answer. */
static bool try(struct rib *r, struct rib_wanted *w, uint64_t now)
{
	struct roci_ah *ah = rib_handle(r, w->job.ask.gid);

	if (!ah && errno == EAGAIN && now < w->until) {
		w->due = now + w->pause;
		w->pause = w->pause < PAUSE_LAST_MS ? 2 * w->pause : PAUSE_LAST_MS;
		return false;
	}
	answer(r, &w->job, ah);
	return true;
}

/* Programs choose groups, and may ask for others as fast as these are answered: the rest waits for
 * the next turn. */
static void groups(struct rib *r)
{
	struct rib_job job;

	for (uint32_t i = 0; i < GROUPS_PER_TURN; i++) {
		if (!rib_jobs_take(&r->ring[RIB_ASKED_GROUPS], &job))
			return;
		answer(r, &job, rib_handle(r, job.ask.gid));
	}
}

/* If there are too many, the oldest lookup is given up. */
static struct rib_wanted *make_room(struct rib *r, struct rib_asking *a)
{
	struct rib_wanted *oldest = &a->wanted[0];

	if (a->n < RIB_ASKING)
		return &a->wanted[a->n++];
	for (uint32_t i = 1; i < a->n; i++)
		if (a->wanted[i].until < oldest->until)
			oldest = &a->wanted[i];
	answer(r, &oldest->job, NULL);
	return oldest;
}

/* Newest first: then a flood of claims delays real peers that arrive during it the least. */
static void begin(struct rib *r, struct rib_asking *a, uint64_t now)
{
	struct rib_job job;

	while (a->begin_next <= now + BEGIN_AT_ONCE * BEGIN_PAUSE_MS &&
		rib_jobs_take_youngest(&r->ring[RIB_ASKED], &job)) {
		struct rib_wanted *w = make_room(r, a);

		*w = (struct rib_wanted){
			.job = job, .until = now + PATIENCE_MS, .pause = PAUSE_FIRST_MS};
		a->begin_next = (a->begin_next > now ? a->begin_next : now) + BEGIN_PAUSE_MS;
		if (try(r, w, now))
			end(a, w);
	}
}

static void ask_again(struct rib *r, struct rib_asking *a, uint64_t now)
{
	for (uint32_t i = 0; i < a->n;)
		if (a->wanted[i].due <= now && try(r, &a->wanted[i], now))
			end(a, &a->wanted[i]);
		else
			i++;
}

int rib_make_handles(struct rib *r, struct rib_asking *a, int longest_ms)
{
	uint64_t now = rib_now_ms(), first = now + (uint64_t)longest_ms;

	if (!atomic_load(&r->helping))
		return 0;
	groups(r);
	ask_again(r, a, now);
	begin(r, a, now);
	for (uint32_t i = 0; i < a->n; i++)
		first = a->wanted[i].due < first ? a->wanted[i].due : first;
	if (rib_jobs_count(&r->ring[RIB_ASKED_GROUPS]))
		return 0;
	if (rib_jobs_count(&r->ring[RIB_ASKED]) && now + BEGIN_PAUSE_MS < first)
		first = now + BEGIN_PAUSE_MS;
	return (int)(first > now ? first - now : 0);
}
