/* SPDX-License-Identifier: BSD-3-Clause */
/* READ responses. */
#include <stdio.h>
#include "fixture.h"
#include "hole.h"
#include "opcodes.h"
#include "qp.h"
#include "timers.h"

/* proves REQ-40, REQ-45: FIRST MIDDLE LAST into sixteen SGEs, empty ones among them.
 */
static void completer_rx__scatters_read_responses(void **state)
{
	struct app_send s = {.opcode = ABI_WR_RDMA_READ,
		.flags = ABI_WQE_SIGNALED,
		.wr_id = 1,
		.remote_addr = PEER_VA,
		.rkey = PEER_KEY,
		.num_sge = SGE_MAX};
	uint32_t at = 0, len = 0;

	lone_start(&l);
	for (unsigned i = 0; i < SGE_MAX; i++) {
		s.sge[i] = app_sge(l.mr, 8000 - 500 * i, i % 4 == 2 ? 0 : 40 + i);
		len += s.sge[i].length;
	}
	assert_in_range(len, 513, 768);
	app_post_send(l.qp, &s);
	lone_tx(&l);
	memset(l.mr->mem, 0xEE, LONE_MEM);
	lone_response(&l, RESP_FIRST, 0x200, 256);
	lone_response(&l, RESP_MIDDLE, 0x201, 256);
	assert_string_equal(lone_cqes(&l), "");
	lone_response(&l, RESP_LAST, 0x202, len - 512);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	assert_int_equal(l.last.byte_len, len); /* CQ-09 */
	for (unsigned i = 0; i < SGE_MAX; i++) {
		const uint8_t *m = l.mr->mem + 8000 - 500 * i;

		assert_int_equal(m[-1], 0xEE);
		for (uint32_t b = 0; b < s.sge[i].length; b++, at++)
			assert_int_equal(m[b], (uint8_t)(at % 256));
		assert_int_equal(m[s.sge[i].length], 0xEE);
	}
}

/* proves REQ-38, REQ-39, REQ-41, REQ-48: a gap; the rest is asked for again, and may come as
 * RESP_FIRST.
 */
static void completer_rx__asks_for_the_missing_byte(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 1000, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,1000) SEND_ONLY@204+4!");
	memset(l.mr->mem, 0xEE, 1000);
	lone_response(&l, RESP_FIRST, 0x200, 256);
	assert_string_equal(lone_tx(&l), "");
	lone_response(&l, RESP_MIDDLE, 0x202, 256);
	assert_int_equal(l.verdict, DROP_READ_RESP_UNEXPECTED);
	for (unsigned i = 256; i < 1000; i++)
		assert_int_equal(l.mr->mem[i], 0xEE);
	assert_string_equal(lone_tx(&l), "READ_REQ@201!(100,744) SEND_ONLY@204+4!");
	lone_response(&l, RESP_LAST, 0x203, 232); /* of the first stream: it tells nothing new */
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(count()->implied_nak_seq_err, 1);
	lone_response(&l, RESP_FIRST, 0x201, 256);
	lone_response(&l, RESP_MIDDLE, 0x202, 256);
	lone_response(&l, RESP_LAST, 0x203, 232);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	lone_ack(&l, 0x204, 2);
	assert_string_equal(lone_cqes(&l), "S2:OK");
}

