/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion notices and async events: CQ-03..06, EVT-*. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "lone.h"

static struct lone l;

static int setup(void **state)
{
	lone_init(&l);
	lone_start(&l);
	return 0;
}

static int teardown(void **state)
{
	lone_fini(&l);
	return 0;
}

static uint32_t psn;

/* A SEND from the peer that completes a receive. */
static void incoming(bool se)
{
	lone_recv(&l, psn, 0, 64);
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = RQ_PSN + psn++, .se = se, .len = 4});
	app_events(&l.app);
}

static unsigned notices(void)
{
	return app_event_count(&l.app, ABI_EVENT_COMPLETION);
}

static int reset_psn(void **state)
{
	psn = 0;
	return setup(state);
}

/* CQ-03, CQ-04: the next one, once. */
static void core_events__arm_any_is_one_shot(void **state)
{
	incoming(false);
	assert_int_equal(notices(), 0); /* not armed */
	app_arm(l.recv_cq, false);
	app_events(&l.app);
	assert_int_equal(notices(), 0); /* what was there before does not count */
	incoming(false);
	assert_int_equal(notices(), 1);
	incoming(true);
	assert_int_equal(notices(), 1);
	app_arm(l.recv_cq, false);
	incoming(false);
	assert_int_equal(notices(), 2);
	assert_int_equal(l.app.event[0].handle, l.recv_cq->cq.handle);
	assert_int_equal(l.app.event[0].channel, l.recv_cq->cq.channel);
}

/* CQ-03, RSP-51 */
static void core_events__arm_solicited_waits_for_one(void **state)
{
	app_arm(l.recv_cq, true);
	incoming(false);
	assert_int_equal(notices(), 0);
	incoming(true);
	assert_int_equal(notices(), 1);
}

/* CQ-05 */
static void core_events__stronger_arm_stays(void **state)
{
	app_arm(l.recv_cq, false);
	app_arm(l.recv_cq, true);
	incoming(false);
	assert_int_equal(notices(), 1);
}

/* CQ-06 */
static void core_events__errors_are_solicited(void **state)
{
	lone_recv(&l, 0, 0, 64);
	app_arm(l.recv_cq, true);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
	lone_tx(&l);
	assert_int_equal(notices(), 1);
}

/* A full queue of events: notices wait, async events are counted. */
static void core_events__does_not_overrun(void **state)
{
	struct core_event e[4];

	app_arm(l.recv_cq, false);
	for (unsigned i = 0; i < EVENT_QUEUE + 5; i++)
		qp_event(&l.host->core, l.qp->qp, ABI_EVENT_QP_FATAL);
	assert_int_equal(l.host->core.count.events_lost, 5);
	lone_recv(&l, 0, 0, 64);
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = RQ_PSN, .len = 4});
	for (unsigned i = 0; i < EVENT_QUEUE; i += 4) {
		assert_int_equal(core_events(&l.host->core, e, 4), 4);
		assert_int_equal(e[3].type, ABI_EVENT_QP_FATAL);
	}
	assert_int_equal(core_events(&l.host->core, e, 4), 1);
	assert_int_equal(e[0].type, ABI_EVENT_COMPLETION);
	assert_int_equal(core_events(&l.host->core, e, 4), 0);
}

/* DETACH_CQ: no notice of a CQ that is about to go. */
static void core_cmd__detach_cq_forgets_it(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_CQ, .cq = &l.recv_cq->cq};

	app_arm(l.recv_cq, false);
	lone_recv(&l, 0, 0, 64);
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = RQ_PSN, .len = 4});
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	app_events(&l.app);
	assert_int_equal(notices(), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset_psn, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(core_events__arm_any_is_one_shot),
		T(core_events__arm_solicited_waits_for_one),
		T(core_events__stronger_arm_stays),
		T(core_events__errors_are_solicited),
		T(core_events__does_not_overrun),
		T(core_cmd__detach_cq_forgets_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
