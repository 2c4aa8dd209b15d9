/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces private memory by pages of the arena, chunk by chunk. */
#include <signal.h>
#include <string.h>
#include <time.h>
#include "arena_impl.h"
#include "aside.h"
#include "hold.h"
#include "raw.h"
#include "thread.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define PAGES_MAX (CHUNK / 4096)
#define PRESENT	  (3ull << 62) /* in memory, or swapped out */
#define GUARD	  (1ull << 58) /* MADV_GUARD_INSTALL; Linux 6.15 */

/* Used only in this file: pages that are pinned, and a huge page that cannot be split, because one
 * of its pages is pinned or the kernel has locked it. A busy machine may take a thread that locked
 * it off its CPU for seconds. */
#define PINNED	     ETXTBSY
#define WHOLE	     EDEADLK
#define PIN_LOOKS    1000u
#define WHOLE_LOOKS  5000u
#define PIN_PAUSE_NS 1000000

struct job {
	const struct arena_file *f;
	const struct vma *v;
	uintptr_t s, e;
	uint64_t off;
	struct traits traits;
	bool alone;
	pid_t waiter;	/* waits for a helper and runs no code */
	uintptr_t away; /* chunks are moved here, then copied; 0: copied in place */
	bool present;	/* some page existed, so it may have a futex */
};

/* A chunk, with one pagemap word per page. */
struct chunk {
	uintptr_t at;
	size_t len;
	uint8_t *stage; /* the new pages */
	uintptr_t from; /* the old pages */
	uint64_t pages[PAGES_MAX];
};

/* --- one chunk -------------------------------------------------------------------------- */

/* Determines which pages exist. With a file all count: absent ones have the file's bytes. */
static int look(struct chunk *c, const struct vma *v)
{
	size_t n = c->len / arena.page, size = n * sizeof(c->pages[0]);
	off_t at = (off_t)(c->at / arena.page * sizeof(c->pages[0]));
	uint64_t all = 0;

	if (pread(arena.pagemap, c->pages, size, at) != (ssize_t)size)
		return -EAGAIN;
	for (size_t i = 0; i < n; i++)
		all |= c->pages[i];
	if (!v->anonymous)
		memset(c->pages, 0xFF, size);
	return all & GUARD ? -EFAULT : 0;
}

static bool is_present(const struct chunk *c, size_t i)
{
	return c->pages[i] & PRESENT;
}

static bool any_present(const struct chunk *c)
{
	size_t i = 0, n = c->len / arena.page;

	while (i < n && !is_present(c, i))
		i++;
	return i < n;
}

/* Calls madvise() for each run of present pages. */
static int advise_present(const struct chunk *c, uint8_t *base, int advice)
{
	size_t n = c->len / arena.page;

	for (size_t i = 0, end; i < n; i = end + 1) {
		for (end = i; end < n && is_present(c, end); end++)
			;
		if (end > i && raw_madvise(base + i * arena.page, (end - i) * arena.page, advice) &&
			errno != EINVAL) /* older kernels do not support the advice */
			return -errno;
	}
	return 0;
}

/* A control block may begin in the page before the chunk, which another thread may unmap, as it is
 * not being registered. */
static bool has_thread_before(const struct chunk *c)
{
	static _Alignas(uint64_t) uint8_t bytes[PAGE_SIZE_MAX];
	uintptr_t at = c->at - arena.page;

	/* Assume so if it cannot be read. */
	return !peek(at, bytes, arena.page) || thread_block_in(bytes, at, arena.page);
}

static bool has_threads(const struct chunk *c, const struct vma *v)
{
	bool found = c->at > v->start && has_thread_before(c);

	for (size_t i = 0; !found && i < c->len / arena.page; i++) {
		uintptr_t at = c->at + i * arena.page;

		found = is_present(c, i) && thread_block_in((const uint8_t *)at, at, arena.page);
	}
	return found;
}

static void copy(const struct chunk *c, struct job *j)
{
	size_t n = c->len / arena.page;

	for (size_t i = 0; i < n; i++) {
		size_t at = i * arena.page;

		if (!is_present(c, i))
			continue;
		raw_copy(c->stage + at, (const void *)(c->from + at), arena.page);
		j->present = true;
	}
}

