/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "core.h"

static void core_counter_name__each_has_one(void **state)
{
	unsigned n = offsetof(struct core_counters, drop) / sizeof(uint64_t);

	for (unsigned i = 0; i < n; i++) {
		assert_non_null(core_counter_name(i));
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(core_counter_name(i), core_counter_name(k));
	}
	assert_null(core_counter_name(n));
}

/* proves SEC-05 */
static void core_count_drop__counts_by_reason(void **state)
{
	static struct core c;
	struct core_config cfg = {0};

	core_init(&c, &cfg, 12345);
	for (int d = 1; d < DROP_MAX; d++) {
		core_count_drop(&c, (enum drop)d);
		assert_int_equal(c.count.drop[d], 1);
		assert_non_null(drop_name((enum drop)d));
	}
	assert_true(core_deadline(&c) == WHEEL_NEVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(core_counter_name__each_has_one),
		cmocka_unit_test(core_count_drop__counts_by_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
