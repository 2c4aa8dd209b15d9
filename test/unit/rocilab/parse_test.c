/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "cc.h"
#include "metric.h"
#include "parse.h"
#include "random.h"
#include "scenario.h"

#define STAR "topology star hosts=8 rate=40G delay=1us\n"
#define FLOW "flow 0..7 -> 8 write size=1M repeat start=0..1us\n"
#define TIME "measure 100ms..1100ms\n"

static struct scenario s;
static char why[512];

static int parse(const char *text)
{
	why[0] = '\0';
	return parse_scenario(&s, "x", text, NULL, 0, why, sizeof(why));
}

static void parse_scenario__every_statement(void **state)
{
	assert_int_equal(
		parse("# a comment\n"
		      "title Two words # and a comment\n"
		      "verify quick\n"
		      "seed 9\n" STAR "switch mark=ingress kmin=5K kmax=200K pmax=1% buffer=2M\n"
		      "host mtu=4096 window=1024 timeout=12 retry=3 burst=8 ip=6\n"
		      "cc dcqcn profile=connectx rp_ai_rate=40\n"
		      "impair cnp loss=50% duplicate=1% delay=1ms late=10%\n" FLOW
		      "flow 3 -> 0 read size=64Ki count=5 qps=2\n"
		      "at 100ms stop 2..7\n"
		      "at 1ms cnp 9\n" TIME "expect queue(sw0.8).mean 126K +-12%\n"
		      "expect goodput.share >= 99.5%\n"
		      "expect goodput(9) <= 20G\n"
		      "expect rate(0) at 104us 20G +-1G\n"),
		0);
	assert_string_equal(s.title, "Two words");
	assert_true(s.quick);
	assert_int_equal(s.seed, 9);
	assert_int_equal(s.net.hosts, 9);
	assert_int_equal(s.rate, 40000000000);
	assert_int_equal(s.net.link[0].delay, 1000);
	assert_true(s.aqm.ingress);
	assert_int_equal(s.aqm.kmin, 5000);
	assert_int_equal(s.aqm.kmax, 200000);
	assert_float_equal(s.aqm.pmax, 0.01, 1e-12);
	assert_int_equal(s.aqm.limit, 2000000);
	assert_int_equal(s.mtu, 4096);
	assert_int_equal(s.window, 1024);
	assert_int_equal(s.timeout, 12);
	assert_int_equal(s.retries, 3);
	assert_int_equal(s.quantum, 8);
	assert_true(s.ip6);
	assert_true(s.control);
	assert_string_equal(s.cc.ops->profiles[s.cc.profile], "connectx");
	assert_float_equal(s.cc.value[cc_find_param(s.cc.ops, "rp_ai_rate")], 40, 0);
	assert_float_equal(s.cc.value[cc_find_param(s.cc.ops, "rp_hai_rate")], 50, 0);
	assert_float_equal(s.cc.line, 40e9, 0);
	assert_float_equal(s.impair[FRAME_CNP].loss, 0.5, 0);
	assert_float_equal(s.impair[FRAME_CNP].duplicate, 0.01, 1e-12);
	assert_int_equal(s.impair[FRAME_CNP].delay, 1000000);
	assert_float_equal(s.impair[FRAME_CNP].late, 0.1, 1e-12);
	assert_float_equal(s.impair[FRAME_ACK].late, 1, 0);
	assert_int_equal(s.flow_lines, 2);
	assert_int_equal(s.flow[0].last, 7);
	assert_int_equal(s.flow[0].to, 8);
	assert_int_equal(s.flow[0].size, 1000000);
	assert_int_equal(s.flow[0].count, 0);
	assert_int_equal(s.flow[0].start[1], 1000);
	assert_int_equal(s.flow[1].op, FLOW_READ);
	assert_int_equal(s.flow[1].count, 5);
	assert_int_equal(s.flow[1].qps, 2);
	assert_int_equal(s.events, 2);
	assert_int_equal(s.event[0].at, 100000000);
	assert_int_equal(s.event[1].kind, EVENT_CNP);
	assert_int_equal(s.from, 100000000);
	assert_int_equal(s.to, 1100000000);
	assert_int_equal(s.expects, 4);
	assert_int_equal(s.expect[0].index, 8);
	assert_float_equal(s.expect[0].tolerance, 0.12 * 126000, 1e-6);
	assert_int_equal(s.expect[1].sign, EXPECT_LEAST);
	assert_int_equal(s.expect[2].index, 9);
	assert_int_equal(s.expect[3].at, 104000);
	assert_float_equal(s.expect[3].tolerance, 1e9, 0);
}

