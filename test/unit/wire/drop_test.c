/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "drop.h"

static void drop_name__each_reason_has_its_own(void **state)
{
	for (int a = 0; a < DROP_MAX; a++) {
		assert_non_null(drop_name(a));
		for (int b = 0; b < a; b++)
			assert_string_not_equal(drop_name(a), drop_name(b));
	}
	assert_string_equal(drop_name(DROP_NONE), "none");
	assert_string_equal(drop_name(DROP_ICRC), "icrc");
}

static void drop_name__beyond_the_table(void **state)
{
	assert_null(drop_name(DROP_MAX));
	assert_null(drop_name((enum drop)(-1)));
	assert_null(drop_rule(DROP_MAX));
}

static void drop_rule__names_the_rule(void **state)
{
	assert_string_equal(drop_rule(DROP_ICRC), "CA17-24");
	assert_string_equal(drop_rule(DROP_QP0), "CA17-33");
	for (int d = 0; d < DROP_MAX; d++)
		assert_non_null(drop_rule(d));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drop_name__each_reason_has_its_own),
		cmocka_unit_test(drop_name__beyond_the_table),
		cmocka_unit_test(drop_rule__names_the_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
