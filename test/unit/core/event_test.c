/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion notices and async events. */
#include <stdlib.h>
#include "complete.h"
#include "core_command.h"
#include "cq.h"
#include "fixture.h"
#include "hole.h"
#include "qp_impl.h"
#include "srq.h"

static int setup(void **state)
{
	lone_setup(state);
	lone_start(&l);
	return 0;
}

static uint32_t psn;

/* A SEND from the peer that completes a receive. */
static void incoming(bool se)
{
	lone_recv(&l, psn, 0, 64);
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = RQ_PSN + psn++, .se = se, .len = 4});
	app_events(&l.app);
}

static unsigned notices(void)
{
	return app_event_count(&l.app, ABI_EVENT_COMPLETION);
}

static int reset_psn(void **state)
{
	psn = 0;
	return setup(state);
}

/* proves CQ-03, CQ-04: the next one, once. */
static void core_events__arm_any_is_one_shot(void **state)
{
	incoming(false);
	assert_int_equal(notices(), 0); /* not armed */
	app_arm(l.recv_cq, false);
	app_events(&l.app);
	assert_int_equal(notices(), 0); /* what was there before does not count */
	incoming(false);
	assert_int_equal(notices(), 1);
	incoming(true);
	assert_int_equal(notices(), 1);
	app_arm(l.recv_cq, false);
	incoming(false);
	assert_int_equal(notices(), 2);
	assert_int_equal(l.app.event[0].handle, l.recv_cq->cq.handle);
	assert_int_equal(l.app.event[0].channel, l.recv_cq->cq.channel);
}

/* proves RSP-51, CQ-03, CQ-04 */
static void core_events__arm_solicited_waits_for_one(void **state)
{
	incoming(true); /* before */
	app_arm(l.recv_cq, true);
	incoming(false);
	assert_int_equal(notices(), 0);
	incoming(true);
	assert_int_equal(notices(), 1);
}

/* proves CQ-05 */
static void core_events__stronger_arm_stays(void **state)
{
	app_arm(l.recv_cq, false);
	app_arm(l.recv_cq, true);
	incoming(false);
	assert_int_equal(notices(), 1);
}

/* proves CQ-06 */
static void core_events__errors_are_solicited(void **state)
{
	lone_recv(&l, 0, 0, 64);
	app_arm(l.recv_cq, true);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
	lone_tx(&l);
	assert_int_equal(notices(), 1);
}

/* proves CQ-03: an error wakes who waits for any, too. */
static void core_events__any_is_an_error_too(void **state)
{
	lone_recv(&l, 0, 0, 64);
	app_arm(l.recv_cq, false);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
	lone_tx(&l);
	assert_int_equal(notices(), 1);
}

/* --- async events ----------------------------------------------------------------------- */

static const uint32_t affiliated[] = {ABI_EVENT_CQ_ERR, ABI_EVENT_QP_FATAL, ABI_EVENT_QP_REQ_ERR,
	ABI_EVENT_QP_ACCESS_ERR, ABI_EVENT_COMM_EST, ABI_EVENT_SQ_DRAINED};

/* @return the only event that there was, about our QP; 0: none. */
static uint32_t only_event(void)
{
	uint32_t type = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(affiliated); i++) {
		unsigned n = app_event_count(&l.app, affiliated[i]);

		assert_int_equal(n, n && !type ? 1 : 0);
		type = n ? affiliated[i] : type;
	}
	if (type) {
		assert_int_equal(l.app.event[0].handle, l.qp->qp->handle);
		assert_int_equal(l.app.event[0].session, l.qp->qp->session);
	}
	return type;
}

static void start_over(unsigned state)
{
	lone_fini(&l);
	lone_init(&l);
	lone_start_in(&l, state <= ABI_QPS_RTS ? state : ABI_QPS_RTS);
	if (state == ABI_QPS_SQD)
		assert_int_equal(app_to_state(l.qp, ABI_QPS_SQD, l.now), 0);
	lone_recv(&l, 1, 0, 64);
}

/* A good request of each kind: SEND, WRITE, READ. */
static void request(uint8_t opcode, uint32_t p)
{
	struct shot s = {.opcode = opcode, .psn = p, .ackreq = true, .va = app_va(l.mr, 0)};

	s.rkey = l.mr->mr.key;
	s.dma_len = 4;
	s.len = opcode == 0x0C ? 0 : 4;
	lone_rx(&l, &s);
	lone_tx(&l);
}

/* proves EVT-01: the first packet that is executed in RTR, whatever it is, and none later; after
 * RESET it is a new connection. */
