/* SPDX-License-Identifier: BSD-3-Clause */
/* Which pages of the arena memory gets, what is refused and how, what is given back. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <cmocka.h>
#include "fixture.h"

#ifndef MADV_GUARD_INSTALL /* Linux 6.13 */
#define MADV_GUARD_INSTALL 102
#endif

static uint64_t blocks(void)
{
	struct stat st;

	assert_int_equal(fstat(arena.file[ORDINARY].fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* --- pieces ----------------------------------------------------------------------------- */

static void take__bytes_of_pages(void **state)
{
	uint8_t *p = anon(4 * PAGE);
	struct arena_hold *h;

	(void)state;
	memset(p, 5, 4 * PAGE);
	h = take(p + PAGE + 7, PAGE);
	assert_int_equal(h->npieces, 1);
	assert_int_equal(h->piece[0].len, PAGE);
	assert_true(
		(h->piece[0].off - ((uintptr_t)p + PAGE + 7)) % (1ull << GENERATION_SHIFT) == 0);
	p[PAGE + 8] = 9;
	same(h, p + PAGE + 7, PAGE);
	assert_int_equal(p[0], 5);
	assert_int_equal(p[3 * PAGE], 5);
	arena_release(h);
	munmap(p, 4 * PAGE);
}

/* Moved already: nothing is copied again, and it is the same page. */
static void take__again(void **state)
{
	uint8_t *p = anon(4 * PAGE);
	struct arena_hold *a = take(p, 4 * PAGE), *b;
	uint64_t swapped = arena_stats().swapped;

	(void)state;
	b = take(p + PAGE, PAGE);
	assert_true(b->piece[0].off == a->piece[0].off + PAGE);
	assert_true(arena_stats().swapped == swapped);
	arena_release(a);
	arena_release(b);
	munmap(p, 4 * PAGE);
}

/* Parts that were moved one by one, and what is between them, are one piece. */
static void take__parts_then_all(void **state)
{
	uint8_t *p = anon(8 * PAGE);
	struct arena_hold *a, *b, *c;

	(void)state;
	for (size_t i = 0; i < 8 * PAGE; i++)
		p[i] = (uint8_t)(i >> 5);
	a = take(p + 2 * PAGE, PAGE);
	b = take(p + 5 * PAGE, PAGE);
	c = take(p, 8 * PAGE);
	same(c, p, 8 * PAGE);
	assert_in_range(c->npieces, 1, 5);
	same(a, p + 2 * PAGE, PAGE);
	same(b, p + 5 * PAGE, PAGE);
	arena_release(a);
	arena_release(b);
	arena_release(c);
	munmap(p, 8 * PAGE);
}

/* Chunks begin at multiples of 2 MiB, wherever the memory begins. */
static void take__several_chunks(void **state)
{
	uint8_t *p = anon(9 * MB);
	struct arena_hold *h;

	(void)state;
	for (size_t i = 0; i < 9 * MB; i += 61)
		p[i] = (uint8_t)(i / 61);
	h = take(p + 3 * PAGE + 1, 8 * MB - PAGE);
	assert_int_equal(h->npieces, 1);
	same(h, p + 3 * PAGE + 1, 8 * MB - PAGE);
	for (size_t i = 0; i < 9 * MB; i += 61)
		assert_int_equal(p[i], (uint8_t)(i / 61));
	arena_release(h);
	munmap(p, 9 * MB);
}

/* A range is one mapping, also if it begins or ends within a huge page: mremap() extends only one.
 */
static void take__one_mapping(void **state)
{
	uint8_t *p = anon(6 * MB + PAGE);
	struct vma v;

	(void)state;
	memset(p, 1, 6 * MB + PAGE);
	arena_release(take(p, 6 * MB + PAGE));
	assert_true(look_at((uintptr_t)p, &v));
	assert_true(v.start == (uintptr_t)p && v.end == (uintptr_t)p + 6 * MB + PAGE);
	munmap(p, 6 * MB + PAGE);
}

static void absent_pages_stay_absent(void)
{
	uint8_t *p = anon(64 * MB);
	struct arena_hold *h;
	uint64_t before;

	arena_release(take(p, 1));
	before = blocks();
	p[30 * MB] = 1;
	h = take(p, 64 * MB);
	assert_in_range(blocks() - before, PAGE, 2 * MB); /* a huge page at most */
	arena_release(h);
	munmap(p, 64 * MB);
}

static void take__absent_pages_stay_absent(void **state)
{
	(void)state;
	absent_pages_stay_absent();
}

/* Means to hold writers must not make pages look as if they were there. */
static void take__absent_pages_with_threads(void **state)
{
	pthread_t t;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(pthread_create(&t, NULL, wait_for_byte, &fd[0]), 0);
	absent_pages_stay_absent();
	assert_int_equal(write(fd[1], "", 1), 1);
	pthread_join(t, NULL);
	close(fd[0]);
	close(fd[1]);
}

/* --- generations ------------------------------------------------------------------------ */

/* The old pages are still mapped elsewhere, so memory at the old address needs others. */
static void generation__moved_memory(void **state)
{
	uint8_t *p = heap(PAGE), *to = anon(PAGE), *q;
	struct arena_hold *a, *b;

	(void)state;
	memset(p, 1, PAGE);
	a = take(p, PAGE);
	arena_release(a); /* only the mapping has them now */
	q = mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	assert_ptr_equal(q, to);
	for (unsigned i = 0; i < 3; i++) {
		assert_ptr_equal(again(p, PAGE), p);
		memset(p, 2, PAGE);
		b = take(p, PAGE);
		same(b, p, PAGE);
		arena_release(b);
		assert_int_equal(q[0], 1);
		assert_int_equal(q[PAGE - 1], 1);
	}
	munmap(q, PAGE);
}

/* A region has the old pages although they are unmapped. */
static void generation__registered_memory(void **state)
{
	uint8_t *p = heap(PAGE);
	struct arena_hold *a, *b;
	uint8_t byte;

	(void)state;
	memset(p, 1, PAGE);
	a = take(p, PAGE);
	assert_ptr_equal(again(p, PAGE), p);
	assert_int_equal(p[0], 0);
	b = take(p, PAGE);
	assert_true(a->piece[0].off != b->piece[0].off);
	p[0] = 7;
	assert_int_equal(pread(a->fd, &byte, 1, (off_t)a->piece[0].off), 1);
	assert_int_equal(byte, 1);
	arena_release(a);
	arena_release(b);
}

/* With other threads a look at the mappings is not certain: used places wait for a sweep. */
static void generation__used_with_threads(void **state)
{
	uint8_t *p = heap(PAGE);
	struct arena_hold *a, *b;
	uint64_t first;
	pthread_t t;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(pthread_create(&t, NULL, wait_for_byte, &fd[0]), 0);
	arena_release(take(p, PAGE)); /* the arena exists */
	assert_ptr_equal(again(p, PAGE), p);
	assert_int_equal(sweep_now(&arena.file[ORDINARY]), 0);
	a = take(p, PAGE);
	first = a->piece[0].off;
	arena_release(a);
	assert_ptr_equal(again(p, PAGE), p);
	b = take(p, PAGE);
	assert_true(b->piece[0].off != first);
	arena_release(b);
	assert_int_equal(sweep_now(&arena.file[ORDINARY]), 0);
	assert_ptr_equal(again(p, PAGE), p);
	a = take(p, PAGE);
	assert_true(a->piece[0].off == first);
	arena_release(a);
	assert_int_equal(write(fd[1], "", 1), 1);
	pthread_join(t, NULL);
	close(fd[0]);
	close(fd[1]);
}

/* Bytes that freed memory left at the offset are not those of the new memory. */
static void generation__used_before(void **state)
{
	uint8_t *p = heap(PAGE);
	uint64_t first;
	struct arena_hold *a;

	(void)state;
	memset(p, 1, PAGE);
	a = take(p, PAGE);
	first = a->piece[0].off;
	arena_release(a);
	for (unsigned i = 0; i < 4; i++) {
		struct arena_hold *h;

		assert_ptr_equal(again(p, PAGE), p);
		h = take(p, PAGE); /* absent: a hole */
		assert_true(h->piece[0].off == first);
		for (size_t k = 0; k < PAGE; k++)
			assert_int_equal(p[k], 0);
		memset(p, 0x55, PAGE);
		arena_release(h);
	}
}

/* A large block that grows shows the offsets after it, which nobody else may have. */
static void generation__block_with_room(void **state)
{
	uint8_t *p = anon(4 * MB), *block = p + MB, *next = p + 2 * MB, *q;
	struct arena_hold *a, *b;

	(void)state;
	memset(p, 1, 4 * MB);
	a = take(block, MB);
	arena.blocks--; /* as if all other generations had had their turn */
	b = take(next, MB);
	assert_true(b->piece[0].off - a->piece[0].off != MB);
	q = mremap(block, MB, 2 * MB, MREMAP_MAYMOVE);
	assert_ptr_not_equal(q, MAP_FAILED);
	memset(q + MB, 2, MB);
	same(b, next, MB);
	assert_int_equal(next[0], 1);
	arena_release(a);
	arena_release(b);
	munmap(q, 2 * MB);
	munmap(p, MB);
	munmap(next, 2 * MB);
}

/* Small buffers of a heap side by side are one mapping, or thousands would be too many. */
static void generation__small_neighbours_merge(void **state)
{
	uint8_t *p = heap(64 * PAGE);
	struct arena_hold *h[62];
	struct vma v;

	(void)state;
	memset(p, 1, 64 * PAGE);
	for (unsigned i = 0; i < 62; i++)
		h[i] = take(p + (i + 1) * PAGE, PAGE);
	assert_true(look_at((uintptr_t)p + PAGE, &v));
	assert_true(v.start == (uintptr_t)p + PAGE && v.end == (uintptr_t)p + 63 * PAGE);
	for (unsigned i = 0; i < 62; i++)
		arena_release(h[i]);
}

/* Blocks of malloc() side by side are one mapping of the kernel before they are registered: where
 * one ends cannot be seen, and each may be extended. */
static void generation__parts_of_adjacent_blocks(void **state)
{
	const size_t len = 4 * PAGE;
	uint8_t *p = anon(4 * len), *block = p + len, *next = p + 2 * len, *q;

	(void)state;
	memset(p, 1, 4 * len);
	for (unsigned i = 0; i < 8; i++)
		arena_release(take(block + i * PAGE, PAGE));
	q = mremap(block, len, 2 * len, MREMAP_MAYMOVE);
	if (q == MAP_FAILED) /* it consists of several mappings: realloc() copies it */
		q = block;
	else
		memset(q + len, 2, len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(next[i], 1);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(q[i], 1);
	munmap(q, q == block ? len : 2 * len);
	munmap(p, len);
	munmap(next, 2 * len);
}

/* --- the sweep -------------------------------------------------------------------------- */

static void sweep__returns_what_is_unmapped(void **state)
{
	struct arena_hold *live;
	uint8_t *keep = anon(PAGE);
	uint64_t most = 0;

	(void)state;
	memset(keep, 3, PAGE);
	live = take(keep, PAGE);
	munmap(keep, PAGE); /* the region has it */
	for (unsigned i = 0; i < 40; i++) {
		uint8_t *p = anon(4 * MB);

		memset(p, 1, 4 * MB);
		arena_release(take(p, 4 * MB));
		munmap(p, 4 * MB);
		most = blocks() > most ? blocks() : most;
	}
	assert_in_range(most, 4 * MB, 40 * MB);
	assert_in_range(arena_stats().swept, 100 * MB, 200 * MB);
	{
		uint8_t byte = 0;

		assert_int_equal(pread(live->fd, &byte, 1, (off_t)live->piece[0].off), 1);
		assert_int_equal(byte, 3);
	}
	arena_release(live);
}

/* Mapped memory stays, registered or not. */
static void sweep__leaves_what_is_mapped(void **state)
{
	uint8_t *p = anon(MB);

	(void)state;
	memset(p, 9, MB);
	arena_release(take(p, MB));
	for (unsigned i = 0; i < 10; i++) {
		uint8_t *q = anon(8 * MB);

		memset(q, 1, 8 * MB);
		arena_release(take(q, 8 * MB));
		munmap(q, 8 * MB);
	}
	for (size_t i = 0; i < MB; i++)
		assert_int_equal(p[i], 9);
	munmap(p, MB);
}

static struct {
	uint8_t *high, *low;
	useconds_t pause;
	_Atomic int stop;
} mover;

/* Down and up: a look that has passed the low place does not see it at the high one. */
static void *move(void *arg)
{
	(void)arg;
	while (!mover.stop) {
		if (mremap(mover.high, MB, MB, MREMAP_MAYMOVE | MREMAP_FIXED, mover.low) !=
				mover.low ||
			mremap(mover.low, MB, MB, MREMAP_MAYMOVE | MREMAP_FIXED, mover.high) !=
				mover.high)
			abort();
		if (mover.pause)
			usleep(mover.pause);
	}
	return NULL;
}

/* Far below what mmap() chooses: nothing else may come where the mover has left a hole. */
static uint8_t *far_below(size_t size)
{
	void *at = (void *)0x200000000000;
	uint8_t *p = mmap(at, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	assert_ptr_equal(p, at);
	return p;
}

static void swept_while_moving(useconds_t pause)
{
	const unsigned between = 1000; /* mappings: the more, the longer takes a look */
	uint8_t *room = far_below((2 * between + 2) * PAGE + 2 * MB), *p;
	uint64_t sweeps = arena_stats().sweeps;
	pthread_t t;

	mover.pause = pause;
	mover.stop = 0;
	for (unsigned i = 0; i < between; i++)
		mprotect(room + MB + 2 * i * PAGE, PAGE, PROT_READ);
	mover.low = room;
	mover.high = p = room + MB + 2 * between * PAGE + PAGE;
	memset(p, 9, MB);
	arena_release(take(p, MB));
	assert_int_equal(pthread_create(&t, NULL, move, NULL), 0);
	for (unsigned i = 0; i < 100; i++) {
		uint8_t *q = anon(5 * MB);

		memset(q, 1, 5 * MB);
		arena_release(take(q, 5 * MB));
		munmap(q, 5 * MB);
	}
	mover.stop = 1;
	pthread_join(t, NULL);
	assert_true(arena_stats().sweeps > sweeps);
	for (size_t i = 0; i < MB; i++)
		assert_int_equal(p[i], 9);
	munmap(room, (2 * between + 2) * PAGE + 2 * MB);
}

static void sweep__leaves_what_moves(void **state)
{
	(void)state;
	swept_while_moving(0);
}

/* Moves once, from the high place to the low one, in the midst of a look. */
static struct {
	uint8_t *high, *low;
	_Atomic bool wanted, stop;
	_Atomic unsigned asked;
} once;

static void *move_once(void *arg)
{
	while (!once.wanted && !once.stop)
		usleep(10);
	if (once.wanted &&
		mremap(once.high, MB, MB, MREMAP_MAYMOVE | MREMAP_FIXED, once.low) == once.low)
		once.wanted = false;
	return arg;
}

/* In place of libc's. A look asks for one mapping after another: once it is past the low place the
 * other thread has time to move, if it is not held. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	uint64_t *query;

	va_start(args, request);
	query = va_arg(args, uint64_t *);
	va_end(args);
	if (once.low && _IOC_TYPE(request) == 'f' && _IOC_NR(request) == 17 &&
		query[2] > (uintptr_t)once.low + MB && query[2] <= (uintptr_t)once.high &&
		!once.asked++) {
		once.wanted = true;
		for (unsigned i = 0; i < 500 && once.wanted; i++)
			usleep(100);
	}
	return (int)syscall(SYS_ioctl, fd, request, query);
}

static void sweep__leaves_what_moves_meanwhile(void **state)
{
	uint8_t *room = far_below(3 * MB), *p;
	pthread_t t;

	(void)state;
	p = room + 2 * MB;
	memset(p, 9, MB);
	arena_release(take(p, MB));
	once.high = p;
	once.low = room;
	assert_int_equal(pthread_create(&t, NULL, move_once, NULL), 0);
	assert_int_equal(sweep_now(&arena.file[ORDINARY]), 0);
	once.stop = true;
	pthread_join(t, NULL);
	p = once.asked ? room : p;
	for (size_t i = 0; i < MB; i++)
		assert_int_equal(p[i], 9);
	once.low = NULL;
	munmap(room, 3 * MB);
	if (!once.asked)
		skip(); /* before Linux 6.11, a look does not ask in this way */
}

/* A look that saw no thread run counts; one that sleeps and wakes is held after some tries. */
static void sweep__leaves_what_wakes_and_moves(void **state)
{
	(void)state;
	swept_while_moving(10);
}

/* --- refusals --------------------------------------------------------------------------- */

static void refused__with_a_sentence(void **state)
{
	uint8_t *p = anon(4 * PAGE);
	struct vma before, after;

	(void)state;
	memset(p, 1, 4 * PAGE);
	mprotect(p + 2 * PAGE, PAGE, PROT_NONE);
	assert_true(look_at((uintptr_t)p, &before));
	assert_int_equal(refusal(p, 4 * PAGE, false), EFAULT);
	assert_non_null(strstr(why, "PROT_NONE"));
	mprotect(p + 2 * PAGE, PAGE, PROT_READ);
	assert_int_equal(refusal(p, 4 * PAGE, true), EFAULT);
	assert_non_null(strstr(why, "without local write"));
	munmap(p + 2 * PAGE, PAGE);
	assert_int_equal(refusal(p, 4 * PAGE, true), EFAULT);
	assert_non_null(strstr(why, "nothing is mapped"));
	/* Nothing of it was moved. */
	assert_true(look_at((uintptr_t)p, &after));
	assert_false(after.shared);
	assert_int_equal(refusal(p, 0, true), EINVAL);
	assert_int_equal(refusal(p, SIZE_MAX, true), EINVAL);
	assert_int_equal(refusal((void *)(UINTPTR_MAX - PAGE), PAGE, true), EINVAL);
	munmap(p, 4 * PAGE);
}

/* Linux would not pin a guard page, and reading it ends the program. */
static void refused__guard_pages(void **state)
{
	uint8_t *p = anon(4 * PAGE);
	uint64_t entry = 0;

	(void)state;
	memset(p, 1, 4 * PAGE);
	if (madvise(p + 2 * PAGE, PAGE, MADV_GUARD_INSTALL) ||
		pread(arena.pagemap, &entry, sizeof(entry), (off_t)((uintptr_t)p / PAGE + 2) * 8) !=
			sizeof(entry) ||
		!(entry >> 58 & 1)) {
		munmap(p, 4 * PAGE);
		skip(); /* an older kernel */
	}
	assert_int_equal(refusal(p, 4 * PAGE, true), EFAULT);
	assert_non_null(strstr(why, "MADV_GUARD_INSTALL"));
	arena_release(take(p, 2 * PAGE));
	munmap(p, 4 * PAGE);
}

static void refused__several_kinds(void **state)
{
	uint8_t *p = anon(4 * PAGE);
	int fd = memfd_create("other", 0);

	(void)state;
	assert_int_equal(ftruncate(fd, PAGE), 0);
	assert_ptr_equal(
		mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
		p + PAGE);
	assert_int_equal(refusal(p, 4 * PAGE, true), EOPNOTSUPP);
	assert_non_null(strstr(why, "several kinds"));
	close(fd);
	munmap(p, 4 * PAGE);
}

static void shared__its_own_file(void **state)
{
	int fd = memfd_create("other", 0);
	struct arena_hold *h;
	struct stat a, b;
	uint8_t *p;

	(void)state;
	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
	h = take(p + 5, PAGE);
	assert_true(h->fd != fd);
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(fstat(h->fd, &b), 0);
	assert_true(a.st_ino == b.st_ino);
	assert_int_equal(h->piece[0].off, PAGE + 5);
	arena_sent(h);
	assert_int_equal(h->fd, -1);
	arena_release(h);
	munmap(p, 2 * PAGE);
	close(fd);
}

/* --- after fork() ----------------------------------------------------------------------- */

/* A region of the parent's that the child releases is not among those of the child. */
static void fork__regions_of_the_parent(void **state)
{
	uint8_t *p = anon(2 * PAGE);
	struct arena_hold *a, *b, *c;
	int status;
	pid_t pid;

	(void)state;
	memset(p, 1, 2 * PAGE);
	a = take(p, PAGE);
	b = take(p + PAGE, PAGE);
	arena_fork_prepare();
	pid = fork();
	if (!pid) {
		arena_fork_child();
		c = take(p, PAGE);
		arena_release(b);
		arena_release(a);
		_exit(arena.holds != c || c->next || c->prev);
	}
	arena_fork_parent();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	arena_release(a);
	arena_release(b);
	assert_null(arena.holds);
	munmap(p, 2 * PAGE);
}

/* As another thread may move it: the child has a copy all the same. */
static void fork__memory_moved_meanwhile(void **state)
{
	uint8_t *p = anon(MB), *to = anon(MB);
	struct arena_hold *h;
	int status;
	pid_t pid;

	(void)state;
	memset(p, 1, MB);
	h = take(p, MB);
	arena_fork_prepare();
	assert_ptr_equal(mremap(p, MB, MB, MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
	pid = fork();
	if (!pid) {
		arena_fork_child();
		for (size_t i = 0; i < MB; i++)
			if (to[i] != 1)
				_exit(1);
		memset(to, 2, MB);
		_exit(0);
	}
	arena_fork_parent();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (size_t i = 0; i < MB; i++)
		assert_int_equal(to[i], 1);
	arena_release(h);
	munmap(to, MB);
}

static void use_up_descriptors(void)
{
	const struct rlimit few = {.rlim_cur = 100, .rlim_max = 100};

	setrlimit(RLIMIT_NOFILE, &few);
	while (dup(STDERR_FILENO) >= 0)
		;
}

/* Runs in a process of its own.  @return how it ends */
static int ends(void (*run)(void))
{
	const struct rlimit none = {0, 0};
	int status;
	pid_t pid;

	arena_fork_prepare();
	pid = fork();
	if (!pid) {
		arena_fork_child();
		setrlimit(RLIMIT_CORE, &none);
		run();
		_exit(0);
	}
	arena_fork_parent();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static uint8_t *taken(void)
{
	uint8_t *p = anon(PAGE);

	memset(p, 1, PAGE);
	take(p, PAGE);
	return p;
}

/* Its child writes, but not to the parent's memory. */
static void fork_once(uint8_t *p)
{
	int status;
	pid_t pid;

	arena_fork_prepare();
	pid = fork();
	if (!pid) {
		arena_fork_child();
		p[0]++;
		_exit(p[0] == 2 ? 0 : 1);
	}
	arena_fork_parent();
	if (waitpid(pid, &status, 0) != pid || status || p[0] != 1)
		_exit(1);
}

static void fork_twice_without(void)
{
	uint8_t *p = taken();

	use_up_descriptors();
	fork_once(p);
	fork_once(p);
}

/* fork() needs none but those that were opened in time. */
static void fork__without_a_descriptor(void **state)
{
	(void)state;
	assert_int_equal(ends(fork_twice_without), 0);
}

/* Others take the descriptors that a fork() has given back. */
static void fork_without_reserve(void)
{
	const struct rlimit none = {.rlim_cur = 0, .rlim_max = 100};
	uint8_t *p = taken();

	use_up_descriptors();
	arena_fork_prepare();
	if (!fork()) {
		arena_fork_child();
		_exit(0);
	}
	setrlimit(RLIMIT_NOFILE, &none);
	arena_fork_parent();
	use_up_descriptors();
	fork_once(p);
}

/* Without any, nobody can wait until the child has its copy: parent and child must not go on with
 * the same memory. */
static void fork__without_a_reserve(void **state)
{
	int status = ends(fork_without_reserve);

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* A refused registration has opened the parent's list of pages, which lacks those of the child. */
static void fork_without_an_arena(void)
{
	void *none = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *p = anon(PAGE);
	int status;

	if (refusal(none, PAGE, true) != EFAULT || is_open())
		_exit(1);
	arena_fork_prepare();
	if (!fork()) {
		arena_fork_child();
		memset(p, 1, PAGE);
		take(p, PAGE);
		_exit(p[0] == 1 && p[PAGE - 1] == 1 ? 0 : 1);
	}
	arena_fork_parent();
	if (wait(&status) < 0 || status)
		_exit(1);
}

static void fork__without_an_arena(void **state)
{
	(void)state;
	assert_int_equal(ends(fork_without_an_arena), 0);
}

/* --- cancellation ------------------------------------------------------------------------- */

static void *cancelled(void *p)
{
	pthread_cancel(pthread_self());
	take(p, PAGE);
	pthread_testcancel();
	return NULL;
}

/* The arena is not left locked. */
static void take__cancelled(void **state)
{
	uint8_t *p = anon(2 * PAGE);
	struct arena_hold *h;
	pthread_t t;
	void *how;

	(void)state;
	memset(p, 1, 2 * PAGE);
	alarm(PATIENCE_S);
	pthread_create(&t, NULL, cancelled, p);
	pthread_join(t, &how);
	assert_ptr_equal(how, PTHREAD_CANCELED);
	h = take(p, 2 * PAGE);
	alarm(0);
	same(h, p, 2 * PAGE);
	arena_release(h);
	munmap(p, 2 * PAGE);
}

/* --- madvise() -------------------------------------------------------------------------- */

static void madvise__clears(void **state)
{
	uint8_t *p = anon(4 * PAGE);
	struct arena_hold *h;

	(void)state;
	memset(p, 1, 4 * PAGE);
	h = take(p + PAGE, 2 * PAGE);
	assert_int_equal(arena_madvise((uintptr_t)p, 3 * PAGE - 1, MADV_DONTNEED), 0);
	for (size_t i = 0; i < 3 * PAGE; i++)
		assert_int_equal(p[i], 0);
	assert_int_equal(p[3 * PAGE], 1);
	same(h, p + PAGE, 2 * PAGE);
	memset(p, 2, 4 * PAGE);
	assert_int_equal(arena_madvise((uintptr_t)p + PAGE, PAGE, MADV_FREE), 0);
	assert_int_equal(p[PAGE], 0);
	assert_int_equal(p[2 * PAGE], 2);
	assert_int_equal(arena_madvise((uintptr_t)p + 1, PAGE, MADV_DONTNEED), EINVAL);
	assert_int_equal(arena_madvise((uintptr_t)p, PAGE, MADV_WILLNEED), 0);
	munmap(p + 2 * PAGE, PAGE);
	assert_int_equal(arena_madvise((uintptr_t)p, 4 * PAGE, MADV_DONTNEED), ENOMEM);
	assert_int_equal(p[0], 0);
	arena_release(h);
	munmap(p, 4 * PAGE);
}

/* Without a descriptor nothing can be cleared, and it says so. */
static void madvise__without_a_descriptor(void **state)
{
	struct rlimit was, none;
	uint8_t *p = anon(PAGE);
	struct arena_hold *h;

	(void)state;
	h = take(p, PAGE); /* opens the arena */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){0, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(arena_madvise((uintptr_t)p, PAGE, MADV_DONTNEED), EAGAIN);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(arena_madvise((uintptr_t)p, PAGE, MADV_DONTNEED), 0);
	arena_release(h);
	munmap(p, PAGE);
}

/* A child that is being made must find what was there: it is written, so that it is kept. */
static void madvise__while_forking(void **state)
{
	uint8_t *p = anon(PAGE);
	struct arena_hold *h;
	off_t at;

	(void)state;
	memset(p, 1, PAGE);
	h = take(p, PAGE);
	at = (off_t)h->piece[0].off;
	discard_fork_begin();
	assert_int_equal(arena_madvise((uintptr_t)p, PAGE, MADV_DONTNEED), 0);
	assert_true(
		lseek(h->fd, at, SEEK_DATA) == at); /* not punched; a look at it would fill it */
	assert_int_equal(p[0], 0);
	discard_fork_end();
	memset(p, 1, PAGE);
	assert_int_equal(arena_madvise((uintptr_t)p, PAGE, MADV_DONTNEED), 0);
	assert_true(lseek(h->fd, at, SEEK_DATA) != at);
	arena_release(h);
	munmap(p, PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take__bytes_of_pages),
		cmocka_unit_test(take__again),
		cmocka_unit_test(take__parts_then_all),
		cmocka_unit_test(take__several_chunks),
		cmocka_unit_test(take__one_mapping),
		cmocka_unit_test(take__absent_pages_stay_absent),
		cmocka_unit_test(take__absent_pages_with_threads),
		cmocka_unit_test(generation__moved_memory),
		cmocka_unit_test(generation__registered_memory),
		cmocka_unit_test(generation__used_with_threads),
		cmocka_unit_test(generation__used_before),
		cmocka_unit_test(generation__block_with_room),
		cmocka_unit_test(generation__small_neighbours_merge),
		cmocka_unit_test(generation__parts_of_adjacent_blocks),
		cmocka_unit_test(sweep__returns_what_is_unmapped),
		cmocka_unit_test(sweep__leaves_what_is_mapped),
		cmocka_unit_test(sweep__leaves_what_moves),
		cmocka_unit_test(sweep__leaves_what_moves_meanwhile),
		cmocka_unit_test(sweep__leaves_what_wakes_and_moves),
		cmocka_unit_test(refused__with_a_sentence),
		cmocka_unit_test(refused__guard_pages),
		cmocka_unit_test(refused__several_kinds),
		cmocka_unit_test(shared__its_own_file),
		cmocka_unit_test(fork__regions_of_the_parent),
		cmocka_unit_test(fork__memory_moved_meanwhile),
		cmocka_unit_test(fork__without_a_descriptor),
		cmocka_unit_test(fork__without_a_reserve),
		cmocka_unit_test(fork__without_an_arena),
		cmocka_unit_test(take__cancelled),
		cmocka_unit_test(madvise__clears),
		cmocka_unit_test(madvise__without_a_descriptor),
		cmocka_unit_test(madvise__while_forking),
	};

	if (getenv("MESON_EXE_WRAPPER"))
		return 77; /* an emulator's addresses are not the kernel's */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
