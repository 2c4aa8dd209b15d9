/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting and trying again: RNR NAKs, timeouts, the window. */
#include <stdio.h>
#include "fixture.h"
#include "opcodes.h"
#include "qp.h"
#include "timers.h"

#define MSEC 1000000ull

/* --- RNR ------------------------------------------------------------------------------ */

/* proves REQ-29, REQ-30, REQ-31 (REQ-32): code 14 is 1.28 ms; the ACK timer does not run meanwhile.
 */
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
	assert_int_equal(count()->rnr_nak_recv, 2);
	assert_int_equal(count()->rnr_nak_retry_err, 1); /* as mlx5 counts them */
	assert_int_equal(count()->retry_rnr_exceeded_err, 1);
	assert_int_equal(count()->local_ack_timeout_err, 0);
}

/* proves REQ-30 */
static void completer_rx__rnr_retry_0_fails_at_once(void **state)
{
	l.attr.rnr_retry = 0;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	lone_nak(&l, 0x21, 0x200, 0);
	assert_string_equal(lone_cqes(&l), "S1:RNR_RETRY_EXC");
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
}

/* proves REQ-30 */
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

/* proves REQ-31 */
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

/* proves REQ-31: the peer is alive; whatever it refuses besides costs no transport retry. */
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
		lone_nak(&l, 0x60, 0x200, 0); /* soft-RoCE, for the SEND after it */
		lone_wait(&l, 20000);
		lone_tx(&l);
		lone_nak(&l, 0x60, 0x200, 0); /* the same, late */
		lone_tx(&l);
	}
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	assert_int_equal(l.qp->qp->win.size, 4); /* less of what is wasted */
}

/* proves REQ-29, REQ-32: each of the 32 codes is waited for, and not more than four times as long.
 */
static void completer_rx__rnr_waits_for_each_code(void **state)
{
	static const uint32_t want[32] = {65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128,
		192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
		24576, 32768, 49152}; /* 10 us */

	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	for (uint8_t code = 0; code < 32; code++) {
		lone_nak(&l, 0x20 | code, 0x200, 0);
		lone_wait(&l, want[code] * 10000ull - 1);
		assert_string_equal(lone_tx(&l), "");
		lone_wait(&l, want[code] * 30000ull);
		assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	}
	assert_int_equal(count()->rnr_nak_recv, 32);
	assert_int_equal(count()->local_ack_timeout_err, 0);
}

/* proves REQ-29, REQ-30: what was posted meanwhile waits too, and a second copy of the NAK changes
 * and costs nothing. */
static void completer_rx__rnr_holds_everything_back(void **state)
{
	l.attr.rnr_retry = 1;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	lone_nak(&l, 0x2E, 0x200, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 2, 4, 0);
	assert_string_equal(lone_tx(&l), "");
	lone_wait(&l, MSEC);
	lone_nak(&l, 0x2E, 0x200, 0);
	assert_string_equal(lone_cqes(&l), "");
	lone_wait(&l, 290000);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4! WRITE_ONLY@201+4!(0,4)");
}

/* --- timeouts ------------------------------------------------------------------------- */

/* proves REQ-25, REQ-26 (REQ-22, REQ-24): seven means seven, each after [T, 4T]. */
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

/* proves REQ-23, REQ-27 */
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

/* proves REQ-22, REQ-24: what is sent again after a NAK has its own [T, 4T]: what was left of the
 * first time is no time-out. */