static void communication_established__first_in_rtr(void **state)
{
	static const uint8_t opcode[] = {0x04, 0x0A, 0x0C};

	for (unsigned i = 0; i < ARRAY_SIZE(opcode); i++) {
		start_over(ABI_QPS_RTR);
		request(opcode[i], RQ_PSN + 1); /* not the one that is due */
		assert_int_equal(only_event(), 0);
		lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = RQ_PSN, .bad_icrc = true});
		lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = RQ_PSN, .src_ip = 9});
		app_events(&l.app);
		assert_int_equal(only_event(), 0);
		request(opcode[i], RQ_PSN);
		assert_int_equal(only_event(), ABI_EVENT_COMM_EST);
		request(0x0A, RQ_PSN + 1);
		request(0x0A, RQ_PSN + 1);
		assert_int_equal(only_event(), ABI_EVENT_COMM_EST);
	}
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RESET, l.now), 0);
	lone_climb(&l, ABI_QPS_RTR);
	request(0x0A, RQ_PSN - 1); /* a duplicate is of before */
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_COMM_EST), 1);
	request(0x0A, RQ_PSN);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_COMM_EST), 2);
	start_over(ABI_QPS_RTR); /* the beginning of a message, and no ACK is asked for */
	lone_rx(&l, &(struct shot){.opcode = 0x06,
			    .psn = RQ_PSN,
			    .va = app_va(l.mr, 0),
			    .rkey = l.mr->mr.key,
			    .dma_len = l.attr.path_mtu + 1,
			    .len = l.attr.path_mtu});
	app_events(&l.app);
	assert_int_equal(only_event(), ABI_EVENT_COMM_EST);
	start_over(ABI_QPS_RTS); /* a program that is there already needs no event */
	request(0x04, RQ_PSN);
	assert_int_equal(only_event(), 0);
}

/* EVT-01, RSP-46: a request that finds no receive has arrived as well. A program that waits for
 * this event before it posts receives would wait for ever. */
static void communication_established__without_a_receive(void **state)
{
	lone_fini(&l);
	lone_init(&l);
	lone_start_in(&l, ABI_QPS_RTR);
	request(0x04, RQ_PSN);
	assert_int_equal(only_event(), ABI_EVENT_COMM_EST);
	request(0x04, RQ_PSN);
	lone_recv(&l, 1, 0, 64);
	request(0x04, RQ_PSN);
	assert_string_equal(lone_cqes(&l), "R1:OK+4");
	assert_int_equal(only_event(), ABI_EVENT_COMM_EST);
}

/* proves EVT-03: what the peer did wrong, where no completion tells it. */
static void responder_fatal__tells_the_owner(void **state)
{
	static const unsigned states[] = {ABI_QPS_RTR, ABI_QPS_RTS, ABI_QPS_SQD};

	for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
		start_over(states[i]);
		request(0x02, RQ_PSN); /* LAST of nothing */
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		assert_int_equal(only_event(), ABI_EVENT_QP_REQ_ERR);
		start_over(states[i]);
		l.mr->mr.access = 0;
		request(0x0A, RQ_PSN);
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		assert_int_equal(only_event(), ABI_EVENT_QP_ACCESS_ERR);
	}
}

/* proves EVT-03: memory that faults under a WRITE, under a READ, and under a SEND of ours. */
static void access_fault__is_fatal(void **state)
{
	struct shot s = {.opcode = 0x0A, .psn = RQ_PSN, .dma_len = 4, .len = 4};
	struct app_send w = {.opcode = ABI_WR_SEND, .flags = ABI_WQE_SIGNALED, .num_sge = 1};
	struct mr *mr;

	start_over(ABI_QPS_RTS);
	mr = hole_open(l.host, APP_PD);
	s.va = mr->iova + HOLE_PAGE;
	s.rkey = mr->key;
	lone_rx(&l, &s);
	lone_tx(&l);
	assert_int_equal(only_event(), ABI_EVENT_QP_FATAL);
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	hole_close(l.host);
	start_over(ABI_QPS_RTS);
	mr = hole_open(l.host, APP_PD);
	s.opcode = 0x0C;
	s.len = 0;
	s.rkey = mr->key;
	lone_rx(&l, &s);
	lone_tx(&l);
	assert_int_equal(only_event(), ABI_EVENT_QP_FATAL);
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	hole_close(l.host);
	start_over(ABI_QPS_RTS);
	mr = hole_open(l.host, APP_PD);
	w.sge[0] = (struct abi_sge){.addr = mr->iova + HOLE_PAGE, .length = 4, .lkey = mr->key};
	app_post_send(l.qp, &w);
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(only_event(), ABI_EVENT_QP_FATAL);
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	hole_close(l.host);
}

/* proves EVT-03: a requester reports by its completion, and by nothing else. */
static void completer__raises_no_event(void **state)
{
	static const uint8_t syndrome[] = {0x61, 0x62, 0x63, 0x64};

	for (unsigned i = 0; i < ARRAY_SIZE(syndrome); i++) {
		start_over(ABI_QPS_RTS);
		lone_post(&l, ABI_WR_SEND, 1, 4, 0);
		lone_tx(&l);
		lone_nak(&l, syndrome[i], SQ_PSN, 0);
		lone_tx(&l);
		assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
		assert_int_equal(only_event(), 0);
	}
}

