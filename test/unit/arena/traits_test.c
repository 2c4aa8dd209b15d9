/* SPDX-License-Identifier: BSD-3-Clause */
/* The properties that memory keeps when it is swapped, although its neighbours change meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "source.h"

#define PAGES 6

static uint8_t *whole;

static uint8_t *map_at(unsigned page, size_t n)
{
	uint8_t *p = mmap(whole + page * PAGE, n * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static struct vma look(const void *p)
{
	struct vma v;

	assert_true(look_at((uintptr_t)p, &v));
	assert_true(v.start <= (uintptr_t)p);
	return v;
}

/* A place with nothing in it that merges with what the test maps there. */
static int up(void **state)
{
	(void)state;
	arena.page = PAGE;
	whole = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return whole == MAP_FAILED || maps_open(&arena.maps);
}

static int down(void **state)
{
	(void)state;
	maps_close(&arena.maps);
	return munmap(whole, PAGES * PAGE);
}

/* Another thread maps memory beside it, after the mapping was looked at. */
static void traits__neighbour_merges(void **state)
{
	uint8_t *p = map_at(1, 2);
	struct vma v = look(p);
	struct traits t;

	(void)state;
	map_at(3, 2);
	assert_true(look(p).end == v.end + 2 * PAGE);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(traits_of(&v, (uintptr_t)p + i * PAGE, &t), 0);
		assert_false(t.no_fork);
		assert_false(t.no_dump);
	}
}

/* The program's advice is found, and left as it is. */
static void traits__advice_stays(void **state)
{
	uint8_t *p = map_at(1, 4);
	struct traits t;

	(void)state;
	assert_int_equal(madvise(p, 4 * PAGE, MADV_DONTFORK), 0);
	for (unsigned i = 0; i < 4; i++) {
		struct vma v = look(p + i * PAGE);

		assert_true(v.end - v.start == 4 * PAGE);
		assert_int_equal(traits_of(&v, (uintptr_t)p + i * PAGE, &t), 0);
		assert_true(t.no_fork);
		assert_false(t.no_dump);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(traits__neighbour_merges, up, down),
		cmocka_unit_test_setup_teardown(traits__advice_stays, up, down),
	};

	if (getenv("MESON_EXE_WRAPPER"))
		return 77; /* an emulator's mappings are not the kernel's */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
