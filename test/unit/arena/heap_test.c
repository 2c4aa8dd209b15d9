/* SPDX-License-Identifier: BSD-3-Clause */
/* Which memory no mremap() extends. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "source.h"

#define HEAP (64 * MB)

static bool in_heap(const void *p, size_t len)
{
	uintptr_t s = (uintptr_t)p & ~(PAGE - 1);
	struct vma v;

	assert_true(look_at((uintptr_t)p, &v));
	return is_heap(&v, s, ((uintptr_t)p + len + PAGE - 1) & ~(PAGE - 1));
}

static int open_arena(void **state)
{
	char why[ARENA_WHY_MAX];
	uint8_t *p = anon(PAGE);
	struct arena_hold *h;

	(void)state;
	if (arena_take(&source, (uintptr_t)p, PAGE, true, &h, why))
		return -1;
	arena_release(h);
	return munmap(p, PAGE);
}

static void heap__brk(void **state)
{
	uint8_t *p = sbrk(2 * PAGE);

	(void)state;
	assert_true(in_heap(p, 2 * PAGE));
}

/* A mapping of the program that has merged with the heap is not a part of it. */
static void heap__above_brk(void **state)
{
	uintptr_t end = ((uintptr_t)sbrk(0) + PAGE - 1) & ~(PAGE - 1);
	uint8_t *p = mmap((void *)end, PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	(void)state;
	assert_ptr_equal(p, (void *)end);
	assert_false(in_heap(p, PAGE));
	assert_false(in_heap(p - PAGE, 2 * PAGE));
	munmap(p, PAGE);
}

static void heap__main_stack(void **state)
{
	uint8_t local = 0;

	(void)state;
	assert_true(in_heap(&local, 1));
}

static void heap__mapped(void **state)
{
	uint8_t *p = anon(3 * PAGE);

	(void)state;
	assert_false(in_heap(p, 3 * PAGE));
	assert_false(in_heap(p + PAGE, PAGE));
	munmap(p, 3 * PAGE);
}

static void *allocate(void *arg)
{
	uint8_t *small = calloc(1, 1000), *large = calloc(1, MB), *p[1200];

	if (!in_heap(small, 1000) || in_heap(large, MB))
		return NULL;
	for (unsigned i = 0; i < 1200; i++) /* more than one heap of 64 MiB has */
		p[i] = calloc(1, 100000);
	if (!in_heap(p[0], 100000) || !in_heap(p[1199], 100000) ||
		(uintptr_t)p[0] / HEAP == (uintptr_t)p[1199] / HEAP)
		return NULL;
	for (unsigned i = 0; i < 1200; i++)
		free(p[i]);
	free(large);
	free(small);
	return arg;
}

static void heap__of_a_thread(void **state)
{
	pthread_t t;
	void *ok;

	if (SLOW_PROGRAMS) /* a sanitizer's malloc() */
		skip();
	assert_int_equal(pthread_create(&t, NULL, allocate, state), 0);
	pthread_join(t, &ok);
	assert_non_null(ok);
}
/* Memory that begins like a heap but is longer than its size, or is not quite like one. */
static void heap__beyond_its_end(void **state)
{
	uint8_t *all = anon(2 * HEAP);
	uint64_t *h = (uint64_t *)(((uintptr_t)all + HEAP - 1) & ~(HEAP - 1));

	(void)state;
	h[0] = (uintptr_t)h + 40;
	h[2] = h[3] = 2 * PAGE;
	assert_true(in_heap(h, 2 * PAGE));
	assert_false(in_heap(h, 3 * PAGE));
	h[1] = (uintptr_t)h;
	assert_false(in_heap(h, 2 * PAGE));
	h[1] = 0;
	h[0] = (uintptr_t)h;
	assert_false(in_heap(h, 2 * PAGE));
	munmap(all, 2 * HEAP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heap__brk),
		cmocka_unit_test(heap__above_brk),
		cmocka_unit_test(heap__main_stack),
		cmocka_unit_test(heap__mapped),
		cmocka_unit_test(heap__of_a_thread),
		cmocka_unit_test(heap__beyond_its_end),
	};

	if (getenv("MESON_EXE_WRAPPER"))
		return 77; /* an emulator's addresses are not the kernel's */
	return cmocka_run_group_tests(tests, open_arena, NULL);
}
