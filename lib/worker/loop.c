/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_cycles.h>
#include "core.h"
#include "worker_impl.h"

/* More packets than any receive queue holds. */
#define QUEUE_MAX 8192u

void timers_poll(struct worker *w, unsigned received, bool drained)
{
	/* A timeout must not overtake its ACK that waits in a queue, above all after a pause of
	 * this thread (decision 0000.3). An empty queue shows that every packet that arrived before
	 * this round has been received. Under a load that never empties it, receiving a queue's
	 * length of packets shows the same for the moment at which the count began. */
	if (drained) {
		core_expire(&w->core, w->now);
		w->backlog = 0;
		return;
	}
	if (!w->backlog)
		w->asof = w->now;
	w->backlog += received;
	if (w->backlog >= QUEUE_MAX * (w->nports + 1)) {
		if (!core_expire(&w->core, w->asof)) /* otherwise the rest in the next round */
			w->backlog = 0;
	}
}

static void read_clock(struct worker *w)
{
	uint64_t now = clock_at(&w->clock, rte_rdtsc());

	if (now - w->now > WORKER_PAUSE_NS) {
		w->stats.pauses++;
		core_resumed(&w->core, w->now, now);
		tx_resumed(w, now - w->now);
	}
	w->now = now;
}

/* A grace period of the core (core_grace_wanted()) is one of QSBR, which is polled and not waited
 * for. It begins before this worker reports its own quiescent state of the round. */
static void grace_poll(struct worker *w)
{
	struct rte_rcu_qsbr *qsbr = w->dp->qsbr;

	if (!w->grace) {
		w->grace = core_grace_wanted(&w->core);
		w->grace_token = rte_rcu_qsbr_start(qsbr);
	} else if (rte_rcu_qsbr_check(qsbr, w->grace_token, false) == 1) {
		core_grace_end(&w->core, w->grace);
		w->grace = 0;
	}
}

void worker_begin(struct worker *w)
{
	struct rte_rcu_qsbr *qsbr = w->dp->qsbr;

	rte_rcu_qsbr_thread_register(qsbr, w->index);
	rte_rcu_qsbr_thread_online(qsbr, w->index);
	sigbus_bind(w);
	sleeper_enter(w);
	w->now = clock_at(&w->clock, rte_rdtsc());
	atomic_store_explicit(&w->stop, false, memory_order_relaxed);
	atomic_store_explicit(&w->running, true, memory_order_release);
}

void worker_end(struct worker *w)
{
	struct rte_rcu_qsbr *qsbr = w->dp->qsbr;

	sigbus_bind(NULL);
	sleeper_leave(w);
	tx_release(w);
	rte_rcu_qsbr_thread_offline(qsbr, w->index);
	rte_rcu_qsbr_thread_unregister(qsbr, w->index);
	atomic_store_explicit(&w->running, false, memory_order_release);
}

void worker_round(struct worker *w)
{
	unsigned received;
	unsigned worked;
	bool drained;
	bool command;

	read_clock(w);
	received = rx_poll(w, &drained);
	worked = doorbell_poll(w);
	command = mailbox_poll(w);
	worked += tx_poll(w);
	timers_poll(w, received, drained);
	events_poll(w);
	if (unlikely(core_grace_wanted(&w->core)))
		grace_poll(w);
	rte_rcu_qsbr_quiescent(w->dp->qsbr, w->index);
	if (__atomic_load_n(&w->dp->idle, __ATOMIC_RELAXED) != IDLE_POLL)
		sleeper_rest(w, received || worked || command);
}

int worker_run(void *arg)
{
	struct worker *w = arg;

	worker_begin(w);
	while (!atomic_load_explicit(&w->stop, memory_order_relaxed))
		worker_round(w);
	worker_end(w);
	return 0;
}
