/* SPDX-License-Identifier: BSD-3-Clause */
/* The contents and order of completions, and the fate of those without room. */
#include "fixture.h"
#include "icrc.h"
#include "qp.h"

static struct abi_cqe poll_one(struct app_cq *cq)
{
	struct abi_cqe cqe;

	assert_true(app_poll(&l.app, cq, &cqe));
	return cqe;
}

static void expect(const struct abi_cqe *e, uint64_t wr_id, uint8_t status, uint32_t vendor_err)
{
	assert_int_equal(e->wr_id, wr_id);
	assert_int_equal(e->status, status);
	assert_int_equal(e->qpn, l.qp->qp->qpn);
	assert_int_equal(e->vendor_err, vendor_err);
}

/* proves CQ-08: what counts in an error is right, of either queue, failed or flushed. */
static void cqe__errors_name_their_request(void **state)
{
	struct abi_cqe e;

	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_WRITE, 0x1111222233334444, 4, 0);
	lone_post(&l, ABI_WR_SEND, 0x5555, 4, 0);
	lone_recv(&l, 0xAAAABBBBCCCCDDDD, 0, 64);
	lone_tx(&l);
	lone_nak(&l, 0x62, SQ_PSN, 0);
	lone_tx(&l);
	e = poll_one(l.send_cq);
	expect(&e, 0x1111222233334444, ABI_WC_REM_ACCESS_ERR, 0x62);
	e = poll_one(l.send_cq);
	expect(&e, 0x5555, ABI_WC_WR_FLUSH_ERR, 0);
	assert_false(e.opcode & ABI_WC_RECV);
	e = poll_one(l.recv_cq);
	expect(&e, 0xAAAABBBBCCCCDDDD, ABI_WC_WR_FLUSH_ERR, 0);
	assert_true(e.opcode & ABI_WC_RECV);
	lone_fini(&l);
	lone_setup_256(NULL);
	lone_start(&l);
	lone_recv(&l, 0x77, 0, 3);
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = RQ_PSN, .len = 4});
	e = poll_one(l.recv_cq);
	expect(&e, 0x77, ABI_WC_LOC_LEN_ERR, 0);
	assert_true(e.opcode & ABI_WC_RECV);
}

/* The indices of the failed requests whose completions wait. */
static void expect_indices(uint32_t first, uint32_t n)
{
	struct abi_cqe e;

	while (n--) {
		e = poll_one(l.send_cq);
		assert_int_not_equal(e.status, ABI_WC_SUCCESS);
		assert_int_equal(e.imm, first++);
	}
	assert_false(app_poll(&l.app, l.send_cq, &e));
}

/* proves CQ-08: which entry of the send queue it was, failed or flushed, over laps and through
 * RESET. */
static void cqe__errors_tell_which_entry_it_was(void **state)
{
	uint32_t posted = 0, psn = SQ_PSN;

	l.spec.sq_depth = 4;
	lone_start(&l);
	for (; posted < 7; posted++) {
		lone_post(&l, ABI_WR_SEND, posted, 4, 0);
		lone_tx(&l);
		lone_ack(&l, psn++, posted + 1);
		assert_int_equal(poll_one(l.send_cq).imm, 0);
	}
	for (unsigned i = 0; i < 3; i++)
		lone_post(&l, ABI_WR_SEND, posted + i, 4, 0);
	lone_tx(&l);
	lone_nak(&l, 0x62, psn, posted);
	lone_tx(&l);
	expect_indices(posted, 3);
	posted += 3;
	app_to_state(l.qp, ABI_QPS_RESET, l.now);
	lone_climb(&l, ABI_QPS_RTS);
	lone_post(&l, ABI_WR_SEND, posted, 4, 0);
	app_to_state(l.qp, ABI_QPS_ERR, l.now);
	lone_tx(&l);
	expect_indices(posted, 1);
}

/* A WRITE of @p len bytes with immediate data, in packets. */
static void write_imm(uint32_t psn, uint32_t len)
{
	struct shot s = {.psn = psn, .va = app_va(l.mr, 0), .rkey = l.mr->mr.key, .dma_len = len};

	for (uint32_t off = 0; off == 0 || off < len; off += 256) {
		bool first = off == 0, last = off + 256 >= len;

		s.opcode = first ? (last ? 0x0B : 0x06) : (last ? 0x09 : 0x07);
		s.len = last ? len - off : 256;
		lone_rx(&l, &s);
		s.psn++;
	}
}

