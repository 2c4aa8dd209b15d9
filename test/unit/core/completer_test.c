/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes back for requests: ACK, NAK, RNR, READ responses; REQ-22..50. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "hole.h"
#include "lone.h"
#include "requester.h"
#include "timers.h"

#define MSEC 1000000ull

static struct lone l;

static int setup(void **state)
{
	lone_init(&l);
	l.attr.path_mtu = 256;
	return 0;
}

static int teardown(void **state)
{
	lone_fini(&l);
	return 0;
}

static const struct core_counters *count(void)
{
	return &l.host->core.count;
}

static void resp(uint8_t opcode, uint32_t psn, uint32_t len)
{
	lone_rx(&l, &(struct shot){
			    .opcode = opcode, .psn = psn, .syndrome = 0x1F, .msn = 1, .len = len});
}

#define FIRST  0x0D
#define MIDDLE 0x0E
#define LAST   0x0F
#define ONLY   0x10

/* --- ACK ------------------------------------------------------------------------------ */

/* REQ-12, REQ-35 */
static void completer_rx__one_ack_completes_all_before_it(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 2, 600, 0);
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	lone_tx(&l);
	lone_ack(&l, 0x202, 1); /* inside the WRITE */
	assert_string_equal(lone_cqes(&l), "S1:OK");
	lone_ack(&l, 0x204, 3);
	assert_string_equal(lone_cqes(&l), "S2:OK S3:OK");
	assert_int_equal(atomic_load(&l.qp->sq_shared->consumer), 3);
}

/* REQ-35 for the longest message: its first PSN is 2^23 and more before that of the ACK. */
static void completer_rx__one_ack_completes_2_23_packets(void **state)
{
	const uint32_t last = 0x200 + (1u << 23) - 1;
	struct app_mr *big;
	struct app_send s = {
		.opcode = ABI_WR_SEND, .flags = ABI_WQE_SIGNALED, .wr_id = 1, .num_sge = 1};
	struct qp *qp;

	lone_start(&l);
	qp = l.qp->qp;
	big = app_mr(&l.app, 4096, ABI_ACCESS_LOCAL_WRITE);
	big->mr.length = MSG_LEN_MAX;
	big->mr.base -= MSG_LEN_MAX - 4096; /* only its end is read */
	s.sge[0] = app_sge(big, 0, MSG_LEN_MAX);
	app_post_send(l.qp, &s);
	assert_true(requester_fetch(&l.host->core, qp));
	/* all but the last packet were sent and acknowledged */
	qp->req.psn = qp->req.psn_new = qp->comp.una = last;
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_LAST@8001ff+256! SEND_ONLY@800200+4!");
	lone_ack(&l, last + 1, 2);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
}

/* REQ-13 */
static void completer_rx__unsignaled_completes_silently(void **state)
{
	struct app_send s = {.opcode = ABI_WR_SEND, .wr_id = 1};

	lone_start(&l);
	app_post_send(l.qp, &s);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	lone_ack(&l, 0x200, 1);
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(atomic_load(&l.qp->sq_shared->consumer), 1);
	lone_ack(&l, 0x201, 2);
	assert_string_equal(lone_cqes(&l), "S2:OK");
}

