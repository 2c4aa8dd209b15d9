/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks that mremap() extends, as realloc() does: nobody else's bytes show, nor those of before.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include "fixture.h"
#include "hold.h"

static void (*after_look)(void);

/* In place of libc's: a look ends by restoring the signal mask, and then other threads run. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	void (*run)(void) = how == SIG_SETMASK ? after_look : NULL;
	long err = syscall(SYS_rt_sigprocmask, how, set, old, sizeof(uint64_t));

	if (run) {
		after_look = NULL;
		run();
	}
	return err ? errno : 0;
}

struct sleeper {
	pthread_t t;
	int fd[2];
};

static void start_sleeper(struct sleeper *s)
{
	assert_int_equal(pipe(s->fd), 0);
	assert_int_equal(pthread_create(&s->t, NULL, wait_for_byte, &s->fd[0]), 0);
}

static void end_sleeper(const struct sleeper *s)
{
	assert_int_equal(write(s->fd[1], "", 1), 1);
	pthread_join(s->t, NULL);
	close(s->fd[0]);
	close(s->fd[1]);
}

static void all(const uint8_t *p, size_t len, uint8_t byte)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(p[i], byte);
}

/* A block of @p len bytes that was registered and then extended to three times as much. */
static uint8_t *extended(size_t len)
{
	uint8_t *p = anon(3 * len);

	munmap(p + len, 2 * len);
	memset(p, 1, len);
	arena_release(take(p, len));
	assert_ptr_equal(mremap(p, len, 3 * len, 0), p);
	memset(p + len, 2, 2 * len);
	return p;
}

/* New memory where an extension was unmapped. */
static void extended__unmapped(void)
{
	uint8_t *p = extended(MB);

	munmap(p + MB, 2 * MB);
	assert_ptr_equal(again(p + MB, 2 * MB), p + MB);
	arena_release(take(p, 3 * MB));
	all(p + MB, 2 * MB, 0);
	munmap(p, 3 * MB);
}

