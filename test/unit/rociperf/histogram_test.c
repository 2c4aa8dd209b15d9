/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "histogram.h"

static struct histogram *h;

static int setup(void **state)
{
	h = histogram_new();
	return 0;
}

static int teardown(void **state)
{
	free(h);
	return 0;
}

static void near(double got, double want, double part)
{
	if (fabs(got - want) > want * part)
		fail_msg("%f is not %f", got, want);
}

/* Buckets follow each other without a gap, and each holds what it stands for. */
static void histogram_bucket__all_values(void **state)
{
	assert_int_equal(histogram_bucket(0), 0);
	for (unsigned bits = 1; bits <= HISTOGRAM_VALUE_BITS; bits++) {
		uint64_t edge = 1ull << (bits - 1);

		assert_int_equal(histogram_bucket(edge), histogram_bucket(edge - 1) + 1);
	}
	for (uint64_t v = 1; v < 1ull << HISTOGRAM_VALUE_BITS; v += v / 700 + 1)
		near(histogram_value(histogram_bucket(v)), (double)v, 1e-3);
}

static void histogram_bucket__too_large(void **state)
{
	assert_int_equal(
		histogram_bucket((1ull << HISTOGRAM_VALUE_BITS) - 1), HISTOGRAM_BUCKETS - 1);
	assert_int_equal(histogram_bucket(1ull << HISTOGRAM_VALUE_BITS), HISTOGRAM_BUCKETS - 1);
	assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
	histogram_record(h, UINT64_MAX);
	near(histogram_percentile(h, 100), (double)UINT64_MAX, 1e-9);
}

static void histogram_percentile__uniform(void **state)
{
	for (uint64_t v = 1; v <= 1000000; v++)
		histogram_record(h, v);
	assert_int_equal(h->total, 1000000);
	assert_int_equal(h->min, 1);
	assert_int_equal(h->max, 1000000);
	near(histogram_percentile(h, 50), 500000, 1e-3);
	near(histogram_percentile(h, 90), 900000, 1e-3);
	near(histogram_percentile(h, 99), 990000, 1e-3);
	near(histogram_percentile(h, 99.9), 999000, 1e-3);
	near(histogram_percentile(h, 99.99), 999900, 1e-3);
	near(histogram_mean(h), 500000.5, 1e-9);
	near(histogram_stdev(h), 1000000 / sqrt(12), 1e-3);
}

/* Small values are exact, and a rank is that of the value below which so many are. */
static void histogram_percentile__exact(void **state)
{
	for (unsigned i = 0; i < 99; i++)
		histogram_record(h, 7);
	histogram_record(h, 2000);
	assert_true(histogram_percentile(h, 50) == 7);
	assert_true(histogram_percentile(h, 99) == 7);
	assert_true(histogram_percentile(h, 99.1) == 2000);
	assert_true(histogram_percentile(h, 0) == 7);
}

/* A bucket's middle is never beyond what was recorded. */
static void histogram_percentile__within_min_and_max(void **state)
{
	const uint64_t v = (1ull << 30) + 1; /* its bucket is a million wide */

	histogram_record(h, v);
	histogram_record(h, v);
	assert_true(histogram_percentile(h, 50) == (double)v);
	assert_true(histogram_percentile(h, 100) == (double)v);
}

static void histogram_percentile__empty(void **state)
{
	assert_true(histogram_percentile(h, 50) == 0);
	assert_true(histogram_mean(h) == 0);
	assert_true(histogram_stdev(h) == 0);
}

static void histogram_clear__forgets(void **state)
{
	histogram_record(h, 5);
	histogram_clear(h);
	histogram_record(h, 9);
	assert_int_equal(h->total, 1);
	assert_int_equal(h->min, 9);
	assert_true(histogram_percentile(h, 50) == 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(histogram_bucket__all_values, setup, teardown),
		cmocka_unit_test_setup_teardown(histogram_bucket__too_large, setup, teardown),
		cmocka_unit_test_setup_teardown(histogram_percentile__uniform, setup, teardown),
		cmocka_unit_test_setup_teardown(histogram_percentile__exact, setup, teardown),
		cmocka_unit_test_setup_teardown(
			histogram_percentile__within_min_and_max, setup, teardown),
		cmocka_unit_test_setup_teardown(histogram_percentile__empty, setup, teardown),
		cmocka_unit_test_setup_teardown(histogram_clear__forgets, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