/* --- many at once ----------------------------------------------------------------------- */

#define CROWD 1000u /* QPs, and a tenth as many CQs and SRQs, that fail together */

static struct qp *crowd[CROWD];
static struct cq crowd_cq[CROWD / 10];
static struct srq crowd_srq[CROWD / 10];
static uint32_t told[CROWD]; /* a bit for each type, by handle */

static void crowd_up(void)
{
	static struct abi_queue shared;

	for (unsigned i = 0; i < CROWD; i++) {
		struct qp_config cfg = {
			.qpn = 0x400 + i, .handle = i, .sq.depth = 1, .sq.shared = &shared};

		crowd[i] = qp_init(aligned_alloc(CACHE_LINE, qp_size(&cfg)), &cfg);
	}
	for (unsigned i = 0; i < CROWD / 10; i++) {
		crowd_cq[i] = (struct cq){.handle = i, .channel = 1, .lanes = 1};
		list_init(&crowd_cq[i].lane[0].touched);
		crowd_cq[i].lane[0].cq = &crowd_cq[i];
		crowd_cq[i].arm = calloc(1, sizeof(uint32_t));
		crowd_srq[i] = (struct srq){.handle = i, .srqn = 0x1100 + i};
		atomic_store(&l.host->srqs.slot[SRQN_SLOT(crowd_srq[i].srqn)], &crowd_srq[i]);
	}
	memset(told, 0, sizeof(told));
}

static void crowd_down(void)
{
	for (unsigned i = 0; i < CROWD; i++)
		free(crowd[i]);
	for (unsigned i = 0; i < CROWD / 10; i++) {
		free(crowd_cq[i].arm);
		atomic_store(&l.host->srqs.slot[SRQN_SLOT(crowd_srq[i].srqn)], NULL);
	}
}

static void fail_together(void)
{
	struct core *c = &l.host->core;

	for (unsigned i = 0; i < CROWD; i++) {
		qp_event(c, crowd[i], ABI_EVENT_QP_FATAL);
		qp_event(c, crowd[i], ABI_EVENT_QP_LAST_WQE);
	}
	for (unsigned i = 0; i < CROWD / 10; i++) {
		qp_overflown(c, l.qp->qp, &crowd_cq[i].lane[0], true, l.now);
		srq_event(c, &crowd_srq[i], ABI_EVENT_SRQ_LIMIT_REACHED);
		srq_event(c, &crowd_srq[i], ABI_EVENT_SRQ_ERR);
	}
}

/* All that wait, @p n at a time; each is new.  @return how many */
static unsigned take_all(unsigned n)
{
	struct core_event e[BURST];
	unsigned sum = 0;
	unsigned got;

	while ((got = core_events(&l.host->core, e, n))) {
		assert_in_range(got, 1, n);
		for (unsigned i = 0; i < got; i++) {
			if (e[i].handle == l.qp->qp->handle && e[i].session == 1)
				continue;
			assert_int_equal(told[e[i].handle] & 1u << e[i].type, 0);
			told[e[i].handle] |= 1u << e[i].type;
			sum++;
		}
	}
	assert_false(core_events_wait(&l.host->core));
	return sum;
}

/* proves EVT-02, EVT-03, EVT-04: however many objects fail together, and however few events are
 * taken at a time, each is reported once. */
static void core_events__none_is_lost(void **state)
{
	static const unsigned chunk[] = {1, 2, 7, BURST};

	l.qp->qp->session = 1;
	crowd_up();
	for (unsigned i = 0; i < ARRAY_SIZE(chunk); i++) {
		fail_together();
		assert_true(core_events_wait(&l.host->core));
		memset(told, 0, sizeof(told));
		assert_int_equal(take_all(chunk[i]), 2 * CROWD + 3 * CROWD / 10);
	}
	crowd_down();
}

/* One that waits already is not told twice; they come in the order of a QP's life. */
static void core_events__once_and_in_order(void **state)
{
	static const uint32_t raised[] = {ABI_EVENT_QP_LAST_WQE, ABI_EVENT_QP_FATAL,
		ABI_EVENT_SQ_DRAINED, ABI_EVENT_COMM_EST, ABI_EVENT_QP_FATAL};
	static const uint32_t expected[] = {ABI_EVENT_COMM_EST, ABI_EVENT_SQ_DRAINED,
		ABI_EVENT_QP_FATAL, ABI_EVENT_QP_LAST_WQE};
	struct core_event e[8];

	for (unsigned i = 0; i < ARRAY_SIZE(raised); i++)
		qp_event(&l.host->core, l.qp->qp, raised[i]);
	assert_int_equal(core_events(&l.host->core, e, 8), ARRAY_SIZE(expected));
	for (unsigned i = 0; i < ARRAY_SIZE(expected); i++)
		assert_int_equal(e[i].type, expected[i]);
	qp_event(&l.host->core, l.qp->qp, ABI_EVENT_QP_FATAL);
	assert_int_equal(core_events(&l.host->core, e, 8), 1);
}

