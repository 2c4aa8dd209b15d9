/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <rte_cycles.h>
#include "core.h"
#include "core_command.h"
#include "worker_impl.h"

/* Rounds in which a full inbox is emptied twice. */
#define QUIET_ROUNDS (2 * INBOX_SIZE / BURST)

/* Whether no frame sent or passed on for this worker is waiting. Then later frames cannot overtake
 * any frame of a QP that is given away. RC would recover from that by retransmission; so a worker
 * that never reaches this state does not hold up the command. */
static bool quiet(struct worker *w)
{
	bool empty = inbox_empty(&w->inbox) && !w->laid;

	for (uint32_t i = 0; i < w->nports; i++)
		empty &= !w->port[i].count;
	return empty || ++w->mailbox.waited > QUIET_ROUNDS;
}

static int execute(struct worker *w, struct core_cmd *cmd)
{
	int result;

	if (cmd->type == CORE_CMD_GIVE_QP && !quiet(w))
		return -EAGAIN;
	w->mailbox.waited = 0;
	result = core_cmd(&w->core, cmd, w->now);
	w->stats.qps_given += cmd->type == CORE_CMD_GIVE_QP && !result;
	return result;
}

bool mailbox_poll(struct worker *w)
{
	struct mailbox *mb = &w->mailbox;
	struct core_cmd *cmd = atomic_load_explicit(&mb->cmd, memory_order_acquire);
	int result;

	if (likely(!cmd))
		return false;
	result = execute(w, cmd);
	if (result == -EAGAIN) /* the next step in the next round, packets in between */
		return true;
	mb->result = result;
	atomic_store_explicit(&mb->cmd, NULL, memory_order_release);
	return true;
}

/* Does the work of grace_poll(), because a stopped worker does not call that. */
static void end_grace(struct worker *w)
{
	uint32_t wanted = core_grace_wanted(&w->core);

	if (!wanted)
		return;
	worker_grace(w->dp);
	core_grace_end(&w->core, wanted);
	w->grace = 0;
}

/* The worker has stopped, so the caller may use its core. */
static int call_stopped(struct worker *w, struct core_cmd *cmd)
{
	int result;

	atomic_store_explicit(&w->mailbox.cmd, NULL, memory_order_relaxed);
	do {
		w->now = clock_at(&w->clock, rte_rdtsc());
		result = execute(w, cmd);
		if (result == -EAGAIN)
			end_grace(w);
	} while (result == -EAGAIN);
	return result;
}

int worker_call(struct worker *w, struct core_cmd *cmd)
{
	struct mailbox *mb = &w->mailbox;

	atomic_store_explicit(&mb->cmd, cmd, memory_order_release);
	worker_wake(w);
	for (unsigned turns = 0;; worker_wait(&turns)) {
		/* in this order: a worker that answered and then stopped has answered */
		bool running = worker_running(w);

		if (!atomic_load_explicit(&mb->cmd, memory_order_acquire))
			return mb->result;
		if (!running)
			return call_stopped(w, cmd);
	}
}
