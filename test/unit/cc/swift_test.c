/* SPDX-License-Identifier: BSD-3-Clause */
/* Swift, ACK by ACK, against the formulas of its paper with numbers worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "cc.h"

#define US 1000ull

static struct cc_config cfg;
static struct cc cc;
static uint64_t now;

static void set(const char *name, double value)
{
	int i = cc_find_param(&cc_swift, name);

	assert_true(i >= 0);
	assert_true(cc_config_set(&cfg, (unsigned)i, value));
}

/* A QP with a window of @p cwnd packets of 1,000 bytes. */
static void begin(double cwnd)
{
	now = 1000000 * US;
	set("first_cwnd", cwnd);
	cc_init(&cc, &cfg, now);
}

static int setup(void **state)
{
	cc_config_init(&cfg, &cc_swift, 0, 40e9);
	set("base_target", 20);
	set("fs_range", 0);
	return 0;
}

static void ack(uint64_t rtt_us, uint32_t packets)
{
	cc_swift.on_sent(&cc, 1000 * packets, 0, false, now);
	now += rtt_us * US;
	cc_swift.on_ack(&cc, &(struct cc_ack){.packets = packets, .rtt = rtt_us * US}, now);
}

static double cwnd(void)
{
	struct cc_view v = {0};

	cc_swift.look(&cc, &v);
	return v.window;
}

/* One packet more per window of ACKs. */
static void ack__below_the_target_raises(void **state)
{
	begin(10);
	ack(10, 1);
	assert_float_equal(cwnd(), 10.1, 1e-9);
	ack(19, 4);
	assert_float_equal(cwnd(), 10.1 + 4 / 10.1, 1e-9);
	assert_true(cc.rate == CC_UNLIMITED);
	assert_float_equal(cc.window, cwnd(), 0);
}

/* By 0.8 of the part that is too much, half at most, and once in a round trip. */
static void ack__above_the_target_lowers(void **state)
{
	begin(10);
	ack(25, 1); /* 5 of 25 us: 0.16 */
	assert_float_equal(cwnd(), 8.4, 1e-9);
	now -= 25 * US;
	ack(25, 1); /* in the same round trip */
	assert_float_equal(cwnd(), 8.4, 1e-9);
	ack(25, 1);
	assert_float_equal(cwnd(), 8.4 * 0.84, 1e-9);
	ack(200, 1); /* 0.72 */
	assert_float_equal(cwnd(), 8.4 * 0.84 * 0.5, 1e-9);
}

/* Without a sample an ACK says nothing. */
static void ack__without_round_trip(void **state)
{
	begin(10);
	ack(0, 3);
	assert_float_equal(cwnd(), 10, 0);
}

/* Below one packet it is paced: the window's part of a packet per round trip. */
static void window__below_one_packet_is_a_rate(void **state)
{
	begin(1);
	ack(40, 1); /* 0.8 * 20 of 40: 0.4 */
	assert_float_equal(cwnd(), 0.6, 1e-9);
	assert_float_equal(cc.window, 1, 0);
	assert_float_equal(cc.rate, 8000 * 0.6 / 40e-6, 1);
	assert_int_equal(cc.ack_every, 1);
	ack(10, 1); /* by one packet in a round trip, not by 1 / 0.6 */
	assert_float_equal(cwnd(), 1.6, 1e-9);
	assert_true(cc.rate == CC_UNLIMITED);
}

/* 50 us at 0.1 packets, nothing from 100 on; with the root of the window in between. */
static void target__scales_with_the_window(void **state)
{
	set("fs_range", 50);
	begin(100);
	ack(19, 1);
	assert_true(cwnd() > 100);
	begin(100);
	ack(21, 1);
	assert_true(cwnd() < 100);
	/* at 1: (1 - 0.1) / (3.1623 - 0.1) of 50 us */
	begin(1);
	ack(20 + 14, 1);
	assert_true(cwnd() > 1);
	begin(1);
	ack(20 + 15, 1);
	assert_true(cwnd() < 1);
	/* at the least window all of it, and no more */
	set("min_cwnd", 10);
	begin(1);
	for (unsigned i = 0; i < 100; i++)
		ack(1000, 1);
	assert_float_equal(cwnd(), 0.01, 1e-12);
	ack(20 + 49, 1);
	assert_true(cwnd() > 0.01);
	begin(1);
	for (unsigned i = 0; i < 100; i++)
		ack(1000, 1);
	ack(20 + 51, 1);
	assert_float_equal(cwnd(), 0.01, 1e-12);
}

static void window__has_limits(void **state)
{
	set("max_cwnd", 12);
	begin(10);
	for (unsigned i = 0; i < 100; i++)
		ack(5, 1);
	assert_float_equal(cwnd(), 12, 0);
	set("max_cwnd", 11); /* set anew: with the next look */
	assert_true(cc_swift.on_time(&cc, now) == CC_NEVER);
	assert_float_equal(cc.window, 11, 0);
}

/* A loss halves, once in a round trip; five timeouts in a row leave the least. */
static void loss__lowers(void **state)
{
	begin(16);
	ack(10, 1);
	cc_swift.on_loss(&cc, CC_LOSS_RNR, now += 20 * US);
	assert_true(cwnd() > 16);
	cc_swift.on_loss(&cc, CC_LOSS_SEQUENCE, now += 20 * US);
	assert_float_equal(cwnd(), (16 + 1 / 16.0) / 2, 1e-9);
	cc_swift.on_loss(&cc, CC_LOSS_IMPLIED, now += 5 * US);
	assert_float_equal(cwnd(), (16 + 1 / 16.0) / 2, 1e-9);
	for (unsigned i = 0; i < 4; i++)
		cc_swift.on_loss(&cc, CC_LOSS_TIMEOUT, now += 100 * US);
	assert_true(cwnd() > 0.4);
	cc_swift.on_loss(&cc, CC_LOSS_TIMEOUT, now += 100 * US);
	assert_float_equal(cwnd(), 0.01, 1e-12);
}

/* A NAK between timeouts comes from a peer that hears: they are no row. */
static void loss__nak_ends_a_row_of_timeouts(void **state)
{
	begin(64);
	for (unsigned i = 0; i < 4; i++)
		cc_swift.on_loss(&cc, CC_LOSS_TIMEOUT, now += 100 * US);
	cc_swift.on_loss(&cc, CC_LOSS_SEQUENCE, now += 100 * US);
	cc_swift.on_loss(&cc, CC_LOSS_TIMEOUT, now += 100 * US);
	assert_float_equal(cwnd(), 1, 1e-9); /* six halves */
}

static void ack_every__is_within_the_window(void **state)
{
	set("ack_every", 4);
	begin(10);
	assert_int_equal(cc.ack_every, 4);
	begin(2);
	assert_int_equal(cc.ack_every, 2);
	cc_swift.on_cnp(&cc, CC_CNP_PLAIN, NULL, now); /* says nothing to it */
	cc_swift.on_pause(&cc, now);
	assert_float_equal(cwnd(), 2, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		T(ack__below_the_target_raises),
		T(ack__above_the_target_lowers),
		T(ack__without_round_trip),
		T(window__below_one_packet_is_a_rate),
		T(target__scales_with_the_window),
		T(window__has_limits),
		T(loss__lowers),
		T(loss__nak_ends_a_row_of_timeouts),
		T(ack_every__is_within_the_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
