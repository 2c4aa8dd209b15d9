/* SPDX-License-Identifier: BSD-3-Clause */
/* Binds, local invalidates and SENDs with invalidate, at both ends. */
#include <stdio.h>
#include "fixture.h"
#include "mw_wqe.h"
#include "opcodes.h"
#include "qp.h"
#include "timers.h"
#include "wqe.h"

static struct app_mw *mw;

#define WINDOW_OFF 4096u
#define WINDOW_LEN 1024u

/* A QP in RTS and a window that is not bound. */
static void start(enum mw_type type)
{
	lone_start(&l);
	l.mr->mr.access |= ABI_ACCESS_MW_BIND;
	mw = app_mw(&l.app, type);
}

static uint32_t next_key(void)
{
	uint32_t key = app_mw_key(mw);

	return (key & ~0xFFu) | ((key + 1) & 0xFF);
}

static void post_bind(uint64_t wr_id, uint32_t len, uint32_t flags)
{
	struct app_send s = {.opcode = ABI_WR_BIND_MW,
		.flags = flags | ABI_WQE_SIGNALED,
		.wr_id = wr_id,
		.mw = app_mw_key(mw),
		.rkey = next_key(),
		.lkey = l.mr->mr.key,
		.access = ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ,
		.remote_addr = app_va(l.mr, WINDOW_OFF),
		.bind_len = len};

	app_post_send(l.qp, &s);
}

static void post_inv(uint64_t wr_id, uint32_t key, uint32_t flags)
{
	struct app_send s = {.opcode = ABI_WR_LOCAL_INV,
		.flags = flags | ABI_WQE_SIGNALED,
		.wr_id = wr_id,
		.imm = key};

	app_post_send(l.qp, &s);
}

/* @return the key, of WINDOW_LEN bytes at WINDOW_OFF. */
static uint32_t bound(void)
{
	post_bind(1000, WINDOW_LEN, 0);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1000:OK");
	assert_int_equal(l.last.opcode, ABI_WC_BIND_MW);
	return app_mw_key(mw);
}

static void write_by(uint32_t key, uint32_t psn, uint64_t off, uint32_t len)
{
	lone_rx(&l, &(struct shot){.opcode = WRITE_ONLY,
			    .psn = psn,
			    .ackreq = true,
			    .va = app_va(l.mr, off),
			    .rkey = key,
			    .dma_len = len,
			    .len = len});
}

static void send_inv(uint32_t key, uint32_t psn)
{
	lone_rx(&l, &(struct shot){.opcode = SEND_ONLY_INV,
			    .psn = psn,
			    .ackreq = true,
			    .rkey = key,
			    .len = 4});
}

/* --- SEND with invalidate, responder ------------------------------------------------------ */

/* proves INV-01, INV-02, INV-04. */
static void responder_rx__invalidates(void **state)
{
	char want[64];
	uint32_t key;

	start(MW_TYPE_2);
	key = bound();
	lone_recv(&l, 1, 0, 64);
	write_by(key, 0x100, WINDOW_OFF, 8);
	send_inv(key, 0x101);
	assert_string_equal(lone_tx(&l), "ACK@1011f/2");
	snprintf(want, sizeof(want), "R1:OK+4~%x", key);
	assert_string_equal(lone_cqes(&l), want);
	assert_int_equal(l.mr->mr.windows, 0);
	assert_int_equal(l.mr->mem[WINDOW_OFF + 1], 1);
	write_by(key, 0x102, WINDOW_OFF, 8);
	assert_string_equal(lone_tx(&l), "ACK@10262/2");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_ACCESS_ERR), 1);
}

/* proves INV-02: the key travels with the last packet. */
static void responder_rx__invalidates_with_the_last_packet(void **state)
{
	char want[64];
	uint32_t key;

	start(MW_TYPE_2);
	key = bound();
	lone_recv(&l, 1, 0, 4096);
	lone_rx(&l, &(struct shot){.opcode = SEND_FIRST, .psn = 0x100, .len = 256});
	assert_int_equal(l.mr->mr.windows, 1);
	lone_rx(&l, &(struct shot){.opcode = SEND_LAST_INV,
			    .psn = 0x101,
			    .ackreq = true,
			    .rkey = key,
			    .len = 10});
	snprintf(want, sizeof(want), "R1:OK+266~%x", key);
	assert_string_equal(lone_cqes(&l), want);
	assert_int_equal(l.mr->mr.windows, 0);
}

