/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "list.h"

struct item {
	int before;
	struct list node;
};

static void list_push_pop__first_in_first_out(void **state)
{
	struct item items[3];
	struct list l;

	list_init(&l);
	assert_true(list_empty(&l));
	assert_null(list_pop(&l));
	for (int i = 0; i < 3; i++)
		list_push(&l, &items[i].node);
	assert_false(list_empty(&l));
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(container_of(list_pop(&l), struct item, node), &items[i]);
	assert_true(list_empty(&l));
	assert_null(list_pop(&l));
}

static void list_pop__node_is_on_no_list(void **state)
{
	struct item it;
	struct list l;

	list_init(&l);
	list_push(&l, &it.node);
	list_pop(&l);
	assert_true(list_empty(&it.node));
}

static void list_del__first_middle_last(void **state)
{
	for (int gone = 0; gone < 3; gone++) {
		struct item items[3];
		struct list l;

		list_init(&l);
		for (int i = 0; i < 3; i++)
			list_push(&l, &items[i].node);
		list_del(&items[gone].node);
		assert_true(list_empty(&items[gone].node));
		for (int i = 0; i < 3; i++)
			if (i != gone)
				assert_ptr_equal(list_pop(&l), &items[i].node);
		assert_true(list_empty(&l));
	}
}

static void list_del__twice_is_harmless(void **state)
{
	struct item items[2];
	struct list l;

	list_init(&l);
	list_push(&l, &items[0].node);
	list_push(&l, &items[1].node);
	list_del(&items[0].node);
	list_del(&items[0].node);
	assert_ptr_equal(list_pop(&l), &items[1].node);
	assert_true(list_empty(&l));
}

static void list_splice__goes_to_the_end(void **state)
{
	struct item items[4];
	struct list l, from;

	list_init(&l);
	list_init(&from);
	list_splice(&l, &from);
	assert_true(list_empty(&l));
	for (int i = 0; i < 2; i++)
		list_push(&from, &items[i].node);
	list_splice(&l, &from); /* onto an empty one */
	assert_true(list_empty(&from));
	for (int i = 2; i < 4; i++)
		list_push(&from, &items[i].node);
	list_splice(&l, &from);
	list_splice(&l, &from); /* of nothing */
	assert_true(list_empty(&from));
	for (int i = 0; i < 4; i++)
		assert_ptr_equal(list_pop(&l), &items[i].node);
	assert_null(list_pop(&l));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_push_pop__first_in_first_out),
		cmocka_unit_test(list_pop__node_is_on_no_list),
		cmocka_unit_test(list_del__first_middle_last),
		cmocka_unit_test(list_del__twice_is_harmless),
		cmocka_unit_test(list_splice__goes_to_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
