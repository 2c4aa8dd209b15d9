/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
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
		{"dcqcn",
			"dcqcn,profile=paper,line=25000M,burst=8,np_min_time_between_cnps=50,"
			"np_cnp_dscp=48,np_cnp_prio=6,np_cnp_ecn=0,np_cnp_becn=1,"
			"rp_time_reset=55,rp_byte_reset=10000000,rp_threshold=5,rp_ai_rate=40,"
			"rp_hai_rate=200,rp_min_dec_fac=0,rp_min_rate=10,rp_max_rate=0,"
			"rp_rate_to_set_on_first_cnp=0,rp_gd=11,rp_dce_tcp_g=1020,"
			"rp_dce_tcp_rtt=55,rp_initial_alpha_value=1024,"
			"rp_rate_reduce_monitor_period=0,rp_clamp_tgt_rate=1,"
			"rp_clamp_tgt_rate_ati=0"},
		{"dcqcn,line=100G,burst=1,profile=ns3hpcc,rp_hai_rate=7",
			"dcqcn,profile=ns3hpcc,line=100000M,burst=1,np_min_time_between_cnps=0,"
			"np_cnp_dscp=48,np_cnp_prio=6,np_cnp_ecn=0,np_cnp_becn=1,"
			"rp_time_reset=300,rp_byte_reset=0,rp_threshold=1,rp_ai_rate=20,"
			"rp_hai_rate=7,rp_min_dec_fac=0,rp_min_rate=100,rp_max_rate=0,"
			"rp_rate_to_set_on_first_cnp=0,rp_gd=11,rp_dce_tcp_g=1020,"
			"rp_dce_tcp_rtt=1,rp_initial_alpha_value=1024,"
			"rp_rate_reduce_monitor_period=4,rp_clamp_tgt_rate=0,"
			"rp_clamp_tgt_rate_ati=1"},
		{"fixed,rate=100", "fixed,profile=plain,line=25000M,burst=8,rate=100"},
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
		"notify,np_cnp_prio=", "notify,rp_ai_rate=40", "dcqcn,rp_ai_rate=0", "dcqcn,line=",
		"dcqcn,line=25T", "dcqcn,line=1K", "dcqcn,line=-1G", "dcqcn,line=25G5", "dcqcn,burst=0",
		"dcqcn,burst=9", "dcqcn,profile=plain", "fixed,np_cnp_dscp=1", "dcqcn=1", "notify,x=1", "off,np_cnp_dscp=1",
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
	assert_null(port.cc); /* CNPs lower no rate */
	congestion_init(&c);
	assert_null(congestion_publish(&c, &port));
	assert_int_equal(port.rcm, 0);
}

/* The parameters are a copy, which the next publication returns. */
static void congestion_publish__replaces_the_parameters(void **state)
{
	const struct cc_config *first;
	struct port port = {.rcm = 0};
	struct congestion c;
	char why[256];

	assert_int_equal(congestion_parse(&c, "dcqcn,rp_ai_rate=7,burst=3", why, sizeof(why)), 0);
	congestion_port(&c, 40000);
	assert_null(congestion_publish(&c, &port));
	first = port.cc;
	assert_ptr_not_equal(first, &c.cfg);
	assert_true(first->ops == &cc_dcqcn && first->line == 40e9);
	assert_true(first->value[cc_find_param(&cc_dcqcn, "rp_ai_rate")] == 7);
	assert_int_equal(port.burst, 3);
	assert_int_equal(congestion_parse(&c, "dcqcn,line=10G", why, sizeof(why)), 0);
	congestion_port(&c, 40000); /* it says nothing true */
	assert_ptr_equal(congestion_publish(&c, &port), first);
	assert_true(port.cc->line == 10e9);
	free((void *)first);
	first = port.cc;
	congestion_init(&c);
	assert_ptr_equal(congestion_publish(&c, &port), first);
	assert_null(port.cc);
	free((void *)first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(congestion_parse__says_it_all),
		cmocka_unit_test(congestion_parse__refuses),
		cmocka_unit_test(congestion_publish__tells_workers),
		cmocka_unit_test(congestion_publish__replaces_the_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