/* proves REQ-41: one byte is left, so the answer to the second request is an RESP_ONLY. */
static void completer_rx__takes_only_after_a_partial_retry(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 257, 0);
	lone_tx(&l);
	lone_response(&l, RESP_FIRST, 0x200, 256);
	lone_wait(&l, 2 * timers_ack_timeout(14));
	assert_string_equal(lone_tx(&l), "READ_REQ@201!(100,1)");
	lone_response(&l, RESP_ONLY, 0x201, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* RSP-43 broken by the peer: soft-RoCE resumes with RESP_MIDDLE when asked again for a tail. */
static void completer_rx__takes_middle_after_a_partial_retry(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 1000, 0);
	lone_tx(&l);
	lone_response(&l, RESP_FIRST, 0x200, 256);
	lone_wait(&l, 2 * timers_ack_timeout(14));
	assert_string_equal(lone_tx(&l), "READ_REQ@201!(100,744)");
	lone_response(&l, RESP_MIDDLE, 0x201, 256);
	lone_response(&l, RESP_MIDDLE, 0x202, 256);
	lone_wait(&l, 2 * timers_ack_timeout(14));
	assert_string_equal(lone_tx(&l), "READ_REQ@203!(300,232)");
	lone_response(&l, RESP_LAST, 0x203, 232);
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* proves REQ-41: a READ of two requests (BTH-16), both out again after a loss: the responses to
 * each may restart with RESP_FIRST. */
static void completer_rx__takes_first_after_a_partial_retry_of_two_requests(void **state)
{
	struct app_mr *big;
	struct app_send s = {.opcode = ABI_WR_RDMA_READ,
		.flags = ABI_WQE_SIGNALED,
		.wr_id = 1,
		.remote_addr = PEER_VA,
		.rkey = PEER_KEY,
		.num_sge = 1};

	lone_start(&l);
	big = app_mr(&l.app, 4096, ABI_ACCESS_LOCAL_WRITE);
	big->mr.length = MSG_LEN_MAX; /* only its start is written */
	s.sge[0] = app_sge(big, 0, MSG_LEN_MAX);
	app_post_send(l.qp, &s);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,1073741824)");
	lone_response(&l, RESP_FIRST, 0x200, 256);
	assert_string_equal(lone_tx(&l), "READ_REQ@400200!(40000000,1073741824)");
	lone_wait(&l, 2 * timers_ack_timeout(14));
	assert_string_equal(
		lone_tx(&l), "READ_REQ@201!(100,1073741568) READ_REQ@400200!(40000000,1073741824)");
	lone_response(&l, RESP_FIRST, 0x201, 256);
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(l.qp->qp->comp.una, 0x202);
}

/* proves REQ-12, REQ-38: an ACK alone never completes a READ, and later requests wait for it. */
static void completer_rx__ack_behind_a_read_is_an_implied_nak(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 2, 4, 0);
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	lone_tx(&l);
	lone_ack(&l, 0x202, 3);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	assert_string_equal(lone_tx(&l), "READ_REQ@201!(0,4) SEND_ONLY@202+4!");
	lone_ack(&l, 0x201, 3); /* of the READ itself: no better */
	assert_string_equal(lone_cqes(&l), "");
	lone_response(&l, RESP_ONLY, 0x201, 4);
	lone_ack(&l, 0x202, 3);
	assert_string_equal(lone_cqes(&l), "S2:OK S3:OK");
	assert_int_equal(count()->implied_nak_seq_err, 1);
}

/* proves REQ-12, REQ-38: a response to the second READ tells that those to the first were lost, and
 * completes nothing. */
static void completer_rx__next_reads_response_is_an_implied_nak(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 300, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 2, 4, 0);
	lone_tx(&l);
	lone_response(&l, RESP_ONLY, 0x202, 4);
	assert_int_equal(l.verdict, DROP_READ_RESP_UNEXPECTED);
	assert_string_equal(lone_cqes(&l), "");
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,300) READ_REQ@202!(0,4)");
	assert_int_equal(count()->implied_nak_seq_err, 1);
	lone_response(&l, RESP_FIRST, 0x200, 256);
	lone_response(&l, RESP_ONLY, 0x202, 4); /* and once more, in the middle of the first */
	assert_string_equal(lone_tx(&l), "READ_REQ@201!(100,44) READ_REQ@202!(0,4)");
	lone_response(&l, RESP_ONLY, 0x201, 44);
	lone_response(&l, RESP_ONLY, 0x202, 4);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
}

/* proves REQ-38 (REQ-34): a NAK for a request after a READ whose responses are missing. */
static void completer_rx__nak_behind_a_read_is_an_implied_nak(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 4, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	lone_nak(&l, 0x62, 0x201, 1);
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,4) SEND_ONLY@201+4!");
}

/* proves REQ-38 (REQ-26): a peer that has said a fatal NAK answers no more. The READ, which has no
 * answer, is what fails first, as RETRY_EXC; its reason names the peer's NAK. */
static void completer_rx__fatal_nak_behind_a_lost_read_is_told_with_it(void **state)
{
	l.attr.retry_cnt = 2;
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 4, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 2, 4, 0);
	lone_tx(&l);
	lone_nak(&l, 0x62, 0x201, 1);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,4) WRITE_ONLY@201+4!(0,4)");
	lone_wait(&l, 4 * timers_ack_timeout(14));
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,4) WRITE_ONLY@201+4!(0,4)");
	assert_string_equal(lone_cqes(&l), "");
	lone_wait(&l, 4 * timers_ack_timeout(14));
	lone_tx(&l);
	assert_true(app_poll(&l.app, l.send_cq, &l.last));
	assert_int_equal(l.last.status, ABI_WC_RETRY_EXC_ERR);
	assert_int_equal(l.last.vendor_err, 0x62);
	assert_string_equal(lone_cqes(&l), "S2:FLUSH");
}

