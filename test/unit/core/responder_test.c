/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests from the peer: RSP-*, C9-88..C9-105, and what each refusal does to both ends. */
#include <stdio.h>
#include "fixture.h"
#include "hole.h"
#include "opcodes.h"
#include "qp.h"

static int setup(void **state)
{
	lone_setup_256(state);
	l.attr.min_rnr_timer = 12;
	return 0;
}

static struct shot to_mr(uint8_t opcode, uint32_t psn, uint64_t off, uint32_t dma_len, uint32_t len)
{
	return (struct shot){.opcode = opcode,
		.psn = psn,
		.ackreq = true,
		.va = app_va(l.mr, off),
		.rkey = l.mr->mr.key,
		.dma_len = dma_len,
		.len = len};
}

static void req(uint8_t opcode, uint32_t psn, uint32_t len)
{
	lone_rx(&l, &(struct shot){.opcode = opcode, .psn = psn, .ackreq = true, .len = len});
}

static void req_mr(uint8_t opcode, uint32_t psn, uint64_t off, uint32_t dma_len, uint32_t len)
{
	struct shot s = to_mr(opcode, psn, off, dma_len, len);

	lone_rx(&l, &s);
}

static void assert_bytes(uint64_t off, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(l.mr->mem[off + i], (uint8_t)(i % 256));
}

static void assert_untouched(uint64_t off, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(l.mr->mem[off + i], 0x11);
}

/* --- SEND ----------------------------------------------------------------------------- */

/* proves RSP-01, RSP-50, RSP-51 (RSP-19, RSP-23, RSP-25) */
static void responder_rx__send_fills_a_receive(void **state)
{
	lone_start(&l);
	lone_recv(&l, 1, 100, 1000);
	lone_recv(&l, 2, 2000, 1000);
	req(SEND_FIRST, 0x100, 256);
	assert_string_equal(lone_tx(&l), "ACK@1001f/0");
	req(SEND_MIDDLE, 0x101, 256);
	lone_rx(&l,
		&(struct shot){
			.opcode = SEND_LAST, .psn = 0x102, .ackreq = true, .se = true, .len = 3});
	assert_string_equal(lone_tx(&l), "ACK@1021f/1"); /* coalesced */
	assert_string_equal(lone_cqes(&l), "R1:OK+515*");
	assert_bytes(100, 512);
	assert_bytes(612, 3);
	assert_untouched(615, 385);
	lone_rx(&l, &(struct shot){.opcode = SEND_ONLY_IMM, .psn = 0x103, .imm = 0xCAFE});
	assert_string_equal(lone_tx(&l), ""); /* no AckReq, no ACK */
	assert_string_equal(lone_cqes(&l), "R2:OK+0#cafe");
	assert_int_equal(l.last.opcode, ABI_WC_RECV);
	assert_int_equal(l.last.src_qp, PEER_QPN);
}

static void responder_rx__send_scatters_over_sixteen_sges(void **state)
{
	struct abi_sge sge[SGE_MAX];
	uint32_t at = 0;

	lone_start(&l);
	for (unsigned i = 0; i < SGE_MAX; i++)
		sge[i] = app_sge(l.mr, 9000 - 500 * i, i % 5 == 1 ? 0 : 30 + i);
	sge[1].lkey = 0x12; /* of an empty one nobody asks the key: MR-07 */
	app_post_recv(l.qp, 1, sge, SGE_MAX);
	req(SEND_FIRST, 0x100, 256);
	req(SEND_LAST, 0x101, 200);
	assert_string_equal(lone_cqes(&l), "R1:OK+456");
	for (unsigned i = 0; i < SGE_MAX && at < 456; i++) {
		const uint8_t *m = l.mr->mem + 9000 - 500 * i;
		uint32_t n = sge[i].length < 456 - at ? sge[i].length : 456 - at;

		for (uint32_t b = 0; b < n; b++, at++)
			assert_int_equal(m[b], (uint8_t)((at < 256 ? at : at - 256) % 256));
		assert_int_equal(m[n], 0x11);
	}
	assert_int_equal(at, 456);
}

/* --- WRITE ---------------------------------------------------------------------------- */

