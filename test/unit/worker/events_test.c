/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <rte_ring_elem.h>
#include "eal_test.h"
#include "qp_impl.h"
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

/* All that a QP can have waiting, in the order in which it comes. */
static const uint32_t types[] = {ABI_EVENT_COMM_EST, ABI_EVENT_SQ_DRAINED, ABI_EVENT_QP_FATAL,
	ABI_EVENT_QP_REQ_ERR, ABI_EVENT_QP_ACCESS_ERR, ABI_EVENT_QP_LAST_WQE};

static void raise_all(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(types); i++)
		qp_event(&q.w->core, q.qp, types[i]);
}

static void events_poll__passes_them_on_in_order(void **state)
{
	struct core_event e[8];

	raise_all();
	events_poll(q.w);
	assert_int_equal(take(e, 8), ARRAY_SIZE(types));
	for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
		assert_int_equal(e[i].type, types[i]);
		assert_int_equal(e[i].handle, 4);
		assert_int_equal(e[i].session, 1);
	}
}

/* Events that find no room in the ring wait, first here and then with the QP; the worker does not
 * sleep meanwhile. */
static void events_poll__nothing_is_lost_while_the_ring_is_full(void **state)
{
	struct core_event filler = {.type = 999};
	struct core_event e;
	unsigned got = 0;

	while (!rte_ring_enqueue_elem(r.dp->events, &filler, sizeof(filler)))
		;
	for (unsigned i = 0; i < 2; i++) {
		raise_all();
		events_poll(q.w);
		assert_int_equal(q.w->nkept, ARRAY_SIZE(types));
		assert_int_equal(core_events_wait(&q.w->core), i);
	}
	for (unsigned rounds = 0; rounds < 100000 && got < 2 * ARRAY_SIZE(types); rounds++) {
		if (take(&e, 1) && e.type != 999)
			assert_int_equal(e.type, types[got++ % ARRAY_SIZE(types)]);
		events_poll(q.w);
	}
	assert_int_equal(got, 2 * ARRAY_SIZE(types));
	assert_int_equal(waiting(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(events_poll__passes_them_on_in_order, up, down),
		cmocka_unit_test_setup_teardown(
			events_poll__nothing_is_lost_while_the_ring_is_full, up, down),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
