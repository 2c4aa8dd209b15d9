/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <string.h>
#include <stdio.h>
#include <cmocka.h>
#include "bits.h"
#include "host.h"
#include "lab.h"
#include "lab_flow.h"
#include "lab_host.h"
#include "metric.h"
#include "parse.h"
#include "scenario.h"

static struct scenario s;

static struct lab *run(const char *text)
{
	struct lab *l;
	char why[512] = "";

	if (parse_scenario(&s, "x", text, NULL, 0, why, sizeof(why)))
		fail_msg("%s", why);
	l = lab_make(&s);
	assert_non_null(l);
	sample_run(l);
	return l;
}

static double value(const struct lab *l, const char *name, uint32_t index)
{
	const struct expectation e = {.metric = metric_find(name), .index = index};

	return e.metric->value(l, &e);
}

/* One flow alone has all of the link, and its window nowhere to wait. */
static void lab_run__one_flow(void **state)
{
	struct lab *l = run("topology star hosts=1 rate=40G delay=1us\n"
			    "flow 0 -> 1 write size=1Mi repeat\n"
			    "measure 1ms..3ms\n");

	assert_true(value(l, "goodput.share", METRIC_ALL) > 0.999);
	assert_true(value(l, "goodput.share", METRIC_ALL) < 1.001);
	assert_true(value(l, "queue.max", 1) <= 2 * 1100);
	assert_float_equal(value(l, "jain", METRIC_ALL), 1, 1e-9);
	assert_int_equal(l->samples, 2);
	lab_free(l);
}

/* Short last packets of a message take the way of those before them, through all layers. */
static void lab_run__keeps_order(void **state)
{
	struct lab *l = run("topology fat-tree k=4 rate=40G delay=1us\n"
			    "traffic permutation size=3075 repeat qps=2\n"
			    "measure 0..2ms\n");

	assert_true(value(l, "goodput", METRIC_ALL) > 100e9);
	assert_int_equal(l->end.dropped, 0);
	assert_int_equal(l->end.retransmits, 0);
	for (unsigned i = 0; i < l->hosts; i++)
		assert_int_equal(l->host[i].host->core.count.out_of_sequence, 0);
	lab_free(l);
}

/* Of two receivers, both cables are what could be had. */
static void lab_run__share_of_all_receivers(void **state)
{
	struct lab *l = run("topology dumbbell hosts=2 rate=10G uplink=40G delay=1us\n"
			    "flow 0 -> 2 write size=1Mi repeat\n"
			    "flow 1 -> 3 write size=1Mi repeat\n"
			    "measure 1ms..3ms\n");

	assert_float_equal(value(l, "goodput.share", METRIC_ALL), 1, 0.001);
	assert_float_equal(value(l, "goodput.share", 1), 1, 0.001);
	lab_free(l);
}

/* Two windows into one link: what does not fit on the way waits, and the whole is as it must be. */
static void lab_run__windows_wait(void **state)
{
	struct lab *l = run("topology star hosts=2 rate=40G delay=1us\n"
			    "flow 0..1 -> 2 write size=1Mi repeat\n"
			    "measure 1ms..3ms\n");
	double queue = value(l, "queue.mean", 2);

	/* 2 * 128 frames of 1,086 bytes, less those on wires of a round trip of some 4.5 us, and
	 * less up to 32 of each flow that wait for the next packet that asks for an ACK */
	assert_true(queue > 190000 && queue < 260000);
	assert_true(value(l, "jain", METRIC_ALL) > 0.99);
	lab_free(l);
}

static void lab_run__counts_messages(void **state)
{
	struct lab *l = run("topology star hosts=2 rate=10G delay=1us\n"
			    "flow 0..1 -> 2 read size=64Ki count=10\n"
			    "measure 0..5ms\n");
	double done = value(l, "done", METRIC_ALL);
	/* 1,280 packets of 1,106 bytes, the first and last of each message with an AETH */
	double wire = 1280 * 1106 * 8 / 10.0;

	assert_true(done > wire && done < wire * 1.05);
	assert_int_equal(l->end.packets, 1280);
	assert_int_equal(l->flow[0].messages, 10);
	lab_free(l);
}

static void lab_run__stops_flows(void **state)
{
	struct lab *l = run("topology star hosts=2 rate=10G delay=1us\n"
			    "flow 0..1 -> 2 write size=64Ki repeat\n"
			    "at 1ms stop 1\n"
			    "measure 2ms..3ms\n");

	assert_true(value(l, "goodput", 1) <= 0);
	assert_true(value(l, "goodput", 0) > 9e9);
	assert_true(value(l, "failed", METRIC_ALL) > 0);
	lab_free(l);
}