/* REQ-14 */
static void completer_rx__sq_sig_all_signals_everything(void **state)
{
	struct app_send s = {.opcode = ABI_WR_SEND, .wr_id = 1};

	l.spec.sig_all = true;
	lone_start(&l);
	app_post_send(l.qp, &s);
	lone_tx(&l);
	lone_ack(&l, 0x200, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* REQ-36 */
static void completer_rx__ignores_ghosts(void **state)
{
	lone_start(&l);
	lone_ack(&l, 0x200, 1); /* nothing was ever sent */
	assert_int_equal(l.verdict, DROP_GHOST_ACK);
	lone_ack(&l, 0x1FF, 1);
	assert_int_equal(l.verdict, 0); /* a duplicate */
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	lone_ack(&l, 0x201, 1);
	assert_int_equal(l.verdict, DROP_GHOST_ACK);
	lone_nak(&l, 0x62, 0x201, 0);
	assert_int_equal(l.verdict, DROP_GHOST_ACK);
	lone_nak(&l, 0x62, 0x1FF, 0); /* of what was acknowledged long ago */
	assert_int_equal(l.verdict, DROP_GHOST_ACK);
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	assert_int_equal(count()->drop[DROP_GHOST_ACK], 4);
	lone_ack(&l, 0x200, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* REQ-46: reserved types and codes; bit 7 does not matter. */
static void completer_rx__ignores_reserved_syndromes(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	for (unsigned s = 0; s < 128; s++) {
		bool reserved = (s & 0x60) == 0x40 || (s >= 0x65 && s <= 0x7F);

		if (!reserved)
			continue;
		lone_nak(&l, (uint8_t)s, 0x200, 1);
		assert_int_equal(l.verdict, DROP_AETH_RESERVED);
	}
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	lone_nak(&l, 0x9F, 0x200, 1); /* an ACK with bit 7 */
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* --- NAK ------------------------------------------------------------------------------ */

/* REQ-28, REQ-34, REQ-48, REQ-49 */
static void completer_rx__psn_nak_resends_from_its_psn(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 2, 700, 0);
	lone_tx(&l);
	lone_nak(&l, 0x60, 0x202, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	assert_string_equal(lone_tx(&l), "WRITE_MIDDLE@202+256 WRITE_LAST@203+188!");
	assert_int_equal(count()->packet_seq_err, 1);
	assert_int_equal(count()->retransmits, 2);
	lone_ack(&l, 0x203, 2);
	assert_string_equal(lone_cqes(&l), "S2:OK");
}

/* The second copy of a NAK finds that we went back already. */
static void completer_rx__psn_nak_twice_goes_back_once(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 600, 0);
	lone_tx(&l);
	lone_nak(&l, 0x60, 0x201, 1);
	lone_nak(&l, 0x60, 0x201, 1);
	assert_int_equal(l.qp->qp->comp.retry_left, 6);
	assert_string_equal(lone_tx(&l), "SEND_MIDDLE@201+256 SEND_LAST@202+88!");
}

/* REQ-33, CQ-10, REQ-13: each code, an unsignaled WQE, and what is behind it. */
static void completer_rx__fatal_naks_fail_their_wqe(void **state)
{
	static const struct {
		uint8_t syndrome;
		const char *cqes;
	} row[] = {
		{0x61, "S1:OK S2:REM_INV_REQ S3:FLUSH"}, {0x62, "S1:OK S2:REM_ACCESS S3:FLUSH"},
		{0x63, "S1:OK S2:REM_OP S3:FLUSH"}, {0x64, "S1:OK S2:REM_INV_REQ S3:FLUSH"},
		{0xE2, "S1:OK S2:REM_ACCESS S3:FLUSH"}, /* bit 7 is ignored */
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		struct app_send s = {.opcode = ABI_WR_SEND, .wr_id = 2};

		if (i)
			lone_init(&l);
		lone_start(&l);
		lone_post(&l, ABI_WR_SEND, 1, 4, 0);
		app_post_send(l.qp, &s);
		lone_post(&l, ABI_WR_SEND, 3, 4, 0);
		lone_tx(&l);
		lone_nak(&l, row[i].syndrome, 0x201, 1);
		assert_string_equal(lone_tx(&l), "");
		assert_string_equal(lone_cqes(&l), row[i].cqes);
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		assert_int_equal(l.qp->qp->comp.due, 0);
		if (i + 1 < ARRAY_SIZE(row))
			lone_fini(&l);
	}
}

/* --- RNR ------------------------------------------------------------------------------ */

/* REQ-29, REQ-31, REQ-32: code 14 is 1.28 ms; the ACK timer does not run meanwhile. */
static void completer_rx__rnr_waits_its_time(void **state)
{
	l.attr.rnr_retry = 1;
	l.attr.timeout = 1; /* 8 us */
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	lone_nak(&l, 0x2E, 0x201, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	assert_string_equal(lone_tx(&l), "");
	lone_wait(&l, 1279999);
	assert_string_equal(lone_tx(&l), "");
	lone_wait(&l, 3000);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@201+4!");
	assert_int_equal(l.qp->qp->comp.retry_left, 7);
	lone_nak(&l, 0x2E, 0x201, 1); /* REQ-30: the one retry is spent */
	assert_string_equal(lone_cqes(&l), "S2:RNR_RETRY_EXC");
	assert_int_equal(count()->rnr_nak_retry_err, 1);
	assert_int_equal(count()->local_ack_timeout_err, 0);
}

/* REQ-30 */
static void completer_rx__rnr_retry_0_fails_at_once(void **state)
{
	l.attr.rnr_retry = 0;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	lone_nak(&l, 0x21, 0x200, 0);
	assert_string_equal(lone_cqes(&l), "S1:RNR_RETRY_EXC");
}

/* REQ-30 */
static void completer_rx__rnr_retry_7_never_gives_up(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	for (unsigned i = 0; i < 100; i++) {
		lone_nak(&l, 0x20, 0x200, 0); /* code 0 is the longest: 655.36 ms */
		lone_wait(&l, 655 * MSEC);
		assert_string_equal(lone_tx(&l), "");
		lone_wait(&l, MSEC);
		assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	}
	lone_ack(&l, 0x200, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* REQ-31 */
static void completer_rx__rnr_count_is_reloaded_by_progress(void **state)
{
	l.attr.rnr_retry = 1;
	lone_start(&l);
	for (uint32_t i = 0; i < 5; i++) {
		lone_post(&l, ABI_WR_SEND, i, 4, 0);
		lone_tx(&l);
		lone_nak(&l, 0x21, 0x200 + i, i);
		lone_wait(&l, 20000);
		lone_tx(&l);
		lone_ack(&l, 0x200 + i, i + 1);
	}
	assert_string_equal(lone_cqes(&l), "S0:OK S1:OK S2:OK S3:OK S4:OK");
}

/* REQ-31: the peer is alive; whatever it refuses besides costs no transport retry. */
static void completer_rx__rnr_reloads_the_transport_retries(void **state)
{
	l.attr.retry_cnt = 1;
	l.spec.window = 16;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	for (unsigned i = 0; i < 5; i++) {
		lone_nak(&l, 0x21, 0x200, 0);
		assert_int_equal(l.qp->qp->comp.retry_left, 1);
		lone_nak(&l, 0x60, 0x200, 0); /* soft-RoCE, for the SEND behind it */
		lone_wait(&l, 20000);
		lone_tx(&l);
		lone_nak(&l, 0x60, 0x200, 0); /* the same, late */
		lone_tx(&l);
	}
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	assert_int_equal(l.qp->qp->win.size, 4); /* less of what is wasted */
}

/* --- timeouts ------------------------------------------------------------------------- */

/* REQ-22, REQ-24, REQ-25, REQ-26: seven means seven, each after [T, 4T]. */
static void completer_timeout__gives_up_after_retry_cnt(void **state)
{
	const uint64_t t = timers_ack_timeout(14);

	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 300, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	for (unsigned i = 0; i < 7; i++) {
		lone_wait(&l, t - 1);
		assert_string_equal(lone_tx(&l), "");
		lone_wait(&l, 3 * t);
		lone_tx(&l);
		assert_int_equal(l.packets, 3 * (i + 2));
	}
	assert_string_equal(lone_cqes(&l), "");
	lone_wait(&l, 4 * t);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:RETRY_EXC S2:FLUSH");
	assert_int_equal(count()->local_ack_timeout_err, 8);
	assert_int_equal(count()->retry_exceeded_err, 1);
}

/* REQ-23, REQ-27 */
static void completer_timeout__progress_restarts_and_reloads(void **state)
{
	const uint64_t t = timers_ack_timeout(14);

	l.attr.retry_cnt = 1;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 1500, 0);
	lone_tx(&l);
	for (uint32_t i = 0; i < 4; i++) {
		lone_wait(&l, t + 5000);
		lone_tx(&l);
		assert_int_equal(l.qp->qp->comp.retry_left, 0);
		lone_wait(&l, t / 2);
		lone_ack(&l, 0x200 + i, 0);
		assert_int_equal(l.qp->qp->comp.retry_left, 1);
		lone_wait(&l, t - 5000); /* less than T since the ACK */
		assert_int_equal(count()->local_ack_timeout_err, i + 1);
	}
	lone_ack(&l, 0x205, 1);
	lone_wait(&l, 100 * t); /* nothing is outstanding: it does not run */
	assert_int_equal(count()->local_ack_timeout_err, 4);
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* REQ-22: 0 is infinite. */
static void completer_timeout__never_with_code_0(void **state)
{
	l.attr.timeout = 0;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	lone_wait(&l, 3600ull * 1000 * MSEC);
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
}

/* An ACK that overtook the retry: go on behind it, do not send what arrived. */
static void completer_rx__late_ack_moves_forward(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 256 * 6, 0);
	lone_tx(&l);
	lone_wait(&l, 2 * timers_ack_timeout(14));
	assert_string_equal(lone_tx_max(&l, 1), "SEND_FIRST@200+256");
	lone_ack(&l, 0x203, 0);
	assert_string_equal(lone_tx(&l), "SEND_MIDDLE@204+256 SEND_LAST@205+256!");
}

/* --- READ ----------------------------------------------------------------------------- */

/* REQ-40, REQ-45: FIRST MIDDLE LAST into sixteen SGEs, empty ones among them. */
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
	resp(FIRST, 0x200, 256);
	resp(MIDDLE, 0x201, 256);
	assert_string_equal(lone_cqes(&l), "");
	resp(LAST, 0x202, len - 512);
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

/* REQ-38, REQ-39, REQ-41, REQ-48: a gap; the rest is asked for again, and may come as FIRST. */
static void completer_rx__asks_for_the_missing_byte(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 1000, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,1000) SEND_ONLY@204+4!");
	resp(FIRST, 0x200, 256);
	assert_string_equal(lone_tx(&l), "");
	resp(MIDDLE, 0x202, 256);
	assert_int_equal(l.verdict, DROP_READ_RESP_UNEXPECTED);
	assert_string_equal(lone_tx(&l), "READ_REQ@201!(100,744) SEND_ONLY@204+4!");
	resp(LAST, 0x203, 232); /* of the first stream: it tells nothing new */
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(count()->implied_nak_seq_err, 1);
	resp(FIRST, 0x201, 256);
	resp(MIDDLE, 0x202, 256);
	resp(LAST, 0x203, 232);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	lone_ack(&l, 0x204, 2);
	assert_string_equal(lone_cqes(&l), "S2:OK");
}

/* REQ-41: one byte is left, so the answer to the second request is an ONLY. */
static void completer_rx__takes_only_after_a_partial_retry(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 257, 0);
	lone_tx(&l);
	resp(FIRST, 0x200, 256);
	lone_wait(&l, 2 * timers_ack_timeout(14));
	assert_string_equal(lone_tx(&l), "READ_REQ@201!(100,1)");
	resp(ONLY, 0x201, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* REQ-41: a READ of two requests (BTH-16), both out again after a loss: the responses to each may
 * restart with FIRST. */
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
	resp(FIRST, 0x200, 256);
	assert_string_equal(lone_tx(&l), "READ_REQ@400200!(40000000,1073741824)");
	lone_wait(&l, 2 * timers_ack_timeout(14));
	assert_string_equal(
		lone_tx(&l), "READ_REQ@201!(100,1073741568) READ_REQ@400200!(40000000,1073741824)");
	resp(FIRST, 0x201, 256);
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(l.qp->qp->comp.una, 0x202);
}

/* REQ-38: an ACK alone never completes a READ. */
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
	resp(ONLY, 0x201, 4);
	lone_ack(&l, 0x202, 3);
	assert_string_equal(lone_cqes(&l), "S2:OK S3:OK");
	assert_int_equal(count()->implied_nak_seq_err, 1);
}

/* A NAK for what lies behind a READ whose responses are missing (REQ-38). */
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

/* REQ-44, REQ-12 */
static void completer_rx__read_response_acknowledges_what_is_before(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 2, 300, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 3, 4, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 4, 4, 0);
	lone_tx(&l);
	resp(ONLY, 0x203, 4);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK S3:OK");
	resp(ONLY, 0x203, 4); /* again */
	assert_int_equal(l.verdict, DROP_READ_RESP_UNEXPECTED);
	assert_string_equal(lone_cqes(&l), "");
}

/* A NAK in the place of a response (RSP-31). */
static void completer_rx__nak_inside_a_read_fails_it(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 600, 0);
	lone_tx(&l);
	resp(FIRST, 0x200, 256);
	lone_nak(&l, 0x62, 0x201, 1);
	assert_string_equal(lone_cqes(&l), "S1:REM_ACCESS");
}

/* REQ-40, REQ-42, REQ-43: responses that are wrong. */
static void completer_rx__refuses_wrong_responses(void **state)
{
	static const struct {
		uint8_t before; /* responses that were good */
		uint8_t opcode;
		uint8_t syndrome;
		uint32_t len;
		const char *cqe;
	} row[] = {
		{0, MIDDLE, 0x1F, 256, "S1:BAD_RESP"},
		{0, LAST, 0x1F, 88, "S1:BAD_RESP"},
		{0, ONLY, 0x1F, 88, "S1:BAD_RESP"},
		{0, FIRST, 0x3F, 256, "S1:BAD_RESP"},
		{0, FIRST, 0x60, 256, "S1:BAD_RESP"},
		{0, FIRST, 0x1F, 252, "S1:LOC_LEN"},
		{1, FIRST, 0x1F, 256, "S1:BAD_RESP"},
		{1, LAST, 0x1F, 88, "S1:BAD_RESP"},
		{1, MIDDLE, 0x00, 255, "S1:LOC_LEN"},
		{2, MIDDLE, 0x1F, 88, "S1:BAD_RESP"},
		{2, ONLY, 0x1F, 88, "S1:BAD_RESP"},
		{2, LAST, 0x1F, 87, "S1:LOC_LEN"},
		{2, LAST, 0x1F, 89, "S1:LOC_LEN"},
		{2, LAST, 0x1F, 0, "S1:LOC_LEN"},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		if (i)
			lone_init(&l);
		l.attr.path_mtu = 256;
		lone_start(&l);
		lone_post(&l, ABI_WR_RDMA_READ, 1, 600, 0);
		lone_tx(&l);
		for (uint8_t b = 0; b < row[i].before; b++)
			resp(b ? MIDDLE : FIRST, 0x200u + b, 256);
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

/* A response without AETH has no syndrome to report. */
static void completer_rx__vendor_err_is_a_syndrome_or_0(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 600, 0);
	lone_tx(&l);
	resp(FIRST, 0x200, 256);
	resp(MIDDLE, 0x201, 255);
	assert_string_equal(lone_cqes(&l), "S1:LOC_LEN");
	assert_int_equal(l.last.vendor_err, 0);
}

/* REQ-45, MR-06: the region is looked up for each response. */
static void completer_rx__read_fails_when_the_region_goes(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 600, 0);
	lone_tx(&l);
	resp(FIRST, 0x200, 256);
	app_mr_dereg(&l.app, l.mr);
	memset(l.mr->mem, 0xEE, LONE_MEM);
	resp(MIDDLE, 0x201, 256);
	assert_string_equal(lone_cqes(&l), "S1:LOC_PROT");
	for (unsigned i = 0; i < 1024; i++)
		assert_int_equal(l.mr->mem[i], 0xEE);
}

/* design.md 5: the destination of a READ faults. */
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
	resp(ONLY, 0x200, 8);
	assert_string_equal(lone_cqes(&l), "S1:LOC_PROT");
	assert_int_equal(count()->access_faults, 1);
	hole_close(l.host);
}

static void completer_rx__drops_what_nobody_asked_for(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	resp(ONLY, 0x201, 4); /* a response to a SEND */
	assert_int_equal(l.verdict, DROP_READ_RESP_UNEXPECTED);
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
}

/* --- window --------------------------------------------------------------------------- */

static void completer_timeout__halves_the_window(void **state)
{
	l.spec.window = 16;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 256 * 40, 0);
	lone_tx(&l);
	assert_int_equal(l.packets, 16);
	lone_wait(&l, 2 * timers_ack_timeout(14));
	lone_tx(&l);
	assert_int_equal(l.packets, 16 + 8);
	lone_ack(&l, 0x207, 0); /* eight packets: two more in the window */
	lone_tx(&l);
	assert_int_equal(l.packets, 16 + 8 + 10);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(completer_rx__one_ack_completes_all_before_it),
		T(completer_rx__one_ack_completes_2_23_packets),
		T(completer_rx__unsignaled_completes_silently),
		T(completer_rx__sq_sig_all_signals_everything),
		T(completer_rx__ignores_ghosts),
		T(completer_rx__ignores_reserved_syndromes),
		T(completer_rx__psn_nak_resends_from_its_psn),
		T(completer_rx__psn_nak_twice_goes_back_once),
		T(completer_rx__fatal_naks_fail_their_wqe),
		T(completer_rx__rnr_waits_its_time),
		T(completer_rx__rnr_retry_0_fails_at_once),
		T(completer_rx__rnr_retry_7_never_gives_up),
		T(completer_rx__rnr_count_is_reloaded_by_progress),
		T(completer_rx__rnr_reloads_the_transport_retries),
		T(completer_timeout__gives_up_after_retry_cnt),
		T(completer_timeout__progress_restarts_and_reloads),
		T(completer_timeout__never_with_code_0),
		T(completer_rx__late_ack_moves_forward),
		T(completer_rx__scatters_read_responses),
		T(completer_rx__asks_for_the_missing_byte),
		T(completer_rx__takes_only_after_a_partial_retry),
		T(completer_rx__takes_first_after_a_partial_retry_of_two_requests),
		T(completer_rx__ack_behind_a_read_is_an_implied_nak),
		T(completer_rx__nak_behind_a_read_is_an_implied_nak),
		T(completer_rx__read_response_acknowledges_what_is_before),
		T(completer_rx__nak_inside_a_read_fails_it),
		T(completer_rx__refuses_wrong_responses),
		T(completer_rx__vendor_err_is_a_syndrome_or_0),
		T(completer_rx__read_fails_when_the_region_goes),
		T(completer_rx__read_into_faulting_memory),
		T(completer_rx__drops_what_nobody_asked_for),
		T(completer_timeout__halves_the_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
