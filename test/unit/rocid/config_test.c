/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "arguments.h"
#include "bits.h"
#include "config.h"
#include "option_table.h"
#include "worker.h"

static struct options o;
static char why[REPORT_MAX];

/* @return how much is wrong with a file of @p len bytes. */
static unsigned read_bytes(const char *text, size_t len)
{
	struct report r = {.why = why};
	char path[] = "/tmp/rocid-conf-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
	options_init(&o);
	why[0] = '\0';
	config_read(&o, path, NULL, &r);
	unlink(path);
	return r.count;
}

static unsigned read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

static void config_read__same_names_as_arguments(void **state)
{
	assert_int_equal(
		read_text("# a comment\n\n [applications] # here\n  socket = /tmp/x # why not\r\n"
			  "[ports]\nrocev1 = yes\nring-pair = yes\nring-pair=loss=0.5\n"
			  "[start]\nstats-on-exit = yes\n[workers]\nidle = yield"),
		0);
	assert_string_equal(o.socket, "/tmp/x");
	assert_true(o.rocev1);
	assert_int_equal(o.npairs, 2);
	assert_int_equal(o.stats, STATS_TEXT);
	assert_int_equal(o.idle, IDLE_YIELD);
	assert_int_equal(read_text("[port eth0]\nshare = yes\npkey = 1,0x8001\npkey = 2,0x8002\n"
				   "priority = dscp46=6\n[ports]\nflow-label = av\n"),
		0);
	assert_int_equal(o.npkeys, 2);
	assert_true(o.plain_label);
	assert_int_equal(read_text("[port eth0]\npriority = sl1=2\npriority = sl2=3\n"), 1);
	assert_non_null(strstr(why, "line 3"));
}

/* Sentences quote the file, but without control characters for a terminal. */
static void config_read__control_characters(void **state)
{
	assert_int_equal(read_text("[app\033[2J]\n[workers]\nid\033]0;x\007le\n"), 1);
	assert_null(strchr(why, '\033'));
	assert_int_equal(read_text("[workers]\nid\033[2Jle = yield\n"), 1);
	assert_non_null(strstr(why, "id?[2Jle"));
}

static void config_read__no_means_the_default(void **state)
{
	assert_int_equal(read_text("[ports]\nrocev1 = no\nring-pair = no\n[port eth0]\nshare = no\n"
				   "[port 0]\ntap = no\n[eal]\nno-pci = no\n"),
		0);
	assert_false(o.rocev1);
	assert_int_equal(o.npairs + o.nshares + o.ntaps + o.neal, 0);
}

static void config_read__ports_by_name_and_number(void **state)
{
	assert_int_equal(
		read_text("[port eth0]\nshare = yes\ngid = 192.0.2.1\ngid = fd00::1,vid=7\n"
			  "[port 0]\ntap = roce\nmtu = 4200\nneigh = 192.0.2.2,02:00:00:00:00:02\n"
			  "impair = loss=0.5,seed=7\n[port  net_af_xdp0]\nshare = eth1\n"
			  "[port 1]\ntap = yes\n"),
		0);
	assert_int_equal(o.nshares, 2);
	assert_int_equal(o.share[0].port, PORT_NEW);
	assert_string_equal(o.share[0].netdev, "eth0");
	assert_string_equal(o.name[o.share[1].port - PORT_MAX], "net_af_xdp0");
	assert_string_equal(o.share[1].netdev, "eth1");
	assert_int_equal(o.ngids, 2);
	assert_string_equal(o.name[o.gid[0].port - PORT_MAX], "eth0");
	assert_int_equal(o.gid[1].gid.vid, 7);
	assert_string_equal(o.tap[0].netdev, "roce");
	assert_string_equal(o.tap[1].netdev, ""); /* the default of port 1 */
	assert_int_equal(o.mtu[0], 4200);
	assert_int_equal(o.nneighs, 1);
	assert_true(o.impaired[0]);
}

static void config_read__eal_arguments(void **state)
{
	assert_int_equal(read_text("[eal]\nno-huge = yes\nm = 128\nlcores = (0-1)@2\n"
				   "vdev = net_memif0,role=server\nvdev=net_null0\n"
				   "vdev = a\\#b\n"),
		0);
	assert_int_equal(o.neal, 6);
	assert_string_equal(o.eal[0], "--no-huge");
	assert_string_equal(o.eal[1], "-m128");
	assert_string_equal(o.eal[2], "--lcores=(0-1)@2");
	assert_string_equal(o.eal[3], "--vdev=net_memif0,role=server");
	assert_string_equal(o.eal[5], "--vdev=a#b");
}

static void config_read__the_command_line_wins(void **state)
{
	char path[] = "/tmp/rocid-conf-XXXXXX";
	static const char text[] =
		"[workers]\nwindow = 7\nworkers = 2\n[port 0]\ngid = 192.0.2.1\n";
	char *argv[] = {(char *)"--", (char *)"--window", (char *)"9", (char *)"--config", path,
		(char *)"--gid", (char *)"0,192.0.2.9", NULL};
	int fd = mkstemp(path);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	options_init(&o);
	assert_int_equal(options_parse(&o, ARRAY_SIZE(argv) - 1, argv, why), 0);
	unlink(path);
	assert_int_equal(o.window, 9);
	assert_int_equal(o.workers, 2);
	assert_int_equal(o.ngids, 1);
	assert_int_equal(o.gid[0].gid.gid[15], 9);
}