/* RSP-19, CQ-09: immediate data take a receive at LAST; byte_len is DMALen. */
static void responder_rx__write_with_imm_completes_a_receive(void **state)
{
	lone_start(&l);
	lone_recv(&l, 1, 0, 16);
	req_mr(WRITE_FIRST, 0x100, 50, 600, 256);
	req(WRITE_MIDDLE, 0x101, 256);
	assert_string_equal(lone_cqes(&l), "");
	lone_rx(&l, &(struct shot){
			    .opcode = WRITE_LAST_IMM, .psn = 0x102, .imm = 0x0A0B0C0D, .len = 88});
	assert_string_equal(lone_cqes(&l), "R1:OK+600#a0b0c0d");
	assert_int_equal(l.last.opcode, ABI_WC_RECV_RDMA_WITH_IMM);
	assert_bytes(50, 512);
	assert_bytes(562, 88);
	assert_untouched(0, 50);
	assert_untouched(650, 50);
}

/* proves RSP-12 (C9-88) */
static void responder_rx__empty_write_and_read_need_no_key(void **state)
{
	lone_start(&l);
	lone_rx(&l, &(struct shot){.opcode = WRITE_ONLY, .psn = 0x100, .ackreq = true, .rkey = 5});
	lone_rx(&l, &(struct shot){.opcode = READ_REQ, .psn = 0x101, .ackreq = true, .rkey = 5});
	assert_string_equal(lone_tx(&l), "ACK@1001f/1 RESP_ONLY@1011f/2");
}

/* proves RSP-13, RSP-14 (MR-01, MR-06, MR-07, RSP-22, EVT-03) */
static void responder_rx__access_errors(void **state)
{
	enum {
		KEY,
		KEY_PART,
		PD,
		NO_WRITE,
		BEFORE,
		BEHIND,
		WRAP,
		CASES
	};

	for (int i = 0; i < 2 * CASES; i++) {
		bool read = i >= CASES;
		struct shot s;

		if (i)
			lone_init(&l);
		l.attr.path_mtu = 256;
		lone_start(&l);
		lone_recv(&l, 1, 0, 16);
		s = to_mr(read ? READ_REQ : WRITE_ONLY, 0x100, 0, 16, read ? 0 : 16);
		switch (i % CASES) {
		case KEY:
			s.rkey += 0x100;
			break;
		case KEY_PART:
			s.rkey ^= 1;
			break;
		case PD:
			l.mr->mr.pd++;
			break;
		case NO_WRITE:
			l.mr->mr.access = ABI_ACCESS_LOCAL_WRITE;
			break;
		case BEFORE:
			s.va--;
			break;
		case BEHIND:
			s.va += LONE_MEM - 15;
			break;
		case WRAP:
			s.va = UINT64_MAX - 7;
			break;
		}
		lone_rx(&l, &s);
		assert_string_equal(lone_tx(&l), "ACK@10062/0");
		assert_string_equal(lone_cqes(&l), "R1:FLUSH");
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_ACCESS_ERR), 1);
		assert_int_equal(count()->resp_remote_access_errors, 1);
		assert_untouched(0, 64);
		if (i + 1 < 2 * CASES)
			lone_fini(&l);
	}
}

/* proves RSP-13: the whole DMALen is checked with FIRST, before a byte is written. */
static void responder_rx__first_is_checked_for_the_whole_length(void **state)
{
	lone_start(&l);
	req_mr(WRITE_FIRST, 0x100, LONE_MEM - 300, 301, 256);
	assert_string_equal(lone_tx(&l), "ACK@10062/0");
	assert_untouched(LONE_MEM - 300, 300);
}

/* proves RSP-15 */
static void responder_rx__write_fails_when_the_region_goes(void **state)
{
	lone_start(&l);
	req_mr(WRITE_FIRST, 0x100, 0, 600, 256);
	app_mr_dereg(&l.app, l.mr);
	req(WRITE_MIDDLE, 0x101, 256);
	assert_string_equal(lone_tx(&l), "ACK@10162/0");
	assert_untouched(256, 256);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_ACCESS_ERR), 1);
}