/* A CNP halves, and CNPs that the switch loses do not arrive. */
static void lab_run__cnps(void **state)
{
	struct lab *l = run("topology star hosts=1 rate=40G delay=1us\n"
			    "cc dcqcn profile=paper\n"
			    "flow 0 -> 1 write size=1Mi repeat\n"
			    "at 100us cnp 0\n"
			    "measure 0..1ms\n"
			    "expect rate(0) at 99us 40G\n"
			    "expect rate(0) at 101us 20G\n"
			    "expect rate.target(0) at 101us 40G\n");

	for (unsigned i = 0; i < s.expects; i++)
		assert_float_equal(l->looked[i], s.expect[i].value, 1);
	lab_free(l);
	l = run("topology star hosts=4 rate=40G delay=1us\n"
		"switch kmin=5K kmax=200K pmax=1%\n"
		"cc dcqcn profile=paper\n"
		"impair cnp loss=100%\n"
		"flow 0..3 -> 4 write size=1Mi repeat\n"
		"measure 0..2ms\n");
	assert_true(l->end.cnps > 0);
	assert_int_equal(l->end.handled, 0);
	lab_free(l);
}

/* Frames are lost, come twice, or come later than those that follow them. */
static void lab_run__impairments(void **state)
{
	static const char net[] = "topology star hosts=4 rate=40G delay=1us\n"
				  "switch kmin=5K kmax=200K pmax=1%\n"
				  "cc dcqcn profile=paper\n"
				  "flow 0..3 -> 4 write size=1Mi repeat\n"
				  "measure 0..2ms\n";
	char text[512];
	struct lab *l;

	snprintf(text, sizeof(text), "%simpair cnp duplicate=100%%\n", net);
	l = run(text);
	assert_true(l->end.cnps > 0);
	assert_in_range(l->end.handled, 2 * l->end.cnps - 2, 2 * l->end.cnps);
	lab_free(l);
	snprintf(text, sizeof(text), "%simpair cnp delay=1ms\n", net);
	l = run(text);
	assert_true(l->end.handled > 0 && l->end.handled < l->end.cnps);
	lab_free(l);
	snprintf(text, sizeof(text), "%simpair data delay=1us late=1%%\n", net);
	l = run(text);
	assert_true(l->end.retransmits > 0); /* as for a loss: the PSN is not the next */
	assert_int_equal(l->end.dropped, 0);
	lab_free(l);
	snprintf(text, sizeof(text), "%simpair data duplicate=10%%\n", net);
	l = run(text);
	assert_int_equal(l->end.retransmits, 0);
	assert_true(value(l, "goodput.share", METRIC_ALL) < 0.93);
	lab_free(l);
}

/* All operations deliver alike; datagrams in packets of their own. */
static void lab_run__operations(void **state)
{
	static const char *const op[] = {"write", "read", "send", "ud"};

	for (unsigned i = 0; i < ARRAY_SIZE(op); i++) {
		char text[256];
		struct lab *l;

		snprintf(text, sizeof(text),
			"topology star hosts=2 rate=40G delay=1us\n"
			"flow 0 -> 2 %s %s repeat\nmeasure 1ms..3ms\n",
			op[i], i == 3 ? "" : "size=64Ki");
		l = run(text);
		assert_true(value(l, "goodput.share", METRIC_ALL) > 0.98);
		assert_int_equal(value(l, "failed", METRIC_ALL), 0);
		assert_int_equal(l->end.retransmits, 0);
		lab_free(l);
	}
}

/* The same seed, the same run. */
static void lab_run__repeats_itself(void **state)
{
	uint64_t events[3], cnps[3];

	for (unsigned i = 0; i < 3; i++) {
		struct lab *l = run(i == 2 ? "seed 2\n"
					     "topology star hosts=4 rate=40G delay=1us\n"
					     "switch kmin=5K kmax=200K pmax=1%\n"
					     "cc dcqcn\n"
					     "flow 0..3 -> 4 write size=1Mi repeat start=0..1us\n"
					     "measure 0..5ms\n"
					   : "topology star hosts=4 rate=40G delay=1us\n"
					     "switch kmin=5K kmax=200K pmax=1%\n"
					     "cc dcqcn\n"
					     "flow 0..3 -> 4 write size=1Mi repeat start=0..1us\n"
					     "measure 0..5ms\n");

		events[i] = l->engine.fired;
		cnps[i] = l->end.cnps;
		lab_free(l);
	}
	assert_int_equal(events[0], events[1]);
	assert_int_equal(cnps[0], cnps[1]);
	assert_true(events[0] != events[2]);
}

