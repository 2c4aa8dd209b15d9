/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "units.h"

static void units_bytes__suffixes(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {
		{"0", 0},
		{"4096", 4096},
		{"0x10", 16},
		{"64K", 65536},
		{"64k", 65536},
		{"256M", 256ull << 20},
		{"3G", 3ull << 30},
		{"18446744073709551615", UINT64_MAX},
		{"17179869183G", 17179869183ull << 30},
	};
	static const char *const bad[] = {
		"",
		"K",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1KB",
		"1T",
		"x",
		"18446744073709551616",
		"17179869184G",
		"1.5K",
	};
	uint64_t value;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(units_bytes(good[i].text, &value));
		assert_int_equal(value, good[i].value);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(units_bytes(bad[i], &value));
}

static void units_number__no_suffix(void **state)
{
	uint64_t value;

	assert_true(units_number("128", &value));
	assert_int_equal(value, 128);
	assert_false(units_number("128K", &value));
	assert_false(units_number("", &value));
	assert_false(units_number("-128", &value));
}

static void units_seconds__fractions(void **state)
{
	static const char *const bad[] = {"", ".", "-1", "1s", "nan", "inf", "1e9", "0x", "1 "};
	uint64_t us;

	assert_true(units_seconds("5", &us));
	assert_int_equal(us, 5000000);
	assert_true(units_seconds("0.25", &us));
	assert_int_equal(us, 250000);
	assert_true(units_seconds(".5", &us));
	assert_int_equal(us, 500000);
	assert_true(units_seconds("1e-3", &us));
	assert_int_equal(us, 1000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(units_seconds(bad[i], &us));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_bytes__suffixes),
		cmocka_unit_test(units_number__no_suffix),
		cmocka_unit_test(units_seconds__fractions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
