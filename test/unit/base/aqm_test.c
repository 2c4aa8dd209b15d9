/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "aqm.h"

#define FRAME 1000u

static struct aqm q;

static void start(bool ingress)
{
	const struct aqm_config cfg = {
		.limit = 400000, .kmin = 5000, .kmax = 200000, .pmax = 0.01, .ingress = ingress};

	aqm_init(&q, &cfg, 1);
}

static void fill(unsigned frames)
{
	for (unsigned i = 0; i < frames; i++)
		assert_int_not_equal(aqm_enter(&q, FRAME), AQM_DROP);
}

/* Frames pass a queue in which @p wait others wait: how many of 100,000 are marked. */
static unsigned marks(unsigned wait)
{
	unsigned n = 0;

	fill(wait);
	for (unsigned i = 0; i < 100000; i++) {
		n += aqm_enter(&q, FRAME) == AQM_MARK;
		n += aqm_leave(&q, FRAME) == AQM_MARK;
	}
	return n;
}

static void aqm__marks_by_the_bytes_that_wait(void **state)
{
	for (int ingress = 0; ingress < 2; ingress++) {
		start(ingress);
		assert_int_equal(marks(5), 0); /* kmin itself is not above it */
		start(ingress);
		assert_in_range(marks(102), 400, 600); /* half of the way: half a percent */
		start(ingress);
		assert_in_range(marks(200), 900, 1100);
		start(ingress);
		assert_int_equal(marks(201), 100000);
	}
}

/* The frame that it decides on does not wait: not when it leaves, and not when it comes. */
static void aqm__does_not_count_the_frame_itself(void **state)
{
	start(false);
	fill(202);
	assert_int_equal(aqm_leave(&q, FRAME), AQM_MARK);
	assert_int_not_equal(q.bytes, 0);
	start(false);
	fill(6);
	for (unsigned i = 0; i < 100000; i++) { /* 5 wait: none is marked, ever */
		assert_int_equal(aqm_leave(&q, FRAME), AQM_PASS);
		fill(1);
	}
	start(true);
	fill(200);
	while (aqm_enter(&q, FRAME) != AQM_PASS) /* 1 % of those that find 200 */
		aqm_leave(&q, FRAME);
	assert_int_equal(aqm_enter(&q, FRAME), AQM_MARK);
}

static void aqm_enter__refuses_what_does_not_fit(void **state)
{
	start(false);
	fill(400);
	assert_int_equal(aqm_enter(&q, 1), AQM_DROP);
	assert_int_equal(q.bytes, 400000);
	aqm_leave(&q, FRAME);
	assert_int_equal(aqm_enter(&q, FRAME + 1), AQM_DROP);
	assert_int_equal(aqm_enter(&q, FRAME), AQM_PASS);
	aqm_init(&q, &(struct aqm_config){0}, 1);
	fill(100000); /* without limits */
	assert_int_equal(aqm_leave(&q, FRAME), AQM_PASS);
}

static void aqm__same_seed_same_marks(void **state)
{
	uint64_t hash[3];

	for (unsigned run = 0; run < 3; run++) {
		start(false);
		aqm_init(&q, &q.cfg, run == 2 ? 8 : 7);
		fill(150);
		hash[run] = 1;
		for (unsigned i = 0; i < 10000; i++) {
			hash[run] = hash[run] * 31 + (aqm_leave(&q, FRAME) == AQM_MARK);
			fill(1);
		}
	}
	assert_true(hash[0] == hash[1]);
	assert_true(hash[0] != hash[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aqm__marks_by_the_bytes_that_wait),
		cmocka_unit_test(aqm__does_not_count_the_frame_itself),
		cmocka_unit_test(aqm_enter__refuses_what_does_not_fit),
		cmocka_unit_test(aqm__same_seed_same_marks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
