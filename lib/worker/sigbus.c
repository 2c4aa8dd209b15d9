/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include "worker_impl.h"

/* The worker that this thread is. */
static __thread struct worker *bound;

void sigbus_bind(struct worker *w)
{
	bound = w;
}

/* Whether @p addr lies in registered memory. This runs in the signal handler of a worker
 * between two quiescent states, where an entry that it can see is not freed. */
static bool registered(const struct mr_table *t, uintptr_t addr)
{
	for (uint32_t i = 0; i < MR_MAX; i++) {
		const struct mr *mr = atomic_load_explicit(&t->slot[i], memory_order_acquire);

		if (mr && addr - (uintptr_t)mr->base < mr->length)
			return true;
	}
	return false;
}

/* Puts zeroes over the page at @p addr. Its size is not known here: a huge page's mapping
 * refuses a part to be replaced (EINVAL), so the sizes are tried from the smallest. */
static bool map_zeroes(uintptr_t addr)
{
	static const uintptr_t size[] = {4096, 2u << 20, 1u << 30};

	for (unsigned i = 0; i < ARRAY_SIZE(size); i++) {
		void *page = (void *)(addr & ~(size[i] - 1));

		if (mmap(page, size[i], PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page)
			return true;
		if (errno != EINVAL)
			return false;
	}
	return false;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	int saved = errno;
	uintptr_t addr = (uintptr_t)info->si_addr;

	/* si_code tells a fault of this thread from a signal that somebody sent. */
	if (info->si_code > 0 && bound && registered(bound->dp->mrs, addr) && map_zeroes(addr)) {
		bound->faults++;
		errno = saved;
		return;
	}
	/* Not application memory: our own bug. The access repeats and ends the process. */
	signal(SIGBUS, SIG_DFL);
	if (info->si_code <= 0)
		raise(SIGBUS);
}

int worker_install_sigbus(void)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};

	sigemptyset(&sa.sa_mask);
	return sigaction(SIGBUS, &sa, NULL) ? -errno : 0;
}
