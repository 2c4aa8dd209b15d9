/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "arguments.h"
#include "bits.h"
#include "option_links.h"
#include "option_table.h"

static struct options o;
static char why[VALUE_MAX * 2];

/* Parses a blank-separated command line. */
static int parse(const char *text)
{
	static char copy[2048];
	char *argv[128] = {(char *)"--"};
	char *save;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *a = strtok_r(copy, " ", &save); a; a = strtok_r(NULL, " ", &save)) {
		assert_in_range(argc, 1, 127);
		argv[argc++] = a;
	}
	options_init(&o);
	why[0] = '\0';
	return options_parse(&o, argc, argv, why);
}

static void options_parse__nothing_gives_the_defaults(void **state)
{
	assert_int_equal(parse(""), 0);
	assert_string_equal(o.socket, ABI_SOCKET_DEFAULT);
	assert_int_equal(o.workers, 1);
	assert_int_equal(o.highest_port, -1);
	assert_int_equal(o.ready_fd, -1);
}

static void options_parse__every_option(void **state)
{
	static const uint8_t v4[16] = {
		[10] = 0xFF, [11] = 0xFF, [12] = 192, [13] = 0, [14] = 2, [15] = 1};

	assert_int_equal(
		parse("--socket /tmp/s --socket-mode 0600 --socket-group rdma "
		      "--admin-mode 0640 --admin-group adm --max-sessions 3 --max-qps 4 "
		      "--max-cqs 5 --max-mrs 6 --max-queues 7 --max-memory 8 "
		      "--max-user-qps 9 --max-user-memory 10 --max-user-cqs 11 "
		      "--max-user-mrs 12 --max-user-queues 13 --max-connections 14 "
		      "--max-user-connections 15 --application-faults "
		      "--application-macs --share eth0 "
		      "--share 1=eth1 --gid 0,192.0.2.1 --gid 2,fd00::1,vid=7 --neigh "
		      "0,192.0.2.1,02:00:00:00:00:0a --rocev1 --gso --mtu 0,4200 --ring-pair "
		      "--ring-pair=loss=0.5 --impair 3,dup=1 --window 64 --workers 2 --idle yield "
		      "--tap 2 --tap 0=roce --pkey 0,1,0x8001 --pkey eth0,15,7 "
		      "--cc 0,notify,profile=connectx,np_cnp_dscp=46 --priority 0,sl3=5,tag=yes "
		      "--flow-label av --icrc table --ready-fd 1 "
		      "--stats-on-exit=json"),
		0);
	assert_string_equal(o.socket, "/tmp/s");
	assert_int_equal(o.socket_mode, 0600);
	assert_string_equal(o.socket_group, "rdma");
	assert_int_equal(o.admin_mode, 0640);
	assert_int_equal(o.limits.user[CTL_SESSIONS], 3);
	assert_int_equal(o.limits.session[CTL_QPS], 4);
	assert_int_equal(o.limits.session[CTL_CQS], 5);
	assert_int_equal(o.limits.session[CTL_KEYS], 6);
	assert_int_equal(o.limits.session[CTL_QUEUES], 7);
	assert_int_equal(o.limits.session[CTL_MEMORY], 8);
	assert_int_equal(o.limits.user[CTL_QPS], 9);
	assert_int_equal(o.limits.user[CTL_MEMORY], 10);
	assert_int_equal(o.limits.user[CTL_CQS], 11);
	assert_int_equal(o.limits.user[CTL_KEYS], 12);
	assert_int_equal(o.limits.user[CTL_QUEUES], 13);
	assert_int_equal(o.limits.session[CTL_CONNECTIONS], 14);
	assert_int_equal(o.limits.user[CTL_CONNECTIONS], 15);
	assert_true(o.application_faults);
	assert_true(o.application_macs);
	assert_string_equal(o.admin_group, "adm");
	assert_int_equal(o.nshares, 2);
	assert_int_equal(o.share[0].port, PORT_NEW);
	assert_int_equal(o.share[1].port, 1);
	assert_string_equal(o.share[1].netdev, "eth1");
	assert_int_equal(o.ntaps, 2);
	assert_int_equal(o.tap[0].port, 2);
	assert_string_equal(o.tap[0].netdev, ""); /* roci2, once it is known to be port 2 */
	assert_int_equal(o.tap[1].port, 0);
	assert_string_equal(o.tap[1].netdev, "roce");
	assert_int_equal(o.ngids, 2);
	assert_memory_equal(o.gid[0].gid.gid, v4, 16);
	assert_int_equal(o.gid[1].gid.gid[0], 0xFD);
	assert_int_equal(o.gid[1].gid.vid, 7);
	assert_int_equal(o.nneighs, 1);
	assert_int_equal(o.neigh[0].neigh.mac[5], 0x0A);
	assert_true(o.rocev1);
	assert_int_equal(o.gso, GSO_YES);
	assert_int_equal(o.npkeys, 2);
	assert_int_equal(o.pkey[0].pkey.index, 1);
	assert_int_equal(o.pkey[0].pkey.pkey, 0x8001);
	assert_int_equal(o.pkey[1].port, PORT_MAX); /* a name */
	assert_int_equal(o.pkey[1].pkey.index, 15);
	assert_true(o.prioritized[0]);
	assert_int_equal(o.priority[0].of_sl[3], 5);
	assert_true(o.priority[0].tag);
	assert_true(o.congested[0] && o.links->congestion[0].on);
	assert_true(o.plain_label);
	assert_int_equal(o.mtu[0], 4200);
	assert_int_equal(o.npairs, 2);
	assert_true(o.links->pair[1].impair.rate[IMPAIR_LOSE] > 0);
	assert_true(o.impaired[3]);
	assert_int_equal(o.window, 64);
	assert_int_equal(o.workers, 2);
	assert_int_equal(o.idle, IDLE_YIELD);
	assert_non_null(o.icrc);
	assert_int_equal(o.ready_fd, 1);
	assert_int_equal(o.stats, STATS_JSON);
	assert_int_equal(o.highest_port, 3);
	assert_string_equal(o.highest_by, "impair");
}