static void completer_timeout__of_what_a_nak_had_sent_again(void **state)
{
	const uint64_t t = timers_ack_timeout(14);

	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	lone_wait(&l, t - t / 8);
	lone_nak(&l, 0x60, 0x200, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	lone_wait(&l, t - t / 8);
	assert_int_equal(count()->local_ack_timeout_err, 0);
	assert_int_equal(l.qp->qp->comp.retry_left, 6); /* the NAK's: REQ-28 */
	lone_wait(&l, 4 * t);
	assert_int_equal(count()->local_ack_timeout_err, 1);
	assert_int_equal(l.qp->qp->comp.retry_left, 5);
}

/* proves REQ-22, REQ-24: no timer runs while a port takes nothing of what is to be sent again, and
 * no retry is charged. */
static void completer_timeout__not_of_what_waits_to_be_sent_again(void **state)
{
	const uint64_t t = timers_ack_timeout(14);

	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	lone_nak(&l, 0x60, 0x200, 0);
	lone_wait(&l, 40 * t);
	assert_int_equal(count()->local_ack_timeout_err, 0);
	assert_int_equal(l.qp->qp->comp.retry_left, 6);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	lone_ack(&l, 0x200, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* proves REQ-22: 0 is infinite. */
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

/* proves REQ-24: go-back-N, from the oldest PSN that is not acknowledged to the newest that was
 * sent. */
static void completer_timeout__resends_from_the_oldest(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 2, 1000, 0);
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	lone_tx(&l);
	lone_ack(&l, 0x202, 1);
	lone_wait(&l, 4 * timers_ack_timeout(14));
	assert_string_equal(
		lone_tx(&l), "WRITE_MIDDLE@203+256 WRITE_LAST@204+232! SEND_ONLY@205+4!");
	assert_int_equal(l.qp->qp->comp.retry_left, 6);
	assert_int_equal(count()->retransmits, 3);
	assert_int_equal(count()->local_ack_timeout_err, 1);
	lone_ack(&l, 0x205, 3);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK S3:OK");
}

/* proves REQ-24, REQ-25 (REQ-26): each retry_cnt is that many retries, 0 none. */
static void completer_timeout__counts_every_retry_cnt(void **state)
{
	for (uint8_t n = 0; n < 8; n++) {
		if (n)
			lone_init(&l);
		l.attr.retry_cnt = n;
		lone_start(&l);
		lone_post(&l, ABI_WR_RDMA_READ, 1, 4, 0);
		lone_tx(&l);
		for (unsigned i = 0; i < 20; i++) {
			lone_wait(&l, 4 * timers_ack_timeout(14));
			lone_tx(&l);
		}
		assert_int_equal(l.packets, 1 + n);
		assert_string_equal(lone_cqes(&l), "S1:RETRY_EXC");
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		if (n < 7)
			lone_fini(&l);
	}
}

/* proves REQ-23, REQ-27: a READ response is progress too, each one. */
static void completer_timeout__read_responses_restart_and_reload(void **state)
{
	const uint64_t t = timers_ack_timeout(14);

	l.attr.retry_cnt = 1;
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 256 * 6, 0);
	lone_tx(&l);
	lone_wait(&l, t + 5000);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,1536)");
	assert_int_equal(l.qp->qp->comp.retry_left, 0);
	for (uint32_t i = 0; i < 5; i++) {
		lone_wait(&l, t - 5000);
		lone_response(&l, i ? RESP_MIDDLE : RESP_FIRST, 0x200 + i, 256);
		assert_int_equal(l.qp->qp->comp.retry_left, 1);
	}
	assert_int_equal(count()->local_ack_timeout_err, 1);
	lone_response(&l, RESP_LAST, 0x205, 256);
	lone_wait(&l, 100 * t);
	assert_int_equal(count()->local_ack_timeout_err, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* An ACK that overtook the retry: continue after it, do not send what arrived. */
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

/* --- window --------------------------------------------------------------------------- */

/* proves REQ-51: the smaller window does not close without a question either. */
static void completer_timeout__halves_the_window(void **state)
{
	l.spec.window = 16;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 256 * 40, 0);
	lone_tx(&l);
	assert_int_equal(l.packets, 16);
	lone_wait(&l, 2 * timers_ack_timeout(14));
	assert_string_equal(lone_tx(&l), "SEND_FIRST@200+256 SEND_MIDDLE@201+256! "
					 "SEND_MIDDLE@202+256 SEND_MIDDLE@203+256! "
					 "SEND_MIDDLE@204+256 SEND_MIDDLE@205+256! "
					 "SEND_MIDDLE@206+256 SEND_MIDDLE@207+256!");
	lone_ack(&l, 0x207, 0); /* eight packets: two more in the window */
	lone_tx(&l);
	assert_int_equal(l.packets, 16 + 8 + 10);
}

/* REQ-22, REQ-24: a port that takes nothing for many timeouts must not use the retries up: what was
 * not sent again cannot have been lost again. */
static void completer_timeout__charges_what_was_sent(void **state)
{
	l.attr.timeout = 1; /* 8 us */
	l.attr.retry_cnt = 1;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	for (unsigned i = 0; i < 20; i++)
		lone_wait(&l, 20000); /* and core_tx() is not called */
	assert_int_equal(count()->local_ack_timeout_err, 1);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	lone_wait(&l, 8000); /* from then on it counts */
	assert_string_equal(lone_cqes(&l), "");
	lone_wait(&l, 4000);
	assert_string_equal(lone_cqes(&l), "S1:RETRY_EXC");
}

/* REQ-29: a peer that refuses a READ for now gets its time, although later requests were answered:
 * the READ goes first (REQ-38), but not yet. */
static void completer_rx__rnr_outlasts_an_implied_nak(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 4, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	lone_nak(&l, 0x2E, 0x200, 0); /* 1.28 ms */
	lone_ack(&l, 0x201, 1);
	assert_string_equal(lone_tx(&l), "");
	lone_wait(&l, 1279000);
	assert_string_equal(lone_tx(&l), "");
	lone_wait(&l, 3000);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,4) SEND_ONLY@201+4!");
}