/* Ports are counted over all switches; a tolerance of a falling value is no less than nothing. */
static void parse_scenario__expectations(void **state)
{
	assert_int_equal(parse("topology parking-lot hops=2 rate=40G delay=1us\n"
			       "flow 0..1 -> 2 write\n" TIME "expect queue(sw0.1).mean 1K\n"
			       "expect queue(sw1.0).mean 1K\n"
			       "expect util(sw2.0).slope -5%/ms +-10%\n"),
		0);
	assert_int_equal(s.expect[0].index, 1);
	assert_int_equal(s.expect[1].index, net_ports(&s.net, 0));
	assert_int_equal(s.expect[2].index, net_ports(&s.net, 0) + net_ports(&s.net, 1));
	assert_true(s.expect[2].value < 0);
	assert_float_equal(s.expect[2].tolerance, -s.expect[2].value / 10, 1e-9);
}

static void parse_scenario__names_line_and_suggestion(void **state)
{
	static const struct {
		const char *text;
		const char *said;
	} row[] = {
		{"topologie star\n",
			"x:1: 'topologie' is not a statement; did you mean 'topology'?"},
		{"\n\ntopology ring\n", "x:3: 'ring' is not a topology: use star, dumbbell"},
		{"topology leafspine\n", "did you mean 'leaf-spine'?"},
		{"topology star uplink=40G\n", "'uplink' is not a setting of topology"},
		{"topology fat-tree k=3\n", "k must be an even number"},
		{"topology leaf-spine leaves=256 spines=256 hosts=8\n",
			"a network has at most 4096 hosts"},
		{STAR STAR, "x:2: there is already a topology"},
		{"topology file /nonexistent\n", "x:1: /nonexistent: No such file"},
		{STAR "traffic file /nonexistent\n", "x:2: /nonexistent: No such file"},
		{STAR "traffic file base=2s\n", "traffic file needs a path"},
		{STAR "flow 0 -> 1 write_imm\n", "did you mean 'write'?"},
		{STAR "flow 0 -> 1 ud size=1025\n" TIME, "at most the MTU, 1024 bytes: size=1025"},
		{STAR "traffic permutation ud size=4Ki\n" TIME, "at most the MTU, 1024 bytes"},
		{STAR "traffic poisson ud load=50% start=0..1ms\n", "use another operation"},
		{"switch xoff=100K\n", "xoff needs an xon"},
		{"switch fastcnp=50\n", "'fastcnp=50' needs a time"},
		{"topology star host=8\n",
			"x:1: 'host' is not a setting of topology; did you mean 'hosts'?"},
		{"topology star hosts=0\n", "x:1: 'hosts=0' must be from 1 to 4096"},
		{"topology star rate=40\n",
			"x:1: 'rate=40' must be from 1M to 1000G; is a unit such as G missing?"},
		{"topology star rate=fast\n", "'rate=fast' needs a rate such as 40G"},
		{"switch kmin\n", "'kmin': switch takes settings such as mark=..."},
		{"switch mark=both\n", "mark must be egress or ingress, not 'both'"},
		{"switch kmin=5K kmax=5K\n", "kmax must be above kmin"},
		{"switch kmin=5K pmax=1%\n", "kmin marks nothing without kmax"},
		{"switch kmin=5K kmax=9K kmin=6K\n", "x:1: 'kmin' is set twice"},
		{"impair cpn loss=1%\n", "'cpn' is not a kind of frame; did you mean 'cnp'?"},
		{"impair\n", "for cnp, ack or data"},
		{"host mtu=1500\n", "mtu must be 256"},
		{"cc dcqcn profil=paper\n", "did you mean 'profile'?"},
		{"cc dcqn\n", "'dcqn' is not an algorithm; did you mean 'dcqcn'?"},
		{"cc dcqcn profile=papr\n",
			"'papr' is not a profile of the algorithm; did you mean 'paper'?"},
		{"cc dcqcn rp_ai_rat=4\n", "did you mean 'rp_ai_rate'?"},
		{"cc dcqcn rp_threshold=1.5\n", "needs a whole number from 1 to"},
		{"cc dcqcn rp_ai_rate=0\n", "needs a number from 0.0001 to"},
		{"impair pause loss=1%\n", "for cnp, ack or data"},
		{"fault cnp loss=50%\n", "'fault' is not a statement; did you mean 'impair'?"},
		{"impair cnp\n", "an impairment looks like 'impair cnp loss=50%'"},
		{"impair ack late=5%\n", "add one such as delay=1ms"},
		{"cc off profile=paper\n", "cc off takes no settings"},
		{"topology star hosts=2.5\n", "'hosts=2.5' needs a whole number"},
		{STAR STAR, "x:2: there is already a topology"},
		{TIME TIME, "x:2: there is already a measure"},
		{"seed 1\nseed 2\n", "x:2: there is already a seed"},
		{"cc dcqcn\ncc swift\n", "x:2: there is already a cc"},
		{STAR FLOW "at 1100ms stop 0\n" TIME "\n",
			"x:3: the event comes after the end of the run, 1.1s"},
		{STAR FLOW TIME "expect rate(0) at 2s 1G\n",
			"x:4: that moment comes after the end of the run, 1.1s"},
		{STAR "flow 0 -> 8 write start=2s\n" TIME "\n",
			"x:2: the flow starts after the end of the run, 1.1s"},
		{STAR "flow 0..8 -> 8 write\n", "x:2: host 8 would send to itself"},
		{STAR "flow 0..9 -> 8 write\n", "x:2: the topology has hosts 0..8"},
		{STAR "flow 0..7 to 8 write\n", "a flow looks like 'flow 0..7 -> 8"},
		{STAR "flow 0 -> 8 writ\n", "'writ' is not an operation; did you mean 'write'?"},
		{STAR "flow 0 -> 8 atomic\n", "use write, read, send or ud"},
		{STAR "flow 0 -> 8 write repeat count=2\n", "leave out either repeat or count="},
		{STAR "traffic permutation count=2 repeat\n", "leave out either repeat or count="},
		{STAR FLOW "measure 5ms..1ms\n", "'5ms..1ms' ends before it begins"},
		{STAR FLOW "measure 0..5\n", "needs a time or a range such as 0..1us, not '0..5'"},
		{"switch pmax=20 kmin=1K kmax=2K\n", "to 100.00%; is the % missing?"},
		{STAR FLOW "at 1ms stop 8\n", "x:3: '8': the flows so far are 0..7"},
		{STAR "at 1ms stop 0\n", "'0': no flow comes before this line"},
		{STAR FLOW "at 1ms pause 0\n", "'pause' is not an event: use stop or cnp"},
		{STAR FLOW "measure 5ms\n", "the measurement is empty"},
		{STAR FLOW TIME "expect queu(sw0.8).mean 1K\n", "did you mean 'queue.mean'?"},
		{STAR FLOW TIME "expect queue(sw0.9).mean 1K\n",
			"'sw0.9' is not a port; switches are sw0 to sw0, and sw0 has the ports "
			"sw0.0 to sw0.8"},
		{STAR FLOW TIME "expect queue(sw+0.0).mean 1K\n", "'sw+0.0' is not a port"},
		{STAR FLOW TIME "expect queue(sw0->9).mean 1K\n",
			"'sw0->9' is not a cable of a switch"},
		{STAR FLOW TIME "expect queue.mean 1K\n",
			"queue.mean needs a port, such as queue(sw0.0).mean"},
		{STAR FLOW TIME "expect alpha at 1ms 1\n", "alpha needs a flow, such as alpha(0)"},
		{STAR FLOW TIME "expect jain(0) 1\n", "jain is for the whole network"},
		{STAR FLOW TIME "expect goodput(0..2) 1G\n", "goodput is for one flow"},
		{STAR FLOW TIME "expect jain = 1\n",
			"'=' is unknown: use jain VALUE +-12%, jain >= VALUE"},
		{STAR FLOW TIME "expect jain much\n", "the value of jain must be a number"},
		{STAR FLOW TIME "expect jain 1 12%\n", "a tolerance begins with +-"},
		{STAR FLOW TIME "expect jain >= 1 +-12%\n", "'+-12%' is unexpected"},
		{STAR FLOW TIME "expect rate(0) 1G\n", "rate needs a time: 'rate(0) at 104us ...'"},
		{FLOW, "the topology must come before the flows"},
		{"traffic poisson\n", "the topology must come before the traffic"},
		{STAR "traffic random\n", "'random' is not a pattern: use poisson"},
		{STAR "traffic poisson load=50% sizes=websearch\n",
			"poisson needs a time in which"},
		{STAR "traffic poisson sizes=1K start=0..1ms\n", "poisson needs a load"},
		{STAR "traffic poisson load=50% sizes=nothing start=0..1ms\n",
			"'nothing' is neither a size nor a file nor a distribution"},
		{STAR "traffic permutation sizes=1K\n", "permutation has size="},
		{STAR "traffic permutation hosts=3..9\n", "the topology has hosts 0..8"},
		{STAR "traffic permutation hosts=3\n", "traffic needs two hosts"},
		{STAR "traffic permutation load=5%\n", "'load' is not a setting of traffic"},
		{STAR FLOW, "there is no measure, so the run has no end: add one such as 'measure "
			    "10ms"},
		{STAR TIME, "there is neither a flow nor traffic: add one such as 'flow"},
		{"", "there is no topology: add one such as 'topology star"},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		assert_int_equal(parse(row[i].text), -EINVAL);
		if (!strstr(why, row[i].said))
			fail_msg("%s: %s", row[i].text, why);
	}
}

