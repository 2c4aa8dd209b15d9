/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "impair.h"

#define FRAMES 1000000u

static unsigned count(const struct impair *i, enum impair_kind kind)
{
	unsigned n = 0;

	for (uint64_t f = 0; f < FRAMES; f++)
		n += impair_choose(i, f) >> kind & 1;
	return n;
}

static void impair_choose__rates_are_met(void **state)
{
	struct impair i = {.seed = 7,
		.rate = {[IMPAIR_LOSE] = 0.05, [IMPAIR_CORRUPT] = 0.001, [IMPAIR_DUPLICATE] = 1}};
	unsigned both = 0;

	(void)state;
	assert_in_range(count(&i, IMPAIR_LOSE), 49000, 51000);
	assert_in_range(count(&i, IMPAIR_CORRUPT), 850, 1150);
	assert_int_equal(count(&i, IMPAIR_DUPLICATE), FRAMES);
	assert_int_equal(count(&i, IMPAIR_REORDER), 0);
	i.rate[IMPAIR_REORDER] = 0.5;
	i.rate[IMPAIR_MARK] = 0.5;
	for (uint64_t f = 0; f < FRAMES; f++) {
		unsigned chosen = impair_choose(&i, f);

		both += (chosen >> IMPAIR_REORDER & 1) && (chosen >> IMPAIR_MARK & 1);
	}
	assert_in_range(both, 248000, 252000); /* independent of each other */
}

static void impair_choose__nth_and_mask_name_frames(void **state)
{
	const struct impair i = {.nth = 10, .mask = 1ull << 63 | 5};

	(void)state;
	for (uint64_t f = 0; f < 200; f++) {
		unsigned lost = f % 10 == 9 || f == 0 || f == 2 || f == 63;

		assert_int_equal(impair_choose(&i, f), lost << IMPAIR_LOSE);
	}
}

/* In whatever order they are asked for, and whatever else happens to the frames. */
static void impair_choose__same_seed_same_choice(void **state)
{
	struct impair a = {.seed = 1, .rate[IMPAIR_LOSE] = 0.5}, b = a, c = a;
	unsigned same = 0;

	(void)state;
	b.rate[IMPAIR_CORRUPT] = 0.5;
	c.seed = 2;
	for (uint64_t f = 1000; f--;) {
		unsigned lost = impair_choose(&a, f);

		assert_int_equal(impair_choose(&b, f) & 1u << IMPAIR_LOSE, lost);
		same += impair_choose(&c, f) == lost;
	}
	assert_in_range(same, 400, 600);
	for (uint64_t f = 0; f < 1000; f++)
		assert_int_equal(impair_choose(&a, f), impair_choose(&b, f) & 1u << IMPAIR_LOSE);
}

static void impair_flip__hits_each_bit(void **state)
{
	const struct impair i = {.seed = 3};
	uint64_t seen = 0;

	(void)state;
	for (uint64_t f = 0; f < 10000; f++) {
		uint8_t bytes[8] = {0};
		uint64_t word = 0;

		impair_flip(bytes, sizeof(bytes), impair_random(&i, f, IMPAIR_CORRUPT));
		for (unsigned k = 0; k < 8; k++)
			word |= (uint64_t)bytes[k] << 8 * k;
		assert_true(word && !(word & (word - 1)));
		seen |= word;
	}
	assert_true(seen == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(impair_choose__rates_are_met),
		cmocka_unit_test(impair_choose__nth_and_mask_name_frames),
		cmocka_unit_test(impair_choose__same_seed_same_choice),
		cmocka_unit_test(impair_flip__hits_each_bit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
