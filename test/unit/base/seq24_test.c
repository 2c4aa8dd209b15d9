/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "seq24.h"

#define HALF 0x800000u

/* proves BTH-15 */
static void seq24_add__wraps(void **state)
{
	assert_int_equal(seq24_add(0, 1), 1);
	assert_int_equal(seq24_add(0xFFFFFF, 1), 0);
	assert_int_equal(seq24_add(0xFFFFFE, 5), 3);
	assert_int_equal(seq24_add(7, 0x1000000), 7);
	assert_int_equal(seq24_add(0, (uint32_t)-1), 0xFFFFFF);
}

/* proves BTH-15 */
static void seq24_diff__across_the_wrap(void **state)
{
	assert_int_equal(seq24_diff(5, 5), 0);
	assert_int_equal(seq24_diff(0, 0xFFFFFF), 1);
	assert_int_equal(seq24_diff(0xFFFFFF, 0), -1);
	assert_int_equal(seq24_diff(2, 0xFFFFFE), 4);
}

static void seq24_diff__half_of_the_space(void **state)
{
	assert_int_equal(seq24_diff(HALF - 1, 0), HALF - 1);
	assert_int_equal(seq24_diff(HALF, 0), -(int32_t)HALF);
	assert_int_equal(seq24_diff(0, HALF), -(int32_t)HALF);
	assert_int_equal(seq24_diff(0, HALF - 1), -(int32_t)(HALF - 1));
}

static void seq24_diff__undoes_add(void **state)
{
	static const uint32_t from[] = {0, 1, 0x7FFFFF, 0x800000, 0xFFFFFE, 0xFFFFFF};

	for (unsigned i = 0; i < sizeof(from) / sizeof(from[0]); i++)
		for (uint32_t n = 0; n < HALF; n += 997) {
			assert_int_equal(seq24_diff(seq24_add(from[i], n), from[i]), n);
			assert_int_equal(seq24_diff(from[i], seq24_add(from[i], n)), -(int32_t)n);
		}
}

/* proves BTH-15 */
static void seq24_lt__and_le(void **state)
{
	assert_true(seq24_lt(0xFFFFFF, 0));
	assert_false(seq24_lt(0, 0xFFFFFF));
	assert_false(seq24_lt(3, 3));
	assert_true(seq24_le(3, 3));
	assert_true(seq24_le(0xFFFFF0, 0xF));
	assert_false(seq24_le(0xF, 0xFFFFF0));
}

static void seq24_between__is_inclusive_and_wraps(void **state)
{
	assert_true(seq24_between(0xFFFFFE, 0xFFFFFE, 2));
	assert_true(seq24_between(0, 0xFFFFFE, 2));
	assert_true(seq24_between(2, 0xFFFFFE, 2));
	assert_false(seq24_between(3, 0xFFFFFE, 2));
	assert_false(seq24_between(0xFFFFFD, 0xFFFFFE, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seq24_add__wraps),
		cmocka_unit_test(seq24_diff__across_the_wrap),
		cmocka_unit_test(seq24_diff__half_of_the_space),
		cmocka_unit_test(seq24_diff__undoes_add),
		cmocka_unit_test(seq24_lt__and_le),
		cmocka_unit_test(seq24_between__is_inclusive_and_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