static void metric_met__within_its_tolerance(void **state)
{
	struct expectation e = {.value = 100, .tolerance = 12};

	assert_true(metric_met(&e, 88));
	assert_true(metric_met(&e, 112));
	assert_false(metric_met(&e, 87.9));
	assert_false(metric_met(&e, 112.1));
	assert_false(metric_met(&e, NAN));
	e.sign = EXPECT_LEAST;
	assert_true(metric_met(&e, 100));
	assert_false(metric_met(&e, 99.9));
	e.sign = EXPECT_MOST;
	assert_true(metric_met(&e, 100));
	assert_false(metric_met(&e, HUGE_VAL));
}

/* Poisson traffic offers its load, and alone on a fast network messages take their ideal time. */
static void lab_run__poisson(void **state)
{
	struct lab *l = run("topology star hosts=7 rate=10G delay=1us\n"
			    "cc off\n"
			    "traffic poisson load=10% sizes=20000 start=0..100ms qps=56\n"
			    "measure 0..101ms\n");
	uint64_t bytes = 0;

	for (unsigned i = 0; i < l->flows; i++) {
		bytes += l->flow[i].bytes;
		assert_ptr_not_equal(l->flow[i].from, l->flow[i].to);
		assert_int_equal(l->flow[i].messages, l->flow[i].arrivals.came);
	}
	assert_int_equal(l->sources, 8);
	/* 8 hosts of 1 Gb/s each for 100 ms are 5,000 messages of 20,000 bytes, +-3 sigma */
	assert_in_range(bytes, 20000ull * 4790, 20000ull * 5210);
	assert_int_equal(value(l, "messages", METRIC_ALL), bytes / 20000);
	assert_true(isinf(value(l, "done", METRIC_ALL))); /* nobody said how many */
	assert_true(value(l, "slowdown.p50", METRIC_ALL) >= 0.99);
	assert_true(value(l, "slowdown.p50", METRIC_ALL) < 1.05);
	assert_true(value(l, "slowdown.p99", METRIC_ALL) > 1.05);
	lab_free(l);
}

/* Alone, a message of any size takes the time that is called ideal. */
static void lab_run__ideal(void **state)
{
	static const unsigned sizes[] = {1, 1000, 1024, 1025, 5000, 102400};

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		char text[256];
		struct lab *l;

		snprintf(text, sizeof(text),
			"topology leaf-spine leaves=2 spines=1 hosts=1 rate=40G uplink=10G "
			"delay=1us\n"
			"flow 0 -> 1 write size=%u count=20 gap=50us\nmeasure 0..5ms\n",
			sizes[i]);
		l = run(text);
		assert_int_equal(l->flow[0].messages, 20);
		assert_int_equal(value(l, "messages", METRIC_ALL), 20);
		assert_float_equal(value(l, "slowdown.p50", METRIC_ALL), 1, 0.01);
		lab_free(l);
	}
}

/* Each host sends to one and receives from one; or to all others. */
static void lab_run__patterns(void **state)
{
	unsigned sent[8] = {0}, received[8] = {0};
	struct lab *l = run("topology dumbbell hosts=4 rate=40G delay=1us\n"
			    "traffic permutation size=10K count=1\n"
			    "measure 0..5ms\n");

	assert_int_equal(l->flows, 8);
	for (unsigned i = 0; i < 8; i++) {
		assert_ptr_not_equal(l->flow[i].from, l->flow[i].to);
		sent[l->flow[i].from - l->host]++;
		received[l->flow[i].to - l->host]++;
		assert_int_equal(l->flow[i].messages, 1);
	}
	for (unsigned i = 0; i < 8; i++)
		assert_true(sent[i] == 1 && received[i] == 1);
	lab_free(l);
	l = run("topology dumbbell hosts=4 rate=40G delay=1us\n"
		"traffic all-to-all size=10K count=2 hosts=0..3\n"
		"measure 0..5ms\n");
	assert_int_equal(l->flows, 12);
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(l->flow[i].messages, 2);
	lab_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lab_run__one_flow),
		cmocka_unit_test(lab_run__keeps_order),
		cmocka_unit_test(lab_run__share_of_all_receivers),
		cmocka_unit_test(lab_run__poisson),
		cmocka_unit_test(lab_run__ideal),
		cmocka_unit_test(lab_run__patterns),
		cmocka_unit_test(lab_run__windows_wait),
		cmocka_unit_test(lab_run__counts_messages),
		cmocka_unit_test(lab_run__stops_flows),
		cmocka_unit_test(lab_run__cnps),
		cmocka_unit_test(lab_run__repeats_itself),
		cmocka_unit_test(lab_run__impairments),
		cmocka_unit_test(lab_run__operations),
		cmocka_unit_test(metric_met__within_its_tolerance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
