/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "engine.h"
#include "list.h"
#include "random.h"

#define EVENTS 500u

struct item {
	struct sim_event ev;
	unsigned number;
};

static struct sim_engine engine;
static struct sim_due heap[EVENTS];
static uint32_t place[EVENTS + 1];
static struct item item[EVENTS];
static unsigned happened[EVENTS];
static unsigned count;

static void fire(struct sim_event *ev, uint64_t now)
{
	struct item *it = container_of(ev, struct item, ev);

	assert_int_equal(now, engine.now);
	assert_true(ev->due == SIM_NEVER);
	happened[count++] = it->number;
}

static void start(void)
{
	engine_init(&engine, heap, place, EVENTS, 100);
	count = 0;
	for (unsigned i = 0; i < EVENTS; i++) {
		item[i].number = i;
		engine_event(&item[i].ev, fire);
	}
}

/* When each was set for, and as which. */
static uint64_t due[EVENTS], set[EVENTS], sets;

static void at(unsigned i, uint64_t when)
{
	due[i] = when;
	set[i] = sets++;
	engine_at(&engine, &item[i].ev, when);
}

static uint64_t next_due(void)
{
	return engine.used ? engine.heap[0].at : SIM_NEVER;
}

static void engine_run__in_the_order_of_time_and_of_setting(void **state)
{
	struct random random = {.state = 99};

	start();
	for (unsigned i = 0; i < EVENTS; i++)
		at(i, 1000 + random_below(&random, 50));
	for (unsigned i = 0; i < EVENTS; i += 3) /* some are taken away, some move */
		at(i, i % 2 ? SIM_NEVER : 1050 + random_below(&random, 50));
	for (uint64_t t = 1000; t < 1100; t++) {
		assert_true(next_due() >= t);
		engine_run(&engine, t);
		assert_int_equal(engine.now, t);
		if (count)
			assert_true(due[happened[count - 1]] <= t);
	}
	assert_int_equal(count, EVENTS - (EVENTS + 3) / 6);
	for (unsigned i = 1; i < count; i++) {
		unsigned a = happened[i - 1], b = happened[i];

		assert_true(due[a] < due[b] || (due[a] == due[b] && set[a] < set[b]));
	}
	assert_true(next_due() == SIM_NEVER);
}

/* An event of the past happens now: time does not go back. */
static void engine_run__does_not_go_back(void **state)
{
	start();
	engine_at(&engine, &item[0].ev, 20);
	engine_run(&engine, 150);
	assert_int_equal(count, 1);
	assert_int_equal(engine.now, 150);
	engine_run(&engine, 160);
	assert_int_equal(engine.now, 160);
}

static struct item *again;

static void fire_again(struct sim_event *ev, uint64_t now)
{
	happened[count++] = (unsigned)now;
	if (now < 300)
		engine_at(&engine, ev, now + 50);
	if (again)
		engine_at(&engine, &again->ev, SIM_NEVER);
	again = NULL;
}

static void engine_at__from_an_event(void **state)
{
	start();
	engine_event(&item[0].ev, fire_again);
	engine_at(&engine, &item[0].ev, 200);
	engine_at(&engine, &item[1].ev, 250);
	again = &item[1];
	engine_run(&engine, 1000);
	assert_int_equal(count, 3);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(happened[i], 200 + 50 * i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engine_run__in_the_order_of_time_and_of_setting),
		cmocka_unit_test(engine_run__does_not_go_back),
		cmocka_unit_test(engine_at__from_an_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
