/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bits.h"

static void get_be__any_alignment(void **state)
{
	uint8_t b[16];

	for (unsigned at = 0; at < 8; at++) {
		for (uint8_t i = 0; i < 8; i++)
			b[at + i] = i + 1;
		assert_int_equal(get_be16(b + at), 0x0102);
		assert_int_equal(get_be24(b + at), 0x010203);
		assert_int_equal(get_be32(b + at), 0x01020304);
		assert_int_equal(get_be64(b + at), 0x0102030405060708);
	}
}

static void put_be__writes_what_get_be_reads_and_no_more(void **state)
{
	for (unsigned at = 1; at < 8; at++) {
		uint8_t b[17];

		memset(b, 0xEE, sizeof(b));
		put_be16(b + at, 0xA1B2);
		assert_int_equal(get_be16(b + at), 0xA1B2);
		assert_true(b[at - 1] == 0xEE && b[at + 2] == 0xEE);
		put_be32(b + at, 0xA1B2C3D4);
		assert_int_equal(get_be32(b + at), 0xA1B2C3D4);
		assert_true(b[at - 1] == 0xEE && b[at + 4] == 0xEE);
		put_be64(b + at, 0xA1B2C3D4E5F60718);
		assert_int_equal(get_be64(b + at), 0xA1B2C3D4E5F60718);
		assert_true(b[at - 1] == 0xEE && b[at + 8] == 0xEE);
	}
}

static void round_pow2__each_power_and_its_neighbours(void **state)
{
	assert_int_equal(round_pow2(0), 1);
	assert_int_equal(round_pow2(1), 1);
	assert_int_equal(round_pow2(2), 2);
	for (unsigned bit = 2; bit < 32; bit++) {
		uint32_t p = 1u << bit;

		assert_int_equal(round_pow2(p), p);
		assert_int_equal(round_pow2(p - 1), p);
		if (bit < 31)
			assert_int_equal(round_pow2(p + 1), p << 1);
	}
}

static void range_inside__edges(void **state)
{
	assert_true(range_inside(0, 0, 0));
	assert_true(range_inside(10, 0, 10));
	assert_false(range_inside(11, 0, 10));
	assert_true(range_inside(0, 10, 10));
	assert_false(range_inside(1, 10, 10));
	assert_true(range_inside(9, 1, 10));
}

static void range_inside__does_not_wrap(void **state)
{
	assert_false(range_inside(UINT64_MAX, 1, 10));
	assert_false(range_inside(UINT64_MAX, UINT64_MAX, 10));
	assert_false(range_inside(5, UINT64_MAX - 3, 10));
	assert_true(range_inside(1, UINT64_MAX - 1, UINT64_MAX));
	assert_false(range_inside(2, UINT64_MAX - 1, UINT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get_be__any_alignment),
		cmocka_unit_test(put_be__writes_what_get_be_reads_and_no_more),
		cmocka_unit_test(round_pow2__each_power_and_its_neighbours),
		cmocka_unit_test(range_inside__edges),
		cmocka_unit_test(range_inside__does_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
