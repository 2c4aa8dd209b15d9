/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP with a shared receive queue: what it takes, what it does without, what it leaves. */
#include "abi_ctl.h"
#include "cause.h"
#include "fixture.h"
#include "qp.h"
#include "srq.h"

static struct app_srq *srq;

static int setup(void **state)
{
	lone_setup_256(state);
	srq = app_srq(&l.app, 8, 3);
	l.spec.srq = srq;
	return 0;
}

static void post(uint64_t wr_id, uint64_t off, uint32_t len)
{
	struct abi_sge sge = app_sge(l.mr, off, len);

	app_post_srq(srq, wr_id, &sge, 1);
}

static void send_only(uint32_t psn, uint32_t len)
{
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = psn, .ackreq = true, .len = len});
}

/* proves SRQ-02, SRQ-06, CRD-02: a WQE a message, its own for all its packets; the ACK has code 31.
 */
static void recv_wqe_take__one_a_message(void **state)
{
	lone_start(&l);
	post(1, 0, 600);
	post(2, 1000, 600);
	lone_rx(&l, &(struct shot){.opcode = 0x00, .psn = 0x100, .len = 256});
	assert_int_equal(atomic_load(&srq->shared->consumer), 1);
	lone_rx(&l, &(struct shot){.opcode = 0x01, .psn = 0x101, .len = 256});
	lone_rx(&l, &(struct shot){.opcode = 0x02, .psn = 0x102, .len = 4, .ackreq = true});
	send_only(0x103, 10);
	assert_string_equal(lone_tx(&l), "ACK@1031f/2");
	assert_string_equal(lone_cqes(&l), "R1:OK+516 R2:OK+10");
	assert_int_equal(l.mr->mem[257], 1);
	assert_int_equal(l.mr->mem[1003], 3);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_LAST_WQE), 0);
}

/* proves SRQ-03, RSP-16: empty, the peer is asked to wait; then the same packet is taken. */
static void recv_wqe_take__empty(void **state)
{
	lone_start(&l);
	send_only(0x100, 4);
	assert_string_equal(lone_tx(&l), "ACK@10021/0");
	assert_int_equal(l.host->core.count.rnr_nak_sent, 1);
	assert_int_equal(atomic_load(&srq->srq.starved), 1);
	post(1, 0, 8);
	send_only(0x100, 4);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1");
	assert_string_equal(lone_cqes(&l), "R1:OK+4");
}

/* proves SRQ-04, EVT-04 */
static void recv_wqe_take__limit(void **state)
{
	lone_start(&l);
	for (unsigned i = 0; i < 4; i++)
		post(i, 100 * i, 8);
	atomic_store(&srq->srq.limit, 3);
	send_only(0x100, 4); /* leaves 3 */
	lone_tx(&l);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SRQ_LIMIT_REACHED), 0);
	send_only(0x101, 4);
	lone_tx(&l);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SRQ_LIMIT_REACHED), 1);
	assert_int_equal(l.app.event[l.app.events - 1].handle, srq->srq.handle);
	send_only(0x102, 4);
	send_only(0x103, 4);
	lone_tx(&l);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SRQ_LIMIT_REACHED), 1);
	/* Armed while it is empty: who waits for the event is not left waiting. */
	atomic_store(&srq->srq.limit, 1);
	send_only(0x104, 4);
	lone_tx(&l);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SRQ_LIMIT_REACHED), 2);
}

/* proves SRQ-07, EVT-04: the WQE in use is flushed, then the event; what is posted stays. */
static void qp_flush__last_wqe(void **state)
{
	lone_start(&l);
	post(1, 0, 600);
	post(2, 1000, 600);
	lone_rx(&l, &(struct shot){.opcode = 0x00, .psn = 0x100, .len = 256});
	app_to_state(l.qp, ABI_QPS_ERR, l.now);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "R1:FLUSH");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_LAST_WQE), 1);
	lone_tx(&l);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_LAST_WQE), 1);
	assert_int_equal(srq_waiting(&srq->srq, 8), 1);
	/* And again for the next life. */
	app_to_state(l.qp, ABI_QPS_RESET, l.now);
	assert_int_equal(srq_waiting(&srq->srq, 8), 1);
	lone_climb(&l, ABI_QPS_RTS);
	send_only(0x100, 4);
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "R2:OK+4");
	app_to_state(l.qp, ABI_QPS_ERR, l.now);
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_LAST_WQE), 2);
}

/* proves SRQ-08: one event for the SRQ; each QP that takes a WQE of it fails. */
static void recv_wqe_take__broken(void **state)
{
	lone_start(&l);
	post(1, 0, 8);
	srq->at.entries[0] ^= ABI_WQE_PHASE;
	send_only(0x100, 4);
	assert_string_equal(lone_tx(&l), "ACK@10063/0"); /* NAK: remote operational error */
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_int_equal(l.qp->qp->why.error.cause, CAUSE_SRQ_BROKEN);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SRQ_ERR), 1);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_FATAL), 1);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_LAST_WQE), 1);
	app_to_state(l.qp, ABI_QPS_RESET, l.now);
	lone_climb(&l, ABI_QPS_RTS);
	post(2, 0, 8);
	send_only(0x100, 4);
	assert_string_equal(lone_tx(&l), "ACK@10063/0");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SRQ_ERR), 1);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_FATAL), 2);
}

