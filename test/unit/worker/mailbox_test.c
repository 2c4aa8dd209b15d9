/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>
#include <rte_ethdev.h>
#include <cmocka.h>
#include "beside.h"
#include "core_command.h"
#include "eal_test.h"
#include "patience.h"
#include "rig.h"

struct box {
	struct rig r;
	struct rig_qp q;
};

static int up(void **state)
{
	static struct box b;

	rig_up(&b.r, 1);
	rig_qp_up(&b.r, &b.q, 4, 0);
	*state = &b;
	return 0;
}

static int down(void **state)
{
	struct box *b = *state;

	rig_qp_down(&b->r, &b->q, 4);
	rig_down(&b->r);
	return 0;
}

static struct core_cmd to_init(struct box *b)
{
	return (struct core_cmd){
		.type = CORE_CMD_MODIFY_QP,
		.qp = b->q.qp,
		.mask = ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS,
		.attr = {.qp_state = ABI_QPS_INIT, .port = 1},
	};
}

static unsigned state_of(struct box *b)
{
	struct core_cmd cmd = {.type = CORE_CMD_QUERY_QP, .qp = b->q.qp};

	assert_int_equal(worker_call(b->q.w, &cmd), 0);
	return cmd.attr.qp_state;
}

static void worker_call__running_worker_answers(void **state)
{
	struct box *b = *state;
	struct core_cmd cmd = to_init(b);

	rig_start(&b->r);
	assert_int_equal(state_of(b), ABI_QPS_RESET);
	assert_int_equal(worker_call(b->q.w, &cmd), 0);
	assert_int_equal(state_of(b), ABI_QPS_INIT);
}

static void worker_call__errors_come_back(void **state)
{
	struct box *b = *state;
	struct core_cmd cmd = to_init(b);

	rig_start(&b->r);
	cmd.attr.port = 3; /* there are two */
	assert_int_equal(worker_call(b->q.w, &cmd), -EINVAL);
	assert_int_equal(state_of(b), ABI_QPS_RESET);
}

static void worker_call__stopped_worker_needs_no_answer(void **state)
{
	struct box *b = *state;
	struct core_cmd cmd = to_init(b);

	assert_int_equal(worker_call(b->q.w, &cmd), 0);
	assert_int_equal(state_of(b), ABI_QPS_INIT);
	rig_start(&b->r);
	assert_int_equal(state_of(b), ABI_QPS_INIT);
	rig_stop(&b->r);
	assert_int_equal(state_of(b), ABI_QPS_INIT);
}

/* The worker stops at any moment of a call; each call is answered all the same. */
static void worker_call__races_with_stop(void **state)
{
	struct box *b = *state;

	for (unsigned i = 0; i < 200; i++) {
		rig_start(&b->r);
		for (unsigned k = 0; k < i % 7; k++)
			state_of(b);
		worker_stop(b->q.w);
		for (unsigned k = 0; k < 5; k++)
			assert_int_equal(state_of(b), ABI_QPS_RESET);
		rig_stop(&b->r);
	}
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#define HOLD_NS 300000000u

static atomic_bool busy;

/* Keeps the worker away from its mailbox for a while. */
static uint16_t hold(
	uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max, void *arg)
{
	if (atomic_exchange(&busy, false))
		usleep(HOLD_NS / 1000);
	return n;
}

/* The caller leaves its CPU to others meanwhile: to the worker, if it is the same. */
static void worker_call__waits_without_the_cpu(void **state)
{
	struct box *b = *state;
	const struct rte_eth_rxtx_callback *cb =
		rte_eth_add_rx_callback(b->r.ethdev[0], 0, hold, NULL);
	uint64_t before;

	assert_non_null(cb);
	rig_start(&b->r);
	atomic_store(&busy, true);
	while (atomic_load(&busy))
		usleep(1000);
	before = cpu_ns();
	assert_int_equal(state_of(b), ABI_QPS_RESET);
	assert_true(cpu_ns() - before < HOLD_NS / 2);
	rig_stop(&b->r);
	rte_eth_remove_rx_callback(b->r.ethdev[0], 0, cb);
}

static void mailbox_poll__runs_a_command_once(void **state)
{
	struct box *b = *state;
	struct core_cmd cmd = to_init(b);

	atomic_store(&b->q.w->mailbox.cmd, &cmd);
	mailbox_poll(b->q.w);
	assert_null(atomic_load(&b->q.w->mailbox.cmd));
	assert_int_equal(b->q.w->mailbox.result, 0);
	mailbox_poll(b->q.w);
	assert_int_equal(state_of(b), ABI_QPS_INIT);
}

/* On a CPU that another thread keeps, the rounds that would yield are left out after one that took
 * long. */
static void worker_wait__sleeps_once_a_yield_took_long(void **state)
{
	time_t end = patience_begin();
	unsigned turns, calls;

	(void)state;
	beside_begin(computes);
	do
		for (turns = 0, calls = 0; turns < 401; calls++)
			worker_wait(&turns);
	while (calls > 300 && !patience_over(end));
	beside_end();
	assert_in_range(calls, 101, 300);
}

#define WITH_BOX(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_BOX(worker_call__running_worker_answers),
		WITH_BOX(worker_call__errors_come_back),
		WITH_BOX(worker_call__stopped_worker_needs_no_answer),
		WITH_BOX(worker_call__races_with_stop),
		WITH_BOX(worker_call__waits_without_the_cpu),
		WITH_BOX(mailbox_poll__runs_a_command_once),
		cmocka_unit_test(worker_wait__sleeps_once_a_yield_took_long),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