/* proves RSP-45: the window was bound anew, with the same key; a copy of the SEND from before must
 * leave it alone. */
static void responder_rx__a_duplicate_invalidates_nothing(void **state)
{
	uint32_t key;

	start(MW_TYPE_2);
	key = bound();
	lone_recv(&l, 1, 0, 64);
	lone_recv(&l, 2, 0, 64);
	send_inv(key, 0x100);
	lone_tx(&l);
	lone_cqes(&l);
	app_post_send(l.qp, &(struct app_send){.opcode = ABI_WR_BIND_MW,
				    .wr_id = 7,
				    .mw = key,
				    .rkey = key,
				    .lkey = l.mr->mr.key,
				    .access = ABI_ACCESS_REMOTE_WRITE,
				    .remote_addr = app_va(l.mr, 0),
				    .bind_len = 8});
	lone_tx(&l);
	assert_int_equal(l.mr->mr.windows, 1);
	send_inv(key, 0x100);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1");
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(l.mr->mr.windows, 1);
	write_by(key, 0x101, 0, 8);
	assert_string_equal(lone_tx(&l), "ACK@1011f/2");
}

/* proves INV-02, INV-03: keys that it must not invalidate. The receive completes in error, and not
 * before that was found; the requester gets a NAK. */
static void responder_rx__refuses_to_invalidate(void **state)
{
	enum {
		UNKNOWN,
		REGION,
		TYPE_1,
		FREE,
		OTHER_QP,
		OTHER_PD,
		CASES
	};

	for (unsigned i = 0; i < CASES; i++) {
		uint32_t key;

		start(i == TYPE_1 ? MW_TYPE_1 : MW_TYPE_2);
		key = i == FREE ? app_mw_key(mw) : bound();
		if (i == UNKNOWN)
			key ^= 1;
		if (i == REGION)
			key = l.mr->mr.key;
		if (i == OTHER_QP)
			atomic_store(&mw->mw.qpn, 0x99);
		if (i == OTHER_PD)
			mw->mw.pd++;
		lone_recv(&l, 1, 0, 64);
		lone_recv(&l, 2, 0, 64);
		send_inv(key, 0x100);
		assert_string_equal(lone_tx(&l), "ACK@10062/0");
		assert_string_equal(lone_cqes(&l), "R1:MW_BIND R2:FLUSH");
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		assert_int_equal(l.mr->mr.windows, i != FREE);
		assert_int_equal(l.qp->qp->why.error.cause, CAUSE_INVALIDATE);
		assert_int_equal(l.qp->qp->why.error.key, key);
		/* proves RSP-22: the completion tells */
		assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_ACCESS_ERR), 0);
		lone_teardown(state);
		lone_setup_256(state);
	}
	start(MW_TYPE_2);
}

/* proves RSP-27, CQ-01: the same with a CQ that is full, which ends the QP: what it owed goes
 * first. */
static void responder_rx__refuses_to_invalidate_without_room(void **state)
{
	struct shot burst[] = {
		{.opcode = READ_REQ, .psn = 0x101, .dma_len = 4 * 256},
		{.opcode = SEND_ONLY_INV, .psn = 0x105, .ackreq = true, .len = 4},
	};

	l.cq_depth = 1;
	start(MW_TYPE_2);
	lone_recv(&l, 1, 0, 64);
	lone_recv(&l, 2, 0, 64);
	lone_rx(&l, &(struct shot){.opcode = SEND_ONLY, .psn = 0x100, .len = 4});
	lone_tx(&l);
	burst[0].va = app_va(l.mr, 0);
	burst[0].rkey = l.mr->mr.key;
	burst[1].rkey = app_mw_key(mw); /* bound to nothing */
	lone_rx_burst(&l, burst, ARRAY_SIZE(burst));
	assert_string_equal(lone_tx(&l),
		"RESP_FIRST@101+2561f/2 RESP_MIDDLE@102+256 RESP_MIDDLE@103+256 "
		"RESP_LAST@104+2561f/2 ACK@10562/2");
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_CQ_ERR), 1);
}

