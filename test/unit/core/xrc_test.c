/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC: an initiator that names the peer's SRQ, a target that takes each message's receive there. */
#include "abi_ctl.h"
#include "fixture.h"
#include "qp.h"
#include "srq.h"

#define DOMAIN 77u

/* XRC opcodes, as the annex numbers them (IBA A14). */
enum {
	SEND_FIRST = 0xA0,
	SEND_MIDDLE = 0xA1,
	SEND_LAST = 0xA2,
	SEND_ONLY = 0xA4,
	WRITE_ONLY = 0xAA,
	WRITE_ONLY_IMM = 0xAB,
	READ_REQUEST = 0xAC,
	ACKNOWLEDGE = 0xB1,
	FETCH_ADD = 0xB4,
};

static struct app_cq *cq[2];
static struct app_srq *srq[2];

/* A target with two SRQs of its domain, each with a CQ of its own. */
static void start_target(void)
{
	l.spec.type = ABI_QPT_XRC_RECV;
	l.spec.xrcd = DOMAIN;
	for (unsigned i = 0; i < 2; i++) {
		cq[i] = app_cq(&l.app, 16);
		srq[i] = app_xrc_srq(&l.app, 8, 3, DOMAIN, cq[i]);
	}
	lone_start(&l);
	l.qp->free_ids = true; /* its receives are others' */
}

static void post(unsigned i, uint64_t wr_id, uint64_t off, uint32_t len)
{
	struct abi_sge sge = app_sge(l.mr, off, len);

	app_post_srq(srq[i], wr_id, &sge, 1);
}

static void rx(uint8_t opcode, uint32_t psn, uint32_t srqn, uint32_t len)
{
	lone_rx(&l, &(struct shot){.opcode = opcode,
			    .psn = psn,
			    .srqn = srqn,
			    .ackreq = true,
			    .len = len,
			    .va = app_va(l.mr, 0x8000),
			    .rkey = l.mr->mr.key,
			    .dma_len = len,
			    .imm = 0x1234});
}

static void assert_cqe(unsigned i, uint64_t wr_id, uint8_t status, uint32_t byte_len)
{
	struct abi_cqe cqe;

	assert_true(app_poll(&l.app, cq[i], &cqe));
	assert_int_equal(cqe.wr_id, wr_id);
	assert_int_equal(cqe.status, status);
	assert_int_equal(cqe.srqn, srq[i]->srq.srqn);
	assert_int_equal(cqe.qpn, l.qp->qp->qpn);
	if (!status)
		assert_int_equal(cqe.byte_len, byte_len);
	assert_false(app_poll(&l.app, cq[i], &cqe));
}

/* proves XRC-02, XRC-05: each message goes where it says, and completes there. */
static void xrc_rx__srq_of_each_message(void **state)
{
	start_target();
	post(0, 1, 0, 600);
	post(1, 2, 1000, 600);
	rx(SEND_ONLY, 0x100, srq[1]->srq.srqn, 10);
	rx(SEND_FIRST, 0x101, srq[0]->srq.srqn, 256);
	rx(SEND_LAST, 0x102, srq[0]->srq.srqn, 4);
	assert_string_equal(lone_tx(&l), "ACK@1021f/2");
	assert_cqe(0, 1, ABI_WC_SUCCESS, 260);
	assert_cqe(1, 2, ABI_WC_SUCCESS, 10);
	assert_int_equal(l.mr->mem[255], 255);
	assert_int_equal(l.mr->mem[1009], 9);
	/* The SRQ that the rest of a message names does not count: its receive was taken already.
	 */
	post(0, 4, 0, 600);
	rx(SEND_FIRST, 0x103, srq[0]->srq.srqn, 256);
	rx(SEND_LAST, 0x104, srq[1]->srq.srqn, 4);
	assert_cqe(0, 4, ABI_WC_SUCCESS, 260);
	post(1, 3, 0, 0);
	rx(WRITE_ONLY_IMM, 0x105, srq[1]->srq.srqn, 20);
	assert_cqe(1, 3, ABI_WC_SUCCESS, 20);
	assert_int_equal(l.mr->mem[0x8000 + 19], 19);
}