static void options_parse__names_what_is_wrong(void **state)
{
	static const struct {
		const char *line;
		const char *word;
	} bad[] = {
		{"--bogus", "--bogus"},
		{"--bogus=3", "--bogus=3"},
		{"-x", "-x"},
		{"stray", "'stray'"},
		{"--gid", "--gid needs a value"},
		{"--rocev1=maybe", "--rocev1"},
		{"--gso=maybe", "--gso"},
		{"--gid 0", "'0' does not begin with a port"},
		{"--gid 0,300.1.1.1", "'300.1.1.1'"},
		{"--gid 8,1.1.1.1", "port 8"},
		{"--gid -1,1.1.1.1", "'-1,1.1.1.1'"},
		{"--gid 0,1.1.1.1,vid=4095", "'4095'"},
		{"--neigh 0,1.1.1.1", "PORT,IP,MAC"},
		{"--neigh 0,1.1.1.1,zz", "'zz'"},
		{"--neigh 0,1.1,02:00:00:00:00:01", "'1.1'"},
		{"--pkey 0,1", "1,0x8001"},
		{"--pkey 0,16,1", "'16'"},
		{"--pkey 0,1,0x10000", "'0x10000'"},
		{"--pkey 1", "'1' does not begin with a port"},
		{"--priority 0,sl9=1", "sl9=1"},
		{"--cc 0,on", "not one of off, notify"},
		{"--cc 0,notify,np_cnp_dscp=64", "0 to 63"},
		{"--priority sl1=1", "does not begin with a port"},
		{"--flow-label none", "neither hash nor av"},
		{"--mtu 0,100", "'100'"},
		{"--mtu 0,65536", "'65536'"},
		{"--mtu 0,4200x", "'4200x'"},
		{"--window 0", "'0'"},
		{"--window 99999999999999999999", "'99999999999999999999'"},
		{"--workers 17", "'17'"},
		{"--idle sleep", "'sleep'"},
		{"--icrc md5", "'md5'"},
		{"--socket-mode 999", "'999'"},
		{"--admin-mode x", "'x'"},
		{"--max-qps 0", "'0'"},
		{"--max-sessions 513", "'513'"},
		{"--max-memory -1", "'-1'"},
		{"--socket "
		 "/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/"
		 "0123456789/012345678901234",
			"101"},
		{"--share 0=averyveryverylongname", "netdev"},
		{"--share =eth0", "','"},
		{"--tap -1", "'-1,'"},
		{"--tap 9", "port 9"},
		{"--tap 0=", "name is missing"},
		{"--tap 0=averyveryverylongname", "netdev"},
		{"--tap 1 --tap 1=other", "that port already has a tap"},
		{"--tap 0 --tap 1 --tap 2 --tap 3 --tap 4 --tap 5 --tap 6 --tap 7 --tap a",
			"there are already 8 taps"},
		{"--impair 0,lost=1", "'lost'"},
		{"--ring-pair=loss=2", "'loss'"},
		{"--ready-fd 777", "'777'"},
		{"--stats-on-exit=xml", "'xml'"},
		{"--config /nonexistent/file", "/nonexistent/file"},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		if (parse(bad[i].line) != -EINVAL)
			fail_msg("%s was accepted", bad[i].line);
		if (!strstr(why, bad[i].word) || strchr(why, '\n'))
			fail_msg("%s: %s", bad[i].line, why);
	}
}

