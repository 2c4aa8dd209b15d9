/* SPDX-License-Identifier: BSD-3-Clause */
/* Each state of a QP, and the ways there: the second half of qp_modify.c. */
#include <errno.h>
#include <stdlib.h>
#include "core_command.h"
#include "fixture.h"
#include "qp.h"
#include "timers.h"

/* Bits of enum ibv_qp_attr_mask and enum ibv_qp_state, as numbers. */
enum {
	STATE = 0x1,
	SQD_NOTIFY = 0x4,
	TIMEOUT = 0x200,
	RETRY = 0x400,
	RNR = 0x800,
	RD = 0x2000,
};

enum {
	RESET,
	INIT,
	RTR,
	RTS,
	SQD,
	SQE,
	ERR,
};

static uint16_t incoming_send(uint32_t psn)
{
	return lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = psn, .ackreq = true, .len = 4});
}

/* --- what a state does ---------------------------------------------------------------- */

/* proves QPS-17: receives wait, packets do not. */
static void init__takes_receives_only(void **state)
{
	struct path_spec path;

	lone_start_in(&l, ABI_QPS_INIT);
	lone_recv(&l, 1, 0, 64);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0); /* no client would */
	core_doorbell(&l.host->core, l.qp->qp, l.now);
	assert_int_equal(incoming_send(RQ_PSN), DROP_QP_STATE);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "");
	path = host_path(l.host, l.host, 0, HOST_GID_IPV4);
	path.dgid[15] = 2;
	path.dmac[5] = 2;
	path.local = false;
	assert_int_equal(app_to_rtr(l.qp, &l.attr, &path, l.now), 0);
	assert_int_equal(incoming_send(RQ_PSN), DROP_NONE);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1");
	assert_string_equal(lone_cqes(&l), "R1:OK+4");
}

/* proves QPS-18: the responder works, the requester does not. */
static void rtr__answers_and_asks_nothing(void **state)
{
	lone_start_in(&l, ABI_QPS_RTR);
	lone_recv(&l, 1, 0, 64);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	core_doorbell(&l.host->core, l.qp->qp, l.now);
	assert_int_equal(incoming_send(RQ_PSN), DROP_NONE);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1");
	lone_ack(&l, SQ_PSN, 1);
	assert_int_equal(l.verdict, DROP_QP_STATE);
	lone_wait(&l, 3600ull * 1000000000);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "R1:OK+4");
	assert_int_equal(app_to_rts(l.qp, &l.attr, l.now), 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
}

/* proves QPS-20: from wherever it comes. */
static void err__flushes_and_is_deaf(void **state)
{
	for (unsigned from = INIT; from <= SQD; from++) {
		bool sends = from >= RTS;

		if (from > INIT)
			lone_init(&l);
		lone_start_in(&l, from < RTS ? from : ABI_QPS_RTS);
		lone_recv(&l, 1, 0, 64);
		lone_recv(&l, 2, 0, 64);
		if (sends) {
			lone_post(&l, ABI_WR_SEND, 1, 4, 0);
			lone_tx(&l); /* in flight */
			lone_post(&l, ABI_WR_SEND, 2, 4, 0);
		}
		if (from == SQD)
			assert_int_equal(app_to_state(l.qp, ABI_QPS_SQD, l.now), 0);
		assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
		assert_int_equal(incoming_send(RQ_PSN), DROP_QP_STATE);
		lone_ack(&l, SQ_PSN, 1);
		assert_int_equal(l.verdict, DROP_QP_STATE);
		assert_string_equal(lone_tx(&l), "");
		assert_string_equal(lone_cqes(&l),
			sends ? "S1:FLUSH S2:FLUSH R1:FLUSH R2:FLUSH" : "R1:FLUSH R2:FLUSH");
		lone_wait(&l, 3600ull * 1000000000); /* nothing is retried */
		lone_recv(&l, 3, 0, 64);
		lone_post(&l, ABI_WR_SEND, 4, 4, 0);
		assert_string_equal(lone_tx(&l), "");
		assert_string_equal(lone_cqes(&l), "S4:FLUSH R3:FLUSH");
		assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_FATAL), 0); /* asked for */
		if (from < SQD)
			lone_fini(&l);
	}
}

/* --- going there ---------------------------------------------------------------------- */

