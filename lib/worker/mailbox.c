/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <rte_cycles.h>
#include <rte_pause.h>
#include "worker_impl.h"

/* Rounds of waiting before the control thread offers its CPU: a worker that polls answers
 * within a few microseconds, one that shares the caller's core only when it gets to run. */
#define SPINS 1000

bool mailbox_poll(struct worker *w)
{
	struct mailbox *mb = &w->mailbox;
	struct core_cmd *cmd = atomic_load_explicit(&mb->cmd, memory_order_acquire);
	int result;

	if (likely(!cmd))
		return false;
	result = core_cmd(&w->core, cmd, w->now);
	if (result == -EAGAIN) /* the next step in the next round, packets in between */
		return true;
	mb->result = result;
	atomic_store_explicit(&mb->cmd, NULL, memory_order_release);
	return true;
}

/* The worker has stopped, so its core is the caller's. */
static int call_stopped(struct worker *w, struct core_cmd *cmd)
{
	int result;

	atomic_store_explicit(&w->mailbox.cmd, NULL, memory_order_relaxed);
	do {
		w->now = clock_at(&w->clock, rte_rdtsc());
		result = core_cmd(&w->core, cmd, w->now);
	} while (result == -EAGAIN);
	return result;
}

int worker_call(struct worker *w, struct core_cmd *cmd)
{
	struct mailbox *mb = &w->mailbox;

	atomic_store_explicit(&mb->cmd, cmd, memory_order_release);
	worker_wake(w);
	for (unsigned spins = 0;; spins++) {
		/* in this order: a worker that answered and then stopped has answered */
		bool running = worker_running(w);

		if (!atomic_load_explicit(&mb->cmd, memory_order_acquire))
			return mb->result;
		if (!running)
			return call_stopped(w, cmd);
		if (spins < SPINS)
			rte_pause();
		else
			sched_yield();
	}
}