/* proves RSP-09, RSP-10, RSP-11, BTH-08: each row is a packet sequence whose last is invalid. */
static void responder_rx__length_errors(void **state)
{
	static const struct {
		uint8_t op[3];
		uint32_t dma_len;
		uint32_t len[3];
		unsigned n;
	} row[] = {
		{{SEND_FIRST}, 0, {255}, 1},
		{{SEND_FIRST}, 0, {257}, 1},
		{{SEND_FIRST}, 0, {0}, 1},
		{{SEND_ONLY}, 0, {257}, 1},
		{{SEND_FIRST, SEND_MIDDLE}, 0, {256, 252}, 2},
		{{SEND_FIRST, SEND_LAST}, 0, {256, 0}, 2},
		{{SEND_FIRST, SEND_LAST}, 0, {256, 257}, 2},
		{{SEND_FIRST, SEND_LAST_IMM}, 0, {256, 257}, 2},
		{{SEND_FIRST, SEND_LAST_IMM}, 0, {256, 0}, 2},
		{{SEND_ONLY_IMM}, 0, {257}, 1},
		{{WRITE_FIRST}, 600, {255}, 1},
		{{WRITE_FIRST}, 255, {256}, 1},
		{{WRITE_FIRST, WRITE_LAST}, 256, {256, 0}, 2}, /* nothing is left for LAST */
		{{WRITE_FIRST, WRITE_LAST}, 256, {256, 1}, 2},
		{{WRITE_FIRST, WRITE_MIDDLE}, 256, {256, 256}, 2},
		{{WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST}, 512, {256, 256, 0}, 3},
		{{WRITE_FIRST}, 100, {256}, 1},
		{{WRITE_ONLY}, 300, {300}, 1},
		{{WRITE_ONLY_IMM}, 257, {257}, 1},
		{{WRITE_FIRST, WRITE_MIDDLE}, 600, {256, 252}, 2},
		{{WRITE_FIRST, WRITE_MIDDLE}, 600, {256, 260}, 2},
		{{WRITE_FIRST, WRITE_LAST}, 513, {256, 257}, 2}, /* the sum is right */
		{{WRITE_ONLY}, 20, {16}, 1},
		{{WRITE_ONLY}, 16, {20}, 1},
		{{WRITE_ONLY}, 0, {4}, 1},
		{{WRITE_ONLY}, 0x80000001, {4}, 1},
		{{READ_REQ}, 0x80000001, {0}, 1},
		{{WRITE_FIRST, WRITE_LAST}, 600, {256, 256}, 2},
		{{WRITE_FIRST, WRITE_MIDDLE}, 400, {256, 256}, 2},
		{{WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST}, 600, {256, 256, 87}, 3},
		{{WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST}, 600, {256, 256, 89}, 3},
		{{WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST}, 600, {256, 256, 0}, 3},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		char want[32];

		if (i)
			lone_init(&l);
		l.attr.path_mtu = 256;
		lone_start(&l);
		lone_recv(&l, 1, 0, 4096);
		for (unsigned p = 0; p < row[i].n; p++) {
			struct shot s =
				to_mr(row[i].op[p], 0x100 + p, 0, row[i].dma_len, row[i].len[p]);

			s.ackreq = false;
			lone_rx(&l, &s);
			if (p + 1 < row[i].n)
				assert_string_equal(lone_tx(&l), "");
		}
		snprintf(want, sizeof(want), "ACK@%x61/0", 0x100 + row[i].n - 1);
		assert_string_equal(lone_tx(&l), want);
		assert_string_equal(lone_cqes(&l), "R1:FLUSH");
		assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_REQ_ERR), 1);
		if (i + 1 < ARRAY_SIZE(row))
			lone_fini(&l);
	}
}

/* proves RSP-05, RSP-06, RSP-07: every opcode in every situation. */
static void responder_rx__operation_sequence(void **state)
{
	static const bool first[] = {1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1};
	static const bool last[] = {0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1};

	for (int open = 0; open < 3; open++) {
		for (uint8_t op = SEND_FIRST; op <= READ_REQ; op++) {
			bool write = op >= WRITE_FIRST;
			bool ok = first[op] ? open == 0 : op != READ_REQ && open == (write ? 2 : 1);
			uint32_t psn = 0x100 + (open != 0);
			uint32_t len = op == READ_REQ ? 0 : last[op] ? 44 : 256;

			if (open || op)
				lone_init(&l);
			l.attr.path_mtu = 256;
			lone_start(&l);
			lone_recv(&l, 1, 0, 4096);
			if (open == 1)
				req(SEND_FIRST, 0x100, 256);
			if (open == 2)
				req_mr(WRITE_FIRST, 0x100, 0, last[op] ? 300 : 600, 256);
			lone_tx(&l);
			req_mr(op, psn, 0, last[op] ? 44 : 300, len);
			lone_tx(&l);
			assert_int_equal(l.qp->qp->state, ok ? ABI_QPS_RTS : ABI_QPS_ERR);
			assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_REQ_ERR), !ok);
			assert_int_equal(l.frame[54], ok ? (op == READ_REQ ? 0x1F : 0x1F) : 0x61);
			if (open < 2 || op < READ_REQ)
				lone_fini(&l);
		}
	}
}

