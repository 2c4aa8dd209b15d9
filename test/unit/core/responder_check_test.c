/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's checks at their edges, receive WQEs, and what an error does at both ends. */
#include <stdio.h>
#include "abi_ctl.h"
#include "fixture.h"
#include "opcodes.h"
#include "pair.h"
#include "qp.h"

/* Another QP as lone_setup_256() made the first one. */
static void again(void)
{
	lone_fini(&l);
	lone_setup_256(NULL);
}

static void assert_untouched(uint64_t off, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(l.mr->mem[off + i], 0x11);
}

/* --- lengths and ranges ----------------------------------------------------------------- */

/* proves RSP-09: what is just right; responder_rx__length_errors has what is not. */
static void responder_rx__payload_sizes_at_the_edge(void **state)
{
	static const uint32_t last[] = {1, 255, 256};
	static const uint32_t only[] = {0, 1, 255, 256};
	uint32_t psn = 0x100;

	lone_start(&l);
	for (unsigned i = 0; i < ARRAY_SIZE(last); i++) {
		lone_recv(&l, i, 0, 768);
		lone_request(&l, SEND_FIRST, psn++, 0, 0, 256);
		lone_request(&l, SEND_MIDDLE, psn++, 0, 0, 256);
		lone_request(&l, SEND_LAST, psn++, 0, 0, last[i]);
		lone_request(&l, WRITE_FIRST, psn++, 0, 512 + last[i], 256);
		lone_request(&l, WRITE_MIDDLE, psn++, 0, 0, 256);
		lone_request(&l, WRITE_LAST, psn++, 0, 0, last[i]);
		lone_cqes(&l);
		assert_int_equal(l.last.byte_len, 512 + last[i]);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(only); i++) {
		lone_recv(&l, i, 0, 256);
		lone_request(&l, SEND_ONLY, psn++, 0, 0, only[i]);
		lone_request(&l, WRITE_ONLY, psn++, 0, only[i], only[i]);
	}
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	assert_int_equal(l.qp->qp->resp.msn, 14);
	assert_int_equal(l.qp->qp->resp.epsn, psn);
}

/* proves RSP-10: 2^31 bytes are a message (which no region here has room for), one more is not. */
static void responder_rx__longest_message(void **state)
{
	static const uint8_t op[] = {WRITE_FIRST, READ_REQ};
	static const struct {
		uint32_t dma_len;
		const char *nak;
	} row[] = {{0x7FFFFFFF, "ACK@10062/0"}, {0x80000000, "ACK@10062/0"},
		{0x80000001, "ACK@10061/0"}, {0xFFFFFFFF, "ACK@10061/0"}};

	for (unsigned o = 0; o < ARRAY_SIZE(op); o++) {
		for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
			if (o + i)
				again();
			lone_start(&l);
			lone_request(
				&l, op[o], 0x100, 0, row[i].dma_len, op[o] == READ_REQ ? 0 : 256);
			assert_string_equal(lone_tx(&l), row[i].nak);
		}
	}
}

/* proves RSP-13: a region is good to its first and last byte; what is not is
 * responder_rx__access_errors.
 */
static void responder_rx__region_to_its_edges(void **state)
{
	lone_start(&l);
	lone_request(&l, WRITE_ONLY, 0x100, 0, 8, 8);
	lone_request(&l, WRITE_ONLY, 0x101, LONE_MEM - 8, 8, 8);
	assert_string_equal(lone_tx(&l), "ACK@1011f/2");
	assert_int_equal(l.mr->mem[LONE_MEM - 1], 7);
	lone_request(&l, READ_REQ, 0x102, LONE_MEM - 1, 1, 0);
	assert_string_equal(lone_tx(&l), "RESP_ONLY@102+11f/3");
	lone_request(&l, READ_REQ, 0x103, 0, LONE_MEM, 0);
	lone_tx_max(&l, 8);
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
}

/* proves RSP-14: the slot has been given to another region since; the key part tells. */
static void responder_rx__stale_key(void **state)
{
	uint32_t old;
	struct app_mr *mr;

	lone_start(&l);
	lone_request(&l, WRITE_ONLY, 0x100, 0, 8, 8);
	old = l.mr->mr.key;
	app_mr_dereg(&l.app, l.mr);
	mr = app_mr_as(&l.app, LONE_MEM, l.mr->mr.access, old ^ 0x80, l.mr->mr.iova);
	lone_request(&l, WRITE_ONLY, 0x101, 0, 8, 8);
	assert_string_equal(lone_tx(&l), "ACK@10162/1");
	assert_int_equal(mr->mem[0], 0x11);
}