/* Neither kind keeps the other waiting: completion notices come in the first half of what is
 * taken, and so do async events. */
static void core_events__both_kinds_have_their_turn(void **state)
{
	struct core *c = &l.host->core;
	struct core_event e[8];
	unsigned notices_taken = 0;

	crowd_up();
	fail_together();
	for (unsigned i = 0; i < CROWD / 10; i++) {
		crowd_cq[i].lane[0].cq_err = false;
		crowd_cq[i].lane[0].added = true;
		*crowd_cq[i].arm = ABI_CQ_ARM_ANY;
	}
	for (unsigned i = 0; i < CROWD / 40; i++) {
		assert_int_equal(core_events(c, e, 8), 8);
		assert_int_not_equal(e[0].type, ABI_EVENT_COMPLETION);
		for (unsigned k = 0; k < 8; k++)
			notices_taken += e[k].type == ABI_EVENT_COMPLETION;
	}
	assert_int_equal(notices_taken, CROWD / 10);
	take_all(BURST);
	crowd_down();
}

/* An SRQ that has gone meanwhile has nothing to tell. */
static void core_events__of_an_srq_that_has_gone(void **state)
{
	struct core_event e;

	crowd_up();
	srq_event(&l.host->core, &crowd_srq[5], ABI_EVENT_SRQ_ERR);
	atomic_store(&l.host->srqs.slot[SRQN_SLOT(crowd_srq[5].srqn)], NULL);
	assert_int_equal(core_events(&l.host->core, &e, 1), 0);
	assert_false(core_events_wait(&l.host->core));
	crowd_down();
}

/* DETACH_QP: no event of a QP that is about to go. */
static void core_cmd__detach_qp_forgets_its_events(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_QP, .qp = l.qp->qp};
	struct core_event e;

	qp_event(&l.host->core, l.qp->qp, ABI_EVENT_QP_FATAL);
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_int_equal(core_events(&l.host->core, &e, 1), 0);
	assert_false(core_events_wait(&l.host->core));
}

/* DETACH_CQ: no notice of a CQ that is about to go. */
static void core_cmd__detach_cq_forgets_it(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_CQ, .cq = &l.recv_cq->cq};

	app_arm(l.recv_cq, false);
	lone_recv(&l, 0, 0, 64);
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = RQ_PSN, .len = 4});
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	app_events(&l.app);
	assert_int_equal(notices(), 0);
}

/* COUNT_CQ, RESIZE_CQ: CQ-11 */
static void core_cmd__resize_cq_goes_on(void **state)
{
	static struct {
		struct abi_cq_lane lane;
		struct abi_cqe cqe[4];
	} ring __attribute__((aligned(ABI_LINE)));
	struct core_cmd cmd = {.type = CORE_CMD_COUNT_CQ, .cq = &l.recv_cq->cq};

	memset(&ring, 0, sizeof(ring));
	incoming(false);
	incoming(false);
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_int_equal(cmd.cqes, 2);
	cmd = (struct core_cmd){.type = CORE_CMD_RESIZE_CQ, .cq = &l.recv_cq->cq};
	cmd.lane = &ring.lane;
	cmd.cqes = 4;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	app_arm(l.recv_cq, false);
	incoming(false);
	assert_int_equal(notices(), 1);
	assert_int_equal(ring.cqe[0].wr_id, 2);
	assert_string_equal(lone_cqes(&l), "R0:OK+4 R1:OK+4"); /* of the old ring */
}

#define T(name) cmocka_unit_test_setup_teardown(name, reset_psn, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(core_events__arm_any_is_one_shot),
		T(core_events__arm_solicited_waits_for_one),
		T(core_events__stronger_arm_stays),
		T(core_events__errors_are_solicited),
		T(core_events__any_is_an_error_too),
		T(communication_established__first_in_rtr),
		T(communication_established__without_a_receive),
		T(responder_fatal__tells_the_owner),
		T(access_fault__is_fatal),
		T(completer__raises_no_event),
		T(core_events__none_is_lost),
		T(core_events__once_and_in_order),
		T(core_events__both_kinds_have_their_turn),
		T(core_events__of_an_srq_that_has_gone),
		T(core_cmd__detach_qp_forgets_its_events),
		T(core_cmd__detach_cq_forgets_it),
		T(core_cmd__resize_cq_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
