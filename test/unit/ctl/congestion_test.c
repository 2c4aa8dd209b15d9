/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bits.h"
#include "net/congestion.h"

static void congestion_parse__says_it_all(void **state)
{
	static const char *const row[][2] = {
		{"off", "off"},
		{"notify", "notify,profile=paper,np_min_time_between_cnps=50,np_cnp_dscp=48,"
			   "np_cnp_prio=6,np_cnp_ecn=0,np_cnp_becn=1"},
		{"notify,profile=connectx,np_cnp_dscp=46,np_cnp_becn=0",
			"notify,profile=connectx,np_min_time_between_cnps=4,np_cnp_dscp=46,"
			"np_cnp_prio=6,np_cnp_ecn=0,np_cnp_becn=0"},
		{"notify,profile=ns3hpcc,np_min_time_between_cnps=1000000,np_cnp_ecn=2",
			"notify,profile=ns3hpcc,np_min_time_between_cnps=1000000,np_cnp_dscp=48,"
			"np_cnp_prio=6,np_cnp_ecn=2,np_cnp_becn=1"},
	};
	char text[CONGESTION_TEXT], why[256];
	struct congestion c;

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		assert_int_equal(congestion_parse(&c, row[i][0], why, sizeof(why)), 0);
		assert_string_equal(congestion_text(&c, text), row[i][1]);
		assert_int_equal(congestion_parse(&c, text, why, sizeof(why)), 0);
		assert_string_equal(congestion_text(&c, text), row[i][1]);
	}
}

static void congestion_parse__refuses(void **state)
{
	static const char *const text[] = {"", "on", "notify,", "notify,profile",
		"notify,profile=", "notify,profile=x", "notify,np_cnp_dscp=64",
		"notify,np_cnp_dscp=-1", "notify,np_cnp_dscp=", "notify,np_cnp_dscp=1x",
		"notify,np_cnp_dscp=1.5", "notify,np_cnp_dscp=nan", "notify,np_cnp_prio=8",
		"notify,np_cnp_prio=", "notify,rp_ai_rate=40", "notify,x=1", "off,np_cnp_dscp=1",
		"notify=1", "notify,np_cnp_dscp=1,profile=paper",
		"notify,np_min_time_between_cnps=1000001",
		("notify,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa="
		 "1")};
	struct congestion c;
	char why[256];

	for (unsigned i = 0; i < ARRAY_SIZE(text); i++) {
		why[0] = '\0';
		assert_int_equal(congestion_parse(&c, text[i], why, sizeof(why)), -EINVAL);
		assert_true(strlen(why) > 10);
	}
}

/* proves CNP-10, CNP-14: workers see it in the port; off is 0 */
static void congestion_publish__tells_workers(void **state)
{
	struct port port = {.rcm = 0};
	struct congestion c;
	char why[256];

	assert_int_equal(congestion_parse(&c,
				 "notify,np_min_time_between_cnps=7,np_cnp_dscp=10,np_cnp_prio=3,"
				 "np_cnp_ecn=1,np_cnp_becn=0",
				 why, sizeof(why)),
		0);
	congestion_publish(&c, &port);
	assert_int_equal(port.rcm, RCM_ON | 3 << 8 | 10 << 2 | 1);
	assert_int_equal(port.cnp_interval, 7000);
	congestion_init(&c);
	congestion_publish(&c, &port);
	assert_int_equal(port.rcm, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(congestion_parse__says_it_all),
		cmocka_unit_test(congestion_parse__refuses),
		cmocka_unit_test(congestion_publish__tells_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