/* proves RSP-15: a WRITE that was begun through a window ends with the window. */
static void responder_rx__a_window_goes_within_a_write(void **state)
{
	uint32_t key;

	start(MW_TYPE_2);
	key = bound();
	lone_rx(&l, &(struct shot){.opcode = WRITE_FIRST,
			    .psn = 0x100,
			    .va = app_va(l.mr, WINDOW_OFF),
			    .rkey = key,
			    .dma_len = 264,
			    .len = 256});
	post_inv(1, key, 0);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:OK");
	lone_rx(&l, &(struct shot){.opcode = WRITE_LAST, .psn = 0x101, .ackreq = true, .len = 8});
	assert_string_equal(lone_tx(&l), "ACK@10162/0");
	assert_int_equal(l.mr->mem[WINDOW_OFF + 256], 0x11);
}

/* proves RSP-31: as does a READ. The response that was built goes out whole before the invalidation
 * completes. */
static void responder_tx__a_window_goes_within_a_read(void **state)
{
	uint32_t key;

	start(MW_TYPE_2);
	key = bound();
	lone_rx(&l, &(struct shot){.opcode = READ_REQ,
			    .psn = 0x100,
			    .va = app_va(l.mr, WINDOW_OFF),
			    .rkey = key,
			    .dma_len = 1024});
	assert_string_equal(lone_tx_max(&l, 1), "RESP_FIRST@100+2561f/1");
	post_inv(1, key, 0);
	l.no_grace = true;
	assert_string_equal(lone_tx_max(&l, 2), "RESP_MIDDLE@101+256 ACK@10262/1");
	assert_int_equal(l.mr->mr.windows, 0);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_ACCESS_ERR), 1);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:FLUSH");
}