/* proves RSP-07: what is answered by more than an ACK, alone and between the packets of another
 * message */
static void responder_rx__no_response_within_a_message(void **state)
{
	static const uint8_t op[] = {
		READ_REQ, 0x13, 0x14, 0x1C, 0x1D}; /* atomics, FLUSH, ATOMIC WRITE */

	for (unsigned i = 0; i < 3 * ARRAY_SIZE(op); i++) {
		unsigned open = i % 3;
		struct shot s;

		if (i)
			lone_init(&l);
		l.attr.path_mtu = 256;
		l.attr.access_flags |= ABI_ACCESS_FLUSH_GLOBAL;
		lone_start(&l);
		l.mr->mr.access |= ABI_ACCESS_FLUSH_GLOBAL;
		lone_recv(&l, 1, 0, 4096);
		if (open)
			req_mr(open == 1 ? SEND_FIRST : WRITE_FIRST, 0x100, 0, 600, 256);
		lone_tx(&l);
		s = to_mr(op[i / 3], 0x100 + (open != 0), 1024, 8, op[i / 3] == 0x1D ? 8 : 0);
		s.feth = 1;
		lone_rx(&l, &s);
		if (open)
			assert_string_equal(lone_tx(&l), "ACK@10161/0");
		else
			assert_int_not_equal(strncmp(lone_tx(&l), "ACK@", 4), 0);
		assert_int_equal(l.qp->qp->state, open ? ABI_QPS_ERR : ABI_QPS_RTS);
		if (i + 1 < 3 * ARRAY_SIZE(op))
			lone_fini(&l);
	}
}

/* proves VAL-05, RSP-08: reserved opcodes, those that are not offered, and operations that the QP
 * does not allow. */
static void responder_rx__unsupported_operations(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t len;
		uint32_t access;
	} row[] = {{0x15, 0, ~0u}, {0x18, 8, ~0u}, {0x1F, 0, ~0u},
		{0x13, 0, ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ},
		{WRITE_ONLY, 4, ABI_ACCESS_REMOTE_READ}, {READ_REQ, 0, ABI_ACCESS_REMOTE_WRITE},
		{READ_REQ, 0, 0}};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		if (i)
			lone_init(&l);
		if (row[i].access != ~0u)
			l.attr.access_flags = row[i].access;
		lone_start(&l);
		lone_recv(&l, 1, 0, 4096);
		req_mr(row[i].opcode, 0x101, 0, row[i].len, row[i].len);
		assert_string_equal(lone_tx(&l), "ACK@10060/0"); /* too early: PSN comes first */
		req_mr(row[i].opcode, 0x100, 0, row[i].len, row[i].len);
		assert_string_equal(lone_tx(&l), "ACK@10061/0");
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		assert_string_equal(lone_cqes(&l), "R1:FLUSH");
		if (i + 1 < ARRAY_SIZE(row))
			lone_fini(&l);
	}
}

/* --- receive queue -------------------------------------------------------------------- */

/* proves RSP-16, RSP-18 (RSP-26, RSP-04) */
static void responder_rx__rnr_until_a_receive_is_posted(void **state)
{
	lone_start(&l);
	req_mr(WRITE_ONLY, 0x100, 0, 4, 4);
	req(SEND_ONLY, 0x101, 4);
	assert_string_equal(lone_tx(&l), "ACK@1012c/1"); /* implies the WRITE's ACK */
	req(SEND_ONLY, 0x102, 4);			 /* dropped */
	assert_int_equal(l.verdict, DROP_RNR_PENDING);
	assert_string_equal(lone_tx(&l), "");
	req(SEND_ONLY, 0x101, 4);
	assert_string_equal(lone_tx(&l), "ACK@1012c/1");
	lone_recv(&l, 1, 100, 4);
	req(SEND_ONLY, 0x101, 4);
	assert_string_equal(lone_tx(&l), "ACK@1011f/2");
	assert_string_equal(lone_cqes(&l), "R1:OK+4");
	req(SEND_ONLY, 0x103, 4); /* a NAK again: the RNR state is over */
	assert_string_equal(lone_tx(&l), "ACK@10260/2");
	assert_int_equal(count()->rnr_nak_sent, 2);
}

