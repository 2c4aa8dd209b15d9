/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP between two cores that share the tables (decision 0040). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "core_command.h"
#include "cq.h"
#include "fixture.h"
#include "qp_impl.h"
#include "txd.h"

#define OTHER 1u

static struct core other;
static struct abi_cq_lane *lane; /* of the other worker and the send CQ */
static struct abi_cq_lane *recv_lane;

static struct abi_cqe *cqes(void)
{
	return (struct abi_cqe *)(lane + 1);
}

static struct abi_cq_lane *make_lane(struct app_cq *cq)
{
	size_t size = sizeof(struct abi_cq_lane) + 64 * sizeof(struct abi_cqe);
	struct abi_cq_lane *p = aligned_alloc(ABI_LINE, size);

	assert_non_null(p);
	memset(p, 0, size);
	cq_lane_init(&cq->cq, OTHER, p, 64);
	return p;
}

static void start(void)
{
	struct core_config cfg = l.host->core.cfg;

	lone_start(&l);
	cfg.worker = OTHER;
	core_init(&other, &cfg, l.now);
	lane = make_lane(l.send_cq);
	recv_lane = make_lane(l.recv_cq);
}

static int teardown(void **state)
{
	lone_fini(&l);
	free(lane);
	free(recv_lane);
	return 0;
}

static int command(struct core *c, enum core_cmd_type type, uint16_t worker)
{
	struct core_cmd cmd = {.type = type, .qp = l.qp->qp, .worker = worker};

	return core_cmd(c, &cmd, l.now);
}

static void move(struct core *from, struct core *to)
{
	assert_int_equal(command(from, CORE_CMD_GIVE_QP, to->cfg.worker), 0);
	assert_int_equal(command(to, CORE_CMD_TAKE_QP, 0), 0);
}

/* The packets that the other core sends: opcodes and PSNs. */
static const char *other_tx(void)
{
	static char text[256];
	struct txd t[BURST];
	unsigned n;

	for (unsigned i = 0; i < BURST; i++)
		t[i].frame = l.host->tx[i];
	n = core_tx(&other, t, BURST, l.now);
	text[0] = '\0';
	for (unsigned i = 0; i < n; i++) {
		assert_true(core_seal(&other, &t[i]));
		sprintf(text + strlen(text), "%s%02x@%x", i ? " " : "", t[i].frame[42],
			get_be24(t[i].frame + 51));
	}
	return text;
}

/* A packet that comes to the other core. */
static uint16_t other_rx(const struct shot *s)
{
	uint16_t verdict;

	l.core = &other;
	verdict = lone_rx(&l, s);
	l.core = NULL;
	return verdict;
}

static const struct shot ack_all = {
	.opcode = 0x11, .psn = SQ_PSN, .syndrome = 0x1F, .msn = 1, .queue = 1 + OTHER};

/* --- who may ---------------------------------------------------------------------------- */

static void qp_give__only_the_owner_can(void **state)
{
	start();
	assert_int_equal(command(&other, CORE_CMD_GIVE_QP, 0), -EPERM);
	assert_int_equal(command(&l.host->core, CORE_CMD_GIVE_QP, WORKER_MAX), -EPERM);
	assert_int_equal(command(&other, CORE_CMD_TAKE_QP, 0), -EPERM);
	assert_int_equal(qp_owner(l.qp->qp), 0);
	assert_int_equal(command(&l.host->core, CORE_CMD_GIVE_QP, OTHER), 0);
	assert_int_equal(qp_owner(l.qp->qp), OTHER);
	assert_int_equal(command(&l.host->core, CORE_CMD_GIVE_QP, OTHER), -EPERM);
	assert_int_equal(command(&l.host->core, CORE_CMD_TAKE_QP, 0), -EPERM);
}

/* --- what moves along ------------------------------------------------------------------- */

static void core_rx__follows_the_owner(void **state)
{
	start();
	assert_int_equal(other_rx(&ack_all), VERDICT_HANDOFF + 0);
	move(&l.host->core, &other);
	assert_int_equal(lone_rx(&l, &ack_all), VERDICT_HANDOFF + OTHER);
	assert_int_equal(l.host->core.count.port[0].rx_packets, 0);
	assert_int_equal(other_rx(&ack_all), DROP_GHOST_ACK); /* it looked */
	move(&other, &l.host->core);
	assert_int_equal(lone_rx(&l, &ack_all), DROP_GHOST_ACK);
}

/* A successor that has not run TAKE_QP yet handles what comes. */
static void qp_give__the_successor_can_go_on_at_once(void **state)
{
	start();
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	assert_int_equal(command(&l.host->core, CORE_CMD_GIVE_QP, OTHER), 0);
	assert_int_equal(other_rx(&ack_all), DROP_NONE);
	assert_int_equal(cqes()[0].wr_id, 1);
	assert_int_equal(command(&other, CORE_CMD_TAKE_QP, 0), 0);
	assert_true(wheel_deadline(&other.wheel) == WHEEL_NEVER); /* nothing is outstanding */
}

