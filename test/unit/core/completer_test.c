/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to requests: ACKs and NAKs. */
#include <stdio.h>
#include "fixture.h"
#include "requester.h"
#include "timers.h"

/* --- ACK ------------------------------------------------------------------------------ */

/* proves REQ-12, REQ-35 */
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

/* proves REQ-35 for the longest message: its first PSN is 2^23 and more before that of the ACK. */
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

/* With nothing left to send, a QP whose application rings before it posts more needs no turn. */
static void completer_rx__an_ack_of_all_gives_no_turn(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	for (unsigned i = 0; i < 2; i++) {
		lone_ack(&l, SQ_PSN + i, 1 + i);
		assert_true(list_empty(&l.qp->qp->ready));
	}
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@202+4!");
}

/* It does need one while packets are to be sent again, although it has found its ring empty. */
static void completer_rx__an_ack_lets_it_resend_more(void **state)
{
	l.spec.window = 16;
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 16 * 256, 0);
	lone_tx(&l);
	assert_true(l.qp->qp->req.rings);
	lone_nak(&l, 0x60, SQ_PSN, 0); /* all is lost, and the window is halved */
	lone_tx(&l);
	assert_int_equal(l.packets, 16 + 8);
	lone_ack(&l, SQ_PSN + 7, 0);
	assert_string_not_equal(lone_tx(&l), "");
}

/* proves REQ-13 */
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
	core_fast_paths(&l.host->core, false);
	app_post_send(l.qp, &s);
	lone_tx(&l);
	lone_ack(&l, 0x202, 3);
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(atomic_load(&l.qp->sq_shared->consumer), 3);
}

/* proves REQ-14 */
static void completer_rx__sq_sig_all_signals_everything(void **state)
{
	struct app_send s = {.opcode = ABI_WR_SEND, .wr_id = 1};

	l.spec.sig_all = true;
	lone_start(&l);
	app_post_send(l.qp, &s);
	lone_tx(&l);
	lone_ack(&l, 0x200, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	core_fast_paths(&l.host->core, false);
	app_post_send(l.qp, &s);
	lone_tx(&l);
	lone_ack(&l, 0x201, 2);
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* proves REQ-36 */
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
	lone_rx(&l, &(struct shot){.opcode = 0x11, .psn = 0x201, .syndrome = 0, .msn = 1});
	assert_false(l.qp->qp->comp.limited); /* its credits neither */
	lone_ack(&l, 0x200, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* proves REQ-23, REQ-37: an ACK of what was acknowledged before completes nothing, reloads no retry
 * and does not touch the timer. */
static void completer_rx__ignores_duplicate_acks(void **state)
{
	const uint64_t t = timers_ack_timeout(14);

	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	lone_ack(&l, 0x200, 1);
	lone_post(&l, ABI_WR_SEND, 2, 600, 0);
	lone_tx(&l);
	lone_wait(&l, 2 * t);
	lone_tx(&l);
	assert_int_equal(l.qp->qp->comp.retry_left, 6);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	for (unsigned i = 0; i < 8; i++) {
		lone_wait(&l, t / 2);
		lone_ack(&l, 0x200, 1);
		assert_int_equal(l.verdict, 0);
		lone_ack(&l, 0x1F0, 0);
	}
	assert_true(count()->local_ack_timeout_err >= 2);
	assert_true(l.qp->qp->comp.retry_left < 6);
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(l.qp->qp->comp.una, 0x201);
}

/* proves REQ-37: nor does it tell that the responses of a later READ are lost. */
static void completer_rx__ignores_duplicate_acks_before_a_read(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 2, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4! READ_REQ@201!(0,4)");
	for (unsigned i = 0; i < 3; i++) {
		lone_ack(&l, 0x200, 1);
		assert_string_equal(lone_tx(&l), "");
	}
	assert_string_equal(lone_cqes(&l), "S1:OK");
	assert_int_equal(l.qp->qp->comp.retry_left, 7);
	assert_int_equal(count()->implied_nak_seq_err, 0);
}

/* proves REQ-46: reserved types and codes, with bit 7 and without: nothing of the packet counts,
 * neither its PSN nor its credits. */
static void completer_rx__ignores_reserved_syndromes(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	for (unsigned s = 0; s < 256; s++) {
		bool reserved = (s & 0x60) == 0x40 || (s & 0x7F) >= 0x65;

		if (!reserved)
			continue;
		for (uint32_t psn = 0x200; psn <= 0x201; psn++) {
			lone_nak(&l, (uint8_t)s, psn, 1);
			assert_int_equal(l.verdict, DROP_AETH_RESERVED);
			assert_false(l.qp->qp->comp.limited);
		}
	}
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	assert_int_equal(l.qp->qp->comp.una, 0x200);
	lone_nak(&l, 0x9F, 0x201, 2); /* an ACK with bit 7 */
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
}

/* --- NAK ------------------------------------------------------------------------------ */

/* proves REQ-28, REQ-34, REQ-49 (REQ-48) */
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

/* proves REQ-26, REQ-28: each costs a retry; without progress they run out. */
static void completer_rx__psn_naks_cost_retries(void **state)
{
	l.attr.retry_cnt = 2;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	lone_nak(&l, 0x60, 0x201, 1); /* progress: the count begins here */
	assert_string_equal(lone_cqes(&l), "S1:OK");
	assert_string_equal(lone_tx(&l), "SEND_ONLY@201+4!");
	lone_nak(&l, 0x60, 0x201, 1);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@201+4!");
	assert_string_equal(lone_cqes(&l), "");
	lone_nak(&l, 0x60, 0x201, 1);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S2:RETRY_EXC");
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_int_equal(count()->packet_seq_err, 3);
	assert_int_equal(count()->retry_exceeded_err, 1);
}

/* proves REQ-13, REQ-33, REQ-34, REQ-46 (CQ-10): each code that is not reserved, an unsignaled WQE,
 * and later requests. */
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

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup_256, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(completer_rx__one_ack_completes_all_before_it),
		T(completer_rx__one_ack_completes_2_23_packets),
		T(completer_rx__an_ack_of_all_gives_no_turn),
		T(completer_rx__an_ack_lets_it_resend_more),
		T(completer_rx__unsignaled_completes_silently),
		T(completer_rx__sq_sig_all_signals_everything),
		T(completer_rx__ignores_ghosts),
		T(completer_rx__ignores_duplicate_acks),
		T(completer_rx__ignores_duplicate_acks_before_a_read),
		T(completer_rx__ignores_reserved_syndromes),
		T(completer_rx__psn_nak_resends_from_its_psn),
		T(completer_rx__psn_nak_twice_goes_back_once),
		T(completer_rx__psn_naks_cost_retries),
		T(completer_rx__fatal_naks_fail_their_wqe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