/* proves QPS-16: RESET throws away in silence, and the QP works again afterwards. */
static void core_cmd__reset_discards(void **state)
{
	l.attr.path_mtu = 256;
	lone_start(&l);
	lone_recv(&l, 9, 0, 64);
	incoming_send(RQ_PSN);
	for (unsigned i = 0; i < 5; i++) {
		lone_post(&l, ABI_WR_SEND, i, 600, 0);
		lone_recv(&l, i, 0, 1024);
	}
	lone_tx_max(&l, 4);
	lone_rx(&l, &(struct shot){.opcode = 0x00, .psn = RQ_PSN + 1, .len = 256}); /* open */
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	lone_cqes(&l);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RESET, l.now), 0);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "");
	lone_wait(&l, 3600ull * 1000000000);
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(app_sq_room(l.qp), 16);
	assert_int_equal(app_rq_room(l.qp), 16);
	l.attr.sq_psn = 0x700;
	l.attr.rq_psn = 0x800;
	lone_climb(&l, ABI_QPS_RTS);
	lone_recv(&l, 77, 0, 64);
	lone_post(&l, ABI_WR_SEND, 78, 4, 0);
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = 0x800, .ackreq = true, .len = 4});
	assert_string_equal(lone_tx(&l), "ACK@8001f/1 SEND_ONLY@700+4!"); /* MSN anew: RSP-25 */
	lone_ack(&l, 0x700, 1);
	assert_string_equal(lone_cqes(&l), "S78:OK R77:OK+4");
}

/* proves QPS-16: queues that are longer than one step of the command. */
static void core_cmd__reset_discards_long_queues(void **state)
{
	l.spec.sq_depth = 1024;
	l.spec.rq_depth = 1024;
	lone_start(&l);
	for (unsigned i = 0; i < 600; i++) {
		lone_post(&l, ABI_WR_SEND, i, 4, 0);
		lone_recv(&l, i, 0, 64);
	}
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RESET, l.now), 0);
	assert_int_equal(app_sq_room(l.qp), 1024);
	assert_int_equal(app_rq_room(l.qp), 1024);
	lone_climb(&l, ABI_QPS_RTS);
	assert_string_equal(lone_tx(&l), "");
	incoming_send(RQ_PSN);
	assert_string_equal(lone_tx(&l), "ACK@10021/0"); /* RNR */
	assert_string_equal(lone_cqes(&l), "");
}

/* proves QPS-16: neither what is in flight, nor what its losses taught, is of the next life. */
static void core_cmd__reset_forgets_what_was_in_flight(void **state)
{
	l.attr.path_mtu = 256;
	l.spec.window = 8;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 8 * 256, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 2, 4, 0);
	for (unsigned i = 0; i < 3; i++) { /* each time fewer packets */
		lone_tx(&l);
		lone_wait(&l, 2 * timers_ack_timeout(14));
	}
	assert_string_not_equal(lone_tx(&l), "");
	assert_true(l.qp->qp->win.size < 8);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RESET, l.now), 0);
	l.attr.sq_psn = 0x1FF; /* one before, so that the old ACKs would fit */
	lone_climb(&l, ABI_QPS_RTS);
	l.packets = 0;
	lone_post(&l, ABI_WR_SEND, 3, 8 * 256, 0);
	assert_string_not_equal(lone_tx(&l), "");
	assert_int_equal(l.packets, 8);
	lone_ack(&l, 0x206, 1);
	assert_string_equal(lone_cqes(&l), "S3:OK");
	lone_wait(&l, 3600ull * 1000000000);
	assert_string_equal(lone_tx(&l), "");
}

/* proves REQ-50, QPS-19, EVT-02: what was started is finished, what was not waits; then the event.
 */
static void core_cmd__sqd_drains(void **state)
{
	struct abi_qp_attr attr = {.qp_state = SQD, .en_sqd_async_notify = 1};

	l.attr.path_mtu = 256;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 600, 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	assert_string_equal(lone_tx_max(&l, 1), "SEND_FIRST@200+256");
	assert_int_equal(app_modify(l.qp, STATE | SQD_NOTIFY, &attr, NULL, l.now), 0);
	assert_string_equal(lone_tx(&l), "SEND_MIDDLE@201+256 SEND_LAST@202+88!");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 0);
	lone_nak(&l, 0x60, 0x201, 0); /* retries belong to what was started */
	assert_string_equal(lone_tx(&l), "SEND_MIDDLE@201+256 SEND_LAST@202+88!");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 0);
	lone_nak(&l, 0x21, 0x201, 0); /* RNR, 10 us */
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 0);
	lone_wait(&l, 20000);
	assert_string_equal(lone_tx(&l), "SEND_MIDDLE@201+256 SEND_LAST@202+88!");
	lone_ack(&l, 0x202, 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 1);
	lone_post(&l, ABI_WR_SEND, 3, 4, 0);
	assert_string_equal(lone_tx(&l), "");
	attr.qp_state = RTS;
	assert_int_equal(app_modify(l.qp, STATE, &attr, NULL, l.now), 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@203+4! SEND_ONLY@204+4!");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 1);
}

