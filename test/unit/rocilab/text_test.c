/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "bits.h"
#include "text.h"

static void text_number__reads_units(void **state)
{
	static const struct {
		const char *text;
		enum unit unit;
		double value;
	} row[] = {
		{"7", UNIT_NONE, 7},
		{"5K", UNIT_BYTES, 5000},
		{"1Mi", UNIT_BYTES, 1048576},
		{"0", UNIT_BYTES, 0},
		{"40G", UNIT_RATE, 40e9},
		{"2.5G", UNIT_RATE, 2.5e9},
		{"100us", UNIT_TIME, 1e5},
		{"1100ms", UNIT_TIME, 1.1e9},
		{"0", UNIT_TIME, 0},
		{"1%", UNIT_PART, 0.01},
		{"0.5", UNIT_PART, 0.5},
		{"3.64%/ms", UNIT_SLOPE, 36.4},
		{"-5%/ms", UNIT_SLOPE, -50},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		double v;

		if (!text_number(row[i].text, row[i].unit, &v))
			fail_msg("'%s'", row[i].text);
		assert_float_equal(v, row[i].value, fabs(row[i].value) * 1e-12);
	}
}

static void text_number__refuses(void **state)
{
	static const struct {
		const char *text;
		enum unit unit;
	} row[] = {{"", UNIT_NONE}, {"x", UNIT_NONE}, {"5K", UNIT_NONE}, {"5k", UNIT_BYTES},
		{"5 K", UNIT_BYTES}, {"5", UNIT_TIME}, {"5m", UNIT_TIME}, {"inf", UNIT_RATE},
		{"nan", UNIT_PART}, {"--5", UNIT_NONE}, {"+5", UNIT_NONE}, {" 5", UNIT_NONE},
		{"0x5", UNIT_NONE}, {"1%", UNIT_SLOPE}};
	double v;

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		if (text_number(row[i].text, row[i].unit, &v))
			fail_msg("'%s' is %g", row[i].text, v);
}

static void text_of__chooses_the_unit(void **state)
{
	char t[32];

	assert_string_equal(text_of(NAN, UNIT_NONE, t, sizeof(t)), "none");
	assert_string_equal(text_of(126400, UNIT_BYTES, t, sizeof(t)), "126.4K");
	assert_string_equal(text_of(37.03e9, UNIT_RATE, t, sizeof(t)), "37.03G");
	assert_string_equal(text_of(999, UNIT_TIME, t, sizeof(t)), "999ns");
	assert_string_equal(text_of(9.044e6, UNIT_TIME, t, sizeof(t)), "9.044ms");
	assert_string_equal(text_of(HUGE_VAL, UNIT_TIME, t, sizeof(t)), "never");
	assert_string_equal(text_of(0.995, UNIT_PART, t, sizeof(t)), "99.50%");
	assert_string_equal(text_of(36.4, UNIT_SLOPE, t, sizeof(t)), "3.640%/ms");
}

static void text_range__one_or_two(void **state)
{
	uint32_t a, b;

	assert_true(text_range("3", &a, &b));
	assert_true(a == 3 && b == 3);
	assert_true(text_range("2..7", &a, &b));
	assert_true(a == 2 && b == 7);
	assert_false(text_range("7..2", &a, &b));
	assert_false(text_range("-1", &a, &b));
	assert_false(text_range("1.. 3", &a, &b));
	assert_false(text_range("1..", &a, &b));
	assert_false(text_range("1-3", &a, &b));
	assert_false(text_range("", &a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_number__reads_units),
		cmocka_unit_test(text_number__refuses),
		cmocka_unit_test(text_of__chooses_the_unit),
		cmocka_unit_test(text_range__one_or_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