static void parse_scenario__settings_replace(void **state)
{
	struct setting set[] = {{"switch", "kmin", "7K", false}, {"cc", "rp_ai_rate", "3", false}};
	struct setting wrong = {"switch", "kmn", "7K", false};
	struct setting nowhere = {"impair", "loss", "7%", false};
	struct setting wrong_statement = {"swich", "kmin", "7K", false};
	struct setting absent = {"host", "window", "7", false};
	const char *text = STAR "switch kmin=5K kmax=200K pmax=1%\ncc dcqcn\n" FLOW TIME;

	assert_int_equal(parse_scenario(&s, "x", text, set, 2, why, sizeof(why)), 0);
	assert_int_equal(s.aqm.kmin, 7000);
	assert_float_equal(s.cc.value[cc_find_param(s.cc.ops, "rp_ai_rate")], 3, 0);
	assert_int_equal(parse_scenario(&s, "x", text, &wrong, 1, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "did you mean 'kmin'?"));
	assert_int_equal(parse_scenario(&s, "x", text, &nowhere, 1, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "the scenario has no impair statement"));
	assert_int_equal(
		parse_scenario(&s, "x", text, &wrong_statement, 1, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "'swich' is not a statement; did you mean 'switch'?"));
	assert_int_equal(parse_scenario(&s, "x", text, &absent, 1, why, sizeof(why)), 0);
	assert_int_equal(s.window, 7);
}

