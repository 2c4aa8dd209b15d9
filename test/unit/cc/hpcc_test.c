/* SPDX-License-Identifier: BSD-3-Clause */
/* HPCC, ACK by ACK, against Algorithm 1 of its paper with numbers worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "cc.h"

#define US   1000ull
#define LINE 100e9
#define BDP  125000.0 /* bytes that the line brings in 10 us */
#define ETA  0.95
#define W_AI 80.0

static struct cc_config cfg;
static struct cc cc;
static uint64_t now;
static uint32_t psn;
static struct cc_hop hop[CC_HOPS_MAX + 1];

static void set(const char *name, double value)
{
	int i = cc_find_param(&cc_hpcc, name);

	assert_true(i >= 0);
	assert_true(cc_config_set(&cfg, (unsigned)i, value));
}

static void begin(void)
{
	now = 1000000 * US;
	psn = 0xFFFFF0; /* PSNs wrap */
	memset(hop, 0, sizeof(hop));
	for (unsigned i = 0; i < CC_HOPS_MAX; i++)
		hop[i] = (struct cc_hop){.rate = LINE, .time = 0xFFFFFF00, .sent = 0xFFFFFF00};
	cc_init(&cc, &cfg, now);
}

static int setup(void **state)
{
	cc_config_init(&cfg, &cc_hpcc, 0, LINE);
	set("base_rtt", 10);
	begin();
	return 0;
}

/* @p packets of 1,000 bytes leave. */
static void send(uint32_t packets)
{
	psn = (psn + packets) & 0xFFFFFF;
	cc_hpcc.on_sent(&cc, 1000 * packets, psn, false, now);
}

/* An ACK of the packet @p back before the last, with the records of @p n switches. */
static void ack(uint32_t back, unsigned n)
{
	struct cc_ack a = {
		.psn = (psn - back) & 0xFFFFFF, .packets = 1, .hops = {.hop = hop, .n = n}};

	cc_hpcc.on_ack(&cc, &a, now);
}

/* Of link @p i: @p us later it has sent @p bytes more, and @p queue wait. */
static void passes(unsigned i, uint32_t us, uint32_t bytes, uint32_t queue)
{
	hop[i].time += us * 256000;
	hop[i].sent += bytes * 32;
	hop[i].queue = queue;
}

static void load(uint32_t us, uint32_t bytes, uint32_t queue)
{
	now += us * US;
	passes(0, us, bytes, queue);
}

static struct cc_view look(void)
{
	struct cc_view v = {0};

	cc_hpcc.look(&cc, &v);
	return v;
}

/* W, in bytes, from R = W / T. */
static double window(void)
{
	return cc.rate * 10e-6 / 8;
}

static double load_now(void)
{
	return look().alpha;
}

/* After the first records, of which nothing follows. */
static void first(void)
{
	begin();
	send(1);
	ack(0, 1);
	assert_float_equal(window(), BDP, 1e-6);
	assert_float_equal(load_now(), 1, 0);
}

/* u' = min(queues) / (B * T) + txRate / B, and U moves by tau / T. */
static void measure__weighs_by_time(void **state)
{
	first();
	send(1);
	load(5, 62500, 12500); /* the first record had no queue */
	ack(0, 1);
	assert_float_equal(load_now(), 1, 1e-9);
	assert_float_equal(window(), BDP * ETA + W_AI, 1e-6);
	send(1);
	load(5, 62500, 25000); /* 12500 of 125000 twice */
	ack(0, 1);
	assert_float_equal(load_now(), 0.5 * 1 + 0.5 * 1.1, 1e-9);
	send(1);
	load(50, 312500, 0); /* half the rate for more than T: only this counts */
	ack(0, 1);
	assert_float_equal(load_now(), 0.5, 1e-9);
}

static void measure__takes_the_most_loaded(void **state)
{
	begin();
	hop[1].rate = 40e9;
	send(1);
	ack(0, 3);
	send(1);
	now += 20 * US;
	passes(0, 20, 125000, 0); /* 0.5 */
	passes(1, 20, 80000, 0);  /* 0.8 of 40 Gb/s */
	passes(2, 20, 150000, 0); /* 0.6 */
	ack(0, 3);
	assert_float_equal(load_now(), 0.8, 1e-9);
}

/* Within a round trip all windows are made of the same one. */
static void window__reacts_at_once_and_once(void **state)
{
	double wc;

	first();
	send(10);
	load(10, 125000, 0);
	ack(9, 1); /* U = 1; what was sent until now belongs to this window */
	wc = BDP * ETA + W_AI;
	assert_float_equal(window(), wc, 1e-6);
	load(10, 125000, 0);
	ack(8, 1);
	load(10, 250000, 0); /* more than the link can send: no sample */
	ack(7, 1);
	assert_float_equal(window(), wc * ETA + W_AI, 1e-6);
	load(10, 125000, 0);
	ack(0, 1); /* still of that window */
	assert_float_equal(window(), wc * ETA + W_AI, 1e-6);
	send(1);
	load(10, 125000, 0);
	ack(0, 1);
	wc = wc * ETA + W_AI;
	assert_float_equal(window(), wc, 1e-6);
	assert_float_equal(look().target, wc * 8 / 10e-6, 1);
}

