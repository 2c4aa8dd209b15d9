/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdatomic.h>
#include "abi_ctl.h"
#include "abi_ring.h"
#include "config/ctl_parts.h"
#include "core.h"
#include "limits.h"
#include "qp.h"
#include "random.h"
#include "session/handles.h"
#include "session/session.h"
#include "session/sessions.h"
#include "migrate/migrate.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"
#include "worker.h"

/** Milliseconds between two looks at the queues on which packets arrive. */
#define LOOK_MS 100u
/** A QP follows its packets after this many in a row arrived on the queue of the same other worker:
 *  a NIC that spreads a flow over its queues never reaches it, any other reaches it at once. */
#define RUN_MIN 256u
/** QPs moved per turn: each costs a message to two workers, during which applications wait. */
#define MOVES_MAX 64u
/** QPs examined per turn: each costs a cache miss or two. */
#define LOOKS_MAX 1024u

void migrate_init(struct migration *m, bool follow, uint32_t shake_ms, uint64_t seed)
{
	*m = (struct migration){.follow = follow, .shake_ms = shake_ms, .coin = {seed | 1}};
}

/* QPs that cannot move. Completions of an XRC target, in the CQs of many SRQs, could not be
 * ordered. Copies of a multicast packet wait in the inboxes of several workers, so a member that
 * moved would get two or none (MC-04). A late doorbell is forwarded by the QP table, which does not
 * contain QP1. */
static bool stays(const struct qp_obj *o)
{
	return o->qp->type == ABI_QPT_XRC_RECV || o->nmembers || o->qp->gsi_port;
}

int migrate_qp(struct ctl *ctl, struct qp_obj *o, uint32_t worker)
{
	struct dataplane *dp = ctl->dp;
	struct core_cmd cmd = {.type = CORE_CMD_GIVE_QP, .qp = o->qp, .worker = (uint16_t)worker};
	int err;

	if (worker >= dp->nworkers)
		return -EINVAL;
	if (worker == o->worker)
		return 0;
	if (stays(o))
		return -EOPNOTSUPP;
	err = worker_call(dp->worker[o->worker], &cmd);
	if (err)
		return err;
	qp_count_at_worker(o, -1);
	o->worker = worker;
	qp_count_at_worker(o, 1);
	cmd.type = CORE_CMD_TAKE_QP;
	err = worker_call(dp->worker[worker], &cmd);
	atomic_store_explicit(&o->qp->sq.shared->bell, 1 + worker, memory_order_relaxed);
	return err;
}

/* Two QPs of this daemon that talk to each other, and whose ports send on the queue of the sending
 * worker, would swap workers for ever: so a coin decides too. */
static uint32_t best_worker(struct migration *m, const struct qp_obj *o, uint32_t nworkers)
{
	uint8_t queue = __atomic_load_n(&o->qp->queue, __ATOMIC_RELAXED);
	uint32_t run = __atomic_load_n(&o->qp->queue_run, __ATOMIC_RELAXED);

	if (queue >= nworkers || queue == o->worker || run < RUN_MIN || !random_below(&m->coin, 2))
		return o->worker;
	return queue;
}

/* The next QP of the walk, session by session; NULL after the last one, where the walk restarts. */
static struct qp_obj *next_qp(struct ctl *ctl, struct walk *w)
{
	for (; w->session < SESSION_MAX; w->session++, w->cursor = 0) {
		struct session *s = ctl->sessions->session[w->session];
		struct qp_obj *o = s ? handle_next(&s->qps, &w->cursor) : NULL;

		if (o)
			return o;
	}
	*w = (struct walk){0};
	return NULL;
}

/* Begins a look at all QPs; unnecessary without handoffs. */
static bool begin_look(struct ctl *ctl)
{
	struct migration *m = ctl->objects->migration;
	struct worker_stats sum;

	worker_stats(ctl->dp, &sum);
	if (sum.handoffs - m->handoffs < RUN_MIN)
		return false;
	m->handoffs = sum.handoffs;
	return true;
}

/* One turn of a look at all QPs.  Returns true if QPs remain. */
static bool follow(struct ctl *ctl)
{
	struct migration *m = ctl->objects->migration;
	unsigned moves = 0;

	if (!m->looking)
		m->looking = begin_look(ctl);
	for (unsigned n = 0; m->looking && n < LOOKS_MAX && moves < MOVES_MAX; n++) {
		struct qp_obj *o = next_qp(ctl, &m->look);
		uint32_t best = o ? best_worker(m, o, ctl->dp->nworkers) : 0;

		m->looking = o != NULL;
		if (!o || best == o->worker)
			continue;
		moves++;
		migrate_qp(ctl, o, best);
	}
	return m->looking;
}

static void shake(struct ctl *ctl)
{
	struct migration *m = ctl->objects->migration;

	for (unsigned i = 0; i < MOVES_MAX; i++) {
		struct qp_obj *o = next_qp(ctl, &m->shaken);

		if (!o)
			o = next_qp(ctl, &m->shaken);
		if (!o)
			return;
		migrate_qp(ctl, o, (o->worker + 1) % ctl->dp->nworkers);
	}
}

static int wait_for(uint64_t *due, uint64_t now_ms, uint32_t period, int wait)
{
	if (*due <= now_ms)
		*due = now_ms + period;
	return wait < 0 || *due - now_ms < (uint64_t)wait ? (int)(*due - now_ms) : wait;
}

int migrate_poll(struct ctl *ctl, uint64_t now_ms)
{
	struct migration *m = ctl->objects->migration;
	int wait = -1;

	if (ctl->dp->nworkers < 2)
		return -1;
	if (m->follow) {
		if (now_ms >= m->look_due && follow(ctl))
			m->look_due = now_ms + 1;
		wait = wait_for(&m->look_due, now_ms, LOOK_MS, wait);
	}
	if (m->shake_ms) {
		if (now_ms >= m->shake_due)
			shake(ctl);
		wait = wait_for(&m->shake_due, now_ms, m->shake_ms, wait);
	}
	return wait;
}