static double cc_value(const char *name)
{
	return s.cc.value[cc_find_param(s.cc.ops, name)];
}

/* --set cc.algorithm and cc.profile: what the text says of the other algorithm does not count, and
 * a profile comes before the parameters that differ from it. Twice, as verify reads them. */
static void parse_scenario__another_algorithm(void **state)
{
	struct setting swift[] = {
		{"cc", "base_target", "30", false}, {"cc", "algorithm", "swift", false}};
	struct setting same[] = {{"cc", "rp_ai_rate", "4", false},
		{"cc", "profile", "connectx", false}, {"cc", "algorithm", "dcqcn", false}};
	struct setting off = {"cc", "algorithm", "off", false};
	struct setting none = {"cc", "algorithm", "swft", false};
	const char *text = STAR "cc dcqcn profile=paper rp_hai_rate=77\n" FLOW TIME;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(parse_scenario(&s, "x", text, swift, 2, why, sizeof(why)), 0);
		assert_string_equal(s.cc.ops->name, "swift");
		assert_float_equal(cc_value("base_target"), 30, 0);
		assert_int_equal(parse_scenario(&s, "x", text, same, 3, why, sizeof(why)), 0);
		assert_string_equal(s.cc.ops->profiles[s.cc.profile], "connectx");
		assert_float_equal(cc_value("rp_hai_rate"), 77, 0);
		assert_float_equal(cc_value("rp_ai_rate"), 4, 0);
	}
	assert_int_equal(parse_scenario(&s, "x", text, &off, 1, why, sizeof(why)), 0);
	assert_false(s.control);
	assert_int_equal(parse_scenario(&s, "x", text, &none, 1, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "'swft' is not an algorithm; did you mean 'swift'?"));
}