/* proves REQ-34: the responses were only late, and the peer is silent since. Requests before the
 * NAK's PSN complete, and in the end the NAK applies to its own request. */
static void completer_rx__fatal_nak_applies_when_only_its_request_is_left(void **state)
{
	l.attr.retry_cnt = 1;
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 300, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 3, 600, 0);
	lone_post(&l, ABI_WR_SEND, 4, 4, 0);
	lone_tx(&l);
	lone_nak(&l, 0x62, 0x204, 2); /* the second packet of the WRITE */
	lone_response(&l, RESP_FIRST, 0x200, 256);
	lone_response(&l, RESP_LAST, 0x201, 44);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	for (unsigned i = 0; i < 2; i++) {
		assert_string_equal(lone_tx_max(&l, 1), "SEND_ONLY@202+4!"); /* REQ-38 */
		assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
		lone_wait(&l, 4 * timers_ack_timeout(14));
	}
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "S2:OK S3:REM_ACCESS S4:FLUSH");
	assert_int_equal(count()->req_remote_access_errors, 1);
	assert_int_equal(count()->retry_exceeded_err, 0);
}

/* proves REQ-38: a peer that answers after all has taken its NAK back. */
static void completer_rx__fatal_nak_is_void_after_an_ack(void **state)
{
	l.attr.retry_cnt = 1;
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 4, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 2, 4, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 3, 600, 0);
	lone_tx(&l);
	lone_nak(&l, 0x62, 0x201, 1);
	lone_response(&l, RESP_ONLY, 0x200, 4);
	lone_tx(&l);
	lone_ack(&l, 0x201, 2);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
	for (unsigned i = 0; i < 2; i++) {
		lone_wait(&l, 4 * timers_ack_timeout(14));
		lone_tx(&l);
	}
	assert_string_equal(lone_cqes(&l), "S3:RETRY_EXC");
	assert_int_equal(l.last.vendor_err, 0);
}

/* proves REQ-12, REQ-44 */
static void completer_rx__read_response_acknowledges_what_is_before(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 2, 300, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 3, 4, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 4, 4, 0);
	lone_tx(&l);
	lone_response(&l, RESP_ONLY, 0x203, 4);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK S3:OK");
	lone_response(&l, RESP_ONLY, 0x203, 4); /* again */
	assert_int_equal(l.verdict, DROP_READ_RESP_UNEXPECTED);
	assert_string_equal(lone_cqes(&l), "");
}

/* A NAK in the place of a response (RSP-31). */
static void completer_rx__nak_inside_a_read_fails_it(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 600, 0);
	lone_tx(&l);
	lone_response(&l, RESP_FIRST, 0x200, 256);
	lone_nak(&l, 0x62, 0x201, 1);
	assert_string_equal(lone_cqes(&l), "S1:REM_ACCESS");
}

/* proves REQ-40, REQ-41, REQ-42, REQ-43: responses that are wrong, to a READ of 600 bytes and to
 * shorter ones. */