static void config_read__says_where_and_what_to_do(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"[workers]\n\nwidow = 3\n",
			"line 3, [workers]: widow: there is no such option; did you mean window?"},
		{"[workers]\nwindow = 0\n", "line 2, [workers]: window: '0' is not a number"},
		{"[workers]\nsocket = /x\n",
			"line 2, [workers]: socket: it belongs in [applications]"},
		{"[workers]\nmtu = 1500\n", "mtu: it belongs in [port NAME]"},
		{"[port 0]\nworkers = 1\n", "workers: it belongs in [workers]"},
		{"[workers]\nvdev = x\n", "vdev: it is an EAL argument: it belongs in [eal]"},
		{"[workers]\nconfig = /etc/passwd\n", "config: there is no such option"},
		{"[workers]\nidle = poll\nidle = yield\n",
			"line 3, [workers]: idle: it is already in line 2"},
		{"[workers]\nidle = poll\n[ports]\nrocev1 = yes\n[workers]\nidle = yield\n",
			"line 6"},
		{"[port 0]\nmtu = 1500\nmtu = 4200\n",
			"line 3, [port 0]: mtu: it is already in line"},
		{"[port 0]\nshare = yes\n", "share = IFNAME"},
		{"[port 9]\ntap = yes\n", "line 2, [port 9]: tap: port 9 is beyond"},
		{"[port ]\ntap = yes\n", "there is no section [port]; did you mean [port"},
		{"[port 0]\ngid = 10.0.0\n", "'10.0.0' is not an IPv4 or IPv6 address"},
		{"[worker]\nwindow = 1\n",
			"line 1: there is no section [worker]; did you mean [workers]?"},
		{"[x y z]\n", "line 1: there is no section [x y z]: see"},
		{"window = 1\n", "line 1: 'window' belongs to no section"},
		{"[ports]\nrocev1\n", "line 2: 'rocev1' has no value: write rocev1 = yes"},
		{"[ports]\nrocev1 =\n", "line 2: an entry must be `name = value`"},
		{"[ports]\n= 1\n", "line 2: an entry must be `name = value`"},
		{"[ports\nrocev1 = yes\n", "line 1: a section needs a line of its own"},
		{"[ports] rocev1 = yes\n", "line 1: a section needs a line of its own"},
		{"[]\n", "line 1: the name of a section must have 1 to 63 characters"},
		{"[ports]\nrocev1 = maybe\n", "'maybe' is neither yes, no nor connect"},
		{"[eal]\nno-hugs = yes\n",
			"no-hugs: EAL has no such argument, or it is not allowed in a file; did "
			"you mean no-huge?"},
		{"[eal]\nno-huge = 1\n", "it must be yes or no"},
		{"[eal]\nlcores = 1\nl = 2\n", "line 3, [eal]: l: it is already in line 2"},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		if (!read_text(bad[i].text))
			fail_msg("accepted: %s", bad[i].text);
		if (!strstr(why, bad[i].says) || strchr(why, '\n'))
			fail_msg("%s says: %s", bad[i].text, why);
	}
}

static void config_read__long_lines_are_not_cut_in_silence(void **state)
{
	char text[1000] = "[applications]\nsocket-group = ";
	size_t len = strlen(text);

	memset(text + len, 'g', 255);
	assert_int_equal(read_text(text), 0);
	assert_int_equal(strlen(o.socket_group), 255);
	text[len + 255] = 'g';
	assert_int_equal(read_text(text), 1);
	assert_non_null(strstr(why, "a value 255"));
	memset(text + len, 'g', 400);
	assert_int_equal(read_text(text), 1);
	assert_non_null(strstr(why, "line 2: it is too long"));
	memset(text + len, 0, 400);
	strcpy(text + len, "gg\n");
	text[len + 1] = '\0';
	assert_int_equal(read_bytes(text, len + 3), 1);
	assert_non_null(strstr(why, "line 2: it contains a NUL byte"));
}

static void config_read__counts_all(void **state)
{
	assert_int_equal(
		read_text("[workers]\nwidow = 1\nidle = never\nwindow = 64\n[port 0]\nmtu = 1\n"),
		3);
	assert_int_equal(o.window, 64);
}

static void config_read__what_cannot_be_read(void **state)
{
	struct report r = {.why = why};

	config_read(&o, "/nonexistent/file", NULL, &r);
	assert_non_null(strstr(why, "--config /nonexistent/file: No such file"));
	r.count = 0;
	config_read(&o, "/tmp", NULL, &r);
	assert_non_null(strstr(why, "--config /tmp: Is a directory"));
	assert_int_equal(read_text(""), 0);
	assert_int_equal(read_text("# nothing"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_read__same_names_as_arguments),
		cmocka_unit_test(config_read__control_characters),
		cmocka_unit_test(config_read__no_means_the_default),
		cmocka_unit_test(config_read__ports_by_name_and_number),
		cmocka_unit_test(config_read__eal_arguments),
		cmocka_unit_test(config_read__the_command_line_wins),
		cmocka_unit_test(config_read__says_where_and_what_to_do),
		cmocka_unit_test(config_read__long_lines_are_not_cut_in_silence),
		cmocka_unit_test(config_read__counts_all),
		cmocka_unit_test(config_read__what_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