/* A READ, then a SEND; the READ's response was lost, so both were sent again. */
static void lose_a_response(void)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 4, ABI_WQE_SIGNALED);
	lone_post(&l, ABI_WR_SEND, 2, 4, ABI_WQE_SIGNALED);
	lone_tx(&l);
	lone_ack(&l, 0x201, 2);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,4) SEND_ONLY@201+4!");
}

/* proves REQ-38: the response is lost once more, and no ACK timer runs: the answer after it tells,
 * when those to what was sent before have had their time. */
static void completer_rx__a_gap_after_the_retry(void **state)
{
	l.attr.timeout = 0;
	l.attr.retry_cnt = 2;
	lose_a_response();
	lone_wait(&l, 3600ull * 1000 * MSEC);
	assert_string_equal(lone_tx(&l), ""); /* nothing was answered */
	for (unsigned i = 0; i < 3; i++)
		lone_ack(&l, 0x201, 2);
	lone_wait(&l, timers_ack_timeout(GAP_TIMEOUT) - MSEC);
	assert_string_equal(lone_tx(&l), "");
	lone_wait(&l, 2 * MSEC);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,4) SEND_ONLY@201+4!");
	assert_int_equal(count()->implied_nak_seq_err, 2);
	assert_int_equal(count()->local_ack_timeout_err, 0);
	lone_ack(&l, 0x201, 2);
	lone_wait(&l, timers_ack_timeout(GAP_TIMEOUT) + MSEC);
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "S1:RETRY_EXC S2:FLUSH"); /* it counts (REQ-24) */
}

/* The answers were those to what was sent before: the response comes. */
static void completer_rx__no_gap_after_the_retry(void **state)
{
	l.attr.timeout = 0;
	lose_a_response();
	lone_ack(&l, 0x201, 2);
	lone_wait(&l, timers_ack_timeout(GAP_TIMEOUT) - MSEC);
	lone_response(&l, RESP_ONLY, 0x200, 4);
	lone_wait(&l, 3600ull * 1000 * MSEC);
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(count()->implied_nak_seq_err, 1);
	lone_ack(&l, 0x201, 2);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
}

/* Before the READ was sent again no answer tells of a gap. */
static void completer_rx__no_gap_before_the_retry(void **state)
{
	l.attr.timeout = 0;
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 4, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	lone_ack(&l, 0x201, 2);
	lone_ack(&l, 0x201, 2);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,4) SEND_ONLY@201+4!");
	lone_wait(&l, 3600ull * 1000 * MSEC);
	assert_string_equal(lone_tx(&l), "");
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup_256, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(completer_rx__rnr_waits_its_time),
		T(completer_rx__rnr_retry_0_fails_at_once),
		T(completer_rx__rnr_retry_7_never_gives_up),
		T(completer_rx__rnr_count_is_reloaded_by_progress),
		T(completer_rx__rnr_reloads_the_transport_retries),
		T(completer_rx__rnr_waits_for_each_code),
		T(completer_rx__rnr_holds_everything_back),
		T(completer_timeout__gives_up_after_retry_cnt),
		T(completer_timeout__progress_restarts_and_reloads),
		T(completer_timeout__of_what_a_nak_had_sent_again),
		T(completer_timeout__not_of_what_waits_to_be_sent_again),
		T(completer_timeout__never_with_code_0),
		T(completer_timeout__resends_from_the_oldest),
		T(completer_timeout__counts_every_retry_cnt),
		T(completer_timeout__read_responses_restart_and_reload),
		T(completer_rx__late_ack_moves_forward),
		T(completer_timeout__halves_the_window),
		T(completer_timeout__charges_what_was_sent),
		T(completer_rx__rnr_outlasts_an_implied_nak),
		T(completer_rx__a_gap_after_the_retry),
		T(completer_rx__no_gap_after_the_retry),
		T(completer_rx__no_gap_before_the_retry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