static void completer_rx__refuses_wrong_responses(void **state)
{
	static const struct {
		uint32_t read;
		uint8_t before; /* responses that were good */
		uint8_t opcode;
		uint8_t syndrome;
		uint32_t len;
		const char *cqe;
	} row[] = {
		{600, 0, RESP_MIDDLE, 0x1F, 256, "S1:BAD_RESP"},
		{600, 0, RESP_LAST, 0x1F, 88, "S1:BAD_RESP"},
		{600, 0, RESP_ONLY, 0x1F, 88, "S1:BAD_RESP"},
		{600, 0, RESP_FIRST, 0x3F, 256, "S1:BAD_RESP"},
		{600, 0, RESP_FIRST, 0x60, 256, "S1:BAD_RESP"},
		{600, 0, RESP_FIRST, 0x1F, 252, "S1:LOC_LEN"},
		{600, 1, RESP_FIRST, 0x1F, 256, "S1:BAD_RESP"},
		{600, 1, RESP_LAST, 0x1F, 88, "S1:BAD_RESP"},
		{600, 1, RESP_MIDDLE, 0x00, 255, "S1:LOC_LEN"},
		{600, 2, RESP_MIDDLE, 0x1F, 88, "S1:BAD_RESP"},
		{600, 2, RESP_ONLY, 0x1F, 88, "S1:BAD_RESP"},
		{600, 2, RESP_LAST, 0x1F, 87, "S1:LOC_LEN"},
		{600, 2, RESP_LAST, 0x1F, 89, "S1:LOC_LEN"},
		{600, 2, RESP_LAST, 0x1F, 0, "S1:LOC_LEN"},
		{600, 0, RESP_FIRST, 0x1F, 257, "S1:LOC_LEN"},
		{600, 1, RESP_MIDDLE, 0x1F, 260, "S1:LOC_LEN"},
		{512, 1, RESP_LAST, 0x1F, 255, "S1:LOC_LEN"},
		{512, 1, RESP_LAST, 0x1F, 257, "S1:LOC_LEN"},
		{100, 0, RESP_ONLY, 0x1F, 99, "S1:LOC_LEN"},
		{100, 0, RESP_ONLY, 0x1F, 101, "S1:LOC_LEN"},
		{256, 0, RESP_ONLY, 0x1F, 257, "S1:LOC_LEN"},
		{600, 2, RESP_LAST, 0x3F, 88, "S1:BAD_RESP"},
		{600, 2, RESP_LAST, 0x62, 88, "S1:BAD_RESP"},
		{600, 2, RESP_LAST, 0x40, 88, "S1:BAD_RESP"}, /* a reserved type */
		{100, 0, RESP_ONLY, 0x20, 100, "S1:BAD_RESP"},
		{100, 0, RESP_ONLY, 0x60, 100, "S1:BAD_RESP"},
		{100, 0, RESP_ONLY, 0x5F, 100, "S1:BAD_RESP"},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		if (i)
			lone_init(&l);
		l.attr.path_mtu = 256;
		lone_start(&l);
		lone_post(&l, ABI_WR_RDMA_READ, 1, row[i].read, 0);
		lone_tx(&l);
		for (uint8_t b = 0; b < row[i].before; b++)
			lone_response(&l, b ? RESP_MIDDLE : RESP_FIRST, 0x200u + b, 256);
		lone_rx(&l, &(struct shot){.opcode = row[i].opcode,
				    .psn = 0x200u + row[i].before,
				    .syndrome = row[i].syndrome,
				    .len = row[i].len});
		assert_string_equal(lone_cqes(&l), row[i].cqe);
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		if (i + 1 < ARRAY_SIZE(row))
			lone_fini(&l);
	}
}

/* proves REQ-42, REQ-43: what is just right. Any credits, and bit 7 of the AETH is ignored
 * (REQ-46). */
static void completer_rx__takes_responses_of_every_size(void **state)
{
	static const uint32_t sizes[] = {0, 1, 255, 256, 257, 511, 512, 513, 768};

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint32_t left = sizes[i], psn = 0x200;

		if (i)
			lone_init(&l);
		l.attr.path_mtu = 256;
		lone_start(&l);
		lone_post(&l, ABI_WR_RDMA_READ, 1, left, 0);
		lone_tx(&l);
		for (; left > 256; left -= 256, psn++)
			lone_response(&l, psn == 0x200 ? RESP_FIRST : RESP_MIDDLE, psn, 256);
		assert_string_equal(lone_cqes(&l), "");
		lone_rx(&l, &(struct shot){.opcode = psn == 0x200 ? RESP_ONLY : RESP_LAST,
				    .psn = psn,
				    .syndrome = (uint8_t)(0x80 | i),
				    .msn = 1,
				    .len = left});
		assert_string_equal(lone_cqes(&l), "S1:OK");
		assert_int_equal(l.last.byte_len, sizes[i]);
		if (i + 1 < ARRAY_SIZE(sizes))
			lone_fini(&l);
	}
}

/* A response without AETH has no syndrome to report. */
static void completer_rx__vendor_err_is_a_syndrome_or_0(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 600, 0);
	lone_tx(&l);
	lone_response(&l, RESP_FIRST, 0x200, 256);
	lone_response(&l, RESP_MIDDLE, 0x201, 255);
	assert_string_equal(lone_cqes(&l), "S1:LOC_LEN");
	assert_int_equal(l.last.vendor_err, 0);
}

