/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "eal_test.h"
#include "ringpair.h"
#include "steer.h"

/* No virtual device of this machine takes a rule: that is no error. */
static void steer_install__port_without_rte_flow(void **state)
{
	uint16_t ethdev[2];

	assert_int_equal(ringpair_create(3, 1, -1, ethdev), 0);
	assert_int_equal(steer_install(ethdev[0], 1), 0);
	assert_int_equal(steer_install(ethdev[0], 4), 0);
	ringpair_destroy(3, 1);
}

static void steer_name__says_who_steers(void **state)
{
	assert_string_equal(steer_name(0), "software");
	assert_string_equal(steer_name(STEER_UDP4), "rte_flow (partly) and software");
	assert_string_equal(steer_name(STEER_ALL), "rte_flow");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steer_install__port_without_rte_flow),
		cmocka_unit_test(steer_name__says_who_steers),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
