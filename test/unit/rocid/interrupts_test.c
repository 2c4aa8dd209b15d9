/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>
#include <rte_alarm.h>
#include "eal_test.h"
#include "interrupts.h"
#include "patience.h"

static atomic_uint alarms;

static void on_alarm(void *arg)
{
	atomic_fetch_add(&alarms, 1);
}

/* Alarms run in EAL's interrupt thread. The pause is long enough for one that is not held up. */
static void interrupts_stop__no_alarm_runs_any_more(void **state)
{
	assert_int_equal(rte_eal_alarm_set(1, on_alarm, NULL), 0);
	WAIT_UNTIL(atomic_load(&alarms));
	assert_int_equal(atomic_load(&alarms), 1);
	interrupts_stop();
	assert_int_equal(rte_eal_alarm_set(1, on_alarm, NULL), 0);
	usleep(200000);
	assert_int_equal(atomic_load(&alarms), 1);
}

/* After the test above: EAL waits for no handler. */
static void interrupts_stop__eal_ends(void **state)
{
	eal_test_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interrupts_stop__no_alarm_runs_any_more),
		cmocka_unit_test(interrupts_stop__eal_ends),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