/* The timer is the new owner's, and fires when it would have. */
static void qp_take__timers_move_along(void **state)
{
	uint64_t sent;

	start();
	sent = l.now;
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+4!");
	move(&l.host->core, &other);
	assert_true(wheel_deadline(&l.host->core.wheel) == WHEEL_NEVER);
	assert_string_equal(other_tx(), "");
	l.now = sent + (4096ull << l.attr.timeout) - 1;
	core_expire(&l.host->core, l.now);
	core_expire(&other, l.now);
	assert_string_equal(other_tx(), "");
	l.now += 2 << WHEEL_TICK_SHIFT;
	core_expire(&other, l.now);
	assert_string_equal(other_tx(), "04@200");
	assert_int_equal(other.count.local_ack_timeout_err, 1);
	assert_int_equal(l.host->core.count.local_ack_timeout_err, 0);
}

/* A packet that waits for its departure leaves then, by the new owner. */
static void qp_take__departures_move_along(void **state)
{
	struct core_cmd limit = {.type = CORE_CMD_SET_RATE, .rate = 1000000};

	start();
	limit.qp = l.qp->qp;
	assert_int_equal(core_cmd(&l.host->core, &limit, l.now), 0);
	for (unsigned i = 1; i <= 3; i++)
		lone_post(&l, ABI_WR_SEND, i, 160, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+160!"); /* 242 bytes: 1.936 ms */
	assert_int_equal(l.host->core.paced, 1);
	move(&l.host->core, &other);
	assert_int_equal(l.host->core.paced, 0);
	assert_string_equal(other_tx(), "");
	assert_int_equal(other.paced, 1);
	l.now += 1935000;
	assert_string_equal(other_tx(), "");
	assert_true(core_deadline(&other) > l.now - 20000);
	l.now += 1100;
	assert_string_equal(other_tx(), "04@201");
	move(&other, &l.host->core);
	assert_int_equal(other.paced, 0);
	l.now += 1936000;
	assert_string_equal(lone_tx(&l), "SEND_ONLY@202+160!");
}

/* Requests that were ready, and those posted without a doorbell, are sent by the new owner. */
static void qp_take__has_its_turn(void **state)
{
	start();
	for (unsigned i = 1; i <= 3; i++)
		lone_post(&l, ABI_WR_SEND, i, 4, 0);
	assert_string_equal(lone_tx_max(&l, 1), "SEND_ONLY@200+4!");
	move(&l.host->core, &other);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(other_tx(), "04@201 04@202");
}

/* An ACK that is owed is sent by the new owner, and no second time by the old. */
static void qp_take__owes_what_the_last_owner_owed(void **state)
{
	start();
	lone_recv(&l, 7, 0, 64);
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = RQ_PSN, .ackreq = true, .len = 4});
	move(&l.host->core, &other);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(other_tx(), "11@100");
	assert_string_equal(lone_cqes(&l), "R7:OK+4"); /* it stays where it was written */
}

/* --- completions ------------------------------------------------------------------------ */

/* Completions of a queue are numbered through, on whichever lane they come. */
/* proves EVT-03: an event that waits when the QP moves is raised by its new owner, also when that
 * one adds to it before it has run TAKE_QP. */
static void qp_take__events_move_along(void **state)
{
	struct core_event e[4];

	start();
	qp_event(&l.host->core, l.qp->qp, ABI_EVENT_SQ_DRAINED);
	assert_int_equal(command(&l.host->core, CORE_CMD_GIVE_QP, OTHER), 0);
	assert_int_equal(core_events(&l.host->core, e, 4), 0);
	assert_int_equal(command(&other, CORE_CMD_TAKE_QP, 0), 0);
	assert_int_equal(core_events(&other, e, 4), 1);
	assert_int_equal(e[0].type, ABI_EVENT_SQ_DRAINED);
	qp_event(&other, l.qp->qp, ABI_EVENT_SQ_DRAINED);
	assert_int_equal(command(&other, CORE_CMD_GIVE_QP, 0), 0);
	qp_event(&l.host->core, l.qp->qp, ABI_EVENT_QP_FATAL);
	assert_int_equal(command(&l.host->core, CORE_CMD_TAKE_QP, 0), 0);
	assert_int_equal(core_events(&other, e, 4), 0);
	assert_int_equal(core_events(&l.host->core, e, 4), 2);
	assert_int_equal(e[1].type, ABI_EVENT_QP_FATAL);
}