/* Below eta five steps of W_AI, then by the load. */
static void window__seeks_in_stages(void **state)
{
	double w;

	first();
	send(1);
	load(10, 125000, 0);
	ack(0, 1);
	for (unsigned i = 0; i < 20; i++) { /* some way down */
		send(1);
		load(10, 125000, 0);
		ack(0, 1);
	}
	w = window();
	assert_true(w < BDP / 2);
	for (unsigned i = 1; i <= 5; i++) {
		send(1);
		load(10, 75000, 0);
		ack(0, 1);
		assert_float_equal(window(), w + i * W_AI, 1e-6);
	}
	send(1);
	load(10, 75000, 0); /* 0.6 */
	ack(0, 1);
	assert_float_equal(window(), (w + 5 * W_AI) / (0.6 / ETA) + W_AI, 1e-6);
	w = window();
	send(1);
	load(10, 75000, 0); /* the stages begin anew */
	ack(0, 1);
	assert_float_equal(window(), w + W_AI, 1e-6);
}

static void window__has_limits(void **state)
{
	set("min_rate", 1000);
	first();
	for (unsigned i = 0; i < 200; i++) {
		send(1);
		load(10, 125000, 1000000);
		ack(0, 1);
	}
	assert_float_equal(cc.rate, 1e9, 1);
	assert_float_equal(cc.window, 2, 0); /* 1,250 bytes are two packets under way */
	assert_true(look().limited);
	for (unsigned i = 0; i < 2000; i++) {
		send(1);
		load(10, 12500, 0);
		ack(0, 1);
	}
	assert_float_equal(cc.rate, LINE, 1);
	assert_false(look().limited);
	assert_int_equal(cc.ack_every, 1);
}

/* Records that cannot be true, or compared, change nothing, and measuring begins anew. */
static void records__lie(void **state)
{
	static const struct {
		uint32_t us, bytes, wait;
		double rate;
		unsigned n;
	} row[] = {
		{0, 1000, 10, LINE, 1},		       /* no time has passed */
		{-5u, 1000, 10, LINE, 1},	       /* backwards */
		{10, -1000u, 10, LINE, 1},	       /* backwards */
		{10, 145000, 10, LINE, 1},	       /* faster than the link */
		{10, 1000, 5001, LINE, 1},	       /* too old */
		{10, 1000, 10, 0, 1},		       /* a link of unknown speed */
		{10, 1000, 10, LINE, 2},	       /* another way */
		{10, 1000, 10, 40e9, 1},	       /* another way */
		{10, 1000, 10, LINE, 0},	       /* none */
		{10, 1000, 10, LINE, CC_HOPS_MAX + 1}, /* more than there are */
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		first();
		send(1);
		now += row[i].wait * US;
		passes(0, row[i].us, row[i].bytes, 0);
		hop[0].rate = row[i].rate;
		ack(0, row[i].n);
		assert_float_equal(window(), BDP, 1e-6);
		assert_float_equal(load_now(), 1, 0);
	}
	/* a link of unknown speed twice */
	first();
	hop[0].rate = 0;
	for (unsigned i = 0; i < 2; i++) {
		send(1);
		load(10, 1000, 0);
		ack(0, 1);
	}
	assert_float_equal(load_now(), 1, 0);
}

static void pause__begins_anew(void **state)
{
	first();
	send(1);
	cc_hpcc.on_pause(&cc, now);
	load(10, 1000, 0);
	ack(0, 1);
	assert_float_equal(load_now(), 1, 0);
	send(1);
	load(10, 62500, 0);
	ack(0, 1);
	assert_float_equal(load_now(), 0.5, 1e-9);
}

/* Neither losses nor CNPs speak of queues; limits may be set at any time. */
static void others__say_nothing(void **state)
{
	first();
	cc_hpcc.on_loss(&cc, CC_LOSS_TIMEOUT, now);
	cc_hpcc.on_cnp(&cc, CC_CNP_PLAIN, &(struct cc_hops){0}, now);
	assert_float_equal(window(), BDP, 1e-6);
	cfg.line = LINE / 2;
	assert_true(cc_hpcc.on_time(&cc, now) == CC_NEVER);
	assert_float_equal(window(), BDP / 2, 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(measure__weighs_by_time, setup),
		cmocka_unit_test_setup(measure__takes_the_most_loaded, setup),
		cmocka_unit_test_setup(window__reacts_at_once_and_once, setup),
		cmocka_unit_test_setup(window__seeks_in_stages, setup),
		cmocka_unit_test_setup(window__has_limits, setup),
		cmocka_unit_test_setup(records__lie, setup),
		cmocka_unit_test_setup(pause__begins_anew, setup),
		cmocka_unit_test_setup(others__say_nothing, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