/* proves REQ-50: all that was sent is acknowledged, but a message has just begun. */
static void core_cmd__sqd_waits_for_the_rest_of_a_message(void **state)
{
	struct abi_qp_attr attr = {.qp_state = SQD, .en_sqd_async_notify = 1};

	l.attr.path_mtu = 256;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 600, 0);
	assert_string_equal(lone_tx_max(&l, 1), "SEND_FIRST@200+256");
	lone_ack(&l, 0x200, 0);
	assert_int_equal(app_modify(l.qp, STATE | SQD_NOTIFY, &attr, NULL, l.now), 0);
	assert_string_equal(lone_tx(&l), "SEND_MIDDLE@201+256 SEND_LAST@202+88!");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 0);
	lone_ack(&l, 0x202, 1);
	lone_tx(&l);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 1);
	lone_cqes(&l);
}

/* QPS-19: a request that was taken already, and that will fail, has not started; it fails when the
 * queue continues. */
static void core_cmd__sqd_holds_what_will_fail(void **state)
{
	struct abi_qp_attr attr = {.qp_state = SQD, .en_sqd_async_notify = 1};
	struct app_send bad = {.opcode = ABI_WR_SEND, .wr_id = 2, .num_sge = 1};

	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	bad.sge[0] = (struct abi_sge){.addr = 0, .length = 4, .lkey = 0xDEAD};
	app_post_send(l.qp, &bad);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	assert_int_equal(app_modify(l.qp, STATE | SQD_NOTIFY, &attr, NULL, l.now), 0);
	lone_ack(&l, 0x200, 1);
	lone_tx(&l);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	assert_int_equal(l.qp->qp->state, SQD);
	attr.qp_state = RTS;
	assert_int_equal(app_modify(l.qp, STATE, &attr, NULL, l.now), 0);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S2:LOC_PROT");
	assert_int_equal(l.qp->qp->state, ERR);
}

/* proves EVT-02: each time, and only in SQD. */
static void core_cmd__sqd_of_an_idle_queue_is_drained(void **state)
{
	struct abi_qp_attr attr = {.qp_state = SQD, .en_sqd_async_notify = 1};

	lone_start(&l);
	for (unsigned i = 0; i < 3; i++) {
		lone_post(&l, ABI_WR_SEND, i, 4, 0);
		lone_tx(&l);
		lone_ack(&l, 0x200 + i, i + 1);
		lone_tx(&l);
		assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), i);
		assert_int_equal(app_modify(l.qp, STATE | SQD_NOTIFY, &attr, NULL, l.now), 0);
		lone_tx(&l);
		assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), i + 1);
		assert_int_equal(l.app.event[i].handle, l.qp->qp->handle);
		assert_int_equal(app_to_state(l.qp, ABI_QPS_RTS, l.now), 0);
	}
	assert_string_equal(lone_cqes(&l), "S0:OK S1:OK S2:OK");
}

/* proves EVT-02: the last response to a READ drains it, also with the next one taken from the ring
 * but not begun. */
static void core_cmd__sqd_drains_a_read(void **state)
{
	struct abi_qp_attr attr = {.qp_state = SQD, .en_sqd_async_notify = 1};

	l.attr.path_mtu = 256;
	l.attr.max_rd_atomic = 1;
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 300, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 2, 4, 0);
	assert_string_equal(lone_tx(&l), "READ_REQ@200!(0,300)");
	assert_int_equal(app_modify(l.qp, STATE | SQD_NOTIFY, &attr, NULL, l.now), 0);
	lone_rx(&l, &(struct shot){.opcode = 0x0D, .psn = 0x200, .syndrome = 0x1F, .len = 256});
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 0);
	lone_rx(&l, &(struct shot){.opcode = 0x0F, .psn = 0x201, .syndrome = 0x1F, .len = 44});
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:OK");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 1);
}

