/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "bits.h"
#include "network.h"
#include "parse.h"
#include "scenario.h"
#include "switch.h"

static struct network n;
static struct net_routes routes[128];
static struct scenario s;

static void find_routes(void)
{
	memset(routes, 0, sizeof(routes));
	assert_true(net_route(&n, routes));
}

/* From switch @p sw on, frames to @p host come to it whichever way they take. @return the hops */
static unsigned walk(uint32_t sw, uint32_t host)
{
	const struct switch_way *way = &routes[sw].way[host + 1];
	unsigned hops = 0;

	assert_true(way->ports > 0);
	for (uint32_t i = 0; i < way->ports; i++) {
		uint32_t peer = net_peer(&n, sw, routes[sw].next[way->first + i]);
		unsigned more = peer == host ? 0 : walk(peer - n.hosts, host);

		assert_true(peer >= n.hosts || peer == host);
		assert_true(!i || more + 1 == hops);
		hops = more + 1;
	}
	return hops;
}

static unsigned ways(uint32_t sw, uint32_t host)
{
	return routes[sw].way[host + 1].ports;
}

static void net_route__fat_tree(void **state)
{
	for (uint32_t k = 4; k <= 8; k += 2) {
		uint32_t half = k / 2;

		assert_true(net_fat_tree(&n, &(struct net_shape){.k = k, .rate = 1, .delay = 1}));
		assert_int_equal(n.hosts, k * k * k / 4);
		assert_int_equal(n.switches, 5 * k * k / 4);
		for (uint32_t i = 0; i < n.switches; i++)
			assert_int_equal(net_ports(&n, i), k);
		find_routes();
		for (uint32_t i = 0; i < n.switches; i++)
			for (uint32_t h = 0; h < n.hosts; h++)
				assert_in_range(walk(i, h), 1, 5);
		assert_int_equal(ways(0, 0), 1);
		assert_int_equal(ways(0, half), half);	      /* in the same pod */
		assert_int_equal(ways(0, n.hosts - 1), half); /* in another */
		assert_int_equal(walk(0, n.hosts - 1), 5);
		assert_int_equal(ways(k * half, n.hosts - 1), half);
		assert_int_equal(ways(2 * k * half, n.hosts - 1), 1);
		net_routes_free(routes, n.switches);
	}
}

static void net_route__leaf_spine(void **state)
{
	const struct net_shape shape = {
		.leaves = 4, .spines = 3, .hosts = 8, .rate = 10, .uplink = 40};

	assert_true(net_leaf_spine(&n, &shape));
	assert_int_equal(n.hosts, 32);
	assert_int_equal(net_ports(&n, 0), 11);
	assert_int_equal(net_ports(&n, 4), 4);
	find_routes();
	for (uint32_t i = 0; i < n.switches; i++)
		for (uint32_t h = 0; h < n.hosts; h++)
			assert_in_range(walk(i, h), 1, 3);
	assert_int_equal(ways(0, 31), 3);
	assert_int_equal(net_cable(&n, 31)->rate, 10);
	assert_int_equal(n.link[n.links - 1].rate, 40);
	net_routes_free(routes, n.switches);
}

/* The hosts of each hop are where the help says. */
static void net_parking_lot__hops(void **state)
{
	assert_true(net_parking_lot(&n, &(struct net_shape){.hops = 3, .rate = 1}));
	assert_int_equal(n.hosts, 8);
	assert_int_equal(n.switches, 4);
	find_routes();
	assert_int_equal(walk(0, 1), 4);
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(net_cable(&n, 2 * i)->b, n.hosts + i - 1);
		assert_int_equal(net_cable(&n, 2 * i + 1)->b, n.hosts + i);
	}
	net_routes_free(routes, n.switches);
	assert_true(net_victim(&n, &(struct net_shape){.hosts = 8, .rate = 1, .uplink = 4}));
	assert_int_equal(n.hosts, 11);
	assert_int_equal(net_cable(&n, 8)->b, n.hosts);
	assert_int_equal(net_cable(&n, 9)->b, n.hosts + 1);
	assert_true(net_dumbbell(&n, &(struct net_shape){.hosts = 4, .rate = 1}));
	assert_int_equal(net_cable(&n, 3)->b, n.hosts);
	assert_int_equal(net_cable(&n, 4)->b, n.hosts + 1);
}

static void make_file(char *path, const char *text)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* The complaint about a file with @p text; "" if it is good. */
static const char *read_file(const char *text)
{
	static char why[512];
	char path[] = "/tmp/roci-net-XXXXXX", line[256];

	make_file(path, text);
	snprintf(line, sizeof(line), "topology file %s\nflow 0 -> 1 write\nmeasure 0..1ms\n", path);
	why[0] = '\0';
	parse_scenario(&s, "x", line, NULL, 0, why, sizeof(why));
	unlink(path);
	return why;
}

/* Nodes 1 and 3 are switches: hosts 0, 2, 4 are ours 0, 1, 2. */
static void network_file__hpcc(void **state)
{
	assert_string_equal(read_file("5 2 4\n1 3\n0 1 100Gbps 1us 0\n1 2 25Gbps 0.001ms 0\n"
				      "3 1 400Gbps 2us 0.0\n3 4 100Gbps 1us 0\n"),
		"");
	assert_int_equal(s.net.hosts, 3);
	assert_int_equal(s.net.switches, 2);
	assert_int_equal(net_cable(&s.net, 1)->rate, 25000000000ull);
	assert_int_equal(net_cable(&s.net, 1)->delay, 1000);
	assert_int_equal(net_peer(&s.net, 0, 2), 4);
	assert_int_equal(net_peer(&s.net, 1, 1), 2);
	assert_int_equal(s.rate, 100000000000ull);
}

