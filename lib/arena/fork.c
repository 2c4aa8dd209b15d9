/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork() shares the arena's pages between parent and child, but each must have its own. So the
 * child copies them before its program continues, while the parent waits.
 *
 * The parent's other threads continue to write. They must not wait for the child, because they may
 * hold locks that fork() takes (malloc's). So the pages are write-protected, and before each write
 * a monitor saves a copy of the page where the child finds it.
 *
 * Memory that the forking thread itself writes meanwhile, its stack and its thread-local data,
 * becomes private memory of the parent while fork() runs, if it was swapped.
 *
 * The child's copy shows the moment at which the pages were protected. The lists of malloc() are
 * partly in these pages and partly in private memory, which the kernel copies: so that moment
 * should be one at which fork() holds malloc()'s locks (trap.h). If that is impossible, it is
 * shortly before.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "arena_impl.h"
#include "aside.h"
#include "hold.h"
#include "raw.h"
#include "thread.h"
#include "trap.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* A mapping of the arena at fork(). */
struct shot {
	const struct arena_file *f;
	uintptr_t s, e;
	uint64_t off;
	int prot;
	size_t first; /* index of its first page among all shots */
	bool held;
};

/* Pages that fork() itself writes; they are private while it runs. */
struct own {
	const struct arena_file *f;
	uintptr_t at;
	size_t len;
	uint64_t off;
	int prot;
	uint8_t *before; /* their original bytes */
	pid_t waiter;	 /* the forking thread while a helper works, else 0 */
};

static struct {
	/* Both arrays are not from malloc(), which may be swapped. */
	struct shot *shot;
	size_t nshots, shot_room, pages;
	uint8_t *aside; /* one slot per page, shared with the child */
	_Atomic uint8_t *is_aside;
	struct own *own;
	size_t nowns, own_room;
	pthread_t monitor;
	void *stack; /* the monitor's; in arena memory it would wait for itself */
	bool monitored;
	_Atomic pid_t watcher; /* the monitor; 0: not running yet */
	_Atomic bool armed; /* all mappings are protected; held threads must not continue earlier */
	bool exposed; /* some mapping is unprotected, as its userfaultfd belongs to the program */
	int done[2];  /* pipe from the child */
	int cancel;   /* for arena_unlock() */
	bool active;
	bool alone;  /* no other threads */
	bool parked; /* stopped until the child has its copy */
	bool copied; /* the child has its copy */
} fk;

/* Descriptors that a fork() needs, as the program may have used up all others by then. */
static struct {
	int done[2];  /* pipe from the child, for one fork(); other children may have it, too */
	int stop[2];  /* pipe to the monitor */
	int spare[2]; /* closed during fork(): for /proc, in parent and child */
} reserve = {{-1, -1}, {-1, -1}, {-1, -1}};

#define NO_COPY "libroci: out of memory for a copy of registered memory after fork()\n"

/* Neither parent nor child can continue with a shared stack or other shared memory that both write.
 */
static void give_up(const char *why)
{
	if (write(STDERR_FILENO, why, strlen(why)) < 0) { /* then without the sentence */
	}
	abort();
}

static void make_pipe(int fd[2])
{
	if (fd[0] < 0 && pipe2(fd, O_CLOEXEC))
		fd[0] = fd[1] = -1;
}

static void close_pair(int fd[2])
{
	for (int i = 0; i < 2; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
}

void fork_reserve(void)
{
	make_pipe(reserve.done);
	make_pipe(reserve.stop);
	for (int i = 0; i < 2; i++)
		if (reserve.spare[i] < 0)
			reserve.spare[i] = fcntl(arena.pagemap, F_DUPFD_CLOEXEC, 0);
}

static void *anonymous(size_t len, int flags)
{
	void *p = raw_mmap(
		NULL, len, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* @return @p array, or a larger one, that has room for more than @p n elements of @p size bytes;
 * NULL: out of memory, and the array stays. */
static void *with_room(void *array, size_t n, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 256;
	void *larger;

	if (n < *room)
		return array;
	larger = anonymous(more * size, MAP_PRIVATE);
	if (!larger)
		return NULL;
	if (array) {
		memcpy(larger, array, n * size);
		raw_munmap(array, *room * size);
	}
	*room = more;
	return larger;
}

static bool add_shot(const struct vma *v)
{
	struct shot *all = with_room(fk.shot, fk.nshots, &fk.shot_room, sizeof(*all));

	if (!all)
		return false;
	fk.shot = all;
	fk.shot[fk.nshots++] = (struct shot){.f = file_of(v),
		.s = v->start,
		.e = v->end,
		.off = v->off,
		.prot = v->prot,
		.first = fk.pages};
	fk.pages += (v->end - v->start) / arena.page;
	return true;
}

static bool take_shots(void)
{
	struct vma v;

	fk.nshots = fk.pages = 0;
	for (bool more = look_at(0, &v); more; more = maps_find(&arena.maps, v.end, &v))
		if (file_of(&v) && !add_shot(&v))
			return false;
	return true;
}

/* --- the forking thread's own pages ------------------------------------------------------- */

/* Replaces pages of the arena by private ones, or back. */
RAW_UNCHECKED static int replace(struct own *o, uint8_t *p, bool private)
{
	const uint8_t *now = (const uint8_t *)o->at;

	if (private) {
		raw_copy(p, now, o->len);
		raw_copy(o->before, p, o->len);
	} else { /* only changed bytes: peers may have written the others */
		for (size_t i = 0; i < o->len; i++)
			if (now[i] != o->before[i])
				p[i] = now[i];
	}
	raw_mprotect(p, o->len, o->prot);
	return raw_move(p, o->len, o->at);
}

static int exchange(struct own *o, bool private)
{
	uint8_t *p = private ? anonymous(o->len, MAP_PRIVATE)
			     : raw_mmap(NULL, o->len, PROT_READ | PROT_WRITE, MAP_SHARED, o->f->fd,
				       o->off);
	/* The caller's own pages matter more than sleeping threads that cannot be held. */
	struct hold h = {
		.at = o->at,
		.len = o->len,
		.alone = fk.alone,
		.waiter = o->waiter,
		.whole = true,
		.anyway = true,
	};
	int err;

	if (!p || p == MAP_FAILED)
		return -ENOMEM;
	err = raw_madvise(p, o->len, MADV_POPULATE_WRITE) && errno != EINVAL ? -errno : 0;
	if (!err)
		err = hold_begin(&h);
	if (!err) {
		err = replace(o, p, private);
		hold_end(&h, !err);
	}
	if (err)
		raw_munmap(p, o->len);
	return err;
}

static int make_private(void *arg)
{
	return exchange(arg, true);
}

static int make_shared(void *arg)
{
	return exchange(arg, false);
}

static void add_own(const struct vma *v, const struct span *span)
{
	const struct arena_file *f = file_of(v);
	uintptr_t s = v->start > span->s ? v->start : span->s & ~(f->page - 1);
	uintptr_t e = v->end < span->e ? v->end : (span->e + f->page - 1) & ~(f->page - 1);
	struct own *all, *o;

	if (s >= e)
		return;
	all = with_room(fk.own, fk.nowns, &fk.own_room, sizeof(*all));
	if (!all)
		give_up(NO_COPY);
	fk.own = all;
	o = &all[fk.nowns];
	*o = (struct own){
		.f = f, .at = s, .len = e - s, .off = v->off + (s - v->start), .prot = v->prot};
	o->before = anonymous(o->len, MAP_PRIVATE);
	if (!o->before)
		give_up(NO_COPY);
	fk.nowns++;
}

/* The caller runs @p work itself, unless the pages are those that it runs on. */
static void each_own(int (*work)(void *arg))
{
	int err;

	for (size_t i = 0; i < fk.nowns; i++) {
		struct own *o = &fk.own[i];

		o->waiter = 0;
		if (!is_own(o->at, o->at + o->len)) {
			err = work(o);
		} else {
			o->waiter = (pid_t)syscall(SYS_gettid);
			err = aside(work, o, sizeof(*o));
		}
		if (err)
			give_up("libroci: out of memory in fork() for registered memory\n");
		if (!fk.alone)
			nudge(o->at, o->at + o->len);
	}
}

/* @return whether a malloc arena of glibc may have its first heap at @p at: that begins with a
 * pointer to the arena's state, which follows it. Reads the file, as the program may unmap the
 * memory. */
static bool begins_heap(const struct vma *v, uintptr_t at)
{
	uint64_t state;

	return pread(file_of(v)->fd, &state, sizeof(state), (off_t)(v->off + (at - v->start))) ==
		       sizeof(state) &&
	       state > at && state - at < arena.page;
}

/* glibc's malloc keeps the state of an arena in its first heap, and resets it in the child before
 * any handler runs. */
static void add_heaps(const struct vma *v)
{
	uintptr_t at = (v->start + GLIBC_HEAP - 1) & ~(GLIBC_HEAP - 1);

	for (; at < v->end; at += GLIBC_HEAP)
		if (begins_heap(v, at))
			add_own(v, &(struct span){at, at + arena.page});
}

static void leave_arena(void)
{
	struct span own[2];
	struct vma v;

	own_spans(own);
	fk.nowns = 0;
	for (bool more = look_at(0, &v); more; more = maps_find(&arena.maps, v.end, &v)) {
		if (!file_of(&v))
			continue;
		add_own(&v, &own[0]);
		add_own(&v, &own[1]);
		add_heaps(&v);
	}
	each_own(make_private);
}

static void forget_owns(void)
{
	for (size_t i = 0; i < fk.nowns; i++)
		raw_munmap(fk.own[i].before, fk.own[i].len);
	if (fk.own)
		raw_munmap(fk.own, fk.own_room * sizeof(*fk.own));
	fk.own = NULL;
	fk.nowns = fk.own_room = 0;
}

static void return_to_arena(void)
{
	each_own(make_shared);
	forget_owns();
}

/* --- the monitor -------------------------------------------------------------------------- */

static const struct shot *shot_of(uintptr_t addr)
{
	size_t low = 0, high = fk.nshots;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (fk.shot[middle].e <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < fk.nshots && fk.shot[low].s <= addr ? &fk.shot[low] : NULL;
}

static void put_aside(uintptr_t addr)
{
	const struct shot *sh = shot_of(addr);
	size_t size = sh ? sh->f->page : arena.page;
	uintptr_t page = addr & ~(size - 1);

	if (sh) {
		size_t i = sh->first + (page - sh->s) / arena.page;

		if (!atomic_load(&fk.is_aside[i])) {
			/* Read the file: another thread may unmap the page. */
			if (pread(sh->f->fd, fk.aside + i * arena.page, size,
				    (off_t)(sh->off + (page - sh->s))) != (ssize_t)size)
				give_up(NO_COPY);
			/* Set before any thread can write the page. */
			for (size_t k = 0; k < size / arena.page; k++)
				atomic_store(&fk.is_aside[i + k], 1);
		}
	}
	hold_page_end(page, size);
}

static void *watch(void *arg)
{
	struct pollfd p[2] = {{.fd = hold_descriptor(), .events = POLLIN},
		{.fd = reserve.stop[0], .events = POLLIN}};
	uintptr_t addr;

	(void)arg;
	atomic_store(&fk.watcher, (pid_t)syscall(SYS_gettid));
	while (!atomic_load(&fk.armed))
		sched_yield();
	do {
		while (hold_waiter(&addr))
			put_aside(addr);
		poll(p, 2, -1);
	} while (!p[1].revents);
	return NULL;
}

/* @return the first page from @p from on that has the start of a thread's control block, or sh->e.
 * Reads the file: another thread may unmap the memory. */
static uintptr_t next_block(const struct shot *sh, uintptr_t from)
{
	static _Alignas(uint64_t) uint8_t bytes[PAGE_SIZE_MAX];
	off_t end = (off_t)(sh->off + (sh->e - sh->s));
	off_t at = (off_t)(sh->off + (from - sh->s));

	while (from < sh->e && (at = lseek(sh->f->fd, at, SEEK_DATA)) >= 0 && at < end) {
		off_t hole = lseek(sh->f->fd, at, SEEK_HOLE);

		for (; at < hole && at < end; at += (off_t)arena.page) {
			uintptr_t page = sh->s + ((uint64_t)at - sh->off);

			if (pread(sh->f->fd, bytes, arena.page, at) == (ssize_t)arena.page &&
				thread_block_in(bytes, page, arena.page))
				return page;
		}
	}
	return sh->e;
}

static bool protect_part(uintptr_t s, uintptr_t e)
{
	bool ok = !hold_shared(s, e - s);

	fk.exposed |= !ok;
	return ok;
}

/* With a userfaultfd for user mode, the kernel cannot write protected pages, and kills a thread
 * whose control block it cannot write (rseq). So the pages of such blocks, each smaller than a
 * page, stay unprotected: they are meaningless in a child, which has no other threads.  @return
 * whether any of it is protected */
static bool protect_shot(const struct shot *sh)
{
	const uintptr_t mask = ~(sh->f->page - 1);
	uintptr_t from = sh->s, to;
	bool any = false;

	if (hold_best() != ARENA_WRITERS_UFFD_USER || !(sh->prot & PROT_READ))
		return protect_part(sh->s, sh->e);
	for (; from < sh->e; from = (to + 2 * arena.page + sh->f->page - 1) & mask) {
		to = next_block(sh, from);
		if ((to & mask) > from)
			any |= protect_part(from, to & mask);
	}
	return any;
}

static bool monitor_possible(void)
{
	return !fk.alone && hold_can_share();
}

static void forget_stack(void)
{
	if (fk.stack)
		raw_munmap(fk.stack, ASIDE_STACK);
	fk.stack = NULL;
}

/* Called before fork() takes libc's locks. The monitor handles no signals: a handler that writes to
 * protected memory would wait for itself. */
static void start_monitor(void)
{
	if (reserve.stop[0] < 0)
		return;
	atomic_store(&fk.watcher, 0);
	fk.stack = anonymous(ASIDE_STACK, MAP_PRIVATE);
	fk.monitored = fk.stack && !aside_start(&fk.monitor, fk.stack, watch, NULL);
	if (!fk.monitored)
		forget_stack();
}

static void protect_shots(void)
{
	for (size_t i = 0; i < fk.nshots; i++)
		fk.shot[i].held = protect_shot(&fk.shot[i]);
}

static void protect(void)
{
	size_t len = fk.pages * (arena.page + 1);

	if (!fk.pages)
		return;
	fk.aside = anonymous(len, MAP_SHARED);
	fk.exposed = !fk.aside;
	if (!fk.aside)
		return;
	fk.is_aside = (_Atomic uint8_t *)(fk.aside + fk.pages * arena.page);
	protect_shots();
}

/* Must not allocate: fork() may hold libc's locks. */
static void take_snapshot(void)
{
	if (!take_shots())
		give_up(NO_COPY);
	if (!fk.monitored)
		return;
	protect();
	atomic_store(&fk.armed, true);
}

static void unprotect(void)
{
	for (size_t i = 0; i < fk.nshots; i++) {
		if (fk.shot[i].held)
			hold_shared_end(fk.shot[i].s, fk.shot[i].e - fk.shot[i].s);
		fk.shot[i].held = false;
	}
}

static void forget_shots(void)
{
	if (fk.shot)
		raw_munmap(fk.shot, fk.shot_room * sizeof(*fk.shot));
	fk.shot = NULL;
	fk.shot_room = 0;
}

static void forget_aside(void)
{
	if (fk.aside)
		raw_munmap(fk.aside, fk.pages * (arena.page + 1));
	fk.aside = NULL;
}

static void end_monitor(void)
{
	char byte = 0;

	if (!fk.monitored)
		return;
	atomic_store(&fk.armed, true); /* if fork() failed before the snapshot */
	unprotect();
	while (write(reserve.stop[1], &byte, 1) < 0 && errno == EINTR)
		;
	pthread_join(fk.monitor, NULL);
	while (read(reserve.stop[0], &byte, 1) < 0 && errno == EINTR)
		;
	forget_stack();
	forget_aside();
	fk.monitored = false;
}

/* --- the child's copy --------------------------------------------------------------------- */

/* @return the shot that covers @p s, for its saved pages; NULL if the memory was moved afterwards.
 */
static const struct shot *shot_for(const struct shot *m, uintptr_t s)
{
	const struct shot *sh = fk.aside ? shot_of(s) : NULL;

	return sh && sh->f == m->f && sh->off + (s - sh->s) == m->off + (s - m->s) ? sh : NULL;
}

/* Copies the pages of [@p s, @p s + @p len) that exist, as of fork(). */
static void copy_pages(const struct shot *sh, uintptr_t s, size_t len, uint8_t *to)
{
	uint64_t off = sh->off + (s - sh->s), end = off + len;

	for (off_t at = lseek(sh->f->fd, (off_t)off, SEEK_DATA); at >= 0 && (uint64_t)at < end;
		at = lseek(sh->f->fd, at, SEEK_DATA)) {
		off_t hole = lseek(sh->f->fd, at, SEEK_HOLE);

		if (hole < 0 || (uint64_t)hole > end)
			hole = (off_t)end;
		raw_copy(to + ((uint64_t)at - off), (void *)(s + ((uint64_t)at - off)),
			(size_t)(hole - at));
		at = hole;
	}
	/* Only afterwards: a page not saved by now was unmodified when it was copied. */
	for (size_t i = 0; fk.aside && i < len / arena.page; i++) {
		uintptr_t at = s + i * arena.page;
		const struct shot *then = shot_for(sh, at);
		size_t n = then ? then->first + (at - then->s) / arena.page : 0;

		if (then && atomic_load(&fk.is_aside[n]))
			raw_copy(to + i * arena.page, fk.aside + n * arena.page, arena.page);
	}
}

static void make_own(const struct shot *sh)
{
	size_t len;

	for (uintptr_t s = sh->s; s < sh->e; s += len) {
		uint8_t *p;

		len = sh->e - s < 16 * CHUNK ? sh->e - s : 16 * CHUNK;
		p = anonymous(len, MAP_PRIVATE);
		if (!p)
			give_up(NO_COPY);
		if (sh->prot & PROT_READ)
			copy_pages(sh, s, len, p);
		raw_mprotect(p, len, sh->prot);
		if (raw_move(p, len, s))
			give_up(NO_COPY);
	}
}

/* Handles all mappings that exist in the child, not the shots: those were taken while threads of
 * the parent could move memory, and mappings with MADV_DONTFORK do not exist here. */
static void make_all_own(void)
{
	struct maps now;
	struct vma v;

	if (maps_open(&now))
		give_up(NO_COPY);
	for (bool more = maps_find(&now, 0, &v); more; more = maps_find(&now, v.end, &v)) {
		if (file_of(&v))
			make_own(&(struct shot){.f = file_of(&v),
				.s = v.start,
				.e = v.end,
				.off = v.off,
				.prot = v.prot});
	}
	maps_close(&now);
}

static void copy_in_child(void)
{
	make_all_own();
	fk.copied = true;
	if (write(fk.done[1], "", 1) < 0) { /* the parent has died */
	}
}

static void wait_for_child(void)
{
	char byte;

	/* The child's end of the pipe closes when it dies; if fork() failed, there is none. */
	close(fk.done[1]);
	fk.done[1] = -1;
	while (read(fk.done[0], &byte, 1) < 0 && errno == EINTR)
		;
	close_pair(fk.done);
	fk.copied = true;
}

/* --- the moment of fork() ----------------------------------------------------------------- */

/* Stops the other threads, and makes this the moment of the child's copy: pages saved earlier do
 * not count. Protected pages stay protected, because of threads that cannot be stopped; except in
 * user mode, where the kernel must be able to write the signal frame to the stack of a sleeping
 * thread. */
static void park_instead(void)
{
	bool user = hold_best() == ARENA_WRITERS_UFFD_USER;

	while (!atomic_load(&fk.watcher)) /* the monitor, which must not be stopped */
		sched_yield();
	if (user)
		unprotect();
	fk.parked = !park(atomic_load(&fk.watcher), true);
	if (fk.parked)
		for (size_t i = 0; fk.aside && i < fk.pages; i++)
			atomic_store(&fk.is_aside[i], 0);
	else if (user)
		protect_shots();
}

/* Stops threads only at fork() itself, with libc's locks held: then no stopped thread holds one. */
static void before_fork(bool fork)
{
	bool may_park = fork && park_possible();

	fk.parked = may_park && !fk.monitored && !park(0, true);
	take_snapshot();
	if (may_park && fk.monitored && fk.exposed)
		park_instead();
}

/* In the child: runs before fork() resets data in its memory, such as the locks of FILEs. */
static void after_fork(bool child)
{
	if (child)
		copy_in_child();
	else if (fk.parked)
		wait_for_child();
	if (fk.parked)
		unpark();
}

/* --- the handlers ------------------------------------------------------------------------- */

static bool open_done(void)
{
	if (!pipe2(fk.done, O_CLOEXEC))
		return true;
	memcpy(fk.done, reserve.done, sizeof(fk.done));
	reserve.done[0] = reserve.done[1] = -1;
	return fk.done[0] >= 0;
}

void arena_fork_prepare(void)
{
	fk.cancel = arena_lock();
	fk.active = is_open();
	if (!fk.active)
		return;
	if (!open_done())
		give_up("libroci: no file descriptor in fork() for the copy of registered memory: "
			"raise the limit of open files (ulimit -n)\n");
	close_pair(reserve.spare);
	fk.alone = hold_alone(1);
	discard_fork_begin();
	fk.nshots = fk.pages = 0;
	atomic_store(&fk.armed, false);
	fk.parked = fk.copied = fk.exposed = false;
	leave_arena();
	if (monitor_possible())
		start_monitor();
	if (fk.alone || !trap_fork(before_fork, after_fork))
		take_snapshot();
}

void arena_fork_parent(void)
{
	trap_end();
	if (fk.active) {
		if (!fk.copied)
			wait_for_child();
		end_monitor();
		discard_fork_end();
		return_to_arena();
		forget_shots();
		fork_reserve();
		fk.active = false;
	}
	arena_unlock(fk.cancel);
}

/* Registrations open these even if they are refused, or leave the memory where it is. */
static void forget_maps(void)
{
	if (arena.maps.fd < 0)
		return;
	close(arena.pagemap);
	arena.pagemap = -1;
	maps_close(&arena.maps);
}

/* Closes descriptors that refer to the parent's address space. */
static void forget_all(void)
{
	hold_close();
	for (struct arena_file *f = arena.file; f < arena.file + ARENA_FILES; f++) {
		if (f->fd >= 0)
			close(f->fd);
		f->fd = -1;
		f->threshold = 0;
	}
	arena.holds = NULL; /* nothing is registered here */
	arena.epoch++;
	generations_forget();
}

void arena_fork_child(void)
{
	int cancel = fk.cancel;

	trap_end();
	discard_fork_child();
	if (fk.active) {
		if (!fk.copied)
			copy_in_child();
		close_pair(fk.done);
		close_pair(reserve.done);
		close_pair(reserve.stop);
		if (fk.monitored) {
			forget_stack();
			forget_aside();
		}
		forget_owns();
		forget_shots();
		memset((void *)&fk, 0, sizeof(fk));
		forget_all();
	}
	forget_maps();
	pthread_mutex_init(&arena.lock, NULL);
	pthread_setcancelstate(cancel, NULL);
}
