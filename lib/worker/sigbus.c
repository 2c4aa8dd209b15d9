/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "mr.h"
#include "sigbus.h"
#include "worker_impl.h"

/* Guards in pieces that are never freed, because a handler may be reading them. */
#define PIECE  1024u
#define PIECES 1024u
/* Spare mappings that the handler unmaps when the process has reached its limit. */
#define SPARES	 64u
#define PAUSE_NS 1000000
/* Buckets of guards by address, and the number of guards in a bucket that the handler checks: most
 * buckets have one or two. */
#define BUCKET_BITS 16
#define HOPS	    64u

/* The ranges that the handler compares with an address. Dense, since it may have to scan all of
 * them. */
struct range {
	_Atomic uintptr_t base;
	_Atomic size_t size; /* 0: free */
};

/* A guard changes only while no thread can access its memory, so the handler can safely read the
 * guard of the address that faulted. But it must not mistake for it another guard that is just
 * being changed. */
struct guard {
	_Atomic uint32_t version; /* odd while its range is written */
	_Atomic bool faulted;	  /* by the handler; until sigbus_take() */
	bool left;		  /* unguarded after it had faulted */
	struct sigbus_area area;
	_Atomic uint32_t next_faulted; /* index + 1 */
	uint32_t next_free;	       /* likewise */
	_Atomic uint32_t next[2];      /* in the lists of the blocks that it lies in: node_of() */
};

struct piece {
	struct range range[PIECE];
	struct guard guard[PIECE];
};

static struct {
	_Atomic(struct piece *) piece[PIECES];
	_Atomic uint32_t used;	  /* guards ever in use */
	_Atomic uint32_t faulted; /* index + 1 of the last that faulted, 0: none; by the handler */
	uint32_t taken;		  /* the same, of those that sigbus_take() goes through */
	uint32_t free;		  /* index + 1 of the first that is not, 0: none */
	/* Guards of areas of up to 2^order bytes: each lies in one or two such blocks. */
	_Atomic uint32_t bucket[1u << BUCKET_BITS];
	_Atomic uint64_t orders; /* a bit for each that there has been */
	_Atomic int notify;	 /* eventfd + 1 */
	_Atomic bool spare;	 /* the mappings are there; the handler clears it */
	uint8_t *spares;	 /* where they are, or were; changes only while `spare` is false */
	size_t page;		 /* of ordinary memory */
} table;

/* The worker of this thread. */
static __thread struct worker *bound;

void sigbus_bind(struct worker *w)
{
	bound = w;
}

static struct piece *piece_of(uint32_t i)
{
	return atomic_load_explicit(&table.piece[i / PIECE], memory_order_acquire);
}

static struct guard *guard_at(uint32_t i)
{
	return &piece_of(i)->guard[i % PIECE];
}

static bool inside(const struct range *r, uintptr_t addr)
{
	uintptr_t base = atomic_load_explicit(&r->base, memory_order_relaxed);

	return addr - base < atomic_load_explicit(&r->size, memory_order_relaxed);
}

/* --- by where they lie ------------------------------------------------------------------ */

static unsigned order_of(size_t size)
{
	return 64 - (unsigned)__builtin_clzll((size - 1) | 1);
}

/* The list of the block of 2^order bytes in which @p addr lies. */
static _Atomic uint32_t *bucket_of(unsigned order, uintptr_t addr)
{
	uint64_t block = (uint64_t)(addr >> order) << 6 | order;

	return &table.bucket[block * 0x9E3779B97F4A7C15u >> (64 - BUCKET_BITS)];
}

/* Guard @p id is on two lists at most: @p side is 0 for the block of its first byte, 1 for that of
 * its last. */
static uint32_t node_of(uint32_t id, unsigned side)
{
	return id << 1 | side;
}

static _Atomic uint32_t *next_of(uint32_t node)
{
	return &guard_at((node >> 1) - 1)->next[node & 1];
}

/* @return how many lists the guard of @p a is on, which are @p list. */
static unsigned lists_of(const struct sigbus_area *a, _Atomic uint32_t *list[2])
{
	unsigned order = order_of(a->size);
	uintptr_t first = (uintptr_t)a->base;

	list[0] = bucket_of(order, first);
	list[1] = bucket_of(order, first + a->size - 1);
	return list[0] == list[1] ? 1 : 2;
}

/* Control thread. A handler that walks a list meanwhile may follow a guard that moves to another
 * list, and miss the rest of its own. It then examines all guards. */
static void enter(uint32_t id)
{
	const struct sigbus_area *a = &guard_at(id - 1)->area;
	_Atomic uint32_t *list[2];
	unsigned n = lists_of(a, list);

	atomic_fetch_or_explicit(&table.orders, 1ull << order_of(a->size), memory_order_relaxed);
	for (unsigned side = 0; side < n; side++) {
		atomic_store_explicit(next_of(node_of(id, side)),
			atomic_load_explicit(list[side], memory_order_relaxed),
			memory_order_relaxed);
		atomic_store_explicit(list[side], node_of(id, side), memory_order_release);
	}
}