/* proves QPS-19, EVT-02 */
static void core_cmd__sqd_without_notify_is_silent(void **state)
{
	struct abi_qp_attr attr = {.qp_state = SQD};

	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_SQD, l.now), 0);
	lone_ack(&l, 0x200, 1);
	lone_tx(&l);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 0);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RTS, l.now), 0);
	assert_int_equal(app_modify(l.qp, STATE | SQD_NOTIFY, &attr, NULL, l.now), 0);
	lone_tx(&l);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 0); /* said not to */
}

/* proves QPS-19: attributes change once nothing is under way. */
static void core_cmd__sqd_changes_nothing_while_draining(void **state)
{
	static struct qp before;
	struct abi_qp_attr attr = l.attr;

	attr.qp_state = SQD;
	attr.timeout = 20;
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_SQD, l.now), 0);
	before = *l.qp->qp;
	assert_int_equal(app_modify(l.qp, STATE | TIMEOUT, &attr, NULL, l.now), -EINVAL);
	assert_int_equal(app_modify(l.qp, TIMEOUT, &attr, NULL, l.now), -EINVAL);
	assert_memory_equal(&before, l.qp->qp, sizeof(before));
	lone_ack(&l, 0x200, 1);
	assert_int_equal(app_modify(l.qp, TIMEOUT, &attr, NULL, l.now), 0);
	assert_int_equal(l.qp->qp->attr.timeout, 20);
	assert_string_equal(lone_cqes(&l), "S1:OK");
}

/* proves REQ-09: a READ that was taken while it was allowed must not wait for ever. */
static void core_cmd__sqd_may_forbid_reads(void **state)
{
	struct abi_qp_attr attr = l.attr;

	l.attr.max_rd_atomic = 1;
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 4, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 2, 4, 0);
	lone_tx(&l);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_SQD, l.now), 0);
	lone_rx(&l, &(struct shot){.opcode = 0x10, .psn = 0x200, .syndrome = 0x1F, .len = 4});
	attr.qp_state = SQD;
	attr.max_rd_atomic = 0;
	assert_int_equal(app_modify(l.qp, STATE | RD, &attr, NULL, l.now), 0);
	attr.qp_state = RTS;
	assert_int_equal(app_modify(l.qp, STATE, &attr, NULL, l.now), 0);
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:LOC_QP_OP");
}

/* proves QPS-10: new retry counts hold from the first loss on, not only after the next progress. */
static void core_cmd__sqd_changes_the_retries(void **state)
{
	struct abi_qp_attr attr = l.attr;

	l.attr.retry_cnt = 0;
	l.attr.rnr_retry = 0;
	lone_start(&l);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_SQD, l.now), 0);
	attr.qp_state = SQD;
	attr.retry_cnt = 1;
	attr.rnr_retry = 1;
	assert_int_equal(app_modify(l.qp, STATE | RETRY | RNR, &attr, NULL, l.now), 0);
	attr.qp_state = RTS;
	assert_int_equal(app_modify(l.qp, STATE, &attr, NULL, l.now), 0);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	lone_nak(&l, 0x21, 0x200, 0); /* RNR, 10 us */
	lone_wait(&l, 20000);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	lone_wait(&l, 1000000000);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	assert_string_equal(lone_cqes(&l), "");
}

static struct abi_qp_attr query(void)
{
	struct core_cmd cmd = {.type = CORE_CMD_QUERY_QP, .qp = l.qp->qp};

	memset(&cmd.attr, 0xEE, sizeof(cmd.attr));
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_int_equal(cmd.attr.cur_qp_state, cmd.attr.qp_state);
	return cmd.attr;
}