/* proves RSP-15: gone, and gone with another region in its slot, before LAST too. */
static void responder_rx__region_goes_before_last(void **state)
{
	for (int replaced = 0; replaced < 2; replaced++) {
		if (replaced)
			again();
		lone_start(&l);
		lone_request(&l, WRITE_FIRST, 0x100, 0, 300, 256);
		lone_tx(&l);
		app_mr_dereg(&l.app, l.mr);
		if (replaced)
			app_mr_as(
				&l.app, LONE_MEM, l.mr->mr.access, l.mr->mr.key ^ 1, l.mr->mr.iova);
		lone_request(&l, WRITE_LAST, 0x101, 0, 0, 44);
		assert_string_equal(lone_tx(&l), "ACK@10162/0");
		assert_untouched(256, 44);
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_ACCESS_ERR), 1);
	}
}

/* --- receive WQEs ----------------------------------------------------------------------- */

/* proves RSP-16, RSP-18: the code of the QP, the PSN of the packet; nothing moves. RSP-18: what
 * follows is not executed, whatever it is. */
static void responder_rx__rnr_moves_nothing(void **state)
{
	static const uint8_t code[] = {0, 1, 12, 30, 31};
	static const uint8_t op[] = {SEND_FIRST, SEND_ONLY};

	for (unsigned i = 0; i < 2 * ARRAY_SIZE(code); i++) {
		char want[32];

		if (i)
			again();
		l.attr.min_rnr_timer = code[i / 2];
		lone_start(&l);
		lone_request(&l, op[i % 2], 0x100, 0, 0, 256);
		snprintf(want, sizeof(want), "ACK@100%02x/0", 0x20 | code[i / 2]);
		assert_string_equal(lone_tx(&l), want);
		assert_int_equal(l.qp->qp->resp.epsn, 0x100);
		lone_request(&l, SEND_LAST, 0x101, 0, 0, 4);
		assert_int_equal(l.verdict, DROP_RNR_PENDING);
		lone_request(&l, WRITE_ONLY, 0x101, 0, 64, 64);
		lone_request(&l, READ_REQ, 0x102, 0, 64, 0);
		lone_recv(&l, 1, 0, 256); /* too late for them */
		lone_request(&l, SEND_ONLY, 0x101, 0, 0, 64);
		assert_string_equal(lone_tx(&l), "");
		assert_string_equal(lone_cqes(&l), "");
		assert_untouched(0, 256);
		assert_int_equal(l.qp->qp->resp.epsn, 0x100);
		assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
		lone_request(&l, SEND_ONLY, 0x100, 0, 0, 64);
		assert_string_equal(lone_cqes(&l), "R1:OK+64");
	}
}

/* proves RSP-17: ONLY; the retry is the whole message again. */
static void responder_rx__rnr_for_write_only_with_imm(void **state)
{
	lone_start(&l);
	lone_request(&l, WRITE_ONLY_IMM, 0x100, 0, 64, 64);
	assert_string_equal(lone_tx(&l), "ACK@10021/0");
	assert_untouched(0, 64);
	assert_int_equal(l.qp->qp->resp.epsn, 0x100);
	assert_int_equal(l.qp->qp->resp.msn, 0);
	lone_recv(&l, 1, 0, 0);
	lone_request(&l, WRITE_ONLY_IMM, 0x100, 0, 64, 64);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1");
	assert_string_equal(lone_cqes(&l), "R1:OK+64#0");
	assert_int_equal(l.mr->mem[63], 63);
}

/* proves RSP-19: which packet takes a receive. */
static void responder_rx__who_takes_a_receive(void **state)
{
	static const struct {
		uint8_t op;
		uint32_t dma_len, len;
		unsigned taken; /* with this one */
	} row[] = {{SEND_FIRST, 0, 256, 1}, {SEND_MIDDLE, 0, 256, 0}, {SEND_LAST, 0, 4, 0},
		{SEND_ONLY, 0, 4, 1}, {WRITE_ONLY, 4, 4, 0}, {WRITE_FIRST, 300, 256, 0},
		{WRITE_LAST, 0, 44, 0}, {READ_REQ, 4, 0, 0}, {WRITE_FIRST, 600, 256, 0},
		{WRITE_MIDDLE, 0, 256, 0}, {WRITE_LAST_IMM, 0, 88, 1}, {WRITE_ONLY_IMM, 4, 4, 1}};
	unsigned taken = 0;

	lone_start(&l);
	for (uint64_t i = 0; i < 6; i++)
		lone_recv(&l, i, 0, 600);
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		lone_request(&l, row[i].op, 0x100 + i, 1000, row[i].dma_len, row[i].len);
		taken += row[i].taken;
		assert_int_equal(l.qp->qp->rq.next, taken);
	}
	assert_string_equal(lone_cqes(&l), "R0:OK+516 R1:OK+4 R2:OK+600#0 R3:OK+4#0");
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
}