static void network_file__says_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *said;
	} row[] = {
		{"", "it ends too early"},
		{"3 1 x\n", "'x' is not a number up to 16384"},
		{"3 1 2\n7\n", ":2: '7' is not a number up to 2"},
		{"3 2 2\n1 1\n", "node 1 is listed as a switch twice"},
		{"3 1 2\n2\n0 1 100Gbps 1us 0\n", "one of them a switch"},
		{"3 1 2\n2\n0 2 fast 1us 0\n", "'fast' is not a rate"},
		{"3 1 2\n2\n0 2 100Gbps soon 0\n", "'soon' is not a delay"},
		{"3 1 2\n2\n0 2 100Gbps 1us 0.1\n", "the error rate of a cable must be 0"},
		{"3 1 2\n2\n0 2 100Gbps 1us 0\n0 2 100Gbps 1us 0\n", "node 0, a host, has more"},
		{"3 1 1\n2\n0 2 100Gbps 1us 0\n", "host 1 has no cable"},
		{"1 1 0\n0\n", "or no host"},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		if (!strstr(read_file(row[i].text), row[i].said))
			fail_msg("'%s' instead of '%s'", read_file(row[i].text), row[i].said);
}

/* The complaint about flows with @p text in a file, after statement @p topology. */
static const char *read_flows(const char *topology, const char *text, const char *settings)
{
	static char why[512];
	char path[] = "/tmp/roci-flow-XXXXXX", line[512];

	make_file(path, text);
	snprintf(line, sizeof(line), "%s\ntraffic file %s %s\nmeasure 0..1ms\n", topology, path,
		settings);
	why[0] = '\0';
	parse_scenario(&s, "x", line, NULL, 0, why, sizeof(why));
	unlink(path);
	return why;
}

static void flow_file__hpcc(void **state)
{
	const struct flow_line *f;

	assert_string_equal(
		read_flows("topology star hosts=4",
			"2\n2 0 3 100 10000000 2\n1 4 3 101 64 2.000000700\n", "base=2s"),
		"");
	assert_int_equal(s.traffic[0].flows, 2);
	f = s.traffic[0].flow;
	assert_true(f[0].first == 2 && f[0].last == 2 && f[0].to == 0 && f[0].op == FLOW_WRITE);
	assert_true(f[0].size == 10000000 && f[0].count == 1 && f[0].qps == 1);
	assert_int_equal(f[0].start[0], 0);
	assert_true(f[1].first == 1 && f[1].to == 4 && f[1].size == 64);
	assert_true(f[1].start[0] == 700 && f[1].start[1] == 700);
}

/* Nodes have the numbers of the topology's file: 1 and 3 are switches. */
static void flow_file__numbers_of_the_topology(void **state)
{
	const char *net = "5 2 4\n1 3\n0 1 100Gbps 1us 0\n1 2 25Gbps 1us 0\n"
			  "3 1 400Gbps 2us 0\n3 4 100Gbps 1us 0\n";
	char path[] = "/tmp/roci-net-XXXXXX", topology[64];

	make_file(path, net);
	snprintf(topology, sizeof(topology), "topology file %s", path);
	assert_string_equal(read_flows(topology, "1\n4 2 3 100 1000 0\n", ""), "");
	assert_true(s.traffic[0].flow[0].first == 2 && s.traffic[0].flow[0].to == 1);
	assert_non_null(strstr(read_flows(topology, "1\n4 3 3 100 1000 0\n", ""), "two different"));
	assert_non_null(strstr(read_flows(topology, "1\n5 0 3 100 1000 0\n", ""), "two different"));
	unlink(path);
}

static void flow_file__says_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *settings, *said;
	} row[] = {
		{"", "", "must be the number of flows"},
		{"0\n", "", "must be the number of flows"},
		{"-1\n", "", "must be the number of flows"},
		{"2\n0 1 3 100 1000 2\n", "", "flow 1 needs two hosts"},
		{"1\n0 1 3 100 1000\n", "", "flow 0 needs two hosts"},
		{"1\n0 5 3 100 1000 2\n", "", "two different hosts"},
		{"1\n1 1 3 100 1000 2\n", "", "two different hosts"},
		{"1\n0 1 3 100 0 2\n", "", "has 0 bytes"},
		{"1\n0 1 3 100 99999999999 2\n", "", "has 99999999999 bytes"},
		{"1\n0 1 3 100 1000 1\n", "base=2s", "see base="},
		{"1\n0 1 3 100 1000 -1\n", "", "see base="},
		{"1\n0 1 3 100 1000 nan\n", "", "see base="},
		{"1\n0 1 3 100 1000 2\n", "from=2s", "'from' is not a setting"},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		const char *said =
			read_flows("topology star hosts=4", row[i].text, row[i].settings);

		if (!strstr(said, row[i].said))
			fail_msg("'%s' instead of '%s'", said, row[i].said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(net_route__fat_tree),
		cmocka_unit_test(net_route__leaf_spine),
		cmocka_unit_test(net_parking_lot__hops),
		cmocka_unit_test(network_file__hpcc),
		cmocka_unit_test(network_file__says_what_is_wrong),
		cmocka_unit_test(flow_file__hpcc),
		cmocka_unit_test(flow_file__numbers_of_the_topology),
		cmocka_unit_test(flow_file__says_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
