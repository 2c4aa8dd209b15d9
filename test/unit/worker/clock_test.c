/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "clock.h"

#define HZ 2599998000ull /* no divisor of anything */

static void clock_at__one_second_of_cycles_is_a_second(void **state)
{
	struct tsc_clock c;

	clock_init(&c, HZ, 1000);
	assert_int_equal(clock_at(&c, 1000), 0);
	assert_in_range(clock_at(&c, 1000 + HZ), 999999999, 1000000000);
	assert_in_range(clock_at(&c, 1000 + HZ * 3600), 3599999999000, 3600000000000);
}

/* A reading each 100 cycles rounds each time; the remainder must not be lost. */
static void clock_at__many_short_readings_do_not_drift(void **state)
{
	struct tsc_clock c;
	uint64_t ns = 0;

	clock_init(&c, HZ, 0);
	for (uint64_t i = 1; i <= 1000000; i++)
		ns = clock_at(&c, i * 100);
	assert_in_range(
		ns, 100000000ull * 1000000000ull / HZ - 2, 100000000ull * 1000000000ull / HZ);
}

static void clock_at__counter_that_goes_back_stands_still(void **state)
{
	struct tsc_clock c;
	uint64_t before;

	clock_init(&c, HZ, HZ);
	before = clock_at(&c, 2 * HZ);
	assert_int_equal(clock_at(&c, 5), before);
	assert_int_equal(clock_at(&c, 5), before);
	assert_in_range(clock_at(&c, 5 + HZ), before + 999999999, before + 1000000000);
}

static void clock_at__counter_that_wraps_goes_on(void **state)
{
	struct tsc_clock c;

	clock_init(&c, 1000000000, UINT64_MAX - 4);
	assert_in_range(clock_at(&c, 5), 9, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clock_at__one_second_of_cycles_is_a_second),
		cmocka_unit_test(clock_at__many_short_readings_do_not_drift),
		cmocka_unit_test(clock_at__counter_that_goes_back_stands_still),
		cmocka_unit_test(clock_at__counter_that_wraps_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