/* A response is built and not sealed: the invalidation is over when it is. */
static void requester__an_invalidate_waits_for_what_is_built(void **state)
{
	uint32_t key;

	start(MW_TYPE_2);
	key = bound();
	lone_rx(&l, &(struct shot){.opcode = READ_REQ,
			    .psn = 0x100,
			    .va = app_va(l.mr, WINDOW_OFF),
			    .rkey = key,
			    .dma_len = 8});
	post_inv(1, key, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	l.no_grace = true;
	assert_string_equal(lone_tx(&l), "RESP_ONLY@100+81f/1");
	assert_int_equal(l.mr->mr.windows, 0);
	assert_string_equal(lone_cqes(&l), "");
	l.no_grace = false;
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* --- SEND with invalidate, requester -------------------------------------------------------- */

/* proves INV-01, BTH-09, REQ-48: the key in the last packet, in each copy of it. */
static void requester__sends_with_invalidate(void **state)
{
	struct app_send s = {.opcode = ABI_WR_SEND_WITH_INV,
		.flags = ABI_WQE_SIGNALED | ABI_WQE_SOLICITED,
		.imm = 0xABCD77,
		.num_sge = 1};

	lone_start(&l);
	s.sge[0] = app_sge(l.mr, 0, 260);
	s.wr_id = 1;
	app_post_send(l.qp, &s);
	s.sge[0] = app_sge(l.mr, 0, 3);
	s.wr_id = 2;
	app_post_send(l.qp, &s);
	assert_string_equal(lone_tx(&l),
		"SEND_FIRST@200+256 SEND_LAST_INV@201+4!*#abcd77 SEND_ONLY_INV@202+3!*#abcd77");
	lone_nak(&l, 0x60, 0x201, 0);
	assert_string_equal(
		lone_tx(&l), "SEND_LAST_INV@201+4!*#abcd77 SEND_ONLY_INV@202+3!*#abcd77");
	lone_ack(&l, 0x202, 2);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
	assert_int_equal(l.last.opcode, ABI_WC_SEND);
}

/* proves CRD-05: it takes a receive at the peer. */
static void requester__credits_hold_a_send_with_invalidate(void **state)
{
	struct app_send s = {.opcode = ABI_WR_SEND_WITH_INV, .wr_id = 2};

	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	lone_rx(&l, &(struct shot){.opcode = 0x11, .psn = 0x200, .syndrome = 0, .msn = 1});
	lone_cqes(&l);
	app_post_send(l.qp, &s);
	app_post_send(l.qp, &s);
	assert_string_equal(lone_tx(&l), "SEND_ONLY_INV@201!#0");
	assert_string_equal(lone_tx(&l), "");
	lone_rx(&l, &(struct shot){.opcode = 0x11, .psn = 0x201, .syndrome = 0x1F, .msn = 2});
	assert_string_equal(lone_tx(&l), "SEND_ONLY_INV@202!#0");
	l.qp->free_ids = true;
}

/* --- binds and local invalidates ---------------------------------------------------------- */

/* proves MW-13, REQ-11, REQ-12: no PSN, in its place among the others, complete in post order. */
static void requester__binds_in_order(void **state)
{
	uint32_t key;

	start(MW_TYPE_2);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	post_bind(2, WINDOW_LEN, 0);
	key = next_key();
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	post_inv(4, key, 0);
	assert_string_equal(lone_tx_max(&l, 1), "SEND_ONLY@200+4!");
	assert_int_equal(l.mr->mr.windows, 0);
	assert_string_equal(lone_tx_max(&l, 1), "SEND_ONLY@201+4!");
	assert_int_equal(l.mr->mr.windows, 1);
	assert_int_equal(app_mw_key(mw), key);
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(l.mr->mr.windows, 0);
	assert_string_equal(lone_cqes(&l), "");
	lone_ack(&l, 0x200, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
	lone_ack(&l, 0x201, 2);
	assert_string_equal(lone_cqes(&l), "S3:OK S4:OK");
	assert_int_equal(l.last.opcode, ABI_WC_LOCAL_INV);
}

/* A request that was executed is not executed again when the requester goes back. */
static void requester__binds_once(void **state)
{
	start(MW_TYPE_2);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	post_bind(2, WINDOW_LEN, 0);
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4! SEND_ONLY@201+4!");
	lone_wait(&l, 2 * timers_ack_timeout(14));
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4! SEND_ONLY@201+4!");
	lone_nak(&l, 0x60, 0x201, 1); /* back to the request after the bind */
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
	assert_string_equal(lone_tx(&l), "SEND_ONLY@201+4!");
	lone_ack(&l, 0x201, 2);
	assert_string_equal(lone_cqes(&l), "S3:OK");
	assert_int_equal(l.mr->mr.windows, 1);
}

/* The ACK comes while the requester, which went back, has not passed the bind again. */
static void requester__a_late_ack_overtakes_a_bind(void **state)
{
	start(MW_TYPE_2);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	post_bind(2, WINDOW_LEN, 0);
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	lone_tx(&l);
	lone_wait(&l, 2 * timers_ack_timeout(14));
	assert_string_equal(lone_tx_max(&l, 1), "SEND_ONLY@200+4!");
	lone_ack(&l, 0x200, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
	assert_int_equal(l.qp->qp->req.cur, l.qp->qp->comp.head);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@201+4!");
	lone_ack(&l, 0x201, 2);
	assert_string_equal(lone_cqes(&l), "S3:OK");
}

/* proves REQ-44: a response acknowledges what is before it, past what sent nothing. */
static void completer_rx__a_response_behind_a_bind(void **state)
{
	start(MW_TYPE_2);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	post_bind(2, WINDOW_LEN, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 3, 8, 0);
	lone_tx(&l);
	lone_rx(&l, &(struct shot){.opcode = RESP_ONLY, .psn = 0x201, .syndrome = 0x1F, .len = 8});
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK S3:OK");
}

/* proves REQ-10, REQ-11: a fence waits for the READs before it, and holds later requests. */
static void requester__a_fenced_invalidate_waits(void **state)
{
	uint32_t key;

	start(MW_TYPE_2);
	key = bound();
	lone_post(&l, ABI_WR_RDMA_READ, 1, 8, 0);
	post_inv(2, key, ABI_WQE_FENCE);
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,8)");
	assert_int_equal(l.mr->mr.windows, 1);
	lone_rx(&l, &(struct shot){.opcode = RESP_ONLY, .psn = 0x200, .syndrome = 0x1F, .len = 8});
	assert_string_equal(lone_tx(&l), "SEND_ONLY@201+4!");
	assert_int_equal(l.mr->mr.windows, 0);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
}

/* proves MW-11, REQ-18: it fails when its turn comes; later requests are flushed. */
static void requester__a_bind_fails(void **state)
{
	start(MW_TYPE_2);
	l.mr->mr.access &= ~(uint32_t)ABI_ACCESS_MW_BIND; /* proves MW-06 */
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	post_bind(2, WINDOW_LEN, 0);
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	assert_string_equal(lone_cqes(&l), "");
	lone_ack(&l, 0x200, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:MW_BIND");
	assert_int_equal(l.qp->qp->why.error.cause, CAUSE_POST_BIND);
	assert_int_equal(l.qp->qp->why.error.value, MW_NO_MW_BIND);
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "S3:FLUSH");
}

/* proves MW-10: type 1 is not invalidated; nor is a region. */
static void requester__an_invalidate_fails(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		uint32_t key;

		start(MW_TYPE_1);
		key = i ? l.mr->mr.key : bound();
		post_inv(1, key, 0);
		assert_string_equal(lone_tx(&l), "");
		assert_string_equal(lone_cqes(&l), "S1:MW_BIND");
		assert_int_equal(l.qp->qp->why.error.cause, CAUSE_POST_INVALIDATE);
		assert_int_equal(l.qp->qp->why.error.key, key);
		if (!i) {
			lone_teardown(state);
			lone_setup_256(state);
		}
	}
}

/* A type 1 window that is bound anew: the bind completes when no worker uses the old binding any
 * more; new accesses have the new one at once. */
static void requester__a_bind_anew_waits_for_all_workers(void **state)
{
	uint32_t old;

	start(MW_TYPE_1);
	old = bound();
	l.no_grace = true;
	post_bind(1, 64, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "");
	assert_int_not_equal(app_mw_key(mw), old);
	assert_string_equal(lone_tx(&l), "");
	l.no_grace = false;
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	assert_string_equal(lone_cqes(&l), "S1:OK");
	write_by(old, 0x100, WINDOW_OFF, 8);
	assert_string_equal(lone_tx(&l), "ACK@10062/0");
}

/* proves QPS-19, REQ-50: in SQD what was begun is finished, once; what was not stays. */
static void requester__windows_in_sqd(void **state)
{
	struct abi_qp_attr a = {.qp_state = ABI_QPS_SQD, .en_sqd_async_notify = 1};

	start(MW_TYPE_1);
	bound();
	l.no_grace = true;
	post_bind(1, 64, 0);
	post_bind(2, 32, 0);
	lone_tx(&l);
	assert_int_equal(
		app_modify(l.qp, ABI_QP_STATE | ABI_QP_EN_SQD_ASYNC_NOTIFY, &a, NULL, l.now), 0);
	lone_tx(&l);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 0);
	l.no_grace = false;
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 1);
	assert_int_equal(atomic_load(&mw->mw.length), 64);
	assert_int_equal(app_modify(l.qp, ABI_QP_STATE,
				 &(struct abi_qp_attr){.qp_state = ABI_QPS_RTS}, NULL, l.now),
		0);
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "S2:OK");
	assert_int_equal(atomic_load(&mw->mw.length), 32);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 1);
}