/* Any text: the parser ends, within its memory. */
static void parse_scenario__survives_anything(void **state)
{
	static const char *const words[] = {"topology", "star", "hosts=8", "flow", "0..7", "->",
		"8", "write", "repeat", "at", "1ms", "stop", "expect", "queue(sw0.8).mean", "+-",
		">=", "cc", "dcqcn", "profile=", "=", "..", "measure", "0..1s", "\n", "\n", "#",
		"switch", "kmin=1e300", "size=-1", "queue(", "rate(0)", "99999999999", "impair",
		"cnp", "title"};
	struct random random = {.state = 5};
	char text[2000];

	for (unsigned run = 0; run < 20000; run++) {
		size_t len = 0;

		for (unsigned i = 0; i < 60 && len < sizeof(text) - 40; i++) {
			const char *w = words[random_below(&random, ARRAY_SIZE(words))];

			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s ", w);
		}
		parse(text);
	}
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(parse(text), -EINVAL);
}

/* A datagram is a packet, whatever order the statements have. */
static void parse_flow__datagrams(void **state)
{
	assert_int_equal(parse(STAR "flow 0..3 -> 8 ud repeat\nflow 4 -> 8 ud size=64 repeat\n"
				    "flow 5 -> 8 send\ntraffic all-to-all ud hosts=0..3\n"
				    "host mtu=4096\n" TIME),
		0);
	assert_int_equal(s.flow[0].op, FLOW_UD);
	assert_int_equal(s.flow[0].size, 4096);
	assert_int_equal(s.flow[1].size, 64);
	assert_int_equal(s.flow[2].op, FLOW_SEND);
	assert_int_equal(s.flow[2].size, 1 << 20);
	assert_int_equal(s.traffic[0].line.op, FLOW_UD);
	assert_int_equal(s.traffic[0].line.size, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_scenario__every_statement),
		cmocka_unit_test(parse_scenario__expectations),
		cmocka_unit_test(parse_scenario__names_line_and_suggestion),
		cmocka_unit_test(parse_scenario__settings_replace),
		cmocka_unit_test(parse_scenario__another_algorithm),
		cmocka_unit_test(parse_scenario__survives_anything),
		cmocka_unit_test(parse_flow__datagrams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
