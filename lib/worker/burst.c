/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include "burst.h"

/* Where a fault of this thread resumes; NULL: it is in no burst of a fragile port. */
static _Thread_local sigjmp_buf *way_out;

static void on_sigsegv(int sig, siginfo_t *info, void *context)
{
	/* si_code distinguishes a fault of this thread from a signal sent by a process. */
	if (way_out && info->si_code > 0)
		siglongjmp(*way_out, 1);
	/* Our own bug. The access repeats and ends the process. */
	signal(SIGSEGV, SIG_DFL);
	if (info->si_code <= 0)
		raise(SIGSEGV);
}

int burst_install(void)
{
	/* SA_NODEFER: the handler is left without restoring the mask of signals. */
	struct sigaction sa = {.sa_sigaction = on_sigsegv, .sa_flags = SA_SIGINFO | SA_NODEFER};

	sigemptyset(&sa.sa_mask);
	return sigaction(SIGSEGV, &sa, NULL) ? -errno : 0;
}

static void begin(sigjmp_buf *here)
{
	way_out = here;
	atomic_signal_fence(memory_order_seq_cst);
}

static void end(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	way_out = NULL;
}

uint16_t burst_rx_fragile(const struct worker_port *p, struct rte_mbuf **m)
{
	sigjmp_buf here;
	uint16_t n;

	if (sigsetjmp(here, 0)) {
		end();
		return 0;
	}
	begin(&here);
	n = rte_eth_rx_burst(p->ethdev, p->queue, m, BURST);
	end();
	return n;
}

uint16_t burst_tx_fragile(const struct worker_port *p, struct rte_mbuf **m, uint16_t n)
{
	sigjmp_buf here;
	uint16_t sent;

	if (sigsetjmp(here, 0)) {
		end();
		return n;
	}
	begin(&here);
	sent = rte_eth_tx_burst(p->ethdev, p->queue, m, n);
	end();
	return sent;
}
