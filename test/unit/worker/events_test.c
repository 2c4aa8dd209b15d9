/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <rte_ring_elem.h>
#include "eal_test.h"
#include "rig.h"

static struct rig r;
static struct rig_qp q;

static int up(void **state)
{
	rig_up(&r, 1);
	rig_qp_up(&r, &q, 4, 0);
	return 0;
}

static int down(void **state)
{
	rig_qp_down(&r, &q, 4);
	rig_down(&r);
	return 0;
}

static unsigned waiting(void)
{
	return rte_ring_count(r.dp->events);
}

static unsigned take(struct core_event *e, unsigned n)
{
	return rte_ring_dequeue_burst_elem(r.dp->events, e, sizeof(*e), n, NULL);
}

static void events_poll__passes_them_on_in_order(void **state)
{
	struct core_event e[8];

	for (unsigned i = 0; i < 5; i++)
		qp_event(&q.w->core, q.qp, ABI_EVENT_QP_FATAL + i % 3);
	events_poll(q.w);
	assert_int_equal(take(e, 8), 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(e[i].type, ABI_EVENT_QP_FATAL + i % 3);
		assert_int_equal(e[i].handle, 4);
		assert_int_equal(e[i].session, 1);
	}
}

static void events_poll__nothing_is_lost_while_the_ring_is_full(void **state)
{
	struct core_event filler = {.type = 999};
	struct core_event e;
	unsigned got = 0;

	while (!rte_ring_enqueue_elem(r.dp->events, &filler, sizeof(filler)))
		;
	for (unsigned i = 0; i < 40; i++) {
		qp_event(&q.w->core, q.qp, 1000 + i);
		events_poll(q.w);
	}
	for (unsigned rounds = 0; rounds < 100000 && got < 40; rounds++) {
		if (take(&e, 1) && e.type != 999)
			assert_int_equal(e.type, 1000 + got++);
		events_poll(q.w);
	}
	assert_int_equal(got, 40);
	assert_int_equal(waiting(), 0);
}

/* A flood of one QP's leaves the core's queue empty for others, and all of it arrives. */
static void events_poll__takes_all_of_a_round(void **state)
{
	struct core_event e;
	unsigned got = 0;

	for (unsigned n = 0; n < QP_MAX; n += EVENT_QUEUE) {
		for (unsigned i = 0; i < EVENT_QUEUE; i++)
			qp_event(&q.w->core, q.qp, ABI_EVENT_QP_FATAL);
		events_poll(q.w);
	}
	assert_int_equal(q.w->core.count.events_lost, 0);
	while (take(&e, 1))
		got++;
	assert_int_equal(got, QP_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(events_poll__passes_them_on_in_order, up, down),
		cmocka_unit_test_setup_teardown(
			events_poll__nothing_is_lost_while_the_ring_is_full, up, down),
		cmocka_unit_test_setup_teardown(events_poll__takes_all_of_a_round, up, down),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