static int find_port(void *arg, const char *name)
{
	return strcmp(name, "eth0") ? -1 : 3;
}

static void options_resolve__puts_numbers_for_names(void **state)
{
	assert_int_equal(parse("--share eth0 --gid eth0,192.0.2.1 --neigh "
			       "eth0,192.0.2.2,02:00:00:00:00:01 --mtu eth0,4200 --impair "
			       "eth0,loss=0.5 --tap 1 --gid 2,192.0.2.3"),
		0);
	assert_int_equal(options_resolve(&o, find_port, NULL, why), 0);
	assert_int_equal(o.gid[0].port, 3);
	assert_int_equal(o.gid[1].port, 2);
	assert_int_equal(o.neigh[0].port, 3);
	assert_int_equal(o.mtu[3], 4200);
	assert_true(o.impaired[3]);
	assert_int_equal(o.tap[0].port, 1);
}

static void options_resolve__refuses_what_is_unknown_or_said_twice(void **state)
{
	assert_int_equal(parse("--gid eth9,192.0.2.1"), 0);
	assert_int_equal(options_resolve(&o, find_port, NULL, why), -EINVAL);
	assert_non_null(strstr(why, "gid names port eth9"));
	assert_int_equal(parse("--mtu 3,1500 --mtu eth0,4200"), 0);
	assert_int_equal(options_resolve(&o, find_port, NULL, why), -EINVAL);
	assert_non_null(strstr(why, "port 3 is eth0"));
	assert_int_equal(parse("--tap 3 --tap eth0=roce"), 0);
	assert_int_equal(options_resolve(&o, find_port, NULL, why), -EINVAL);
	assert_non_null(strstr(why, "port 3 is eth0: give --tap"));
}

/* The kernel would refuse them again and again, long after the start. */
static void options_set__names_of_netdevs(void **state)
{
	static const char *const bad[] = {"a/b", "a:b", "rib%d", ".", "..", "a b", ""};
	char reason[VALUE_MAX], value[64];

	options_init(&o);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(value, sizeof(value), "0,name=%s", bad[i]);
		assert_int_equal(options_set(&o, "ipoib", value, reason), -EINVAL);
		snprintf(value, sizeof(value), "0=%s", bad[i]);
		assert_int_equal(options_set(&o, "tap", value, reason), -EINVAL);
	}
	assert_int_equal(options_set(&o, "ipoib", "0,name=rib-0_a", reason), 0);
	assert_int_equal(options_set(&o, "tap", "0=roce.7", reason), 0);
}

static void options_set__limits_of_lists(void **state)
{
	char reason[VALUE_MAX];

	options_init(&o);
	for (unsigned i = 0; i < STATIC_MAX; i++)
		assert_int_equal(options_set(&o, "gid", "0,10.0.0.1", reason), 0);
	assert_int_equal(options_set(&o, "gid", "0,10.0.0.1", reason), -EINVAL);
	for (unsigned i = 0; i < STATIC_MAX; i++)
		assert_int_equal(
			options_set(&o, "neigh", "0,10.0.0.1,02:00:00:00:00:01", reason), 0);
	assert_int_equal(options_set(&o, "neigh", "0,10.0.0.1,02:00:00:00:00:01", reason), -EINVAL);
	for (unsigned i = 0; i < PORT_MAX; i++)
		assert_int_equal(options_set(&o, "share", "eth0", reason), 0);
	assert_int_equal(options_set(&o, "share", "eth0", reason), -EINVAL);
	for (unsigned i = 0; i < PORT_MAX / 2; i++)
		assert_int_equal(options_set(&o, "ring-pair", "", reason), 0);
	assert_int_equal(options_set(&o, "ring-pair", "", reason), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_parse__nothing_gives_the_defaults),
		cmocka_unit_test(options_parse__every_option),
		cmocka_unit_test(options_parse__names_what_is_wrong),
		cmocka_unit_test(options_resolve__puts_numbers_for_names),
		cmocka_unit_test(options_resolve__refuses_what_is_unknown_or_said_twice),
		cmocka_unit_test(options_set__names_of_netdevs),
		cmocka_unit_test(options_set__limits_of_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