/* proves RSP-21: more SGEs than the SRQ was made for fail that message alone. */
static void recv_wqe_take__too_many_sges(void **state)
{
	struct abi_sge sge[3];

	srq->srq.max_sge = 2;
	lone_start(&l);
	for (unsigned i = 0; i < 3; i++)
		sge[i] = app_sge(l.mr, i * 8, 8);
	app_post_srq(srq, 1, sge, 3);
	send_only(0x100, 4);
	assert_string_equal(lone_tx(&l), "ACK@10063/0");
	assert_string_equal(lone_cqes(&l), "R1:LOC_QP_OP");
	assert_int_equal(l.qp->qp->why.error.limit, 2);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SRQ_ERR), 0);
	assert_false(atomic_load(&srq->srq.broken));
}

/* The keys of a WQE are looked up in the SRQ's protection domain, not in the QP's. */
static void recv_place__protection_domain_of_the_srq(void **state)
{
	lone_start(&l);
	l.mr->mr.pd = srq->srq.pd = APP_PD + 1;
	post(1, 0, 8);
	send_only(0x100, 4);
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "R1:OK+4");
	l.mr->mr.pd = APP_PD;
	post(2, 0, 8);
	send_only(0x101, 4);
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "R2:LOC_PROT");
	/* so is the reason: in the QP's own domain the key is good */
	assert_int_equal(l.qp->qp->why.error.cause, CAUSE_RECV_KEY);
	assert_int_equal(l.qp->qp->why.error.found.status, MR_NO_KEY);
	assert_int_equal(l.qp->qp->why.error.pd, APP_PD + 1);
}

/* proves UC-06, SRQ-03: unreliable, a message that finds none is lost; one that breaks off has used
 * its WQE up, for nobody waits for the rest. */
static void uc_rx__with_an_srq(void **state)
{
	l.spec.type = ABI_QPT_UC;
	lone_start(&l);
	lone_rx(&l, &(struct shot){.opcode = 0x24, .psn = 0x100, .len = 4});
	assert_int_equal(l.verdict, DROP_NO_RECV_WQE);
	post(1, 0, 600);
	post(2, 1000, 600);
	lone_rx(&l, &(struct shot){.opcode = 0x20, .psn = 0x101, .len = 256});
	lone_rx(&l, &(struct shot){.opcode = 0x24, .psn = 0x102, .len = 8});
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "R1:REM_INV_REQ R2:OK+8");
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
}

/* proves UC-06, UC-10, decision 0090: what is wrong with a message that is longer than its receive
 * is the receive, which says so, once. */
static void uc_rx__longer_than_the_receive_of_an_srq(void **state)
{
	l.spec.type = ABI_QPT_UC;
	lone_start(&l);
	post(1, 0, 3);
	post(2, 100, 300);
	post(3, 1000, 300);
	lone_rx(&l, &(struct shot){.opcode = 0x24, .psn = 0x100, .len = 4});
	assert_int_equal(l.verdict, DROP_REQUEST_LENGTH);
	assert_string_equal(lone_cqes(&l), "R1:LOC_LEN");
	lone_rx(&l, &(struct shot){.opcode = 0x20, .psn = 0x101, .len = 256});
	lone_rx(&l, &(struct shot){.opcode = 0x22, .psn = 0x102, .len = 45});
	assert_int_equal(l.verdict, DROP_REQUEST_LENGTH);
	lone_rx(&l, &(struct shot){.opcode = 0x20, .psn = 0x103, .len = 256});
	lone_rx(&l, &(struct shot){.opcode = 0x22, .psn = 0x104, .len = 44});
	assert_string_equal(lone_cqes(&l), "R2:LOC_LEN R3:OK+300");
	assert_int_equal(l.host->core.count.resp_local_length_error, 2);
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	assert_int_equal(l.qp->qp->why.error.cause, CAUSE_NONE); /* it did not fail */
	assert_int_equal(l.mr->mem[3], 0x11);
	assert_int_equal(l.mr->mem[400], 0x11);
}

/* proves SRQ-08: without a NAK, too, the QP does not go on as if there were receives to come. */
static void uc_rx__with_a_broken_srq(void **state)
{
	l.spec.type = ABI_QPT_UC;
	lone_start(&l);
	post(1, 0, 8);
	srq->at.entries[0] ^= ABI_WQE_PHASE;
	lone_rx(&l, &(struct shot){.opcode = 0x24, .psn = 0x100, .len = 4});
	assert_int_equal(l.verdict, DROP_NO_RECV_WQE);
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_int_equal(l.qp->qp->why.error.cause, CAUSE_SRQ_BROKEN);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SRQ_ERR), 1);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_FATAL), 1);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_LAST_WQE), 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, lone_teardown)
	const struct CMUnitTest tests[] = {
		TEST(recv_wqe_take__one_a_message),
		TEST(recv_wqe_take__empty),
		TEST(recv_wqe_take__limit),
		TEST(qp_flush__last_wqe),
		TEST(recv_wqe_take__broken),
		TEST(recv_wqe_take__too_many_sges),
		TEST(uc_rx__with_an_srq),
		TEST(uc_rx__longer_than_the_receive_of_an_srq),
		TEST(uc_rx__with_a_broken_srq),
		TEST(recv_place__protection_domain_of_the_srq),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
