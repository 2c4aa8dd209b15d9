/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "map.h"

struct thing {
	int value;
	struct map_node node;
};

static void map__empty(void **state)
{
	struct map m = {0};

	assert_null(map_get(&m, 0));
	assert_null(map_find(&m, NULL, NULL));
	map_free(&m);
}

static void map__many_keys(void **state)
{
	static struct thing t[1000];
	struct map m = {0};

	/* Keys of one bucket, of neighbouring ones, and far apart. */
	for (uint32_t i = 0; i < 1000; i++) {
		t[i].value = (int)i;
		assert_true(map_put(&m, &t[i].node, i % 2 ? i << 20 : i));
	}
	for (uint32_t i = 0; i < 1000; i += 3)
		map_remove(&m, &t[i].node);
	for (uint32_t i = 0; i < 1000; i++) {
		struct map_node *n = map_get(&m, i % 2 ? i << 20 : i);

		if (i % 3 == 0)
			assert_null(n);
		else
			assert_int_equal(map_entry(n, struct thing, node)->value, i);
	}
	assert_int_equal(m.count, 666);
	map_free(&m);
	assert_null(map_get(&m, 1));
}

static bool is(struct map_node *n, void *arg)
{
	return map_entry(n, struct thing, node)->value == *(int *)arg;
}

static void map_find__each_once(void **state)
{
	struct thing t[40];
	struct map m = {0};

	for (int i = 0; i < 40; i++) {
		t[i].value = i;
		map_put(&m, &t[i].node, (uint32_t)i * 16);
	}
	for (int i = 0; i < 40; i++)
		assert_ptr_equal(map_find(&m, is, &i), &t[i].node);
	assert_null(map_find(&m, is, &(int){40}));
	map_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map__empty),
		cmocka_unit_test(map__many_keys),
		cmocka_unit_test(map_find__each_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
