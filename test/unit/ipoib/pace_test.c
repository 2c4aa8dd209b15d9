/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of the netdev's thread, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "pace.h"

#define BEGIN 1000000000u
#define ROUND 1000u /* ns */
#define MANY  32u   /* packets of a round in a stream */

static struct pace pace;
static uint64_t now;

static int setup(void **state)
{
	(void)state;
	now = BEGIN;
	pace_begin(&pace, now);
	return 0;
}

/* A round, @p ns after the one before. */
static enum pace_step after(uint64_t ns, uint32_t packets, bool full)
{
	now += ns;
	return pace_next(&pace, &(struct pace_round){.now = now, .packets = packets, .full = full});
}

static void rounds(unsigned n, uint32_t packets)
{
	for (unsigned i = 0; i < n; i++)
		after(ROUND, packets, false);
}

/* Packets one by one: an answer is polled for as long as it may take, and the workers run. */
static void answers__are_polled_for(void **state)
{
	(void)state;
	assert_int_equal(after(PACE_PATIENT_NS + 1, 1, false), PACE_YIELD);
	assert_int_equal(after(ROUND, 0, false), PACE_YIELD);
	assert_int_equal(after(PACE_LINGER_NS - ROUND - 1, 0, false), PACE_YIELD);
	assert_int_equal(after(1, 0, false), PACE_REST);
	assert_int_equal(after(ROUND, 0, true), PACE_REST);
	assert_int_equal(after(ROUND, 1, false), PACE_YIELD);
}

/* Answers that come late, because the other end slept, are soon polled for; rare ones never are. */
static void answers__that_come_late_are_polled_for(void **state)
{
	(void)state;
	assert_int_equal(after(PACE_PATIENT_NS, 1, false), PACE_YIELD);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(after(PACE_PATIENT_NS - 1, 0, false), PACE_YIELD);
		assert_int_equal(after(1, 1, false), PACE_YIELD);
	}
	assert_int_equal(after(PACE_PATIENT_NS, 0, false), PACE_REST);
	assert_int_equal(after(1, 1, false), PACE_YIELD);
	assert_int_equal(after(PACE_LINGER_NS, 0, false), PACE_REST);
}

static void begin__looks_for_a_while(void **state)
{
	(void)state;
	assert_int_equal(after(PACE_LINGER_NS - 1, 0, false), PACE_YIELD);
	assert_int_equal(after(1, 0, false), PACE_REST);
}

static void stream__is_looked_at_by_the_clock(void **state)
{
	(void)state;
	rounds(100, MANY);
	assert_int_equal(after(ROUND, MANY, false), PACE_LOOK);
	assert_int_equal(after(ROUND, 1, false), PACE_LOOK);
	assert_int_equal(after(ROUND, 0, false), PACE_NAP);
	assert_int_equal(after(PACE_NAP_NS, 0, false), PACE_NAP);
	assert_int_equal(after(PACE_NAP_NS, MANY, false), PACE_LOOK);
}

/* A pause of it costs no event; an end does. */
static void stream__is_over(void **state)
{
	(void)state;
	rounds(100, MANY);
	assert_int_equal(after(PACE_STREAM_NS - 1, 0, false), PACE_NAP);
	assert_int_equal(after(1, 0, false), PACE_REST);
	assert_int_equal(after(ROUND, 1, false), PACE_LOOK);
}

/* A worker makes room sooner than a nap ends; one that does not, by an event. */
static void stream__waits_for_room(void **state)
{
	(void)state;
	rounds(100, MANY);
	assert_int_equal(after(ROUND, 1, true), PACE_LOOK);
	assert_int_equal(after(ROUND, 0, true), PACE_YIELD);
	assert_int_equal(after(PACE_NAP_NS, 0, true), PACE_YIELD);
	assert_int_equal(after(ROUND, 0, false), PACE_NAP);
	assert_int_equal(after(PACE_STREAM_NS, 0, true), PACE_REST);
}

/* One burst is no stream, and rounds without a packet do not end one. */
static void stream__begins_and_ends_by_several_rounds(void **state)
{
	(void)state;
	rounds(1, MANY);
	assert_int_equal(after(ROUND, 0, false), PACE_YIELD);
	rounds(20, PACE_STREAM + 1);
	assert_int_equal(after(ROUND, 0, false), PACE_NAP);
	rounds(100, 0);
	assert_int_equal(after(ROUND, 0, false), PACE_NAP);
	rounds(1, 1);
	assert_int_equal(after(ROUND, 0, false), PACE_NAP);
	rounds(100, 1);
	assert_int_equal(after(ROUND, 0, false), PACE_YIELD);
	rounds(1000, PACE_STREAM - 1);
	assert_int_equal(after(ROUND, 0, false), PACE_YIELD);
}

#define CASE(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(answers__are_polled_for),
		CASE(answers__that_come_late_are_polled_for),
		CASE(begin__looks_for_a_while),
		CASE(stream__is_looked_at_by_the_clock),
		CASE(stream__is_over),
		CASE(stream__waits_for_room),
		CASE(stream__begins_and_ends_by_several_rounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
