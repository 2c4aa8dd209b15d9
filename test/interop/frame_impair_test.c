/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "frame_impair.h"

static void impair_list__refuses_what_is_no_list(void **state)
{
	static const char *const bad[] = {"drop", "drop=", "drop=x", "drop=-1", "lose=1",
		"drop=1000001", "drop=1 corrupt=2", "none=5", "=5", "drop=600000,delay=500000"};
	struct impair plan = {0};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(impair_list(bad[i], &(struct impair){0}));
	assert_true(impair_list("", &plan));
	assert_true(impair_list("delay=3", &plan));
	assert_float_equal(plan.rate[IMPAIR_DELAY], 3e-6, 1e-12);
}

/* Frames as far as they are looked at: the rest is zero. */
struct sample {
	const char *what;
	uint8_t bytes[64];
	size_t bth;
};

static const struct sample samples[] = {
	{"RoCEv2, IPv4", {[12] = 0x08, 0x00, 0x45, [23] = 17, [36] = 0x12, 0xB7}, 42},
	{"with IPv4 options", {[12] = 0x08, 0x00, 0x46, [23] = 17, [40] = 0x12, 0xB7}, 46},
	{"RoCEv2, IPv6", {[12] = 0x86, 0xDD, 0x60, [20] = 17, [56] = 0x12, 0xB7}, 62},
	{"RoCEv1", {[12] = 0x89, 0x15, 0x60, [20] = 0x1B}, 54},
	{"with a VLAN tag", {[12] = 0x81, 0, 0, 5, 0x08, 0, 0x45, [27] = 17, [40] = 0x12, 0xB7},
		46},
	{"with two", {[12] = 0x88, 0xA8, 0, 5, 0x81, 0, 0, 6, 0x89, 0x15}, 62},
	{"with three", {[12] = 0x88, 0xA8, 0, 5, 0x81, 0, 0, 6, 0x81, 0, 0, 7, 0x89, 0x15}, 0},
	{"ARP", {[12] = 0x08, 0x06}, 0},
	{"TCP port 4791", {[12] = 0x08, 0x00, 0x45, [23] = 6, [36] = 0x12, 0xB7}, 0},
	{"UDP port 4790", {[12] = 0x08, 0x00, 0x45, [23] = 17, [36] = 0x12, 0xB6}, 0},
	{"a later fragment", {[12] = 0x08, 0, 0x45, [20] = 0, 9, [23] = 17, [36] = 0x12, 0xB7}, 0},
	{"ICMPv6", {[12] = 0x86, 0xDD, 0x60, [20] = 58, [56] = 0x12, 0xB7}, 0},
};

static void roce_bth_offset__knows_roce_from_the_rest(void **state)
{
	uint8_t frame[200] = {0};

	(void)state;
	for (unsigned i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		memcpy(frame, samples[i].bytes, sizeof(samples[i].bytes));
		if (roce_bth_offset(frame, sizeof(frame)) != samples[i].bth)
			fail_msg("%s: BTH at %zu", samples[i].what,
				roce_bth_offset(frame, sizeof(frame)));
		/* Cut off anywhere before the end of the BTH it is none, and nothing is read. */
		for (size_t len = 0; samples[i].bth && len < samples[i].bth + 12; len++)
			assert_int_equal(roce_bth_offset(frame, len), 0);
	}
}

/* Nothing but ECN changes, and the checksum of IPv4 with it: that of the first is known. */
static void frame_mark__says_congestion(void **state)
{
	static const uint8_t ip4[20] = {0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xB8, 0x61,
		0xC0, 0xA8, 0, 1, 0xC0, 0xA8, 0, 0xC7};
	uint8_t frame[200] = {[12] = 0x81, 0, 0, 5, 0x08, 0}, before[200];

	(void)state;
	memcpy(frame + 18, ip4, sizeof(ip4));
	memcpy(before, frame, sizeof(frame));
	frame_mark(frame, sizeof(frame));
	before[19] = 3;
	before[29] -= 3;
	assert_memory_equal(frame, before, sizeof(frame));
	memcpy(frame, samples[2].bytes, sizeof(samples[2].bytes));
	memcpy(before, frame, sizeof(frame));
	frame_mark(frame, sizeof(frame));
	before[15] = 0x30;
	assert_memory_equal(frame, before, sizeof(frame));
	memcpy(frame, samples[3].bytes, sizeof(samples[3].bytes));
	memcpy(before, frame, sizeof(frame));
	frame_mark(frame, sizeof(frame)); /* RoCEv1 */
	assert_memory_equal(frame, before, sizeof(frame));
}

static void frame_corrupt__flips_one_bit_that_counts(void **state)
{
	const struct impair plan = {.seed = 3};
	uint8_t frame[80], good[80] = {0};

	(void)state;
	for (uint64_t i = 0; i < 10000; i++) {
		unsigned bits = 0;

		memset(frame, 0, sizeof(frame));
		frame_corrupt(frame, sizeof(frame), 42, impair_random(&plan, i, IMPAIR_CORRUPT));
		for (unsigned k = 0; k < sizeof(frame); k++)
			bits += (unsigned)__builtin_popcount(frame[k]);
		assert_int_equal(bits, 1);
		assert_memory_equal(frame, good, 42);
		assert_int_equal(frame[42 + 4], 0); /* resv8a */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(impair_list__refuses_what_is_no_list),
		cmocka_unit_test(roce_bth_offset__knows_roce_from_the_rest),
		cmocka_unit_test(frame_mark__says_congestion),
		cmocka_unit_test(frame_corrupt__flips_one_bit_that_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