/* proves QPS-20: in ERR they are flushed in order, and nothing more is executed. */
static void requester__windows_are_flushed(void **state)
{
	start(MW_TYPE_2);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	post_bind(2, WINDOW_LEN, 0);
	lone_tx(&l);
	post_inv(3, app_mw_key(mw), 0);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "S1:FLUSH S2:FLUSH S3:FLUSH");
	assert_int_equal(l.mr->mr.windows, 1);
}

/* More of them than one turn takes. */
static void requester__many_binds(void **state)
{
	start(MW_TYPE_2);
	l.qp->free_ids = true;
	for (unsigned i = 0; i < 40; i++) {
		if (i % 2)
			post_inv(i, app_mw_key(mw), 0);
		else
			post_bind(i, WINDOW_LEN, 0);
		if (i % 8 == 7 || !(i % 2)) {
			lone_tx(&l);
			lone_cqes(&l);
		}
	}
	lone_tx(&l);
	lone_cqes(&l);
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	assert_int_equal(l.mr->mr.windows, 0);
	assert_int_equal(l.qp->qp->windows, 0);
}

/* @p n binds and invalidations by turns, from WR @p wr_id on. */
static void post_locals(uint64_t wr_id, unsigned n, uint32_t *key)
{
	for (unsigned i = 0; i < n; i++) {
		struct app_send s = {.opcode = ABI_WR_BIND_MW,
			.wr_id = wr_id + i,
			.mw = app_mw_key(mw),
			.lkey = l.mr->mr.key,
			.access = ABI_ACCESS_REMOTE_WRITE,
			.remote_addr = app_va(l.mr, WINDOW_OFF),
			.bind_len = WINDOW_LEN};

		if (i % 2) {
			s.opcode = ABI_WR_LOCAL_INV;
			s.imm = *key;
		} else {
			s.rkey = *key = (*key & ~0xFFu) | ((*key + 1) & 0xFF);
		}
		s.flags = i == n - 1 ? ABI_WQE_SIGNALED : 0;
		app_post_send(l.qp, &s);
	}
}

