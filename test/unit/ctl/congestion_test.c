/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bits.h"
#include "net/congestion.h"
#include "switch_list.h"

static void congestion_parse__says_it_all(void **state)
{
	static const char *const row[][2] = {
		{"off", "off"},
		{"notify", "notify,profile=paper,np_min_time_between_cnps=50,np_cnp_dscp=48,"
			   "np_cnp_prio=6,np_cnp_ecn=0,np_cnp_becn=1"},
		{"notify,profile=connectx,np_cnp_dscp=46,np_cnp_becn=0",
			"notify,profile=connectx,np_min_time_between_cnps=4,np_cnp_dscp=46,"
			"np_cnp_prio=6,np_cnp_ecn=0,np_cnp_becn=0"},
		{"notify,burst=4,line=40G",
			"notify,profile=paper,line=40000M,burst=4,np_min_time_between_cnps=50,"
			"np_cnp_dscp=48,np_cnp_prio=6,np_cnp_ecn=0,np_cnp_becn=1"},
		{"notify,profile=ns3hpcc,np_min_time_between_cnps=1000000,np_cnp_ecn=2",
			"notify,profile=ns3hpcc,np_min_time_between_cnps=1000000,np_cnp_dscp=48,"
			"np_cnp_prio=6,np_cnp_ecn=2,np_cnp_becn=1"},
		{"dcqcn", "dcqcn,profile=paper,line=25000M,burst=8,np_min_time_between_cnps=50,"
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
		{"dcqcn,line=1G,profile=ns3hpcc",
			"dcqcn,profile=ns3hpcc,line=1000M,burst=8,np_min_time_between_cnps=0,"
			"np_cnp_dscp=48,np_cnp_prio=6,np_cnp_ecn=0,np_cnp_becn=1,"
			"rp_time_reset=300,rp_byte_reset=0,rp_threshold=1,rp_ai_rate=0.2,"
			"rp_hai_rate=2,rp_min_dec_fac=0,rp_min_rate=100,rp_max_rate=0,"
			"rp_rate_to_set_on_first_cnp=0,rp_gd=11,rp_dce_tcp_g=1020,"
			"rp_dce_tcp_rtt=1,rp_initial_alpha_value=1024,"
			"rp_rate_reduce_monitor_period=4,rp_clamp_tgt_rate=0,"
			"rp_clamp_tgt_rate_ati=1"},
		{"fixed,rate=100", "fixed,profile=plain,line=25000M,burst=8,rate=100"},
		{"notify,fastcnp=2001:db8:5::1",
			"notify,profile=paper,np_min_time_between_cnps=50,np_cnp_dscp=48,"
			"np_cnp_prio=6,np_cnp_ecn=0,np_cnp_becn=1,fastcnp=2001:db8:5::1,"
			"fastcnp_opt1=0x9e,fastcnp_opt2=0x9f,fastcnp_rate=100000,"
			"fastcnp_rate_all=200000,fastcnp_burst=256,fastcnp_detour=0"},
		{"notify,fastcnp_opt2=128,fastcnp=2001:db8:5::/64,profile=paper,fastcnp_rate=7,"
		 "fastcnp=fd00::2,fastcnp_burst=1,fastcnp_rate_all=9,fastcnp_opt1=0x81,"
		 "fastcnp_detour=1",
			"notify,profile=paper,np_min_time_between_cnps=50,np_cnp_dscp=48,"
			"np_cnp_prio=6,np_cnp_ecn=0,np_cnp_becn=1,fastcnp=2001:db8:5::/64,"
			"fastcnp=fd00::2,fastcnp_opt1=0x81,fastcnp_opt2=0x80,fastcnp_rate=7,"
			"fastcnp_rate_all=9,fastcnp_burst=1,fastcnp_detour=1"},
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
		"notify,np_cnp_prio=", "notify,rp_ai_rate=40", "dcqcn,rp_ai_rate=0",
		"dcqcn,line=", "dcqcn,line=25T", "dcqcn,line=1K", "dcqcn,line=-1G",
		"dcqcn,line=25G5", "dcqcn,burst=0", "dcqcn,burst=33", "dcqcn,profile=plain",
		"fixed,np_cnp_dscp=1", "dcqcn=1", "notify,x=1", "off,np_cnp_dscp=1", "notify=1",
		"notify,np_cnp_dscp=1,profile=paper", "notify,np_min_time_between_cnps=1000001",
		"notify,fastcnp", "notify,fastcnp=", "notify,fastcnp=192.0.2.1",
		"notify,fastcnp=::ffff:192.0.2.1", "notify,fastcnp=x", "notify,fastcnp=fd00::1/",
		"notify,fastcnp=fd00::1/0", "notify,fastcnp=fd00::1/129",
		"notify,fastcnp=fd00::1/64x", "notify,fastcnp=fd00::1/-1", "off,fastcnp=fd00::1",
		"notify,fastcnp=fd00::1,fastcnp_opt1=0x7f",
		"notify,fastcnp=fd00::1,fastcnp_opt1=0xa0",
		"notify,fastcnp=fd00::1,fastcnp_opt1=0xbe",
		"notify,fastcnp=fd00::1,fastcnp_opt2=0x9e", "notify,fastcnp=fd00::1,fastcnp_rate=0",
		"notify,fastcnp=fd00::1,fastcnp_rate=-1", "notify,fastcnp=fd00::1,fastcnp_rate=",
		"notify,fastcnp=fd00::1,fastcnp_burst=65537", "notify,fastcnp=fd00::1,fastcnp_x=1",
		"notify,fastcnp_rate=1000",
		("dcqcn,rp_ai_rate=" /* 5, if it were cut */
		 "00000000000000000000000000000000000000000000000000050"),
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

/* A text that begins with a parameter changes the present setting; any other replaces it. */
static void congestion_change__keeps_the_rest(void **state)
{
	struct congestion c;
	char why[256], text[CONGESTION_TEXT];

	congestion_init(&c);
	assert_int_equal(
		congestion_change(&c, "rp_ai_rate=3", why, sizeof(why)), -EINVAL); /* off */
	assert_int_equal(congestion_change(&c, "dcqcn,line=1G,rp_ai_rate=3", why, sizeof(why)), 0);
	assert_int_equal(congestion_change(&c, "rp_hai_rate=7,burst=2", why, sizeof(why)), 0);
	congestion_text(&c, text);
	assert_non_null(strstr(text, "dcqcn,profile=paper,line=1000M,burst=2,"));
	assert_non_null(strstr(text, ",rp_ai_rate=3,rp_hai_rate=7,"));
	assert_int_equal(congestion_change(&c, "rp_ai=7", why, sizeof(why)), -EINVAL);
	assert_int_equal(congestion_change(&c, "dcqcn", why, sizeof(why)), 0);
	assert_non_null(strstr(congestion_text(&c, text), ",rp_ai_rate=40,rp_hai_rate=200,"));
}

/* One QP has an algorithm and its parameters; line, CNPs and switches are its port's. */
static void congestion_change__of_a_qp(void **state)
{
	static const char *const text[] = {"notify", "dcqcn,line=1G", "dcqcn,burst=1",
		"dcqcn,np_cnp_dscp=1", "dcqcn,fastcnp=fd00::1", "fastcnp_rate=1", "line=1G",
		"np_cnp_dscp=1", "rp_x=1", "rp_ai_rate", "profile=x", "dcqcn,rp_ai_rate=0", "off,x",
		"port", "", ",", "dcqcn,", "=", "swift,rp_ai_rate=1"};
	const struct cc_config *config;
	struct congestion port, c;
	char why[256], said[CONGESTION_TEXT];

	assert_int_equal(congestion_parse(&port, "dcqcn,line=1G,rp_ai_rate=3,np_cnp_dscp=7", why,
				 sizeof(why)),
		0);
	port.of_qp = true;
	for (unsigned i = 0; i < ARRAY_SIZE(text); i++) {
		c = port;
		why[0] = '\0';
		assert_int_equal(congestion_change(&c, text[i], why, sizeof(why)), -EINVAL);
		assert_true(strlen(why) > 10);
	}
	c = port;
	assert_int_equal(congestion_change(&c, "rp_hai_rate=9", why, sizeof(why)), 0);
	congestion_text(&c, said);
	assert_non_null(strstr(said, "dcqcn,profile=paper,rp_time_reset=55,"));
	assert_non_null(strstr(said, ",rp_ai_rate=3,rp_hai_rate=9,"));
	assert_null(strstr(said, "np_"));
	assert_int_equal(congestion_change(&c, "fixed,rate=7", why, sizeof(why)), 0);
	assert_string_equal(congestion_text(&c, said), "fixed,profile=plain,rate=7");
	assert_int_equal(congestion_change(&c, "rate=8", why, sizeof(why)), 0);
	assert_int_equal(congestion_change(&c, "off", why, sizeof(why)), 0);
	assert_int_equal(congestion_config(&c, &config), 0);
	assert_null(config);
	assert_int_equal(congestion_change(&c, "notify", why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "not one of port, off, "));
}

/* @return the former parameters. */
static const struct cc_config *publish(const struct congestion *c, struct port *port)
{
	const struct cc_config *config;

	assert_int_equal(congestion_config(c, &config), 0);
	return congestion_publish(c, config, port);
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
	publish(&c, &port);
	assert_int_equal(port.rcm, RCM_ON | 3 << 8 | 10 << 2 | 1);
	assert_int_equal(port.cnp_interval, 7000);
	assert_null(port.cc); /* CNPs lower no rate */
	congestion_init(&c);
	assert_null(publish(&c, &port));
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
	assert_null(publish(&c, &port));
	first = port.cc;
	assert_ptr_not_equal(first, &c.cfg);
	assert_true(first->ops == &cc_dcqcn && first->line == 40e9);
	assert_true(first->value[cc_find_param(&cc_dcqcn, "rp_ai_rate")] == 7);
	assert_int_equal(port.burst, 3);
	assert_int_equal(congestion_parse(&c, "dcqcn,line=10G", why, sizeof(why)), 0);
	congestion_port(&c, 40000); /* it says nothing true */
	assert_ptr_equal(publish(&c, &port), first);
	assert_true(port.cc->line == 10e9);
	free((void *)first);
	first = port.cc;
	congestion_init(&c);
	assert_ptr_equal(publish(&c, &port), first);
	assert_null(port.cc);
	free((void *)first);
}

/* proves FCN-01, FCN-10: so many entries, and no more */
static void congestion_parse__many_switches(void **state)
{
	char list[CONGESTION_TEXT] = "notify", text[CONGESTION_TEXT], why[256];
	struct congestion c;

	for (unsigned i = 0; i < FAST_CNP_SWITCHES; i++)
		sprintf(list + strlen(list), ",fastcnp=1111:2222:3333:4444:5555:6666:7777:%x/127",
			0x1000 + i);
	assert_int_equal(congestion_parse(&c, list, why, sizeof(why)), 0);
	assert_int_equal(congestion_parse(&c, congestion_text(&c, text), why, sizeof(why)), 0);
	assert_int_equal(c.switches.n, FAST_CNP_SWITCHES);
	assert_non_null(strstr(text, "7777:100f/127,fastcnp_opt1=0x9e"));
	assert_non_null(strstr(text, "fastcnp_burst=256"));
	strcat(list, ",fastcnp=fd00::1");
	assert_int_equal(congestion_parse(&c, list, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "16"));
}

/* proves FCN-01, FCN-04, FCN-10, FCN-11: workers see the list; off is none */
static void switches_publish__tells_workers(void **state)
{
	struct port port = {.rcm = 0};
	struct switch_list *old, *first;
	struct congestion c;
	char why[256];

	assert_int_equal(congestion_parse(&c,
				 "notify,fastcnp=2001:db8:5::/48,fastcnp=fd00::2,fastcnp_opt1=0x90,"
				 "fastcnp_opt2=0x91,fastcnp_rate=10,fastcnp_rate_all=20,"
				 "fastcnp_burst=3,fastcnp_detour=1",
				 why, sizeof(why)),
		0);
	assert_int_equal(switches_publish(&c.switches, &port, &old), 0);
	assert_null(old);
	first = port.switches;
	assert_int_equal(first->n, 2);
	assert_int_equal(first->type[FAST_CNP_PLAIN], 0x90);
	assert_int_equal(first->type[FAST_CNP_TRACE], 0x91);
	assert_true(first->detour);
	assert_int_equal(first->entry[0].prefix, 48);
	assert_int_equal(first->entry[1].prefix, 128);
	assert_int_equal(first->entry[1].addr[15], 2);
	assert_int_equal(first->entry[1].bucket.step, 100000000);
	assert_int_equal(first->all.step, 50000000);
	assert_int_equal(first->all.depth, 100000000);
	congestion_init(&c);
	assert_int_equal(switches_publish(&c.switches, &port, &old), 0);
	assert_ptr_equal(old, first);
	assert_null(port.switches);
	free(old);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(congestion_parse__says_it_all),
		cmocka_unit_test(congestion_parse__refuses),
		cmocka_unit_test(congestion_change__keeps_the_rest),
		cmocka_unit_test(congestion_change__of_a_qp),
		cmocka_unit_test(congestion_publish__tells_workers),
		cmocka_unit_test(congestion_publish__replaces_the_parameters),
		cmocka_unit_test(congestion_parse__many_switches),
		cmocka_unit_test(switches_publish__tells_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
