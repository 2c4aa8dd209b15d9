/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "number.h"

static void parse_number__is_a_whole_number_in_c_notation(void **state)
{
	static const char *const none[] = {
		"", "-1", "+1", " 1", "1 ", "0x", "08", "1.5", "x", "18446744073709551616"};
	uint64_t n;

	(void)state;
	assert_true(parse_number("0", 0, &n) && n == 0);
	assert_true(parse_number("42", 42, &n) && n == 42);
	assert_true(parse_number("0x2A", 42, &n) && n == 42);
	assert_true(parse_number("18446744073709551615", UINT64_MAX, &n) && n == UINT64_MAX);
	assert_false(parse_number("43", 42, &n));
	for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(parse_number(none[i], UINT64_MAX, &n));
}

static void parse_in_base__has_the_digits_of_its_base(void **state)
{
	uint64_t n;

	(void)state;
	assert_true(parse_in_base("010", 10, 99, &n) && n == 10);
	assert_true(parse_in_base("660", 8, 0777, &n) && n == 0660);
	assert_true(parse_in_base("ff", 16, 255, &n) && n == 255);
	assert_false(parse_in_base("ff", 10, 255, &n));
	assert_false(parse_in_base("0x10", 10, 99, &n));
	assert_false(parse_in_base("-f", 16, UINT64_MAX, &n));
}

static void take_number__stops_after_the_number(void **state)
{
	const char *text = "3-17", *at = text;
	uint64_t n;

	(void)state;
	assert_true(take_number(&at, 10, 9, &n) && n == 3);
	assert_string_equal(at, "-17");
	assert_false(take_number(&at, 10, 99, &n));
	assert_string_equal(at, "-17");
	at++;
	assert_false(take_number(&at, 10, 16, &n));
	assert_string_equal(at, "17");
	assert_true(take_number(&at, 10, 17, &n) && n == 17 && !*at);
}

static void parse_decimal__has_no_sign_and_is_finite(void **state)
{
	static const char *const none[] = {"", ".", "-1", "+1", " 1", "1x", "inf", "nan", "1e999"};
	double v;

	(void)state;
	assert_true(parse_decimal("1", &v) && v == 1);
	assert_true(parse_decimal(".25", &v) && v == 0.25);
	assert_true(parse_decimal("1e-3", &v) && v == 1e-3);
	for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(parse_decimal(none[i], &v));
}

static void take_amount__has_powers_of_1000(void **state)
{
	const char *at = "2.5K:1G:7x";
	double v;

	(void)state;
	assert_true(take_amount(&at, &v) && v == 2500);
	assert_int_equal(*at++, ':');
	assert_true(take_amount(&at, &v) && v == 1e9);
	assert_int_equal(*at++, ':');
	assert_true(take_amount(&at, &v) && v == 7);
	assert_string_equal(at, "x");
}

static void parse_rate__is_1m_to_1000g(void **state)
{
	uint64_t rate;

	(void)state;
	assert_true(parse_rate("1M", &rate) && rate == 1000000);
	assert_true(parse_rate("2.5G", &rate) && rate == 2500000000);
	assert_true(parse_rate("1000G", &rate) && rate == 1000000000000);
	assert_false(parse_rate("999K", &rate));
	assert_false(parse_rate("1001G", &rate));
	assert_false(parse_rate("1Gb", &rate));
	assert_false(parse_rate("", &rate));
}

static void parse_time__needs_a_unit(void **state)
{
	uint64_t ns;

	(void)state;
	assert_true(parse_time("0ns", 10, &ns) && ns == 0);
	assert_true(parse_time("1.5ms", 10000000, &ns) && ns == 1500000);
	assert_true(parse_time("50us", 50000, &ns) && ns == 50000);
	assert_true(parse_time("10s", 10000000000, &ns) && ns == 10000000000);
	assert_false(parse_time("51us", 50000, &ns));
	assert_false(parse_time("50", 50000, &ns));
	assert_false(parse_time("50 us", 50000, &ns));
	assert_false(parse_time("-1us", 50000, &ns));
	assert_false(parse_time("1e300s", UINT64_MAX, &ns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_number__is_a_whole_number_in_c_notation),
		cmocka_unit_test(parse_in_base__has_the_digits_of_its_base),
		cmocka_unit_test(take_number__stops_after_the_number),
		cmocka_unit_test(parse_decimal__has_no_sign_and_is_finite),
		cmocka_unit_test(take_amount__has_powers_of_1000),
		cmocka_unit_test(parse_rate__is_1m_to_1000g),
		cmocka_unit_test(parse_time__needs_a_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