/* Runs between hold_begin() and hold_end(): see raw.h. */
static int replace(struct chunk *c, struct job *j, const struct hold *h)
{
	uintptr_t away = j->away ? j->away + c->at % CHUNK : 0;
	int err = look(c, j->v);

	if (err)
		return err;
	c->from = c->at;
	if (away && any_present(c)) {
		err = hold_take(h, away);
		if (err == -EBUSY)
			return -PINNED;
		if (err == -EAGAIN)
			return -WHOLE;
		c->from = err ? c->at : away;
	}
	copy(c, j);
	err = j->v->prot != (PROT_READ | PROT_WRITE) && raw_mprotect(c->stage, c->len, j->v->prot)
		      ? -errno
		      : raw_move(c->stage, c->len, c->at);
	if (err && c->from != c->at)
		hold_give_back(h, c->from, c->len);
	return err;
}

/* Blocks signals: a handler in this thread would wait for itself. */
static int replace_once(struct chunk *c, struct job *j, struct hold *h)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = hold_begin(h);
	if (!err) {
		err = replace(c, j, h);
		hold_end(h, !err);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

/* A page that a system call has pinned is released when that ends, as with O_DIRECT, or stays
 * pinned, as with buffers of io_uring. One that is shared with a child looks the same until it is
 * written. */
static int replace_held(struct chunk *c, struct job *j, struct hold *h)
{
	const struct timespec pause = {.tv_nsec = PIN_PAUSE_NS};
	unsigned pinned = 0, whole = 0;
	int err;

	for (;;) {
		err = replace_once(c, j, h);
		pinned += err == -PINNED;
		whole += err == -WHOLE;
		if ((err != -PINNED && err != -WHOLE) || pinned == PIN_LOOKS ||
			whole == WHOLE_LOOKS)
			break;
		advise_present(c, (uint8_t *)c->at, MADV_POPULATE_WRITE);
		if (pinned + whole > 1)
			nanosleep(&pause, NULL);
	}
	if (!err && c->from != c->at)
		raw_madvise((void *)c->from, c->len, MADV_DONTNEED);
	return err;
}

/* Searches for control blocks only if they matter. */
static bool may_fail(const struct chunk *c, const struct job *j)
{
	return !j->alone && hold_best() == ARENA_WRITERS_UFFD_USER && has_threads(c, j->v);
}

static int swap_chunk(struct chunk *c, struct job *j)
{
	uint64_t off = j->off + (c->at - j->s);
	struct hold hold = {.at = c->at, .len = c->len, .alone = j->alone, .waiter = j->waiter};
	int err;

	/* Huge pages are reserved, as the original ones were. */
	c->stage = raw_mmap(NULL, c->len, PROT_READ | PROT_WRITE,
		MAP_SHARED | (j->f->page > arena.page ? 0 : MAP_NORESERVE), j->f->fd, off);
	if (c->stage == MAP_FAILED)
		return -errno;
	traits_keep(&j->traits, c->stage, c->len);
	/* Populate the new pages before anybody has to wait. */
	err = look(c, j->v);
	if (!err && !j->v->anonymous)
		err = raw_madvise((void *)c->at, c->len, MADV_POPULATE_READ) && errno != EINVAL
			      ? -errno
			      : 0;
	if (!err)
		err = advise_present(c, c->stage, MADV_POPULATE_WRITE);
	if (!err) {
		hold.blocks = may_fail(c, j);
		err = replace_held(c, j, &hold);
	}
	if (err) {
		raw_munmap(c->stage, c->len);
		return err;
	}
	if (j->traits.locked) /* only now: earlier, both copies would have counted as locked */
		syscall(SYS_mlock2, c->at, c->len, MLOCK_ONFAULT);
	arena.stats.swapped += c->len;
	return 0;
}

/* Aligned like the chunks themselves, so that a huge page is moved whole. */
static void make_place(struct job *j, struct span *all)
{
	bool can = hold_can_take() && j->v->anonymous && j->f->page == arena.page &&
		   j->v->prot & PROT_WRITE && !j->traits.locked;
	bool part = j->s / CHUNK == (j->e - 1) / CHUNK && j->e - j->s < CHUNK;
	size_t len = part ? CHUNK : 2 * CHUNK;
	void *p = can ? raw_mmap(NULL, len, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
		      : MAP_FAILED;

	j->away = 0;
	*all = (struct span){0, 0};
	if (p == MAP_FAILED)
		return;
	*all = (struct span){(uintptr_t)p, (uintptr_t)p + len};
	j->away = part ? all->s : (all->s + CHUNK - 1) & ~(CHUNK - 1ul);
	if (hold_place(all->s, len))
		j->away = 0;
}

static int swap_chunks(struct job *j)
{
	struct chunk c;
	struct span place;
	int err = 0;

	make_place(j, &place);
	for (c.at = j->s; c.at < j->e && !err; c.at += c.len) {
		c.len = CHUNK - c.at % CHUNK;
		if (c.len > j->e - c.at)
			c.len = j->e - c.at;
		err = swap_chunk(&c, j);
	}
	if (place.s)
		raw_munmap((void *)place.s, place.e - place.s);
	return err;
}

/* The helper's copy of the job. */
struct own_job {
	struct job j;
	struct vma v;
};

static int swap_own(void *arg)
{
	struct own_job *o = arg;

	o->j.v = &o->v;
	return swap_chunks(&o->j);
}

static int swap_aside(struct job *j)
{
	struct own_job o = {.j = *j, .v = *j->v};
	int err;

	o.j.waiter = (pid_t)syscall(SYS_gettid);
	err = aside(swap_own, &o, sizeof(o));
	j->present = o.j.present;
	return err;
}

/* The main stack grows from its lowest page, which must not be swapped. */
static void make_room_below(const struct vma *v, uintptr_t s)
{
	if (v->stack && s - v->start < (64u << 10))
		*(volatile char *)(v->start - (64u << 10)) = 0;
}

static int explain(int err, const struct job *j, char why[ARENA_WHY_MAX])
{
	switch (-err) {
	case EPERM:
		return refuse(why, EPERM,
			"memory at %#lx is sealed (mseal), so it cannot be replaced by memory that "
			"rocid can access: register it before sealing it",
			(unsigned long)j->s);
	case EBUSY:
		return refuse(why, EBUSY,
			"memory at %#lx is a private mapping of a file, and a thread that blocks "
			"all signals could write to it meanwhile: register it before the thread "
			"starts, or use memory of malloc() or roci_alloc_mem()",
			(unsigned long)j->s);
	case PINNED:
	case WHOLE:
		return refuse(why, EBUSY,
			"pages at %#lx are pinned, or in a huge page with one that is: the kernel "
			"may write there later (fixed buffers of io_uring, vfio, GPUs). Register "
			"the memory for RDMA first and then with these",
			(unsigned long)j->s);
	case EOPNOTSUPP:
		return refuse(why, EOPNOTSUPP,
			"writes of other threads cannot be held while memory is made "
			"shared: give rocid access to /dev/userfaultfd, or use roci_alloc_mem()");
	case EFAULT:
		return refuse(why, EFAULT,
			"memory at %#lx has pages that are not readable (MADV_GUARD_INSTALL, or "
			"past the end of a file): register only the memory around them",
			(unsigned long)j->s);
	case ENOMEM:
		if (j->f->page > arena.page)
			return refuse(why, ENOMEM,
				"no huge page is free, but one more is needed while those at %#lx "
				"are made shared: raise vm.nr_hugepages or "
				"vm.nr_overcommit_hugepages",
				(unsigned long)j->s);
		return refuse(why, ENOMEM,
			"memory at %#lx cannot be made shared with rocid: out of memory, or the "
			"program has too many mappings (vm.max_map_count): register fewer and "
			"larger parts",
			(unsigned long)j->s);
	default:
		return refuse(why, -err, "memory at %#lx cannot be made shared with rocid: %s",
			(unsigned long)j->s, strerror(-err));
	}
}

int swap_range(const struct arena_file *f, const struct vma *v, const struct fresh *m, uint64_t off,
	char why[ARENA_WHY_MAX])
{
	struct job j = {.f = f, .v = v, .s = m->s, .e = m->e, .off = off, .alone = m->alone};
	int err = traits_of(v, m->s, &j.traits);

	/* Chunks of one range must have the same advice, or they are several mappings, which
	 * mremap() does not extend. */
	j.traits.huge = j.e - j.s >= CHUNK;
	if (!err) {
		make_room_below(v, m->s);
		err = is_own(m->s, m->e) ? swap_aside(&j) : swap_chunks(&j);
	}
	/* The kernel finds the futexes of robust and process-shared mutexes, and that in a thread's
	 * control block (pthread_join()), by their page: make waiters look again. Some chunks may
	 * have been replaced before an error. */
	if (j.present && !j.alone)
		nudge(m->s, m->e);
	return err ? explain(err, &j, why) : 0;
}