static void qp_complete__numbers_go_on(void **state)
{
	start();
	l.qp->free_ids = true; /* the fixture looks at one lane */
	for (unsigned i = 1; i <= 4; i++)
		lone_post(&l, ABI_WR_SEND, i, 4, 0);
	lone_recv(&l, 9, 0, 64);
	lone_tx(&l);
	lone_ack(&l, SQ_PSN, 1);
	lone_ack(&l, SQ_PSN + 1, 2);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
	assert_true(abi_cqe_is(l.last.mark, 1));
	move(&l.host->core, &other);
	other_rx(&(struct shot){.opcode = 0x11, .psn = SQ_PSN + 2, .syndrome = 0x1F, .msn = 3});
	other_rx(&(struct shot){.opcode = 0x04, .psn = RQ_PSN, .len = 4});
	assert_int_equal(cqes()[0].wr_id, 3);
	assert_true(abi_cqe_is(cqes()[0].mark, 2));
	assert_true(abi_cqe_is(((struct abi_cqe *)(recv_lane + 1))->mark, 0));
	move(&other, &l.host->core);
	lone_ack(&l, SQ_PSN + 3, 4);
	assert_string_equal(lone_cqes(&l), "S4:OK");
	assert_true(abi_cqe_is(l.last.mark, 3));
}

static void qp_complete__numbers_begin_anew_with_reset(void **state)
{
	start();
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	lone_ack(&l, SQ_PSN, 1);
	assert_int_equal(l.qp->qp->comp.cqes, 1);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RESET, l.now), 0);
	assert_int_equal(l.qp->qp->comp.cqes, 0);
	assert_int_equal(l.qp->qp->resp.cqes, 0);
}

/* --- observation ------------------------------------------------------------------------ */

static void observe(uint8_t queue, uint32_t psn, bool bad)
{
	lone_rx(&l, &(struct shot){.opcode = 0x0A, .psn = psn, .queue = queue, .bad_icrc = bad});
}

static void observe_queue__counts_runs(void **state)
{
	const struct qp *qp;
	uint32_t psn = RQ_PSN;

	start();
	qp = l.qp->qp;
	for (unsigned i = 0; i < 5; i++)
		observe(1 + OTHER, psn++, false);
	assert_int_equal(qp->queue, OTHER);
	assert_int_equal(qp->queue_run, 5);
	observe(1 + OTHER, psn, true); /* nobody's: it has no say */
	observe(1 + 0, psn, true);
	assert_int_equal(qp->queue_run, 5);
	observe(1 + 0, psn++, false);
	assert_int_equal(qp->queue, 0);
	assert_int_equal(qp->queue_run, 1);
	observe(0, psn++, false); /* of no queue: it has none either */
	assert_int_equal(qp->queue, 0);
	assert_int_equal(qp->queue_run, 1);
	for (unsigned i = 0; i < 3; i++)
		observe(1 + OTHER, psn++, false);
	assert_int_equal(qp->queue_run, 3);
	move(&l.host->core, &other);
	assert_int_equal(qp->queue_run, 0); /* observed anew */
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup, teardown)

/* --- the first line --------------------------------------------------------------------- */

/* A request of each kind by the peer and by the QP. */
static void one_of_each(unsigned round)
{
	static const uint8_t theirs[] = {0x0A, 0x0C, 0x04}; /* WRITE, READ, SEND */
	uint32_t psn = RQ_PSN + 3 * round, own = SQ_PSN + 2 * round;

	lone_recv(&l, 7, 0, 64);
	for (unsigned i = 0; i < ARRAY_SIZE(theirs); i++) {
		lone_rx(&l, &(struct shot){.opcode = theirs[i],
				    .psn = psn + i,
				    .ackreq = true,
				    .va = app_va(l.mr, 0),
				    .rkey = l.mr->mr.key,
				    .dma_len = 16,
				    .len = theirs[i] == 0x0C ? 0 : 16,
				    .queue = (uint8_t)(1 + round % 2)});
		assert_string_not_equal(lone_tx(&l), "");
	}
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 16, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 2, 16, 0);
	assert_string_not_equal(lone_tx(&l), "");
	lone_ack(&l, own, 2 * round + 1);
	lone_response(&l, 0x10, own + 1, 16);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK R7:OK+16");
}

/* Other workers read the first line of a QP for each packet to it or from it (decision 0153), so
 * no packet may change it. */
static void first_line__packets_leave_it(void **state)
{
	uint8_t line[CACHE_LINE];

	start();
	one_of_each(0); /* the first request raises COMM_EST */
	memcpy(line, l.qp->qp, sizeof(line));
	for (unsigned round = 1; round < 4; round++) {
		one_of_each(round);
		assert_memory_equal(l.qp->qp, line, sizeof(line));
	}
	assert_int_equal(offsetof(struct qp, owner) / CACHE_LINE, 0);
	assert_int_equal(offsetof(struct qp, epoch) / CACHE_LINE, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(qp_give__only_the_owner_can),
		T(core_rx__follows_the_owner),
		T(qp_give__the_successor_can_go_on_at_once),
		T(qp_take__timers_move_along),
		T(qp_take__departures_move_along),
		T(qp_take__has_its_turn),
		T(qp_take__owes_what_the_last_owner_owed),
		T(qp_take__events_move_along),
		T(qp_complete__numbers_go_on),
		T(qp_complete__numbers_begin_anew_with_reset),
		T(observe_queue__counts_runs),
		T(first_line__packets_leave_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
