/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams to multicast groups. One costs as many receives as the group has members, at no cost to
 * its sender, so members take turns: a call of core_groups() delivers GROUP_COPIES, shared by the
 * sessions that have something to receive. A datagram that arrives between two calls is delivered
 * at once while copies are left and its session has none waiting; otherwise it is held, with one
 * job for each session among the members.
 */
#include "drop_log.h"
#include "frame.h"
#include "mcast.h"
#include "multicast.h"
#include "bits.h"
#include "classify.h"
#include "inject.h"
#include "qp_impl.h"
#include "txd.h"

#define NO_PLACE GROUP_HELD

void multicast_init(struct core_groups *g)
{
	g->copies = GROUP_COPIES;
	list_init(&g->ready);
	list_init(&g->idle);
	for (uint32_t i = 0; i < GROUP_JOBS; i++)
		list_push(&g->idle, &g->job[i].node);
}

const struct mcast_group *multicast_group(const struct core *c, const struct pkt *pkt)
{
	uint8_t sgid[16], dgid[16];

	frame_gids(pkt, sgid, dgid);
	return mcast_find(c->cfg.mcasts, dgid, pkt->port);
}

uint32_t core_group_workers(const struct core *c, const struct pkt *pkt)
{
	const struct mcast_group *g = multicast_group(c, pkt);
	uint32_t workers = 0;

	if (c->cfg.workers == 1)
		return 0;
	for (uint32_t i = 0; g && i < g->n; i++)
		workers |= 1u << qp_owner(g->member[i].qp);
	return workers & ~(1u << c->cfg.worker);
}

bool core_group_here(const struct core *c, const struct txd *t)
{
	const uint8_t *l3 = t->frame + t->l3_off;
	uint8_t mgid[16] = {[10] = 0xFF, [11] = 0xFF};

	if (t->net == NET_IPV4)
		memcpy(mgid + 12, l3 + IP4_DST, 4);
	else
		memcpy(mgid, l3 + IP6_DST, 16);
	return mcast_find(c->cfg.mcasts, mgid, t->port);
}

static void rx_member(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint8_t fault;

	if (unlikely(qp->inject))
		inject_rx(c, qp, pkt, now, &fault);
	else
		classify_member(c, qp, pkt, DROP_NONE, now);
}

/* MC-04: delivers a copy to each of the members [@p from, @p to), up to @p most of them, whatever
 * happens to the others.
 * @return the first member that got no copy. */
static uint32_t deliver(struct core *c, const struct mcast_group *g, uint32_t from, uint32_t to,
	uint32_t most, const struct pkt *pkt, uint64_t now)
{
	uint32_t end = to - from < most ? to : from + most;

	for (; from < end; from++)
		if (qp_owner(g->member[from].qp) == c->cfg.worker)
			rx_member(c, g->member[from].qp, pkt, now);
	return from;
}

/* The members of @p g from @p i on that belong to one session.  @return the end. */
static uint32_t session_end(const struct mcast_group *g, uint32_t i)
{
	uint32_t session = g->member[i].session;

	while (i < g->n && g->member[i].session == session)
		i++;
	return i;
}

/* --- holding ---------------------------------------------------------------------------- */

static struct core_share *share_of(struct core *c, uint32_t session)
{
	return &c->share[session & (SESSION_MAX - 1)];
}

/* @return a place that holds @p pkt, or NO_PLACE: none is free. */
static uint32_t hold(struct core_groups *g, const struct pkt *pkt)
{
	uint32_t i;

	if (g->places == GROUP_HELD)
		return NO_PLACE;
	do
		i = g->next_place++ % GROUP_HELD;
	while (g->held[i].jobs);
	g->held[i].pkt = *pkt;
	g->places++;
	return i;
}

/* Defers @p pkt for the members of the session of @p first, from @p first on. @p place is where the
 * packet is held, or will be.
 * @return false when too much is waiting in the session or in the core. */
static bool defer(
	struct core *c, const struct mcast_member *first, const struct pkt *pkt, uint32_t *place)
{
	struct core_share *s = share_of(c, first->session);
	struct core_groups *g = &c->groups;
	struct group_job *job;