/* New memory where an extension was moved away. */
static void extended__moved(void)
{
	uint8_t *p = extended(MB), *to = anon(2 * MB);

	assert_ptr_equal(mremap(p + MB, 2 * MB, 2 * MB, MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
	assert_ptr_equal(again(p + MB, 2 * MB), p + MB);
	arena_release(take(p, 3 * MB));
	memset(p + MB, 3, 2 * MB);
	all(to, 2 * MB, 2);
	munmap(p, 3 * MB);
	munmap(to, 2 * MB);
}

/* New memory where an extension is still registered. */
static void extended__registered(void)
{
	uint8_t *p = extended(MB), *copy = malloc(2 * MB);
	struct arena_hold *a = take(p, 3 * MB), *b;

	munmap(p + MB, 2 * MB);
	assert_ptr_equal(again(p + MB, 2 * MB), p + MB);
	b = take(p, 3 * MB);
	memset(p + MB, 3, 2 * MB);
	assert_int_equal(a->npieces, 1);
	assert_int_equal(pread(a->fd, copy, 2 * MB, (off_t)(a->piece[0].off + MB)), 2 * MB);
	all(copy, 2 * MB, 2);
	arena_release(a);
	arena_release(b);
	free(copy);
	munmap(p, 3 * MB);
}

/* Parts before, after and between those registered earlier become one piece with them. */
static void extended__by_registrations(void)
{
	uint8_t *p = anon(8 * PAGE);
	struct arena_hold *h;

	memset(p, 1, 8 * PAGE);
	arena_release(take(p + 3 * PAGE, PAGE));
	arena_release(take(p + 3 * PAGE, 2 * PAGE));
	arena_release(take(p, 8 * PAGE));
	assert_ptr_equal(again(p + 6 * PAGE, PAGE), p + 6 * PAGE);
	h = take(p, 8 * PAGE);
	assert_int_equal(h->npieces, 1);
	same(h, p, 8 * PAGE);
	all(p, 6 * PAGE, 1);
	all(p + 6 * PAGE, PAGE, 0);
	arena_release(h);
	munmap(p, 8 * PAGE);
}

static void with_and_without_threads(void (*test)(void))
{
	struct sleeper s;

	test();
	start_sleeper(&s);
	test();
	end_sleeper(&s);
}

static void generation__extension_unmapped(void **state)
{
	(void)state;
	with_and_without_threads(extended__unmapped);
}

static void generation__extension_moved(void **state)
{
	(void)state;
	with_and_without_threads(extended__moved);
}

static void generation__extension_registered(void **state)
{
	(void)state;
	with_and_without_threads(extended__registered);
}

static void generation__extended_by_registrations(void **state)
{
	(void)state;
	with_and_without_threads(extended__by_registrations);
}

static _Atomic bool running;

static void *run_with_signals_blocked(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	for (running = true; running;)
		;
	return arg;
}

/* @return the pieces of a range of which a part was registered before. */
static unsigned pieces(void)
{
	uint8_t *p = anon(2 * PAGE);
	struct arena_hold *h;
	unsigned n;

	memset(p, 1, 2 * PAGE);
	arena_release(take(p, PAGE));
	h = take(p, 2 * PAGE);
	same(h, p, 2 * PAGE);
	n = h->npieces;
	arena_release(h);
	munmap(p, 2 * PAGE);
	return n;
}

/* A look that fails has stopped the process for long, so it is not repeated soon. */
static void generation__failed_looks_are_rare(void **state)
{
	unsigned registrations = 0;
	struct sleeper s;
	pthread_t t;

	(void)state;
	if (arena_writers() == ARENA_WRITERS_SIGNALS)
		skip(); /* no registration is possible beside such a thread */
	assert_int_equal(pthread_create(&t, NULL, run_with_signals_blocked, NULL), 0);
	while (!running)
		usleep(100);
	assert_int_equal(pieces(), 2);
	running = false;
	pthread_join(t, NULL);
	start_sleeper(&s);
	for (; registrations < 1000 && pieces() == 2; registrations++)
		;
	end_sleeper(&s); /* first: a later test may need to be alone */
	assert_in_range(registrations, 100, 999);
}

/* A process without other threads gives back what a block does not have any more. */
static void sweep__returns_what_a_block_had(void **state)
{
	uint8_t *p = extended(4 * MB);

	(void)state;
	munmap(p + 4 * MB, 8 * MB);
	assert_int_equal(sweep_now(&arena.file[ORDINARY]), 0);
	assert_ptr_equal(mremap(p, 4 * MB, 12 * MB, 0), p);
	all(p, 4 * MB, 1);
	all(p + 4 * MB, 8 * MB, 0);
	munmap(p, 12 * MB);
}

static struct sleeper grower;
static uint8_t *grown;

static void *grow(void *arg)
{
	char byte;

	if (read(grower.fd[0], &byte, 1) != 1 || mremap(grown, 4 * MB, 12 * MB, 0) != (void *)grown)
		return NULL;
	memset(grown + 4 * MB, 2, 8 * MB);
	return arg;
}

static bool grown_alone;

/* Its entry in /proc may outlive the thread a moment; one that a failed test has left stays. */
static void let_grow(void)
{
	end_sleeper(&grower);
	grown_alone = false;
	for (unsigned tries = 100000; tries && !(grown_alone = hold_alone(1)); tries--)
		usleep(100);
}

/* A thread that ends after the look may have extended a block. */
static void sweep__leaves_what_grew(void **state)
{
	(void)state;
	grown = anon(12 * MB);
	munmap(grown + 4 * MB, 8 * MB);
	memset(grown, 1, 4 * MB);
	arena_release(take(grown, 4 * MB));
	assert_int_equal(pipe(grower.fd), 0);
	assert_int_equal(pthread_create(&grower.t, NULL, grow, NULL), 0);
	after_look = let_grow;
	sweep_now(&arena.file[ORDINARY]);
	assert_null(after_look);
	assert_true(grown_alone);
	all(grown, 4 * MB, 1);
	all(grown + 4 * MB, 8 * MB, 2);
	munmap(grown, 12 * MB);
}

/* Blocks keep away only from each other. */
static void generation__heaps_below_blocks(void **state)
{
	enum {
		MANY = GENERATION_BLOCK - GENERATION_SPAN
	};
	static struct arena_hold *h[MANY];
	uint8_t *p = heap(PAGE);
	struct sleeper s;

	(void)state;
	start_sleeper(&s);
	for (unsigned i = 0; i < MANY; i++) {
		h[i] = take(p, PAGE);
		assert_int_equal(room_of(h[i]->piece[0].off), 0);
		assert_ptr_equal(again(p, PAGE), p);
	}
	assert_int_equal(refusal(p, PAGE, true), ENOMEM);
	for (unsigned i = 0; i < MANY; i++)
		arena_release(h[i]);
	end_sleeper(&s);
}

static void mremap__clears_what_it_adds(void **state)
{
	uint8_t *p = extended(MB), *to = anon(3 * MB);

	(void)state;
	assert_ptr_equal(arena_mremap(p, 3 * MB, MB, 0, NULL), p);
	assert_ptr_equal(arena_mremap(p, MB, 2 * MB - 1, 0, NULL), p);
	all(p, MB, 1);
	all(p + MB, MB, 0);
	memset(p + MB, 2, MB);
	assert_ptr_equal(arena_mremap(p, 2 * MB, 3 * MB, MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
	all(to + MB, MB, 2);
	all(to + 2 * MB, MB, 0);
	errno = 0;
	assert_ptr_equal(arena_mremap(to, MB, 2 * MB, 0, NULL), MAP_FAILED);
	assert_int_equal(errno, ENOMEM);
	munmap(to, 3 * MB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generation__extension_unmapped),
		cmocka_unit_test(generation__extension_moved),
		cmocka_unit_test(generation__extension_registered),
		cmocka_unit_test(generation__extended_by_registrations),
		cmocka_unit_test(generation__failed_looks_are_rare),
		cmocka_unit_test(sweep__returns_what_a_block_had),
		cmocka_unit_test(sweep__leaves_what_grew),
		cmocka_unit_test(generation__heaps_below_blocks),
		cmocka_unit_test(mremap__clears_what_it_adds),
	};

	if (getenv("MESON_EXE_WRAPPER"))
		return 77; /* an emulator's addresses are not the kernel's */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