/* proves RSP-17: the data of the last packet do not count; the retry does. */
static void responder_rx__rnr_for_write_with_imm(void **state)
{
	lone_start(&l);
	req_mr(WRITE_FIRST, 0x100, 0, 300, 256);
	lone_tx(&l);
	req(WRITE_LAST_IMM, 0x101, 44);
	assert_string_equal(lone_tx(&l), "ACK@1012c/0");
	assert_untouched(256, 44);
	lone_recv(&l, 1, 1000, 0);
	req(WRITE_LAST_IMM, 0x101, 44);
	assert_string_equal(lone_tx(&l), "ACK@1011f/1");
	assert_string_equal(lone_cqes(&l), "R1:OK+300#0");
	assert_bytes(256, 44);
}

/* proves RSP-20: larger than the receive; also only with the third packet. */
static void responder_rx__send_beyond_the_receive(void **state)
{
	lone_start(&l);
	lone_recv(&l, 1, 0, 600);
	lone_recv(&l, 2, 1000, 600);
	req(SEND_FIRST, 0x100, 256);
	req(SEND_MIDDLE, 0x101, 256);
	lone_tx(&l);
	req(SEND_LAST, 0x102, 89);
	assert_string_equal(lone_tx(&l), "ACK@10261/0");
	assert_string_equal(lone_cqes(&l), "R1:LOC_LEN R2:FLUSH");
	assert_untouched(512, 100);
	assert_int_equal(count()->resp_local_length_error, 1);
	/* RSP-22: the completion tells; no event. */
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_REQ_ERR), 0);
}

/* RSP-21 */
static void responder_rx__receive_without_access(void **state)
{
	struct app_mr *ro;
	struct abi_sge sge;

	lone_start(&l);
	ro = app_mr(&l.app, 64, ABI_ACCESS_REMOTE_READ);
	sge = app_sge(ro, 0, 64);
	app_post_recv(l.qp, 1, &sge, 1);
	req(SEND_ONLY, 0x100, 4);
	assert_string_equal(lone_tx(&l), "ACK@10063/0");
	assert_string_equal(lone_cqes(&l), "R1:LOC_PROT");
}

/* proves RSP-21: what a hostile client may write into the receive ring. */
static void responder_rx__receive_with_too_many_sges(void **state)
{
	uint32_t wqe[16];

	l.spec.max_sge = 2;
	lone_start(&l);
	l.qp->free_ids = true;
	memset(wqe, 0xFF, sizeof(wqe));
	app_post_recv_raw(l.qp, wqe, sizeof(wqe));
	req(SEND_ONLY, 0x100, 4);
	assert_string_equal(lone_tx(&l), "ACK@10063/0");
	assert_string_equal(lone_cqes(&l), "R18446744073709551615:LOC_QP_OP");
}

/* Lengths whose sum does not fit 32 bits. */
static void responder_rx__receive_of_more_than_4_gib(void **state)
{
	struct abi_sge sge[2];

	lone_start(&l);
	sge[0] = app_sge(l.mr, 0, 8);
	sge[1] = app_sge(l.mr, 100, 0xFFFFFFFC);
	app_post_recv(l.qp, 1, sge, 2);
	req(SEND_ONLY, 0x100, 8);
	assert_string_equal(lone_cqes(&l), "R1:OK+8");
	app_post_recv(l.qp, 2, sge, 2);
	req(SEND_ONLY, 0x101, 9); /* the second SGE is beyond the region */
	assert_string_equal(lone_cqes(&l), "R2:OK+9");
}

