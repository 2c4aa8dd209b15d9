/* SPDX-License-Identifier: BSD-3-Clause */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core_counters.h"
#include "daemon.h"
#include "drop.h"
#include "show/stats.h"

static void show_stats__names_and_sums(void **state)
{
	struct test_daemon *d = *state;
	json_t *root = show_stats(d->dp), *drops;
	unsigned names = 0;

	assert_non_null(root);
	drops = json_object_get(root, "drops");
	assert_int_equal(json_object_size(drops), DROP_MAX - 1);
	assert_true(json_is_integer(json_object_get(drops, "icrc")));
	while (core_counter_name(names)) {
		assert_true(json_is_integer(json_object_get(root, core_counter_name(names))));
		names++;
	}
	assert_int_equal(json_object_size(root), names + 1);
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(show_stats__names_and_sums),
	};

	return cmocka_run_group_tests_name(
		"stats", tests, daemon_group_setup, daemon_group_teardown);
}