/* proves CQ-09: what came for a SEND, DMALen for a WRITE with immediate data. */
static void cqe__byte_len_of_receives(void **state)
{
	static const uint32_t len[] = {0, 1, 256, 257, 1000};
	uint32_t psn = RQ_PSN;
	struct abi_cqe e;

	lone_start(&l);
	for (unsigned i = 0; i < ARRAY_SIZE(len); i++) {
		lone_recv(&l, i, 0, 4096); /* more than comes */
		write_imm(psn, len[i]);
		psn += len[i] ? (len[i] + 255) / 256 : 1;
		e = poll_one(l.recv_cq);
		expect(&e, i, ABI_WC_SUCCESS, 0);
		assert_int_equal(e.opcode, ABI_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(e.byte_len, len[i]);
	}
	lone_recv(&l, 10, 0, 4096);
	lone_rx(&l, &(struct shot){.opcode = 0x00, .psn = psn, .len = 256});
	lone_rx(&l, &(struct shot){.opcode = 0x02, .psn = psn + 1, .len = 7});
	e = poll_one(l.recv_cq);
	expect(&e, 10, ABI_WC_SUCCESS, 0);
	assert_int_equal(e.opcode, ABI_WC_RECV);
	assert_int_equal(e.byte_len, 263);
	lone_recv(&l, 11, 0, 4096); /* counted anew */
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = psn + 2, .len = 5});
	e = poll_one(l.recv_cq);
	assert_int_equal(e.byte_len, 5);
}

/* proves CQ-09 */
static void cqe__byte_len_of_a_read(void **state)
{
	struct abi_cqe e;

	struct app_send s = {.opcode = ABI_WR_RDMA_READ,
		.flags = ABI_WQE_SIGNALED,
		.wr_id = 1,
		.remote_addr = PEER_VA,
		.rkey = PEER_KEY,
		.num_sge = 2};

	lone_start(&l);
	s.sge[0] = app_sge(l.mr, 0, 299);
	s.sge[1] = app_sge(l.mr, 500, 1);
	app_post_send(l.qp, &s);
	lone_tx(&l);
	lone_rx(&l, &(struct shot){.opcode = 0x0D, .psn = SQ_PSN, .syndrome = 0x1F, .len = 256});
	lone_rx(&l, &(struct shot){.opcode = 0x0F, .psn = SQ_PSN + 1, .syndrome = 0x1F, .len = 44});
	e = poll_one(l.send_cq);
	expect(&e, 1, ABI_WC_SUCCESS, 0);
	assert_int_equal(e.opcode, ABI_WC_RDMA_READ);
	assert_int_equal(e.byte_len, 300);
}

/* proves CQ-10: the one that failed comes first, then each queue in the order of posting. */
static void cqe__the_failure_precedes_what_is_flushed(void **state)
{
	l.spec.sq_depth = 32;
	lone_start(&l);
	for (unsigned i = 1; i <= 20; i++) /* more than one turn flushes */
		lone_post(&l, ABI_WR_SEND, i, 4, 0);
	for (unsigned i = 1; i <= 4; i++)
		lone_recv(&l, i, 0, 64);
	lone_tx(&l);
	lone_ack(&l, SQ_PSN, 1);
	lone_nak(&l, 0x63, SQ_PSN + 1, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:REM_OP"); /* at once */
	lone_tx(&l);
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l),
		"S3:FLUSH S4:FLUSH S5:FLUSH S6:FLUSH S7:FLUSH S8:FLUSH S9:FLUSH S10:FLUSH "
		"S11:FLUSH "
		"S12:FLUSH S13:FLUSH S14:FLUSH S15:FLUSH S16:FLUSH S17:FLUSH S18:FLUSH S19:FLUSH "
		"S20:FLUSH R1:FLUSH R2:FLUSH R3:FLUSH R4:FLUSH");
	lone_fini(&l);
	lone_setup_256(NULL);
	lone_start(&l);
	for (unsigned i = 1; i <= 3; i++)
		lone_recv(&l, i, 0, 3);
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = RQ_PSN, .len = 4});
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "R1:LOC_LEN R2:FLUSH R3:FLUSH");
	lone_fini(&l);
	lone_setup_256(NULL);
	lone_start(&l);
	for (unsigned i = 1; i <= 3; i++)
		lone_recv(&l, i, 0, 600);
	for (unsigned i = 0; i < 2; i++) /* the second FIRST is one too many */
		lone_rx(&l, &(struct shot){.opcode = 0x00, .psn = RQ_PSN + i, .len = 256});
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "R1:FLUSH R2:FLUSH R3:FLUSH");
}