/* proves RSP-21 (decision 0000.5, EVT-03): memory that faults under a WRITE, and under a SEND. */
static void responder_rx__faulting_memory(void **state)
{
	struct abi_sge sge;
	struct mr *mr;

	lone_start(&l);
	mr = hole_open(l.host, APP_PD);
	lone_rx(&l, &(struct shot){.opcode = WRITE_ONLY,
			    .psn = 0x100,
			    .va = mr->iova + HOLE_PAGE - 4,
			    .rkey = mr->key,
			    .dma_len = 8,
			    .len = 8});
	assert_string_equal(lone_tx(&l), "ACK@10063/0");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_FATAL), 1);
	assert_int_equal(count()->access_faults, 1);
	hole_close(l.host);
	lone_fini(&l);

	lone_init(&l);
	lone_start(&l);
	mr = hole_open(l.host, APP_PD);
	sge = (struct abi_sge){mr->iova + HOLE_PAGE - 4, 8, mr->key};
	app_post_recv(l.qp, 1, &sge, 1);
	req(SEND_ONLY, 0x100, 8);
	assert_string_equal(lone_tx(&l), "ACK@10063/0");
	assert_string_equal(lone_cqes(&l), "R1:LOC_PROT");
	hole_close(l.host);
}

/* proves RSP-20 (C9-94): no message is longer than 2^31 bytes, whatever the receive has room for.
 */
static void responder_rx__send_beyond_2_31_bytes(void **state)
{
	struct abi_sge sge[SGE_MAX];

	lone_start(&l);
	for (unsigned i = 0; i < SGE_MAX; i++)
		sge[i] = app_sge(l.mr, 0, 0xF0000000);
	app_post_recv(l.qp, 1, sge, SGE_MAX);
	req(SEND_FIRST, 0x100, 256);
	lone_tx(&l);
	l.qp->qp->resp.recv_off = MSG_LEN_MAX; /* 2^23 packets later */
	req(SEND_MIDDLE, 0x101, 256);
	assert_string_equal(lone_tx(&l), "ACK@10161/0");
	assert_string_equal(lone_cqes(&l), "R1:LOC_LEN");
}

/* RSP-22: the NAK goes out although the CQ, full, has already moved the QP to ERR. */
static void responder_rx__naks_although_the_cq_is_full(void **state)
{
	l.cq_depth = 1;
	lone_start(&l);
	lone_recv(&l, 1, 0, 100);
	lone_recv(&l, 2, 0, 100);
	req(SEND_ONLY, 0x100, 4);
	req(SEND_ONLY, 0x101, 101);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_CQ_ERR), 0);
	assert_string_equal(lone_tx(&l), "ACK@10161/1");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_CQ_ERR), 1);
}

/* --- PSN ------------------------------------------------------------------------------ */

/* proves RSP-02, RSP-03, RSP-04 */
static void responder_rx__one_psn_nak(void **state)
{
	lone_start(&l);
	lone_recv(&l, 1, 0, 64);
	req(SEND_ONLY, 0x102, 4);
	assert_string_equal(lone_tx(&l), "ACK@10060/0");
	req(SEND_ONLY, 0x103, 4);
	req_mr(READ_REQ, 0x104, 0, 4, 0);
	assert_int_equal(l.verdict, DROP_PSN_AHEAD);
	assert_string_equal(lone_tx(&l), "");
	req(SEND_ONLY, 0xFF, 4); /* a duplicate does not clear it */
	assert_string_equal(lone_tx(&l), "ACK@ff1f/0");
	req(SEND_ONLY, 0x103, 4);
	assert_string_equal(lone_tx(&l), "");
	req(SEND_ONLY, 0x100, 4);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1");
	req(SEND_ONLY, 0x102, 4);
	assert_string_equal(lone_tx(&l), "ACK@10160/1");
	assert_string_equal(lone_cqes(&l), "R1:OK+4");
	assert_int_equal(count()->out_of_sequence, 5);
}

/* The missing packet was only late, in the same burst, so its NAK has not been sent: but what
 * came early was dropped, and the requester must hear of that. */
static void responder_rx__nak_moves_with_a_late_packet(void **state)
{
	struct shot s[3];

	lone_start(&l);
	s[0] = to_mr(WRITE_ONLY, 0x100, 0, 4, 4);
	s[1] = to_mr(WRITE_ONLY, 0x102, 8, 4, 4);
	s[2] = to_mr(WRITE_ONLY, 0x101, 4, 4, 4);
	s[2].ackreq = false;
	lone_rx_burst(&l, s, 3);
	assert_string_equal(lone_tx(&l), "ACK@10260/2");
	req_mr(WRITE_ONLY, 0x103, 0, 4, 4); /* it was said */
	assert_string_equal(lone_tx(&l), "");
	req_mr(WRITE_ONLY, 0x102, 8, 4, 4);
	assert_string_equal(lone_tx(&l), "ACK@1021f/3");
}