/* proves XRC-01, XRC-03: the other requests are RC's; what they name does not count. */
static void xrc_rx__other_requests(void **state)
{
	start_target();
	rx(WRITE_ONLY, 0x100, 0, 12);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1");
	lone_rx(&l, &(struct shot){.opcode = READ_REQUEST,
			    .psn = 0x101,
			    .va = app_va(l.mr, 0x8000),
			    .rkey = l.mr->mr.key,
			    .dma_len = 300});
	assert_string_equal(lone_tx(&l), "RESP_FIRST@101+2561f/2 RESP_LAST@102+441f/2");
	lone_rx(&l, &(struct shot){.opcode = FETCH_ADD,
			    .psn = 0x103,
			    .va = app_va(l.mr, 0x9000),
			    .rkey = l.mr->mr.key,
			    .swap_add = 1});
	assert_string_equal(lone_tx(&l), "ATOMIC_ACK@1031f/3=1111111111111111");
}

/* proves SRQ-03: the one that is named is empty; the other's WQEs are not for it. */
static void xrc_rx__empty_srq(void **state)
{
	start_target();
	post(0, 1, 0, 8);
	rx(SEND_ONLY, 0x100, srq[1]->srq.srqn, 4);
	assert_string_equal(lone_tx(&l), "ACK@10021/0");
	assert_int_equal(srq_waiting(&srq[0]->srq, 8), 1);
}

/* A receive of the SRQ claims more SGEs than that has: the note tells its limit, as the target has
 * no queue of its own. */
static void xrc_rx__too_many_sges(void **state)
{
	struct abi_sge sge[4];

	start_target();
	for (unsigned i = 0; i < ARRAY_SIZE(sge); i++)
		sge[i] = app_sge(l.mr, 0, 8);
	app_post_srq(srq[1], 1, sge, ARRAY_SIZE(sge));
	rx(SEND_ONLY, 0x100, srq[1]->srq.srqn, 4);
	assert_string_equal(lone_tx(&l), "ACK@10063/0"); /* NAK: remote operational error */
	assert_cqe(1, 1, ABI_WC_LOC_QP_OP_ERR, 0);
	assert_int_equal(l.qp->qp->why.error.cause, CAUSE_RECV_SGES);
	assert_int_equal(l.qp->qp->why.error.limit, 3);
}

/* proves XRC-04: unknown, another domain's, no XRC SRQ. */
static void xrc_rx__wrong_srq(void **state)
{
	for (unsigned i = 0; i < 4; i++) {
		uint32_t srqn;

		if (i) {
			lone_teardown(state);
			lone_setup_256(state);
		}
		start_target();
		post(0, 1, 0, 8);
		srqn = srq[0]->srq.srqn;
		if (i == 0)
			srqn += SRQ_MAX; /* the slot is right, the number is not */
		else if (i == 1)
			srq[0]->srq.xrcd = DOMAIN + 1;
		else if (i == 2)
			srq[0]->srq.xrcd = 0;
		else
			app_srq_withdraw(&l.app, srq[0]);
		rx(SEND_ONLY, 0x100, srqn, 4);
		assert_string_equal(lone_tx(&l), "ACK@10061/0"); /* NAK: invalid request */
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		assert_int_equal(l.qp->qp->why.error.cause, CAUSE_XRC_SRQ);
		assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_REQ_ERR), 1);
		assert_int_equal(srq_waiting(&srq[0]->srq, 8), 1);
	}
}

/* proves XRC-04: it was destroyed with a message half in it; nothing completes any more. */
static void xrc_rx__srq_goes_in_the_midst(void **state)
{
	struct abi_cqe cqe;

	start_target();
	post(0, 1, 0, 600);
	rx(SEND_FIRST, 0x100, srq[0]->srq.srqn, 256);
	lone_tx(&l);
	app_srq_withdraw(&l.app, srq[0]);
	rx(SEND_LAST, 0x101, srq[0]->srq.srqn, 4);
	assert_string_equal(lone_tx(&l), "ACK@10161/0");
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_false(app_poll(&l.app, cq[0], &cqe));
}

/* proves SRQ-07: what it had is flushed to the SRQ's CQ. */
static void xrc_flush__last_wqe(void **state)
{
	start_target();
	post(0, 1, 0, 600);
	post(0, 2, 0, 600);
	rx(SEND_FIRST, 0x100, srq[0]->srq.srqn, 256);
	app_to_state(l.qp, ABI_QPS_ERR, l.now);
	lone_tx(&l);
	assert_cqe(0, 1, ABI_WC_WR_FLUSH_ERR, 0);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_LAST_WQE), 1);
	assert_int_equal(srq_waiting(&srq[0]->srq, 8), 1);
}