/* proves CQ-10: what can be seen to fail before it is sent waits for those before it. */
static void cqe__a_local_failure_waits_its_turn(void **state)
{
	struct app_send bad = {.opcode = ABI_WR_SEND, .flags = ABI_WQE_SIGNALED, .wr_id = 2};

	lone_start(&l);
	bad.num_sge = 1;
	bad.sge[0] = app_sge(l.mr, LONE_MEM, 1);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	app_post_send(l.qp, &bad);
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	assert_string_equal(lone_cqes(&l), "");
	lone_ack(&l, SQ_PSN, 1);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:OK S2:LOC_PROT S3:FLUSH");
}

/* --- no room -------------------------------------------------------------------------- */

/* A second QP on the same CQs, in RTR. */
static struct app_qp *second_qp(void)
{
	static struct sim_host peer;
	struct app_qp *q = app_qp(&l.app, &l.spec);
	struct path_spec path;

	host_init(&peer, 2, icrc_best(), 0);
	path = host_path(l.host, &peer, 0, HOST_GID_IPV4);
	assert_int_equal(app_to_init(q, &l.attr, l.now), 0);
	assert_int_equal(app_to_rtr(q, &l.attr, &path, l.now), 0);
	return q;
}

static unsigned events_of(uint32_t type, uint32_t handle)
{
	unsigned n = 0;

	for (unsigned i = 0; i < l.app.events; i++)
		n += l.app.event[i].type == type && l.app.event[i].handle == handle;
	return n;
}

/* proves CQ-01, EVT-03: one event for the CQ, one for each QP that lost a completion, and the
 * first ones stay as they are. */
static void cqe__no_room_is_fatal_to_each_qp(void **state)
{
	struct app_qp *other;
	struct abi_sge sge;

	l.cq_depth = 2;
	lone_start(&l);
	other = second_qp();
	sge = app_sge(l.mr, 0, 64);
	app_post_recv(other, 9, &sge, 1);
	for (unsigned i = 1; i <= 3; i++)
		lone_recv(&l, i, 0, 64);
	for (unsigned i = 0; i < 3; i++)
		lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = RQ_PSN + i, .len = 4});
	lone_tx(&l);
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_int_equal(events_of(ABI_EVENT_CQ_ERR, l.recv_cq->cq.handle), 1);
	assert_int_equal(events_of(ABI_EVENT_QP_FATAL, l.qp->qp->handle), 1);
	assert_int_equal(other->qp->state, ABI_QPS_RTR); /* it lost nothing yet */
	lone_rx(&l,
		&(struct shot){.opcode = 0x04, .psn = RQ_PSN, .dest_qp = other->qp->qpn, .len = 4});
	lone_tx(&l);
	assert_int_equal(other->qp->state, ABI_QPS_ERR);
	assert_int_equal(events_of(ABI_EVENT_QP_FATAL, other->qp->handle), 1);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_CQ_ERR), 1);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_FATAL), 2);
	assert_int_equal(l.host->core.count.cq_overflow, 1);
	assert_string_equal(lone_cqes(&l), "R1:OK+4 R2:OK+4");
}

/* proves CQ-01, RSP-27: a receive fails, its completion has no room, and so the QP fails. Answers
 * that it owed are sent before the NAK, which else would stand for it. */
static void cqe__no_room_for_a_failed_receive(void **state)
{
	struct abi_sge sge;

	l.cq_depth = 1;
	lone_start(&l);
	lone_recv(&l, 1, 0, 64);
	sge = app_sge(l.mr, 0, 64);
	sge.lkey ^= 0xFF;
	app_post_recv(l.qp, 2, &sge, 1);
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = RQ_PSN, .len = 4});
	lone_tx(&l);
	lone_rx(&l, &(struct shot){.opcode = 0x14,
			    .psn = RQ_PSN + 1,
			    .va = app_va(l.mr, 0x100),
			    .rkey = l.mr->mr.key,
			    .swap_add = 1});
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = RQ_PSN + 2, .len = 4, .ackreq = true});
	assert_string_equal(lone_tx(&l), "ATOMIC_ACK@1011f/2=1111111111111111 ACK@10263/2");
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_int_equal(events_of(ABI_EVENT_QP_FATAL, l.qp->qp->handle), 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup_256, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(cqe__errors_name_their_request),
		T(cqe__errors_tell_which_entry_it_was),
		T(cqe__byte_len_of_receives),
		T(cqe__byte_len_of_a_read),
		T(cqe__the_failure_precedes_what_is_flushed),
		T(cqe__a_local_failure_waits_its_turn),
		T(cqe__no_room_is_fatal_to_each_qp),
		T(cqe__no_room_for_a_failed_receive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