/* RSP-01: what came early was dropped, but has come again in the same burst: nothing is missing. A
 * NAK of a PSN that was not sent yet would be taken for a ghost (REQ-36). */
static void responder_rx__nak_is_void_once_all_came(void **state)
{
	struct shot s[5];

	lone_start(&l);
	s[0] = to_mr(WRITE_ONLY, 0x102, 8, 4, 4);
	for (uint32_t i = 0; i < 4; i++) {
		s[1 + i] = to_mr(WRITE_ONLY, 0x100 + i, 4 * i, 4, 4);
		s[1 + i].ackreq = false;
	}
	lone_rx_burst(&l, s, 5);
	assert_string_equal(lone_tx(&l), "ACK@1031f/4");
	req_mr(WRITE_ONLY, 0x105, 0, 4, 4); /* the next loss is a new one */
	assert_string_equal(lone_tx(&l), "ACK@10460/4");
}

/* The same with READ, which leaves no room for the NAK before its responses. */
static void responder_rx__nak_moves_behind_a_late_read(void **state)
{
	struct shot s[2];

	lone_start(&l);
	s[0] = to_mr(WRITE_ONLY, 0x102, 8, 4, 4);
	s[1] = to_mr(READ_REQ, 0x100, 0, 300, 0);
	lone_rx_burst(&l, s, 2);
	assert_string_equal(lone_tx(&l), "RESP_FIRST@100+2561f/1 RESP_LAST@101+441f/1 ACK@10260/1");
}

/* RSP-18: a retry of the same burst finds the receive posted; the RNR NAK is void. */
static void responder_rx__rnr_nak_is_void_once_accepted(void **state)
{
	lone_start(&l);
	req(SEND_ONLY, 0x100, 4);
	lone_recv(&l, 1, 0, 64);
	req(SEND_ONLY, 0x100, 4);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1");
}

/* proves RSP-23: the RNR NAK stood for the WRITE's ACK too; that is still owed. */
static void responder_rx__void_rnr_nak_leaves_the_ack(void **state)
{
	lone_start(&l);
	req_mr(WRITE_ONLY, 0x100, 0, 4, 4);
	lone_rx(&l, &(struct shot){.opcode = SEND_FIRST, .psn = 0x101, .len = 256});
	lone_recv(&l, 1, 0, 600);
	lone_rx(&l, &(struct shot){.opcode = SEND_FIRST, .psn = 0x101, .len = 256});
	assert_string_equal(lone_tx(&l), "ACK@1011f/1");
}

/* proves RSP-01, BTH-15: across the wrap; the window is 2^23 on both sides. */
static void responder_rx__psn_wraps(void **state)
{
	l.attr.rq_psn = 0xFFFFFE;
	lone_start(&l);
	lone_recv(&l, 1, 0, 1000);
	req(SEND_FIRST, 0xFFFFFE, 256);
	req(SEND_MIDDLE, 0xFFFFFF, 256);
	req(SEND_LAST, 0, 10);
	assert_string_equal(lone_tx(&l), "ACK@01f/1");
	assert_string_equal(lone_cqes(&l), "R1:OK+522");
	req(SEND_ONLY, 0x800001, 4); /* 2^23 later is 2^23 earlier */
	assert_string_equal(lone_tx(&l), "ACK@01f/1");
	req(SEND_ONLY, 0x800000, 4); /* the farthest that is ahead */
	assert_string_equal(lone_tx(&l), "ACK@160/1");
}