	if (s->njobs == GROUP_HELD_SESSION || list_empty(&g->idle))
		return false;
	if (*place == NO_PLACE)
		*place = hold(g, pkt);
	if (*place == NO_PLACE)
		return false;
	job = container_of(list_pop(&g->idle), struct group_job, node);
	job->session = first->session;
	job->next = first->serial;
	job->place = *place;
	list_push(&s->jobs, &job->node);
	s->njobs++;
	g->held[*place].jobs++;
	if (list_empty(&s->group))
		list_push(&g->ready, &s->group);
	return true;
}

uint16_t multicast_rx(struct core *c, const struct pkt *pkt, uint64_t now)
{
	const struct mcast_group *g = multicast_group(c, pkt);
	struct core_groups *gs = &c->groups;
	uint32_t place = NO_PLACE;
	uint16_t verdict = 0;
	uint32_t end;

	/* NULL: the last QP has left since the lookup */
	if (g)
		gs->copies++; /* the first copy costs the same as any packet */
	for (uint32_t i = 0; g && i < g->n; i = end) {
		const struct core_share *s = share_of(c, g->member[i].session);

		end = session_end(g, i);
		if (!s->njobs) { /* otherwise it would overtake those that wait */
			uint32_t first = i;

			i = deliver(c, g, i, end, gs->copies, pkt, now);
			gs->copies -= i - first;
		}
		if (i < end && !defer(c, &g->member[i], pkt, &place))
			drop_count(c, NULL, pkt, DROP_GROUP_BUSY, now);
	}
	if (place != NO_PLACE)
		verdict = (uint16_t)(VERDICT_HELD | place);
	if (pkt->queue != PKT_COPY && core_group_workers(c, pkt))
		verdict |= VERDICT_SPREAD;
	return verdict;
}

/* --- turns ------------------------------------------------------------------------------ */

/* The group may have changed since the datagram arrived: members are identified by serials.
 * @return the first that @p job has to serve, or g->n; *end is the end of its session's. */
static uint32_t job_start(const struct mcast_group *g, const struct group_job *job, uint32_t *end)
{
	uint32_t i = 0;

	while (i < g->n && g->member[i].session != job->session)
		i++;
	*end = i < g->n ? session_end(g, i) : g->n;
	while (i < *end && (int32_t)(g->member[i].serial - job->next) < 0)
		i++;
	return i;
}

/* Serves up to @p most members.  @return their number; the job is over when they are fewer. */
static uint32_t job_run(struct core *c, struct group_job *job, uint32_t most, uint64_t now)
{
	const struct pkt *pkt = &c->groups.held[job->place].pkt;
	const struct mcast_group *g = multicast_group(c, pkt);
	uint32_t first, end, i;

	if (!g)
		return 0;
	first = job_start(g, job, &end);
	i = deliver(c, g, first, end, most, pkt, now);
	if (i > first)
		job->next = g->member[i - 1].serial + 1;
	return i - first;
}

/* A turn of the session of @p s.  @return copies spent, from 1 to @p most; places that are no
 * longer needed go to @p done. */
static uint32_t turn(struct core *c, struct core_share *s, uint32_t most, uint8_t done[],
	uint32_t *ndone, uint64_t now)
{
	struct core_groups *g = &c->groups;
	uint32_t used = 0;

	while (used < most && s->njobs) {
		struct group_job *job = container_of(s->jobs.next, struct group_job, node);
		uint32_t served = job_run(c, job, most - used, now);

		if (used + served == most)
			return most; /* the job may have more members */
		used += served + 1;  /* finding out that it is over is work, too */
		list_del(&job->node);
		list_push(&g->idle, &job->node);
		s->njobs--;
		if (!--g->held[job->place].jobs) {
			g->places--;
			done[(*ndone)++] = (uint8_t)job->place;
		}
	}
	return used;
}

uint32_t core_groups(struct core *c, uint8_t done[GROUP_COPIES], uint64_t now)
{
	struct core_groups *g = &c->groups;
	uint32_t ndone = 0;

	c->clock = now;
	g->copies = GROUP_COPIES;
	while (g->copies && !list_empty(&g->ready)) {
		struct core_share *s = container_of(list_pop(&g->ready), struct core_share, group);
		uint32_t most = g->copies < GROUP_TURN ? g->copies : GROUP_TURN;

		g->copies -= turn(c, s, most, done, &ndone, now);
		if (s->njobs)
			list_push(&g->ready, &s->group);
	}
	return ndone;
}