/* proves QPS-21: everything that was set, each of its own value. */
static void core_cmd__query_tells_what_was_set(void **state)
{
	struct abi_qp_attr a;

	l.attr.access_flags = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_READ;
	l.attr.path_mtu = 512;
	l.attr.timeout = 11;
	l.attr.retry_cnt = 5;
	l.attr.rnr_retry = 6;
	l.attr.min_rnr_timer = 13;
	l.attr.max_rd_atomic = 3;
	l.attr.max_dest_rd_atomic = 9;
	l.attr.ah = (struct abi_ah_attr){.dgid = {7}, .sl = 3, .port = 1, .is_global = 1};
	lone_start(&l);
	a = query();
	assert_int_equal(a.qp_state, RTS);
	assert_int_equal(a.port, 1);
	assert_int_equal(a.pkey_index, 0);
	assert_int_equal(a.access_flags, l.attr.access_flags);
	assert_int_equal(a.path_mtu, 512);
	assert_int_equal(a.dest_qpn, PEER_QPN);
	assert_int_equal(a.rq_psn, RQ_PSN);
	assert_int_equal(a.sq_psn, SQ_PSN);
	assert_int_equal(a.timeout, 11);
	assert_int_equal(a.retry_cnt, 5);
	assert_int_equal(a.rnr_retry, 6);
	assert_int_equal(a.min_rnr_timer, 13);
	assert_int_equal(a.max_rd_atomic, 3);
	assert_int_equal(a.max_dest_rd_atomic, 9);
	assert_int_equal(a.en_sqd_async_notify, 0);
	assert_false(a.sq_draining);
	assert_memory_equal(&a.ah, &l.attr.ah, sizeof(a.ah));
}

/* proves QPS-21: the state that it is in now, although nobody asked for it. */
static void core_cmd__query_tells_the_state(void **state)
{
	struct abi_qp_attr attr = {.qp_state = SQD, .en_sqd_async_notify = 1};

	lone_start_in(&l, ABI_QPS_RESET);
	assert_int_equal(query().qp_state, RESET);
	assert_int_equal(app_to_init(l.qp, &l.attr, l.now), 0);
	assert_int_equal(query().qp_state, INIT);
	lone_fini(&l);
	lone_init(&l);
	lone_start_in(&l, ABI_QPS_RTR);
	assert_int_equal(query().qp_state, RTR);
	assert_int_equal(app_to_rts(l.qp, &l.attr, l.now), 0);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	assert_int_equal(query().qp_state, RTS);
	assert_int_equal(query().sq_psn, SQ_PSN + 1);
	lone_nak(&l, 0x60, SQ_PSN, 0); /* to be sent again: the next is what it was */
	assert_int_equal(query().sq_psn, SQ_PSN + 1);
	lone_recv(&l, 1, 0, 64);
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = RQ_PSN, .len = 4});
	assert_int_equal(query().rq_psn, RQ_PSN + 1);
	assert_int_equal(app_modify(l.qp, STATE | SQD_NOTIFY, &attr, NULL, l.now), 0);
	assert_int_equal(query().qp_state, SQD);
	assert_true(query().sq_draining);
	assert_int_equal(query().en_sqd_async_notify, 1);
	lone_ack(&l, SQ_PSN, 1);
	assert_false(query().sq_draining);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RTS, l.now), 0);
	lone_post(&l, ABI_WR_SEND, 2, 4, 0);
	lone_tx(&l);
	lone_nak(&l, 0x62, SQ_PSN + 1, 0);
	assert_int_equal(query().qp_state, ERR);
}

/* proves QPS-22: the core forgets the QP. */
static void core_cmd__detach_stops_everything(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_QP};

	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	cmd.qp = l.qp->qp;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_false(wheel_armed(&l.qp->qp->timer));
	assert_true(list_empty(&l.host->core.ready));
	lone_ack(&l, 0x200, 1);
	assert_int_equal(l.verdict, DROP_QP_STATE);
	assert_string_equal(lone_cqes(&l), "");
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(init__takes_receives_only),
		T(rtr__answers_and_asks_nothing),
		T(err__flushes_and_is_deaf),
		T(core_cmd__reset_discards),
		T(core_cmd__reset_discards_long_queues),
		T(core_cmd__reset_forgets_what_was_in_flight),
		T(core_cmd__sqd_drains),
		T(core_cmd__sqd_waits_for_the_rest_of_a_message),
		T(core_cmd__sqd_holds_what_will_fail),
		T(core_cmd__sqd_of_an_idle_queue_is_drained),
		T(core_cmd__sqd_drains_a_read),
		T(core_cmd__sqd_without_notify_is_silent),
		T(core_cmd__sqd_changes_nothing_while_draining),
		T(core_cmd__sqd_may_forbid_reads),
		T(core_cmd__sqd_changes_the_retries),
		T(core_cmd__query_tells_what_was_set),
		T(core_cmd__query_tells_the_state),
		T(core_cmd__detach_stops_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