/* proves RSP-39, RSP-44 (C9-105, RSP-25): nothing is executed twice. */
static void responder_rx__duplicates_are_acknowledged(void **state)
{
	lone_start(&l);
	lone_recv(&l, 1, 0, 1000);
	lone_recv(&l, 2, 5000, 1000);
	req(SEND_FIRST, 0x100, 256);
	req(SEND_LAST, 0x101, 4);
	req_mr(WRITE_ONLY, 0x102, 2000, 4, 4);
	lone_tx(&l);
	memset(l.mr->mem, 0x11, LONE_MEM);
	req(SEND_FIRST, 0x100, 256);
	assert_string_equal(lone_tx(&l), "ACK@1021f/2");
	req(SEND_LAST, 0x101, 4);
	assert_string_equal(lone_tx(&l), "ACK@1021f/2");
	req_mr(WRITE_ONLY, 0x102, 2000, 4, 4);
	assert_string_equal(lone_tx(&l), "ACK@1021f/2");
	req(SEND_ONLY, 0x800103, 4); /* the oldest that can be */
	assert_string_equal(lone_tx(&l), "ACK@1021f/2");
	assert_untouched(0, LONE_MEM);
	assert_int_equal(l.qp->qp->rq.next, 1); /* nor is a receive taken */
	req(SEND_FIRST, 0x103, 256);
	req(SEND_LAST, 0x101, 4); /* must not end the open message */
	lone_tx(&l);
	req(SEND_LAST, 0x104, 4);
	assert_string_equal(lone_tx(&l), "ACK@1041f/3");
	assert_string_equal(lone_cqes(&l), "R1:OK+260 R2:OK+260");
	assert_int_equal(count()->duplicate_request, 5);
}

/* --- events and states ---------------------------------------------------------------- */

/* proves RSP-46 (RSP-47, EVT-01, QPS-18) */
static void responder_rx__communication_established_once(void **state)
{
	lone_start_in(&l, ABI_QPS_RTR);
	req(SEND_ONLY, 0x101, 4);
	lone_tx(&l);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_COMM_EST), 0);
	req_mr(WRITE_ONLY, 0x100, 0, 4, 4);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1");
	app_events(&l.app); /* one that is not taken yet is not raised twice */
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_COMM_EST), 1);
	req_mr(WRITE_ONLY, 0x101, 0, 4, 4);
	assert_string_equal(lone_tx(&l), "ACK@1011f/2");
	app_events(&l.app);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_COMM_EST), 1);
	lone_fini(&l);

	lone_init(&l);
	lone_start(&l); /* who is in RTS knows */
	req_mr(WRITE_ONLY, 0x100, 0, 4, 4);
	lone_tx(&l);
	assert_int_equal(l.app.events, 0);
}

/* proves VAL-06: after a fatal error nothing is answered any more. */
static void responder_rx__err_is_silent(void **state)
{
	lone_start(&l);
	req(SEND_MIDDLE, 0x100, 256);
	assert_string_equal(lone_tx(&l), "ACK@10061/0");
	req_mr(WRITE_ONLY, 0x100, 0, 4, 4);
	assert_int_equal(l.verdict, DROP_QP_STATE);
	assert_string_equal(lone_tx(&l), "");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(responder_rx__send_fills_a_receive),
		T(responder_rx__send_scatters_over_sixteen_sges),
		T(responder_rx__write_with_imm_completes_a_receive),
		T(responder_rx__empty_write_and_read_need_no_key),
		T(responder_rx__access_errors),
		T(responder_rx__first_is_checked_for_the_whole_length),
		T(responder_rx__write_fails_when_the_region_goes),
		T(responder_rx__length_errors),
		T(responder_rx__operation_sequence),
		T(responder_rx__no_response_within_a_message),
		T(responder_rx__unsupported_operations),
		T(responder_rx__rnr_until_a_receive_is_posted),
		T(responder_rx__rnr_for_write_with_imm),
		T(responder_rx__send_beyond_the_receive),
		T(responder_rx__receive_without_access),
		T(responder_rx__receive_with_too_many_sges),
		T(responder_rx__receive_of_more_than_4_gib),
		T(responder_rx__faulting_memory),
		T(responder_rx__send_beyond_2_31_bytes),
		T(responder_rx__naks_although_the_cq_is_full),
		T(responder_rx__one_psn_nak),
		T(responder_rx__nak_moves_with_a_late_packet),
		T(responder_rx__nak_is_void_once_all_came),
		T(responder_rx__nak_moves_behind_a_late_read),
		T(responder_rx__rnr_nak_is_void_once_accepted),
		T(responder_rx__void_rnr_nak_leaves_the_ack),
		T(responder_rx__psn_wraps),
		T(responder_rx__duplicates_are_acknowledged),
		T(responder_rx__communication_established_once),
		T(responder_rx__err_is_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
