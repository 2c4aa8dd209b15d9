/* SPDX-License-Identifier: BSD-3-Clause */
/* The port is DPDK's null device, which takes everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <rte_alarm.h>
#include <rte_ethdev.h>
#include "bits.h"
#include "eal_test.h"
#include "plan.h"
#include "send.h"

static unsigned closed;
static atomic_uint alarms;

static void on_alarm(void *arg)
{
	atomic_fetch_add(&alarms, 1);
}

int __real_rte_eth_dev_close(uint16_t port);
int __wrap_rte_eth_dev_close(uint16_t port);

/* Alarms run in EAL's interrupt thread. The pause is long enough for one that is not held up. */
int __wrap_rte_eth_dev_close(uint16_t port)
{
	closed++;
	snprintf(eal_test_dir, sizeof(eal_test_dir), "%s", rte_eal_get_runtime_dir());
	assert_int_equal(rte_eal_alarm_set(1, on_alarm, NULL), 0);
	usleep(200000);
	return __real_rte_eth_dev_close(port);
}

/* It could use what the port frees, or what EAL unmaps next: memif's listener stays registered. */
static void send_plan__no_handler_runs_at_its_end(void **state)
{
	static struct plan plan;
	char prefix[64], why[PLAN_WHY];
	char *own[] = {(char *)"--", (char *)"--count", (char *)"64"};
	char *eal[] = {(char *)"unit", (char *)"--no-huge", (char *)"--no-pci", (char *)"-m",
		(char *)"256", (char *)"--no-telemetry", (char *)"--no-shconf",
		(char *)"--log-level=error", (char *)"--vdev=net_null0", prefix, NULL};

	snprintf(prefix, sizeof(prefix), "--file-prefix=unit%d", (int)getpid());
	assert_int_equal(plan_parse(&plan, ARRAY_SIZE(own), own, why), 0);
	assert_int_equal(plan_ready(&plan, why), 0);
	send_plan(&plan, ARRAY_SIZE(eal) - 1, eal);
	nftw(eal_test_dir, eal_test_remove, 8, FTW_DEPTH | FTW_PHYS);
	assert_int_equal(closed, 1);
	assert_int_equal(atomic_load(&alarms), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_plan__no_handler_runs_at_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
