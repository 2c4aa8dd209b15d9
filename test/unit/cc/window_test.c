/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "window.h"

static void window_init__is_open(void **state)
{
	struct window w;

	window_init(&w, 128);
	assert_int_equal(w.size, 128);
	window_init(&w, 1); /* there must be a quarter of it */
	assert_int_equal(w.size, 4);
}

static void window_on_loss__halves_down_to_four(void **state)
{
	static const uint32_t want[] = {64, 32, 16, 8, 4, 4, 4};
	struct window w;

	window_init(&w, 128);
	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		window_on_loss(&w);
		assert_int_equal(w.size, want[i]);
	}
}

static void window_on_ack__regrows_to_max_and_no_further(void **state)
{
	struct window w;
	uint32_t acked = 0;

	window_init(&w, 128);
	while (w.size > 4)
		window_on_loss(&w);
	while (w.size < 128 && acked < 10000) {
		window_on_ack(&w, 1);
		acked++;
	}
	assert_int_equal(acked, 4 * (128 - 4));
	window_on_ack(&w, 1000000);
	assert_int_equal(w.size, 128);
	window_on_loss(&w);
	window_on_ack(&w, 1000000);
	assert_int_equal(w.size, 128);
	window_limit(&w, 256); /* what was acknowledged at the limit is not saved up */
	window_on_ack(&w, 3);
	assert_int_equal(w.size, 128);
	window_on_ack(&w, 1);
	assert_int_equal(w.size, 129);
}

static void window_on_ack__a_large_ack_counts_wholly(void **state)
{
	struct window w;

	window_init(&w, 64);
	window_on_loss(&w);
	window_on_ack(&w, 3);
	assert_int_equal(w.size, 32);
	window_on_ack(&w, 9);
	assert_int_equal(w.size, 35);
	window_on_loss(&w); /* what was saved up is void */
	window_on_ack(&w, 3);
	assert_int_equal(w.size, 17);
}

static void window_limit__lower_at_once_higher_by_and_by(void **state)
{
	struct window w;

	window_init(&w, 64);
	window_limit(&w, 16);
	assert_int_equal(w.size, 16);
	window_on_ack(&w, 1000);
	assert_int_equal(w.size, 16);
	window_limit(&w, 32);
	assert_int_equal(w.size, 16);
	window_on_ack(&w, 4);
	assert_int_equal(w.size, 17);
	window_on_ack(&w, 1000);
	assert_int_equal(w.size, 32);
	window_limit(&w, 1); /* below four there is no quarter */
	assert_int_equal(w.size, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_init__is_open),
		cmocka_unit_test(window_on_loss__halves_down_to_four),
		cmocka_unit_test(window_on_ack__regrows_to_max_and_no_further),
		cmocka_unit_test(window_on_ack__a_large_ack_counts_wholly),
		cmocka_unit_test(window_limit__lower_at_once_higher_by_and_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