static void leave(uint32_t id)
{
	_Atomic uint32_t *list[2];
	unsigned n = lists_of(&guard_at(id - 1)->area, list);

	for (unsigned side = 0; side < n; side++) {
		_Atomic uint32_t *at = list[side];
		uint32_t node = node_of(id, side);

		while (atomic_load_explicit(at, memory_order_relaxed) != node)
			at = next_of(atomic_load_explicit(at, memory_order_relaxed));
		atomic_store_explicit(at, atomic_load_explicit(next_of(node), memory_order_relaxed),
			memory_order_release);
	}
}

/* --- in the handler ------------------------------------------------------------------- */

/* Whether guard @p i is that of @p addr, judged by a consistent pair of base and size. A guard that
 * changes during the check cannot be the one, because memory that this thread accesses stays
 * guarded (on a worker, until its next quiescent state). */
static bool guards(const struct piece *p, uint32_t i, uintptr_t addr)
{
	const struct guard *g = &p->guard[i];
	uint32_t version = atomic_load_explicit(&g->version, memory_order_acquire);
	bool found = inside(&p->range[i], addr);

	atomic_thread_fence(memory_order_acquire);
	return found && !(version & 1) &&
	       atomic_load_explicit(&g->version, memory_order_relaxed) == version;
}

/* Returns the index + 1 of the guard of @p addr that is on the list of @p order, 0 when there is
 * none. */
static uint32_t find_listed(unsigned order, uintptr_t addr)
{
	uint32_t node = atomic_load_explicit(bucket_of(order, addr), memory_order_acquire);

	for (unsigned n = 0; node && n < HOPS; n++) {
		uint32_t i = (node >> 1) - 1;

		if (guards(piece_of(i), i % PIECE, addr))
			return i + 1;
		node = atomic_load_explicit(next_of(node), memory_order_acquire);
	}
	return 0;
}

/* Returns the index + 1 of the guard of @p addr, 0 when there is none. */
static uint32_t find(uintptr_t addr)
{
	uint64_t orders = atomic_load_explicit(&table.orders, memory_order_relaxed);
	uint32_t n = atomic_load_explicit(&table.used, memory_order_acquire);
	const struct piece *p = NULL;

	while (orders) {
		unsigned order = 63 - (unsigned)__builtin_clzll(orders);
		uint32_t id = find_listed(order, addr);

		if (id)
			return id;
		orders &= ~(1ull << order);
	}
	/* The bucket changed meanwhile, or no guard has the address. */
	for (uint32_t i = 0; i < n; i++) {
		if (i % PIECE == 0)
			p = piece_of(i);
		if (unlikely(inside(&p->range[i % PIECE], addr)) && guards(p, i % PIECE, addr))
			return i + 1;
	}
	return 0;
}

/* Disables transparent huge pages: otherwise the first write would clear a whole one. */
static bool map_zeroes(uintptr_t base, size_t size)
{
	void *p = mmap((void *)base, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	if (p == MAP_FAILED)
		return false;
	madvise(p, size, MADV_NOHUGEPAGE);
	return true;
}

/* All except the first and the last, which may have been merged with neighbouring mappings. */
static bool give_spares_back(void)
{
	return atomic_exchange(&table.spare, false) &&
	       !munmap(table.spares + table.page, (SPARES - 2) * table.page);
}

/*
 * Maps zeroes over the page at @p addr. This splits a mapping, and the number of mappings is
 * limited (vm.max_map_count). At the limit the whole area is replaced, which splits nothing; other
 * workers that are in the middle of a packet there see zeroes too, at the expense of the area's
 * owner. Returns false for any error other than a shortage.
 */
static bool fill(const struct sigbus_area *a, uintptr_t addr)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uintptr_t base = (uintptr_t)a->base;
	uintptr_t page = base + (addr - base) / a->page * a->page;

	for (;;) {
		if (atomic_load(&table.spare) && map_zeroes(page, a->page))
			return true;
		if (map_zeroes(base, a->size))
			return true;
		if (errno != ENOMEM && errno != EAGAIN)
			return false;
		if (!give_spares_back()) /* the kernel itself is short of memory: retry */
			nanosleep(&pause, NULL);
	}
}

static void push_faulted(struct guard *g, uint32_t id)
{
	uint32_t head = atomic_load_explicit(&table.faulted, memory_order_relaxed);

	do
		atomic_store_explicit(&g->next_faulted, head, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(
		&table.faulted, &head, id, memory_order_release, memory_order_relaxed));
}