/* proves RSP-21: each way in which a receive may be unfit for the data. */
static void responder_rx__unfit_receives(void **state)
{
	enum {
		NO_KEY,
		KEY_PART,
		PD,
		ACCESS,
		RANGE,
		SECOND_SGE,
		MALFORMED,
		CASES
	};

	for (int i = 0; i < CASES; i++) {
		struct abi_sge sge[3];
		struct app_mr *other;

		if (i)
			again();
		l.spec.max_sge = 2;
		lone_start(&l);
		other = app_mr(&l.app, 64, ABI_ACCESS_LOCAL_WRITE);
		sge[0] = app_sge(other, 0, 64);
		sge[1] = sge[2] = app_sge(l.mr, 0, 64);
		if (i == NO_KEY)
			sge[0].lkey += 0x10000;
		else if (i == KEY_PART)
			sge[0].lkey ^= 2;
		else if (i == PD)
			other->mr.pd++;
		else if (i == ACCESS)
			other->mr.access = ABI_ACCESS_REMOTE_READ;
		else if (i == RANGE)
			sge[0].addr++;
		else if (i == SECOND_SGE)
			sge[1].lkey ^= 2;
		app_post_recv(l.qp, 1, sge, i == MALFORMED ? 3 : 2);
		lone_recv(&l, 2, 0, 64);
		lone_request(&l, SEND_ONLY, 0x100, 0, 0, i == RANGE ? 64 : 65);
		assert_string_equal(lone_tx(&l), "ACK@10063/0");
		assert_string_equal(lone_cqes(&l),
			i == MALFORMED ? "R1:LOC_QP_OP R2:FLUSH" : "R1:LOC_PROT R2:FLUSH");
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		assert_int_equal(l.app.events, 0); /* RSP-22: the CQE tells */
	}
}

/* proves RSP-21: immediate data need a receive that is well formed, too, although nothing is placed
 * there.
 */
static void responder_rx__unfit_receive_for_immediate_data(void **state)
{
	struct abi_sge sge[3];

	l.spec.max_sge = 2;
	lone_start(&l);
	sge[0] = sge[1] = sge[2] = app_sge(l.mr, 0, 64);
	app_post_recv(l.qp, 1, sge, 3);
	lone_request(&l, WRITE_ONLY_IMM, 0x100, 0, 64, 64);
	assert_string_equal(lone_tx(&l), "ACK@10063/0");
	assert_string_equal(lone_cqes(&l), "R1:LOC_QP_OP");
	assert_untouched(0, 64);
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
}

/* --- errors ----------------------------------------------------------------------------- */

/* proves RSP-22: the NAK, ERR, the receives flushed in order, and one event. The open message's
 * receive is the first to go. */
static void responder_rx__fatal_error_flushes_in_order(void **state)
{
	static const struct {
		uint8_t op;
		uint32_t dma_len;
		uint8_t syndrome;
		uint32_t event;
	} row[] = {{WRITE_MIDDLE, 0, 0x61, ABI_EVENT_QP_REQ_ERR},
		{READ_REQ, LONE_MEM + 1, 0x62, ABI_EVENT_QP_ACCESS_ERR}};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		bool open = row[i].op == WRITE_MIDDLE;
		char want[32];

		if (i)
			again();
		lone_start(&l);
		for (uint64_t r = 1; r <= 3; r++)
			lone_recv(&l, r, 0, 600);
		lone_request(&l, SEND_ONLY, 0x100, 0, 0, 4);
		if (open)
			lone_request(&l, SEND_FIRST, 0x101, 0, 0, 256);
		assert_string_equal(lone_cqes(&l), "R1:OK+4");
		lone_request(&l, row[i].op, 0x101 + open, 0, row[i].dma_len, open ? 256 : 0);
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		snprintf(want, sizeof(want), "ACK@%x%02x/1", 0x101 + open, row[i].syndrome);
		assert_string_equal(lone_tx(&l), want);
		assert_string_equal(lone_cqes(&l), "R2:FLUSH R3:FLUSH");
		assert_int_equal(l.app.events, 1);
		assert_int_equal(app_event_count(&l.app, row[i].event), 1);
		lone_request(&l, SEND_ONLY, 0x101, 0, 0, 4);
		assert_string_equal(lone_tx(&l), "");
	}
}

/* proves RSP-08, RSP-22 with a real requester: what its completion says, and that only the
 * responder hears of it by an event, and of what its own completion says not even that. */
