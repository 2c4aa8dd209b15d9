/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <math.h>
#include <cmocka.h>
#include "measure.h"
#include "ticks.h"

static struct plan plan;
static struct measure m;

static int setup(void **state)
{
	ticks_open();
	plan_usual(&plan);
	m = (struct measure){0};
	return 0;
}

static void near(double got, double want)
{
	if (fabs(got - want) > want * 0.01)
		fail_msg("%f is not %f", got, want);
}

static void measure_count__by_messages(void **state)
{
	double figure[FIGURE_COUNT];
	uint64_t now = 1000;

	plan.value[PARAM_ITERATIONS] = 100000;
	plan.value[PARAM_QPS] = 2;
	measure_start(&m, &plan, true, 1, now);
	while (m.phase == PHASE_WARM)
		measure_count(&m, 16, now += 160000);
	assert_true(m.completed == 0); /* what warmed up does not count */
	while (m.phase == PHASE_MEASURE)
		measure_count(&m, 16, now += 1600); /* 100 ticks a message */
	assert_int_equal(m.phase, PHASE_HOLD);
	assert_true(measure_sends(&m));
	measure_count(&m, 16, now += 1); /* nor what comes afterwards */
	measure_figures(&m, 1, figure);
	assert_true(figure[FIGURE_ITERATIONS] == 200000);
	near(figure[FIGURE_SECONDS], 200000 * 100 / ticks_per_second());
	near(figure[FIGURE_PEAK], ticks_per_second() / 100);
}

static void measure_count__by_time(void **state)
{
	double figure[FIGURE_COUNT], second = ticks_per_second();
	uint64_t now = 0, step = (uint64_t)(second / 1e6);

	plan.value[PARAM_DURATION] = 100000;
	measure_start(&m, &plan, true, 1, now);
	while (m.phase == PHASE_WARM)
		measure_count(&m, 1, now += step);
	near((double)now, second / 100);
	while (m.phase == PHASE_MEASURE)
		measure_count(&m, 3, now += step);
	measure_figures(&m, 1, figure);
	near(figure[FIGURE_SECONDS], 0.1);
	near(figure[FIGURE_ITERATIONS], 300000);
	near(figure[FIGURE_PEAK], 3e6);
}

/* Twice as fast for a tenth of the time: the peak tells, the average does not. */
static void measure_figures__peak(void **state)
{
	double figure[FIGURE_COUNT];
	uint64_t now = 0;

	plan.value[PARAM_ITERATIONS] = 1000000;
	measure_start(&m, &plan, true, 1, now);
	while (m.phase == PHASE_WARM)
		measure_count(&m, 10, now += 1000);
	while (m.phase == PHASE_MEASURE) {
		uint64_t ticks = m.completed >= 500000 && m.completed < 600000 ? 500 : 1000;

		measure_count(&m, 10, now += ticks);
	}
	measure_figures(&m, 1, figure);
	near(figure[FIGURE_PEAK], ticks_per_second() / 50);
	near(figure[FIGURE_ITERATIONS] / figure[FIGURE_SECONDS], ticks_per_second() / 95);
}

/* Completions that piled up while the program did not run are no peak. */
static void measure_figures__pile_is_no_peak(void **state)
{
	double figure[FIGURE_COUNT];
	uint64_t now = 0;
	unsigned calls = 0;

	plan.value[PARAM_ITERATIONS] = 40000;
	measure_start(&m, &plan, true, 2000, now);
	while (m.phase == PHASE_WARM)
		measure_count(&m, 10, now += 1000);
	while (m.phase == PHASE_MEASURE) /* 2000 come at once, one of 100 ticks each */
		measure_count(&m, 10, now += calls++ % 200 ? 10 : 200000);
	measure_figures(&m, 1, figure);
	assert_true(figure[FIGURE_PEAK] < ticks_per_second() / 100 * 1.4);
}

static void measure_figures__half_of_a_round_trip(void **state)
{
	double figure[FIGURE_COUNT], us = ticks_per_second() / 1e6;

	plan.value[PARAM_ITERATIONS] = 100;
	m.trip = histogram_new();
	histogram_record(m.trip, 1); /* of an earlier size */
	measure_start(&m, &plan, true, 1, 0);
	for (uint64_t i = 0; i < 100; i++)
		histogram_record(m.trip, (uint64_t)((i < 99 ? 4 : 400) * us));
	m.phase = PHASE_MEASURE;
	measure_count(&m, 100, 1000);
	measure_figures(&m, 2, figure);
	near(figure[FIGURE_MIN], 2);
	near(figure[FIGURE_TYPICAL], 2);
	near(figure[FIGURE_P99], 2);
	near(figure[FIGURE_P99_9], 200);
	near(figure[FIGURE_MAX], 200);
	near(figure[FIGURE_AVERAGE], 3.98);
	free(m.trip);
}

/* Nothing is over while nothing completes, and times are those of completions. */
static void measure_count__slow_messages(void **state)
{
	double figure[FIGURE_COUNT], second = ticks_per_second();
	uint64_t now = 0, step = (uint64_t)second;

	plan.value[PARAM_DURATION] = 1500000;
	measure_start(&m, &plan, true, 1, now);
	measure_count(&m, 0, now + step / 2);
	assert_int_equal(m.phase, PHASE_WARM);
	measure_count(&m, 1, now += step);
	assert_int_equal(m.phase, PHASE_MEASURE);
	measure_count(&m, 1, now += step);
	measure_count(&m, 0, now + step * 3 / 4);
	assert_int_equal(m.phase, PHASE_MEASURE);
	measure_count(&m, 1, now += step);
	assert_int_equal(m.phase, PHASE_HOLD);
	measure_figures(&m, 1, figure);
	near(figure[FIGURE_ITERATIONS], 2);
	near(figure[FIGURE_SECONDS], 2);
}

static void measure_start__passive(void **state)
{
	double figure[FIGURE_COUNT];

	measure_start(&m, &plan, false, 1, 0);
	measure_count(&m, 1000, 1u << 31);
	assert_int_equal(m.phase, PHASE_PASSIVE);
	assert_false(measure_sends(&m));
	measure_figures(&m, 1, figure);
	assert_true(figure[FIGURE_ITERATIONS] == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(measure_count__by_messages, setup),
		cmocka_unit_test_setup(measure_count__by_time, setup),
		cmocka_unit_test_setup(measure_figures__peak, setup),
		cmocka_unit_test_setup(measure_figures__pile_is_no_peak, setup),
		cmocka_unit_test_setup(measure_figures__half_of_a_round_trip, setup),
		cmocka_unit_test_setup(measure_count__slow_messages, setup),
		cmocka_unit_test_setup(measure_start__passive, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
