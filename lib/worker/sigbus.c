/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "sigbus.h"
#include "worker_impl.h"

/* Guards in pieces that are never freed, because a handler may be reading them. */
#define PIECE  1024u
#define PIECES 1024u

/* The handler takes `size` first: while it is 0 the rest means nothing. */
struct guard {
	_Atomic size_t size; /* 0: free */
	_Atomic uintptr_t base;
	_Atomic bool faulted; /* the handler sets it, sigbus_take() clears it */
	enum sigbus_kind kind;
	void *owner;
	uint32_t next_free; /* index + 1 */
};

static struct {
	_Atomic(struct guard *) piece[PIECES];
	_Atomic uint32_t used; /* guards ever in use */
	uint32_t free;	       /* index + 1 of the first that is not, 0: none */
	_Atomic int notify;    /* eventfd + 1 */
} table;

/* The worker that this thread is. */
static __thread struct worker *bound;

void sigbus_bind(struct worker *w)
{
	bound = w;
}

static struct guard *guard_at(uint32_t i)
{
	struct guard *piece = atomic_load_explicit(&table.piece[i / PIECE], memory_order_acquire);

	return &piece[i % PIECE];
}

/* --- in the handler ------------------------------------------------------------------- */

/* On a worker this is between two quiescent states, and its mappings outlive those. */
static struct guard *find(uintptr_t addr)
{
	uint32_t n = atomic_load_explicit(&table.used, memory_order_acquire);

	for (uint32_t i = 0; i < n; i++) {
		struct guard *g = guard_at(i);
		size_t size = atomic_load_explicit(&g->size, memory_order_acquire);

		if (addr - atomic_load_explicit(&g->base, memory_order_relaxed) < size)
			return g;
	}
	return NULL;
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

static void tell(struct guard *g)
{
	int fd = atomic_load_explicit(&table.notify, memory_order_relaxed) - 1;
	uint64_t one = 1;

	atomic_store_explicit(&g->faulted, true, memory_order_release);
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0) { /* it is readable already */
	}
	if (!bound)
		return;
	bound->faults++;
	if (g->kind == SIGBUS_RING)
		bound->core.count.access_faults++;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	int saved = errno;
	uintptr_t addr = (uintptr_t)info->si_addr;
	/* si_code tells a fault of this thread from a signal that somebody sent. */
	struct guard *g = info->si_code > 0 ? find(addr) : NULL;

	if (g && map_zeroes(addr)) {
		tell(g);
		errno = saved;
		return;
	}
	/* Not shared memory: our own bug. The access repeats and ends the process. */
	signal(SIGBUS, SIG_DFL);
	if (info->si_code <= 0)
		raise(SIGBUS);
}

int sigbus_install(void)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};

	sigemptyset(&sa.sa_mask);
	return sigaction(SIGBUS, &sa, NULL) ? -errno : 0;
}

/* --- the control thread --------------------------------------------------------------- */

/* @return index + 1 of a free guard, 0 when memory is short. */
static uint32_t take_free(void)
{
	uint32_t used = atomic_load_explicit(&table.used, memory_order_relaxed);
	uint32_t id = table.free;

	if (id) {
		table.free = guard_at(id - 1)->next_free;
		return id;
	}
	if (used == PIECE * PIECES)
		return 0;
	if (used % PIECE == 0) {
		struct guard *piece = calloc(PIECE, sizeof(*piece));

		if (!piece)
			return 0;
		atomic_store_explicit(&table.piece[used / PIECE], piece, memory_order_release);
	}
	atomic_store_explicit(&table.used, used + 1, memory_order_release);
	return used + 1;
}

int sigbus_guard(void *base, size_t size, enum sigbus_kind kind, void *owner)
{
	uint32_t id = take_free();
	struct guard *g;

	if (!id)
		return -ENOMEM;
	g = guard_at(id - 1);
	g->kind = kind;
	g->owner = owner;
	atomic_store_explicit(&g->faulted, false, memory_order_relaxed);
	atomic_store_explicit(&g->base, (uintptr_t)base, memory_order_relaxed);
	atomic_store_explicit(&g->size, size, memory_order_release);
	return (int)id;
}

void sigbus_unguard(int id)
{
	struct guard *g;

	if (id <= 0)
		return;
	g = guard_at((uint32_t)id - 1);
	atomic_store_explicit(&g->size, 0, memory_order_release);
	g->next_free = table.free;
	table.free = (uint32_t)id;
}

void sigbus_notify(int fd)
{
	atomic_store_explicit(&table.notify, fd + 1, memory_order_relaxed);
}

void *sigbus_take(void **base)
{
	uint32_t n = atomic_load_explicit(&table.used, memory_order_relaxed);

	for (uint32_t i = 0; i < n; i++) {
		struct guard *g = guard_at(i);

		if (!atomic_load_explicit(&g->size, memory_order_relaxed) ||
			!atomic_exchange_explicit(&g->faulted, false, memory_order_acquire))
			continue;
		*base = (void *)atomic_load_explicit(&g->base, memory_order_relaxed);
		return g->owner;
	}
	return NULL;
}
