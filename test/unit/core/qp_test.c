/* SPDX-License-Identifier: BSD-3-Clause */
/* Error and flush. The completions themselves: cqe_test.c. */
#include "fixture.h"
#include "qp.h"

/* The core looks at the ring of sends unasked, with a mask: no QP is made without one. */
static void qp_init__refuses_a_send_queue_of_no_power_of_two(void **state)
{
	static uint8_t mem[1 << 16] CACHE_ALIGNED;
	struct qp_config cfg = {.sq = {.stride = 64, .max_sge = 1}, .rq = {.max_sge = 1}};

	lone_start(&l); /* for lone_teardown() */
	for (uint32_t depth = 0; depth <= 64; depth++) {
		bool good = depth && !(depth & (depth - 1));

		cfg.sq.depth = depth;
		assert_true(qp_size(&cfg) <= sizeof(mem));
		memset(mem, 0, sizeof(mem));
		assert_true((qp_init(mem, &cfg) != NULL) == good);
	}
}

/* proves QPS-20: what is in flight, taken, still in the ring, in use by an open SEND, and posted
 * later. */
static void qp_flush__returns_everything_in_post_order(void **state)
{
	struct app_send s = {.opcode = ABI_WR_SEND, .wr_id = 2};

	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 600, 0);
	app_post_send(l.qp, &s); /* unsignaled: flushed all the same */
	lone_post(&l, ABI_WR_RDMA_READ, 3, 4, 0);
	for (unsigned i = 1; i <= 3; i++)
		lone_recv(&l, i, 0, 1000);
	lone_rx(&l, &(struct shot){.opcode = 0x00, .psn = 0x100, .len = 256});
	lone_tx_max(&l, 2);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:FLUSH S2:FLUSH S3:FLUSH R1:FLUSH R2:FLUSH R3:FLUSH");
	lone_recv(&l, 4, 0, 1000);
	assert_true(l.qp->rung); /* or the worker would not look */
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "R4:FLUSH");
	lone_post(&l, ABI_WR_SEND, 5, 4, 0);
	assert_true(l.qp->rung);
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "S5:FLUSH");
	lone_post(&l, ABI_WR_SEND, 6, 4, 0); /* again: the doorbell is asked for each time */
	lone_recv(&l, 7, 0, 1000);
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "S6:FLUSH R7:FLUSH");
}

/* In bounded steps: core_tx() is not kept from other QPs. */
static void qp_flush__is_bounded(void **state)
{
	l.spec.sq_depth = 1024;
	l.cq_depth = 2048;
	lone_start(&l);
	for (unsigned i = 0; i < 1000; i++)
		lone_post(&l, ABI_WR_SEND, i, 4, 0);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
	lone_tx_max(&l, 1);
	assert_true(l.qp->qp->comp.head < 1000);
	for (unsigned i = 0; i < 10; i++)
		lone_tx(&l);
	while (app_poll(&l.app, l.send_cq, &l.last))
		assert_int_equal(l.last.status, ABI_WC_WR_FLUSH_ERR);
	assert_int_equal(l.qp->sq_done, 1000);
}

/* A garbage WQE while flushing is flushed like any other. */
static void qp_flush__takes_garbage(void **state)
{
	uint8_t wqe[64];

	lone_start(&l);
	l.qp->free_ids = true;
	assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
	lone_tx(&l);
	memset(wqe, 0xFF, sizeof(wqe));
	app_post_raw(l.qp, wqe, sizeof(wqe));
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "S18446744073709551615:FLUSH");
}

/* proves CQ-01, EVT-03: one event for the CQ, one per QP; nothing is lost in silence. */
static void qp_complete__overflow_is_fatal(void **state)
{
	l.cq_depth = 2;
	lone_start(&l);
	for (unsigned i = 1; i <= 4; i++)
		lone_post(&l, ABI_WR_SEND, i, 4, 0);
	lone_tx(&l);
	lone_ack(&l, 0x203, 4);
	lone_tx(&l);
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_CQ_ERR), 1);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_FATAL), 1);
	assert_int_equal(l.host->core.count.cq_overflow, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
	lone_post(&l, ABI_WR_SEND, 5, 4, 0);
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), ""); /* the lane stays closed */
}

static void qp_complete__receive_overflow_is_fatal(void **state)
{
	l.cq_depth = 1;
	lone_start(&l);
	lone_recv(&l, 1, 0, 64);
	lone_recv(&l, 2, 64, 64);
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = 0x100, .ackreq = true, .len = 4});
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = 0x101, .ackreq = true, .len = 4});
	assert_string_equal(lone_tx(&l), ""); /* the second is not acknowledged */
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_CQ_ERR), 1);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_FATAL), 1);
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup_256, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(qp_init__refuses_a_send_queue_of_no_power_of_two),
		T(qp_flush__returns_everything_in_post_order),
		T(qp_flush__is_bounded),
		T(qp_flush__takes_garbage),
		T(qp_complete__overflow_is_fatal),
		T(qp_complete__receive_overflow_is_fatal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