static void tell(struct guard *g, uint32_t id)
{
	int fd = atomic_load_explicit(&table.notify, memory_order_relaxed) - 1;
	uint64_t one = 1;

	if (g->area.list)
		mr_list_withdraw(g->area.list, g->area.mrs);
	if (!atomic_exchange_explicit(&g->faulted, true, memory_order_acq_rel))
		push_faulted(g, id);
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0) { /* it is already readable */
	}
	if (!bound)
		return;
	bound->faults++;
	if (g->area.kind == SIGBUS_RING)
		bound->core.count.access_faults++;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	int saved = errno;
	uintptr_t addr = (uintptr_t)info->si_addr;
	/* si_code distinguishes a fault of this thread from a signal sent by a process. */
	uint32_t id = info->si_code > 0 ? find(addr) : 0;

	if (id && fill(&guard_at(id - 1)->area, addr)) {
		tell(guard_at(id - 1), id);
		errno = saved;
		return;
	}
	/* Not shared memory: our own bug. The access repeats and ends the process. */
	signal(SIGBUS, SIG_DFL);
	if (info->si_code <= 0)
		raise(SIGBUS);
}

/* --- the control thread --------------------------------------------------------------- */

/* Every other page is readable, so that none can be merged with its neighbours. */
static int make_spares(void)
{
	size_t size = SPARES * table.page;
	uint8_t *p;

	if (atomic_load(&table.spare))
		return 0;
	if (table.spares) {
		munmap(table.spares, size);
		table.spares = NULL;
	}
	p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	table.spares = p;
	for (size_t at = 0; at < size; at += 2 * table.page)
		if (mprotect(p + at, table.page, PROT_READ))
			return -ENOMEM;
	atomic_store(&table.spare, true);
	return 0;
}

int sigbus_install(void)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};

	table.page = (size_t)sysconf(_SC_PAGESIZE);
	sigemptyset(&sa.sa_mask);
	return sigaction(SIGBUS, &sa, NULL) ? -errno : make_spares();
}

/* @return index + 1 of a free guard, 0 if memory is short. */
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
		struct piece *piece = calloc(1, sizeof(*piece));

		if (!piece)
			return 0;
		atomic_store_explicit(&table.piece[used / PIECE], piece, memory_order_release);
	}
	atomic_store_explicit(&table.used, used + 1, memory_order_release);
	return used + 1;
}

static void put_free(struct guard *g, uint32_t id)
{
	g->next_free = table.free;
	table.free = id;
}

static void set_range(uint32_t id, uintptr_t base, size_t size)
{
	struct guard *g = guard_at(id - 1);
	struct range *r = &piece_of(id - 1)->range[(id - 1) % PIECE];
	uint32_t version = atomic_load_explicit(&g->version, memory_order_relaxed);

	atomic_store_explicit(&g->version, version + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&r->base, base, memory_order_relaxed);
	atomic_store_explicit(&r->size, size, memory_order_relaxed);
	atomic_store_explicit(&g->version, version + 2, memory_order_release);
}

int sigbus_guard(const struct sigbus_area *a)
{
	uint32_t id;

	if (!a->page || !a->size || a->size % a->page || (uintptr_t)a->base % a->page)
		return -EINVAL;
	/* Only if the handler is installed: tests of higher layers have none. */
	if (table.page && make_spares())
		return -ENOMEM;
	id = take_free();
	if (!id)
		return -ENOMEM;
	guard_at(id - 1)->area = *a;
	set_range(id, (uintptr_t)a->base, a->size);
	enter(id);
	return (int)id;
}

void sigbus_unguard(int id)
{
	struct guard *g;

	if (id <= 0)
		return;
	g = guard_at((uint32_t)id - 1);
	set_range((uint32_t)id, 0, 0);
	leave((uint32_t)id);
	if (atomic_load_explicit(&g->faulted, memory_order_acquire))
		g->left = true; /* it is on the list: sigbus_take() frees it */
	else
		put_free(g, (uint32_t)id);
}

void sigbus_notify(int fd)
{
	atomic_store_explicit(&table.notify, fd + 1, memory_order_relaxed);
}

/* @return index + 1 of the next that faulted, 0: none. */
static uint32_t next_taken(void)
{
	if (!table.taken)
		table.taken = atomic_exchange_explicit(&table.faulted, 0, memory_order_acquire);
	return table.taken;
}

void *sigbus_take(enum sigbus_kind *kind)
{
	uint32_t id;

	while ((id = next_taken())) {
		struct guard *g = guard_at(id - 1);

		/* Read before it can be pushed again. */
		table.taken = atomic_load_explicit(&g->next_faulted, memory_order_relaxed);
		atomic_store_explicit(&g->faulted, false, memory_order_release);
		if (!g->left) {
			*kind = g->area.kind;
			return g->area.owner;
		}
		g->left = false;
		put_free(g, id);
	}
	return NULL;
}