static void responder_rx__errors_at_both_ends(void **state)
{
	enum {
		REMOTE_ACCESS,
		TOO_MANY_READS,
		NOT_ALLOWED,
		TOO_LONG,
		BAD_LKEY,
		CASES
	};
	static const struct {
		uint8_t opcode, requester, responder; /* 0: no CQE but of flushes */
		uint32_t event;
	} row[CASES] = {
		[REMOTE_ACCESS] = {ABI_WR_RDMA_WRITE, ABI_WC_REM_ACCESS_ERR, 0,
			ABI_EVENT_QP_ACCESS_ERR},
		[TOO_MANY_READS] = {ABI_WR_RDMA_READ, ABI_WC_REM_INV_REQ_ERR, 0,
			ABI_EVENT_QP_REQ_ERR},
		[NOT_ALLOWED] = {ABI_WR_RDMA_WRITE, ABI_WC_REM_INV_REQ_ERR, 0,
			ABI_EVENT_QP_REQ_ERR},
		[TOO_LONG] = {ABI_WR_SEND, ABI_WC_REM_INV_REQ_ERR, ABI_WC_LOC_LEN_ERR, 0},
		[BAD_LKEY] = {ABI_WR_SEND, ABI_WC_REM_OP_ERR, ABI_WC_LOC_PROT_ERR, 0},
	};

	for (int i = 0; i < CASES; i++) {
		static struct pair p;
		struct pair_spec spec = pair_defaults();
		struct app_send s = {.opcode = row[i].opcode, .num_sge = 1};
		struct abi_sge sge;

		if (i == TOO_MANY_READS)
			spec.attr[B].max_dest_rd_atomic = 0;
		if (i == NOT_ALLOWED)
			spec.attr[B].access_flags = ABI_ACCESS_REMOTE_READ;
		pair_init(&p, &spec);
		pair_memory(&p, 4096);
		s.sge[0] = app_sge(p.end[A].mr, 0, 64);
		s.remote_addr = app_va(p.end[B].mr, i == REMOTE_ACCESS ? 4033 : 0);
		s.rkey = p.end[B].mr->mr.key;
		sge = app_sge(p.end[B].mr, 0, i == TOO_LONG ? 63 : 64);
		sge.lkey ^= i == BAD_LKEY;
		app_post_recv(p.end[B].qp, 7, &sge, 1);
		app_post_recv(p.end[B].qp, 8, &sge, 1);
		app_post_send(p.end[A].qp, &s);
		pair_until_cqes(&p, A, 1, 60 * SEC);
		pair_until_cqes(&p, B, 2, 60 * SEC);
		assert_int_equal(p.end[A].cqe[0].status, row[i].requester);
		assert_int_equal(p.end[B].cqe[0].wr_id, 7);
		assert_int_equal(p.end[B].cqe[0].status,
			row[i].responder ? row[i].responder : ABI_WC_WR_FLUSH_ERR);
		assert_int_equal(p.end[B].cqe[1].status, ABI_WC_WR_FLUSH_ERR);
		for (int e = A; e < ENDS; e++)
			assert_int_equal(p.end[e].qp->qp->state, ABI_QPS_ERR);
		assert_int_equal(p.end[A].app.events, 0);
		assert_int_equal(p.end[B].app.events, row[i].event != 0);
		if (row[i].event)
			assert_int_equal(app_event_count(&p.end[B].app, row[i].event), 1);
		pair_fini(&p);
	}
}

/* proves RSP-38: duplicate atomics, of which nothing is remembered, are dropped without a word. */
static void responder_rx__duplicate_atomic_is_dropped(void **state)
{
	lone_start(&l);
	lone_request(&l, 0x0A, 0x100, 0, 4, 4);
	lone_tx(&l);
	for (uint8_t op = 0x13; op <= 0x14; op++) {
		lone_request(&l, op, 0xFF, 0, 0, 0);
		assert_int_equal(l.verdict, DROP_DUP_NO_RESOURCE);
	}
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	assert_int_equal(l.app.events, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup_256, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(responder_rx__payload_sizes_at_the_edge),
		T(responder_rx__longest_message),
		T(responder_rx__region_to_its_edges),
		T(responder_rx__stale_key),
		T(responder_rx__region_goes_before_last),
		T(responder_rx__rnr_moves_nothing),
		T(responder_rx__rnr_for_write_only_with_imm),
		T(responder_rx__who_takes_a_receive),
		T(responder_rx__unfit_receives),
		T(responder_rx__unfit_receive_for_immediate_data),
		T(responder_rx__fatal_error_flushes_in_order),
		T(responder_rx__errors_at_both_ends),
		T(responder_rx__duplicate_atomic_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