/* proves REQ-45 (MR-06): the region is looked up for each response. */
static void completer_rx__read_fails_when_the_region_goes(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 600, 0);
	lone_tx(&l);
	lone_response(&l, RESP_FIRST, 0x200, 256);
	app_mr_dereg(&l.app, l.mr);
	memset(l.mr->mem, 0xEE, LONE_MEM);
	lone_response(&l, RESP_MIDDLE, 0x201, 256);
	assert_string_equal(lone_cqes(&l), "S1:LOC_PROT");
	for (unsigned i = 0; i < 1024; i++)
		assert_int_equal(l.mr->mem[i], 0xEE);
}

/* proves REQ-45: the right to write is looked at for each response, too. */
static void completer_rx__read_fails_when_the_right_goes(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 600, 0);
	lone_tx(&l);
	lone_response(&l, RESP_FIRST, 0x200, 256);
	l.mr->mr.access &= ~(uint32_t)ABI_ACCESS_LOCAL_WRITE;
	memset(l.mr->mem, 0xEE, LONE_MEM);
	lone_response(&l, RESP_MIDDLE, 0x201, 256);
	assert_string_equal(lone_cqes(&l), "S1:LOC_PROT");
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_int_equal(l.mr->mem[256], 0xEE);
}

/* proves REQ-45 (decision 0000.5): the destination of a READ faults. */
static void completer_rx__read_into_faulting_memory(void **state)
{
	struct app_send s = {.opcode = ABI_WR_RDMA_READ,
		.wr_id = 1,
		.remote_addr = PEER_VA,
		.rkey = PEER_KEY,
		.num_sge = 1};
	struct mr *mr;

	lone_start(&l);
	mr = hole_open(l.host, APP_PD);
	s.sge[0] = (struct abi_sge){mr->iova + HOLE_PAGE, 8, mr->key};
	app_post_send(l.qp, &s);
	lone_tx(&l);
	lone_response(&l, RESP_ONLY, 0x200, 8);
	assert_string_equal(lone_cqes(&l), "S1:LOC_PROT");
	assert_int_equal(count()->access_faults, 1);
	hole_close(l.host);
}

/* proves REQ-36 */
static void completer_rx__drops_what_nobody_asked_for(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	lone_response(&l, RESP_ONLY, 0x202, 4); /* of what was never sent */
	assert_int_equal(l.verdict, DROP_GHOST_ACK);
	lone_response(&l, RESP_ONLY, 0x201, 4); /* a response to a SEND */
	assert_int_equal(l.verdict, DROP_READ_RESP_UNEXPECTED);
	assert_string_equal(lone_cqes(&l), "");
	lone_ack(&l, 0x201, 2);
	lone_post(&l, ABI_WR_RDMA_READ, 3, 4, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 4, 4, 0);
	lone_tx(&l);
	lone_response(&l, RESP_ONLY, 0x202, 4);
	for (unsigned i = 0; i < 3; i++) { /* a duplicate tells of no loss */
		lone_response(&l, RESP_ONLY, 0x202, 4);
		assert_int_equal(l.verdict, DROP_READ_RESP_UNEXPECTED);
		assert_string_equal(lone_tx(&l), "");
	}
	assert_int_equal(l.qp->qp->comp.retry_left, 7);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK S3:OK");
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup_256, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(completer_rx__scatters_read_responses),
		T(completer_rx__asks_for_the_missing_byte),
		T(completer_rx__takes_only_after_a_partial_retry),
		T(completer_rx__takes_middle_after_a_partial_retry),
		T(completer_rx__takes_first_after_a_partial_retry_of_two_requests),
		T(completer_rx__ack_behind_a_read_is_an_implied_nak),
		T(completer_rx__next_reads_response_is_an_implied_nak),
		T(completer_rx__nak_behind_a_read_is_an_implied_nak),
		T(completer_rx__fatal_nak_behind_a_lost_read_is_told_with_it),
		T(completer_rx__fatal_nak_applies_when_only_its_request_is_left),
		T(completer_rx__fatal_nak_is_void_after_an_ack),
		T(completer_rx__read_response_acknowledges_what_is_before),
		T(completer_rx__nak_inside_a_read_fails_it),
		T(completer_rx__refuses_wrong_responses),
		T(completer_rx__takes_responses_of_every_size),
		T(completer_rx__vendor_err_is_a_syndrome_or_0),
		T(completer_rx__read_fails_when_the_region_goes),
		T(completer_rx__read_fails_when_the_right_goes),
		T(completer_rx__read_into_faulting_memory),
		T(completer_rx__drops_what_nobody_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
