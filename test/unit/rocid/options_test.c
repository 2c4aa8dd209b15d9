/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "bits.h"
#include "options.h"

static struct options o;
static char why[VALUE_MAX * 2];

/* Parses a blank-separated command line. */
static int parse(const char *text)
{
	static char copy[2048];
	char *argv[64] = {(char *)"--"};
	char *save;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *a = strtok_r(copy, " ", &save); a; a = strtok_r(NULL, " ", &save))
		argv[argc++] = a;
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
		      "--max-user-qps 9 --max-user-memory 10 --share eth0 "
		      "--share 1=eth1 --gid 0,192.0.2.1 --gid 2,fd00::1,vid=7 --neigh "
		      "0,192.0.2.1,02:00:00:00:00:0a --rocev1 --mtu 0,4200 --ring-pair "
		      "--ring-pair=loss=0.5 --impair 3,dup=1 --window 64 --workers 2 --idle yield "
		      "--tap 2 --tap 0=roce --icrc table --ready-fd 1 --stats-on-exit=json"),
		0);
	assert_string_equal(o.socket, "/tmp/s");
	assert_int_equal(o.socket_mode, 0600);
	assert_string_equal(o.socket_group, "rdma");
	assert_int_equal(o.admin_mode, 0640);
	assert_int_equal(o.limits.sessions, 3);
	assert_int_equal(o.limits.qps, 4);
	assert_int_equal(o.limits.cqs, 5);
	assert_int_equal(o.limits.mrs, 6);
	assert_int_equal(o.limits.queue_mb, 7);
	assert_int_equal(o.limits.memory_mb, 8);
	assert_int_equal(o.limits.user_qps, 9);
	assert_int_equal(o.limits.user_memory_mb, 10);
	assert_string_equal(o.admin_group, "adm");
	assert_int_equal(o.nshares, 2);
	assert_int_equal(o.share[0].port, PORT_NEW);
	assert_int_equal(o.share[1].port, 1);
	assert_string_equal(o.share[1].netdev, "eth1");
	assert_int_equal(o.ntaps, 2);
	assert_int_equal(o.tap[0].port, 2);
	assert_string_equal(o.tap[0].netdev, "roci2");
	assert_int_equal(o.tap[1].port, 0);
	assert_string_equal(o.tap[1].netdev, "roce");
	assert_int_equal(o.ngids, 2);
	assert_memory_equal(o.gid[0].gid.gid, v4, 16);
	assert_int_equal(o.gid[1].gid.gid[0], 0xFD);
	assert_int_equal(o.gid[1].gid.vid, 7);
	assert_int_equal(o.nneighs, 1);
	assert_int_equal(o.neigh[0].neigh.mac[5], 0x0A);
	assert_true(o.rocev1);
	assert_int_equal(o.mtu[0], 4200);
	assert_int_equal(o.npairs, 2);
	assert_true(o.pair[1].loss > 0);
	assert_true(o.impaired[3]);
	assert_int_equal(o.window, 64);
	assert_int_equal(o.workers, 2);
	assert_int_equal(o.idle, IDLE_YIELD);
	assert_non_null(o.icrc);
	assert_int_equal(o.ready_fd, 1);
	assert_int_equal(o.stats, STATS_JSON);
	assert_int_equal(o.highest_port, 3);
	assert_string_equal(o.highest_by, "--impair");
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
		{"--rocev1=yes", "--rocev1"},
		{"--gid 0", "'0' does not begin with a port"},
		{"--gid 0,300.1.1.1", "'300.1.1.1'"},
		{"--gid 8,1.1.1.1", "port 8"},
		{"--gid -1,1.1.1.1", "'-1,1.1.1.1'"},
		{"--gid 0,1.1.1.1,vid=4095", "'4095'"},
		{"--neigh 0,1.1.1.1", "PORT,IP,MAC"},
		{"--neigh 0,1.1.1.1,zz", "'zz'"},
		{"--neigh 0,1.1,02:00:00:00:00:01", "'1.1'"},
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
		{"--max-sessions 257", "'257'"},
		{"--max-memory -1", "'-1'"},
		{"--socket "
		 "/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/"
		 "0123456789/012345678901234",
			"101"},
		{"--share 0=averyveryverylongname", "netdev"},
		{"--share x=eth0", "'x,'"},
		{"--tap x", "'x,'"},
		{"--tap 9", "port 9"},
		{"--tap 0=", "name is missing"},
		{"--tap 0=averyveryverylongname", "netdev"},
		{"--tap 1 --tap 1=other", "port 1 has a tap already"},
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

static int read_text(const char *text)
{
	char path[] = "/tmp/rocid-conf-XXXXXX";
	int fd = mkstemp(path);
	int err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	options_init(&o);
	err = options_read_file(&o, path, why);
	unlink(path);
	return err;
}

static void options_read_file__same_names_as_arguments(void **state)
{
	assert_int_equal(read_text("# a comment\n\n  socket = /tmp/x # why not\n"
				   "rocev1\nstats-on-exit\ngid = 0,10.0.0.1\ngid=1,10.0.0.2\n"
				   "idle = yield"),
		0);
	assert_string_equal(o.socket, "/tmp/x");
	assert_true(o.rocev1);
	assert_int_equal(o.stats, STATS_TEXT);
	assert_int_equal(o.ngids, 2);
	assert_int_equal(o.idle, IDLE_YIELD);
}

static void options_read_file__names_the_line(void **state)
{
	assert_int_equal(read_text("rocev1\nwidow = 3\n"), -EINVAL);
	assert_non_null(strstr(why, "line 2: widow: there is no such option"));
	assert_int_equal(read_text("window = 0\n"), -EINVAL);
	assert_non_null(strstr(why, "line 1: window: '0'"));
	assert_int_equal(read_text("\n\nmtu\n"), -EINVAL);
	assert_non_null(strstr(why, "line 3: mtu: it needs a value"));
	assert_int_equal(read_text("config = /etc/passwd\n"), -EINVAL);
	assert_non_null(strstr(why, "config"));
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
		cmocka_unit_test(options_read_file__same_names_as_arguments),
		cmocka_unit_test(options_read_file__names_the_line),
		cmocka_unit_test(options_set__limits_of_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