/* One acknowledgement completes all that waits for it, so no more than LOCAL_AHEAD are executed
 * before it comes; the rest has its turn then. */
static void requester__binds_wait_for_an_ack(void **state)
{
	uint32_t key;

	l.spec.sq_depth = 1024;
	start(MW_TYPE_2);
	key = app_mw_key(mw);
	lone_post(&l, ABI_WR_SEND, 1, 4, ABI_WQE_SIGNALED);
	lone_post(&l, ABI_WR_SEND, 2, 4, ABI_WQE_SIGNALED);
	post_locals(3, 900, &key);
	lone_post(&l, ABI_WR_SEND, 903, 4, ABI_WQE_SIGNALED);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4! SEND_ONLY@201+4!");
	for (unsigned i = 0; i < 100; i++)
		assert_string_equal(lone_tx(&l), "");
	assert_in_range(l.qp->qp->req.fetched, LOCAL_AHEAD + 2, LOCAL_AHEAD + 4);
	lone_ack(&l, 0x200, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	lone_ack(&l, 0x201, 2);
	assert_in_range(l.qp->qp->comp.head, LOCAL_AHEAD + 2, LOCAL_AHEAD + 3);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@202+4!");
	assert_string_equal(lone_cqes(&l), "S2:OK S902:OK");
	lone_ack(&l, 0x202, 3);
	assert_string_equal(lone_cqes(&l), "S903:OK");
}

/* proves REQ-36, REQ-44: whose response is it? PSNs ascend along the queue, past what takes none.
 */
static void completer_rx__finds_the_request_of_a_response(void **state)
{
	enum {
		SENDS,
		THIS_READ,
		LATER_READ
	};
	static const uint8_t owner[] = {SENDS, SENDS, THIS_READ, SENDS, SENDS, LATER_READ, SENDS};

	for (uint32_t i = 0; i < ARRAY_SIZE(owner); i++) {
		uint32_t key;
		uint16_t want = owner[i] == THIS_READ ? DROP_NONE : DROP_READ_RESP_UNEXPECTED;

		start(MW_TYPE_2);
		l.qp->free_ids = true;
		key = app_mw_key(mw);
		post_locals(10, 2, &key);
		lone_post(&l, ABI_WR_SEND, 1, 4, ABI_WQE_SIGNALED);
		lone_post(&l, ABI_WR_SEND, 2, 4, ABI_WQE_SIGNALED);
		post_locals(20, 5, &key);
		lone_post(&l, ABI_WR_RDMA_READ, 3, 4, ABI_WQE_SIGNALED);
		lone_post(&l, ABI_WR_SEND, 4, 4, ABI_WQE_SIGNALED);
		lone_post(&l, ABI_WR_SEND, 5, 4, ABI_WQE_SIGNALED);
		lone_post(&l, ABI_WR_RDMA_READ, 6, 4, ABI_WQE_SIGNALED);
		lone_post(&l, ABI_WR_SEND, 7, 4, ABI_WQE_SIGNALED);
		lone_tx(&l);
		assert_string_equal(lone_cqes(&l), "S11:OK");
		assert_int_equal(lone_rx(&l, &(struct shot){.opcode = RESP_ONLY,
						     .psn = SQ_PSN + i,
						     .syndrome = 0x1F,
						     .len = 4}),
			want);
		assert_string_equal(lone_cqes(&l), owner[i] == THIS_READ
							   ? "S1:OK S2:OK S24:OK S3:OK"
						   : owner[i] == LATER_READ ? "S1:OK S2:OK S24:OK"
									    : "");
		lone_fini(&l);
		lone_setup_256(state);
	}
	start(MW_TYPE_2);
}

/* The CQ is full before the bind's turn: the response that acknowledges it ends all the same. */
static void completer_rx__the_cq_overflows_before_a_bind(void **state)
{
	l.cq_depth = 1;
	start(MW_TYPE_2);
	lone_post(&l, ABI_WR_SEND, 1, 4, ABI_WQE_SIGNALED);
	lone_post(&l, ABI_WR_SEND, 2, 4, ABI_WQE_SIGNALED);
	post_bind(3, WINDOW_LEN, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 4, 4, ABI_WQE_SIGNALED);
	lone_tx(&l);
	lone_rx(&l,
		&(struct shot){
			.opcode = RESP_ONLY, .psn = 0x202, .syndrome = 0x1F, .msn = 3, .len = 4});
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_int_equal(l.host->core.count.cq_overflow, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* proves REQ-34: a bind before it was executed; the refusal is the SEND's. */
static void completer_timeout__a_refusal_behind_a_bind(void **state)
{
	l.attr.retry_cnt = 1;
	start(MW_TYPE_2);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 4, ABI_WQE_SIGNALED);
	lone_post(&l, ABI_WR_SEND, 2, 4, ABI_WQE_SIGNALED);
	post_bind(3, WINDOW_LEN, 0);
	lone_post(&l, ABI_WR_SEND, 4, 4, ABI_WQE_SIGNALED);
	lone_tx(&l);
	lone_nak(&l, 0x62, 0x202, 2);
	lone_tx(&l);
	lone_rx(&l,
		&(struct shot){
			.opcode = RESP_ONLY, .psn = 0x200, .syndrome = 0x1F, .msn = 1, .len = 4});
	for (int i = 0; i < 8 && l.qp->qp->state != ABI_QPS_ERR; i++) {
		lone_wait(&l, 4 * timers_ack_timeout(l.attr.timeout));
		lone_tx(&l);
	}
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK S3:OK S4:REM_ACCESS");
}

/* The cursor is before a bind whose grace period is that of the worker which gives the QP away. */
static void mw_wqe_moved__the_cursor_went_back(void **state)
{
	struct send_wqe *w;

	start(MW_TYPE_1);
	bound();
	l.no_grace = true;
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	post_bind(2, 64, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	lone_tx(&l);
	w = qp_wqe(l.qp->qp, l.qp->qp->req.cur);
	assert_int_equal(w->status, WQE_LOCAL_GRACE);
	assert_int_not_equal(l.qp->qp->grace, 0);
	lone_nak(&l, 0x21, 0x200, 0); /* RNR */
	assert_ptr_not_equal(qp_wqe(l.qp->qp, l.qp->qp->req.cur), w);
	mw_wqe_moved(l.qp->qp);
	assert_int_equal(l.qp->qp->grace, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, lone_setup_256, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(responder_rx__invalidates),
		TEST(responder_rx__invalidates_with_the_last_packet),
		TEST(responder_rx__a_duplicate_invalidates_nothing),
		TEST(responder_rx__refuses_to_invalidate),
		TEST(responder_rx__refuses_to_invalidate_without_room),
		TEST(responder_rx__a_window_goes_within_a_write),
		TEST(responder_tx__a_window_goes_within_a_read),
		TEST(requester__an_invalidate_waits_for_what_is_built),
		TEST(requester__sends_with_invalidate),
		TEST(requester__credits_hold_a_send_with_invalidate),
		TEST(requester__binds_in_order),
		TEST(requester__binds_once),
		TEST(requester__a_late_ack_overtakes_a_bind),
		TEST(completer_rx__a_response_behind_a_bind),
		TEST(requester__a_fenced_invalidate_waits),
		TEST(requester__a_bind_fails),
		TEST(requester__an_invalidate_fails),
		TEST(requester__a_bind_anew_waits_for_all_workers),
		TEST(requester__windows_in_sqd),
		TEST(requester__windows_are_flushed),
		TEST(requester__many_binds),
		TEST(requester__binds_wait_for_an_ack),
		TEST(completer_rx__finds_the_request_of_a_response),
		TEST(completer_rx__the_cq_overflows_before_a_bind),
		TEST(completer_timeout__a_refusal_behind_a_bind),
		TEST(mw_wqe_moved__the_cursor_went_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