/* proves VAL-04, XRC-02: an initiator takes no requests, a target no responses, neither RC packets.
 */
static void xrc_rx__not_for_this_end(void **state)
{
	start_target();
	rx(0x04, 0x100, 0, 4);
	assert_int_equal(l.verdict, DROP_QP_TYPE);
	lone_rx(&l, &(struct shot){.opcode = ACKNOWLEDGE, .psn = 0x200, .syndrome = 0x1F});
	assert_int_equal(l.verdict, DROP_QP_TYPE);
	lone_teardown(state);
	lone_setup_256(state);
	l.spec.type = ABI_QPT_XRC_SEND;
	lone_start(&l);
	rx(SEND_ONLY, 0x100, 0, 4);
	assert_int_equal(l.verdict, DROP_QP_TYPE);
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
}

/* proves XRC-02: the keys of a target without a PD are those of the SRQ's that each request names.
 */
static void xrc_rx__keys_of_the_srq(void **state)
{
	start_target();
	l.qp->qp->pd = 0; /* the target was made without one */
	l.qp->qp->xrc.follows = true;
	srq[1]->srq.pd = APP_PD + 1;
	lone_rx(&l, &(struct shot){.opcode = READ_REQUEST,
			    .psn = 0x100,
			    .srqn = srq[0]->srq.srqn,
			    .va = app_va(l.mr, 0),
			    .rkey = l.mr->mr.key,
			    .dma_len = 8});
	rx(WRITE_ONLY, 0x101, srq[0]->srq.srqn, 8);
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	assert_string_equal(lone_tx(&l), "RESP_ONLY@100+81f/1 ACK@1011f/2");
	rx(WRITE_ONLY, 0x102, srq[1]->srq.srqn, 8); /* the region is in the other PD */
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
}

/* proves XRC-01, XRC-03, BTH-22: the SRQN is in every request, and the same when it is sent again.
 */
static void xrc_requester__names_the_srq(void **state)
{
	struct app_send s = {.opcode = ABI_WR_SEND,
		.flags = ABI_WQE_SIGNALED,
		.wr_id = 1,
		.srqn = 0xFF123456, /* 24 bits */
		.num_sge = 1};

	l.spec.type = ABI_QPT_XRC_SEND;
	lone_start(&l);
	s.sge[0] = app_sge(l.mr, 0, 300);
	app_post_send(l.qp, &s);
	s.wr_id = 2;
	s.srqn = 7;
	s.opcode = ABI_WR_RDMA_READ;
	s.remote_addr = PEER_VA;
	s.rkey = PEER_KEY;
	s.sge[0].length = 8;
	app_post_send(l.qp, &s);
	assert_string_equal(lone_tx(&l), "SEND_FIRST@200[123456]+256 SEND_LAST@201[123456]+44! "
					 "READ_REQ@202[7]!(0,8)");
	lone_rx(&l, &(struct shot){.opcode = ACKNOWLEDGE, .psn = 0x200, .syndrome = 0x60});
	assert_string_equal(lone_tx(&l), "SEND_FIRST@200[123456]+256 SEND_LAST@201[123456]+44! "
					 "READ_REQ@202[7]!(0,8)");
	lone_rx(&l, &(struct shot){.opcode = ACKNOWLEDGE, .psn = 0x201, .syndrome = 0x1F});
	lone_rx(&l,
		&(struct shot){.opcode = 0xB0, .psn = 0x202, .syndrome = 0x1F, .msn = 2, .len = 8});
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, lone_setup_256, lone_teardown)
	const struct CMUnitTest tests[] = {
		TEST(xrc_rx__srq_of_each_message),
		TEST(xrc_rx__other_requests),
		TEST(xrc_rx__empty_srq),
		TEST(xrc_rx__too_many_sges),
		TEST(xrc_rx__wrong_srq),
		TEST(xrc_rx__srq_goes_in_the_midst),
		TEST(xrc_flush__last_wqe),
		TEST(xrc_rx__keys_of_the_srq),
		TEST(xrc_rx__not_for_this_end),
		TEST(xrc_requester__names_the_srq),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
