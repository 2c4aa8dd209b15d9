/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "session/handles.h"

static void handle_get__finds_what_was_added(void **state)
{
	struct handles h;
	int obj[40];
	uint32_t handle[40];

	handles_init(&h, 100);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(handle_add(&h, &obj[i], &handle[i]), 0);
		assert_int_not_equal(handle[i], ABI_NO_HANDLE);
		assert_int_not_equal(handle[i], 0);
	}
	for (int i = 0; i < 40; i++)
		assert_ptr_equal(handle_get(&h, handle[i]), &obj[i]);
	assert_int_equal(h.used, 40);
	handles_free(&h);
}

static void handle_get__stale_handle_finds_nothing(void **state)
{
	struct handles h;
	uint32_t first, second;
	int a, b;

	handles_init(&h, 1);
	assert_int_equal(handle_add(&h, &a, &first), 0);
	assert_ptr_equal(handle_del(&h, first), &a);
	assert_int_equal(handle_add(&h, &b, &second), 0); /* the same slot */
	assert_null(handle_get(&h, first));
	assert_null(handle_del(&h, first));
	assert_ptr_equal(handle_get(&h, second), &b);
	handles_free(&h);
}

static void handle_get__wild_handles(void **state)
{
	const uint32_t wild[] = {0, 1, 0xFFFF, 0x10000, 0x1FFFF, 0x7FFFFFFF, ABI_NO_HANDLE};
	struct handles h;

	handles_init(&h, 16);
	for (unsigned i = 0; i < sizeof(wild) / sizeof(wild[0]); i++)
		assert_null(handle_get(&h, wild[i]));
	handles_free(&h);
}

static void handle_add__full(void **state)
{
	struct handles h;
	uint32_t handle;
	int obj;

	handles_init(&h, 20);
	for (int i = 0; i < 20; i++)
		assert_int_equal(handle_add(&h, &obj, &handle), 0);
	assert_int_equal(handle_add(&h, &obj, &handle), -ENOSPC);
	handles_free(&h);
}

static void handle_add__slots_rest(void **state)
{
	struct handles h;
	uint32_t handle[4], again;
	int obj;

	handles_init(&h, 4);
	for (int i = 0; i < 4; i++)
		handle_add(&h, &obj, &handle[i]);
	handle_del(&h, handle[2]);
	handle_del(&h, handle[0]);
	handle_add(&h, &obj, &again); /* the one that was freed first */
	assert_int_equal(again & 0xFFFF, handle[2] & 0xFFFF);
	handles_free(&h);
}

static void handle_add__generation_wraps_past_zero(void **state)
{
	struct handles h;
	uint32_t handle;
	int obj;

	handles_init(&h, 1);
	for (int i = 0; i < 3 * 0x8000; i++) {
		assert_int_equal(handle_add(&h, &obj, &handle), 0);
		assert_in_range(handle >> 16, 1, 0x7FFF);
		handle_del(&h, handle);
	}
	handles_free(&h);
}

static void handle_next__visits_all_even_while_deleting(void **state)
{
	struct handles h;
	uint32_t handle[10], cursor = 0;
	unsigned seen = 0;
	int obj[10];
	void *o;

	handles_init(&h, 100);
	for (int i = 0; i < 10; i++)
		handle_add(&h, &obj[i], &handle[i]);
	while ((o = handle_next(&h, &cursor))) {
		handle_del(&h, handle[(int *)o - obj]);
		seen++;
	}
	assert_int_equal(seen, 10);
	assert_int_equal(h.used, 0);
	handles_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handle_get__finds_what_was_added),
		cmocka_unit_test(handle_get__stale_handle_finds_nothing),
		cmocka_unit_test(handle_get__wild_handles),
		cmocka_unit_test(handle_add__full),
		cmocka_unit_test(handle_add__slots_rest),
		cmocka_unit_test(handle_add__generation_wraps_past_zero),
		cmocka_unit_test(handle_next__visits_all_even_while_deleting),
	};

	return cmocka_run_group_tests_name("handle", tests, NULL, NULL);
}
