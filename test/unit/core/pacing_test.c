/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets leave at the rate that a QP is limited to, and nothing else waits for them. */
#include <errno.h>
#include "core_command.h"
#include "fixture.h"
#include "pacing.h"
#include "qp.h"
#include "seq24.h"

#define MBIT 1000000ull
#define MS   1000000ull
#define US   1000ull

/* A packet of the path MTU that these tests use, on the wire. */
#define MTU	1024u
#define HEADERS (14u + 20 + 8 + 12 + 4 + 24) /* Ethernet to BTH, ICRC, FCS, preamble, gap */

static void limit(uint64_t rate)
{
	struct core_cmd cmd = {.type = CORE_CMD_SET_RATE, .qp = l.qp->qp, .rate = rate};

	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
}

static bool long_quanta;

static int setup(void **state)
{
	lone_init(&l);
	if (long_quanta)
		atomic_store(&l.host->ports.port[0].burst, PACING_RUN);
	l.attr.path_mtu = MTU;
	l.spec.sq_depth = 256;
	l.cq_depth = 256;
	l.spec.window = 4096;
	return 0;
}

/* Sends what may leave at l.now.  @return packets */
static unsigned send(unsigned max)
{
	unsigned before = l.packets;

	lone_tx_max(&l, max);
	return l.packets - before;
}

/* The peer has all that was sent. */
static void acknowledge(void)
{
	const struct qp *qp = l.qp->qp;

	if (qp->comp.una != qp->req.psn)
		lone_ack(&l, seq24_add(qp->req.psn, SEQ24_MASK), 0);
}

/* Goes from departure to departure until @p end.  @return packets sent */
static uint64_t send_until(uint64_t end, unsigned max)
{
	uint64_t n = 0;

	while (l.now <= end) {
		uint64_t due;

		n += send(max);
		acknowledge();
		core_expire(&l.host->core, l.now);
		due = core_deadline(&l.host->core);
		if (due > l.now)
			l.now = due;
	}
	return n;
}

static void post_writes(unsigned n, uint32_t len)
{
	for (unsigned i = 0; i < n; i++)
		lone_post(&l, ABI_WR_RDMA_WRITE, i, len, 0);
}

/* The rate is that which was asked for, to one in a hundred. */
static void check_rate(uint64_t rate, unsigned max)
{
	double packet = (MTU + HEADERS) * 8e9 / (double)rate;
	double time = 1000 * packet > 10 * MS ? 1000 * packet : 10 * MS;
	double n;

	setup(NULL);
	lone_start(&l);
	limit(rate);
	post_writes(128, 1 << 20);
	n = (double)send_until(l.now + (uint64_t)time, max);
	if (!(n * packet > 0.99 * time && n * packet < 1.01 * time))
		fail_msg("%.0f packets instead of %.0f at %.0f Mb/s", n, time / packet,
			(double)rate / 1e6);
	lone_teardown(NULL);
}

/* proves CNP-13: from 1 Mb/s to a fast line's, for a NIC that pulls one packet at a time and for
 * bursts. */
static void rate__is_kept(void **state)
{
	static const uint64_t rates[] = {1 * MBIT, 10 * MBIT, 100 * MBIT, 1000 * MBIT, 9999 * MBIT,
		40000 * MBIT, 100000 * MBIT};

	lone_teardown(NULL);
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		check_rate(rates[i], 1);
		check_rate(rates[i], BURST);
	}
	setup(NULL);
}

/* A rate so low that the time of a burst would wrap is 1 kb/s: the next packet leaves long after
 * those before it. */
static void rate__least(void **state)
{
	(void)state;
	lone_start(&l);
	post_writes(8, 1 << 20);
	limit(1);
	assert_in_range(pacing_rate(l.qp->qp), 999, 1001);
	send(BURST);
	assert_true(core_deadline(&l.host->core) > l.now);
	limit(100 * MBIT);
	assert_true(send_until(l.now + 100 * MS, 1) > 100);
}

static void shape(uint64_t rate, uint32_t burst, uint32_t packet)
{
	struct core_cmd cmd = {
		.type = CORE_CMD_SHAPE_QP, .qp = l.qp->qp, .shape = {rate, burst, packet}};

	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
}

/* A program limits its QP: at most its burst leaves together, counted in packets that it calls
 * typical, and one packet always may. */
static void rate__of_the_program(void **state)
{
	static const struct {
		uint32_t burst, packet;
		unsigned packets;
	} rows[] = {
		{3 * MTU + 500, 0, 3},
		{1500, 256, 5},
		{1, 0, 1},
		{1u << 30, 0, QUANTUM}, /* no more than others */
		{0, 0, QUANTUM},
	};

	lone_start(&l);
	post_writes(64, MTU);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		shape(10000 * MBIT, rows[i].burst, rows[i].packet);
		l.now = i ? core_deadline(&l.host->core) : l.now;
		assert_int_equal(send(BURST), rows[i].packets);
		assert_int_equal(send(BURST), 0);
	}
	assert_int_equal(pacing_rate(l.qp->qp) / MBIT, 10000);
}

/* Mb/s; 0: no limit */
static void limit_and_shape(uint64_t administrator, uint64_t program)
{
	limit(administrator * MBIT);
	shape(program * MBIT, 0, 0);
}

/* It lifts no limit of an administrator, and ends with RESET. */
static void rate__of_both_is_the_least(void **state)
{
	struct core_cmd reset = {.type = CORE_CMD_MODIFY_QP,
		.mask = ABI_QP_STATE,
		.attr = {.qp_state = ABI_QPS_RESET}};
	struct core_limit limit;

	lone_start(&l);
	limit_and_shape(100, 2000);
	assert_int_equal(pacing_rate(l.qp->qp) / MBIT, 100);
	limit_and_shape(100, 0);
	assert_int_equal(pacing_rate(l.qp->qp) / MBIT, 100);
	limit_and_shape(100, 50);
	assert_int_equal(pacing_rate(l.qp->qp) / MBIT, 50);
	limit_and_shape(0, 50);
	pacing_look(&l.host->core, l.qp->qp, &limit, l.now);
	assert_true(limit.own == 50 * MBIT && !limit.asked && limit.limited);
	reset.qp = l.qp->qp;
	while (core_cmd(&l.host->core, &reset, l.now) == -EAGAIN)
		;
	assert_int_equal(pacing_rate(l.qp->qp), 0);
	assert_false(l.qp->qp->limited);
}

/* A quantum of several turns, as --gso likes it: other QPs have theirs in between, the rate stays,
 * and what is left of it ends with the requests. */
static void rate__a_quantum_of_several_turns(void **state)
{
	atomic_store(&l.host->ports.port[0].burst, PACING_RUN);
	lone_start(&l);
	limit(10000 * MBIT);
	post_writes(2 * PACING_RUN, MTU);
	assert_int_equal(send(QUANTUM + 3), QUANTUM + 3);
	assert_int_equal(send(PACING_RUN), PACING_RUN - QUANTUM - 3);
	assert_int_equal(send(PACING_RUN), 0);
	l.now += PACING_RUN * (MTU + HEADERS + 16) * 8 / 10 + 64; /* each has a RETH */
	assert_int_equal(send(QUANTUM), QUANTUM);
	limit(10 * MBIT); /* the rest does not leave at once any more */
	assert_int_equal(send(PACING_RUN), 0);
}

/* Requests of less than a quantum do not save the rest of it up. */
static void rate__a_long_quantum_ends_with_the_requests(void **state)
{
	atomic_store(&l.host->ports.port[0].burst, PACING_RUN);
	lone_start(&l);
	limit(10000 * MBIT);
	post_writes(QUANTUM + 1, MTU);
	assert_int_equal(send(PACING_RUN), QUANTUM + 1);
	post_writes(PACING_RUN, MTU);
	assert_int_equal(send(PACING_RUN), 0);
}

static void rate__is_kept_in_long_quanta(void **state)
{
	lone_teardown(NULL);
	long_quanta = true;
	check_rate(1000 * MBIT, BURST);
	check_rate(40000 * MBIT, BURST);
	long_quanta = false;
	setup(NULL);
}

static void rate__off_sends_at_once(void **state)
{
	lone_start(&l);
	limit(100 * MBIT);
	post_writes(16, MTU);
	assert_int_equal(send(BURST), 1); /* a quantum takes 100 us at most */
	assert_int_equal(send(BURST), 0);
	limit(0);
	assert_false(l.qp->qp->limited);
	assert_int_equal(send(BURST), 15);
}

/* Nothing is saved up: after an idle time a quantum leaves, and then the rate. */
static void rate__no_burst_after_a_pause(void **state)
{
	lone_start(&l);
	limit(10000 * MBIT);
	post_writes(4, MTU);
	assert_int_equal(send(BURST), 4);
	acknowledge();
	lone_wait(&l, 1000 * MS);
	post_writes(64, MTU);
	assert_int_equal(send(BURST), QUANTUM);
	assert_int_equal(send(BURST), 0);
}

/* A worker that is late catches one quantum up, not more. */
static void rate__a_late_worker_catches_a_quantum_up(void **state)
{
	lone_start(&l);
	limit(10000 * MBIT);
	post_writes(100, MTU);
	assert_int_equal(send(BURST), QUANTUM);
	l.now += 1000 * MS;
	assert_int_equal(send(BURST), 2 * QUANTUM);
	assert_int_equal(send(BURST), 0);
	l.now += 10 * US; /* 7080 ns are a quantum */
	assert_int_equal(send(BURST), QUANTUM);
	l.now += 5 * US; /* 4.2 of them are owed from the last time */
	assert_int_equal(send(BURST), QUANTUM);
}

/* When the QP that waits has its turn. */
static uint64_t departure(void)
{
	assert_true(pacing_waits(l.qp->qp));
	return l.qp->qp->limiter->timer.due << PACE_TICK_SHIFT;
}

/* A new rate moves the departure that waits. */
static void rate__moves_the_next_departure(void **state)
{
	uint64_t start;

	lone_start(&l);
	start = l.now;
	limit(1 * MBIT);
	post_writes(4, MTU);
	assert_int_equal(send(BURST), 1);
	assert_in_range(departure() - start, 8000 * US, 9100 * US);
	limit(100 * MBIT);
	assert_in_range(departure() - start, 80 * US, 91 * US);
	l.now = start + 80 * US;
	assert_int_equal(send(BURST), 0);
	l.now = start + 90 * US;
	assert_int_equal(send(BURST), 1);
	limit(1 * MBIT);
	assert_in_range(departure() - start, 8000 * US, 9100 * US);
}

/* A QP without credit is on no ready list, whatever happens to it; its deadline is known. */
static void rate__without_credit_it_is_not_ready(void **state)
{
	lone_start(&l);
	limit(100 * MBIT);
	post_writes(8, MTU);
	assert_int_equal(send(BURST), 1);
	assert_true(pacing_waits(l.qp->qp));
	assert_true(list_empty(&l.qp->qp->ready));
	acknowledge();
	assert_true(pacing_waits(l.qp->qp)); /* progress does not make it ready */
	assert_true(core_deadline(&l.host->core) > l.now);
	assert_int_equal(l.host->core.paced, 1);
	l.now += 200 * US;
	assert_int_equal(send(BURST), 2);
}

/* A message that is short leaves no timer armed. */
static void rate__idle_is_idle(void **state)
{
	lone_start(&l);
	limit(100 * MBIT);
	post_writes(1, MTU);
	assert_int_equal(send(BURST), 1);
	acknowledge();
	lone_wait(&l, 1 * MS);
	assert_int_equal(send(BURST), 0);
	assert_int_equal(l.host->core.paced, 0);
	assert_true(list_empty(&l.qp->qp->ready));
}

/* A list of just a quantum leaves the QP idle: no timer and no turn more, and the application rings
 * for the next. */
static void rate__a_list_of_a_quantum_ends_idle(void **state)
{
	lone_start(&l);
	limit(10000 * MBIT);
	post_writes(QUANTUM, MTU);
	assert_int_equal(send(BURST), QUANTUM);
	assert_int_equal(l.host->core.paced, 0);
	assert_true(list_empty(&l.qp->qp->ready));
	assert_true(l.qp->qp->req.rings);
	post_writes(1, MTU);
	assert_int_equal(send(BURST), 0);
	assert_true(pacing_waits(l.qp->qp));
}

/* It is destroyed while it waits. */
static void rate__ends_with_the_qp(void **state)
{
	struct core_cmd detach = {.type = CORE_CMD_DETACH_QP};

	lone_start(&l);
	limit(100 * MBIT);
	post_writes(8, MTU);
	assert_int_equal(send(BURST), 1);
	assert_true(pacing_waits(l.qp->qp));
	detach.qp = l.qp->qp;
	assert_int_equal(core_cmd(&l.host->core, &detach, l.now), 0);
	assert_int_equal(l.host->core.paced, 0);
	l.now += 1000 * MS;
	core_expire(&l.host->core, l.now);
	assert_int_equal(send(BURST), 0);
}

/* The clock jumps by an hour, as when the machine was suspended: one quantum is caught up. */
static void rate__a_jump_of_the_clock(void **state)
{
	lone_start(&l);
	l.qp->qp->ack_timeout = 0;
	limit(100 * MBIT);
	post_writes(16, MTU);
	assert_int_equal(send(BURST), 1);
	l.now += 3600 * 1000 * MS;
	core_expire(&l.host->core, l.now);
	assert_in_range(send(BURST), 1, 1 + QUANTUM);
	assert_int_equal(send(BURST), 0);
	assert_in_range(departure() - l.now, 1, 91 * US);
}

/* --- what does not wait ------------------------------------------------------------------- */

static void hold(void)
{
	lone_start(&l);
	limit(1 * MBIT);
	post_writes(8, MTU);
	assert_int_equal(send(BURST), 1);
}

static void rate__acks_do_not_wait(void **state)
{
	hold();
	lone_request(&l, 0x0A, RQ_PSN, 0, 8, 8);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1");
	assert_true(pacing_waits(l.qp->qp));
}

static void rate__atomic_responses_do_not_wait(void **state)
{
	struct shot s = {.opcode = 0x14, .psn = RQ_PSN, .swap_add = 1};

	hold();
	s.va = app_va(l.mr, 0);
	s.rkey = l.mr->mr.key;
	assert_int_equal(lone_rx(&l, &s), DROP_NONE);
	assert_int_equal(send(BURST), 1);
	assert_true(pacing_waits(l.qp->qp));
}

static void rate__a_flush_does_not_wait(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_MODIFY_QP,
		.mask = ABI_QP_STATE,
		.attr = {.qp_state = ABI_QPS_ERR}};

	hold();
	cmd.qp = l.qp->qp;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_false(pacing_waits(l.qp->qp));
	assert_int_equal(l.host->core.paced, 0);
	assert_int_equal(send(BURST), 0);
	assert_non_null(strstr(lone_cqes(&l), "S7:FLUSH"));
}

/* Nor does SQD: what has not started does not start, so the queue is drained at once. */
static void rate__sqd_does_not_wait(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_MODIFY_QP,
		.mask = ABI_QP_STATE | ABI_QP_EN_SQD_ASYNC_NOTIFY,
		.attr = {.qp_state = ABI_QPS_SQD, .en_sqd_async_notify = 1}};

	hold();
	acknowledge();
	cmd.qp = l.qp->qp;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_true(l.qp->qp->events & 1u << ABI_EVENT_SQ_DRAINED);
}

static void rate__reset_starts_anew(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_MODIFY_QP,
		.mask = ABI_QP_STATE,
		.attr = {.qp_state = ABI_QPS_RESET}};

	hold();
	cmd.qp = l.qp->qp;
	while (core_cmd(&l.host->core, &cmd, l.now))
		;
	assert_int_equal(l.host->core.paced, 0);
	lone_climb(&l, ABI_QPS_RTS);
	l.now += 10 * MS;
	post_writes(2, MTU);
	assert_int_equal(send(BURST), 1); /* an administrator's rate stays */
}

/* --- a responder is a sender --------------------------------------------------------------- */

static void rate__read_responses_wait(void **state)
{
	lone_start(&l);
	limit(100 * MBIT);
	lone_request(&l, 0x0C, RQ_PSN, 0, 8 * MTU, 0);
	assert_string_equal(lone_tx(&l), "RESP_FIRST@100+10241f/1");
	assert_true(pacing_waits(l.qp->qp));
	l.now += 90 * US;
	assert_string_equal(lone_tx(&l), "RESP_MIDDLE@101+1024");
	lone_request(&l, 0x0A, RQ_PSN + 8, 0, 8, 8);
	assert_string_equal(lone_tx(&l), ""); /* RSP-27: its ACK follows them */
	for (unsigned i = 0; i < 6; i++) {
		l.now += 90 * US;
		lone_tx(&l);
	}
	assert_string_equal(l.log, "RESP_LAST@107+10241f/1 ACK@1081f/2");
}

/* --- ACKs at low rates ---------------------------------------------------------------------- */

/* proves REQ-22: at 1 Mb/s a packet takes 9 ms, and an ACK timer of 67 ms must not end the QP. */
static void ackreq__is_due_at_low_rates(void **state)
{
	lone_start(&l);
	l.qp->qp->ack_timeout = 67108864;
	limit(1 * MBIT);
	post_writes(1, 100 * MTU);
	assert_non_null(strchr(lone_tx(&l), '!'));
	limit(100 * MBIT); /* 87 us a packet: 96 in an eighth of it */
	for (unsigned i = 0; i < 30; i++) {
		l.now += 100 * US;
		assert_null(strchr(lone_tx(&l), '!'));
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, lone_teardown)
	const struct CMUnitTest tests[] = {
		T(rate__is_kept),
		T(rate__least),
		T(rate__of_the_program),
		T(rate__of_both_is_the_least),
		T(rate__a_quantum_of_several_turns),
		T(rate__a_long_quantum_ends_with_the_requests),
		T(rate__is_kept_in_long_quanta),
		T(rate__off_sends_at_once),
		T(rate__no_burst_after_a_pause),
		T(rate__a_late_worker_catches_a_quantum_up),
		T(rate__moves_the_next_departure),
		T(rate__without_credit_it_is_not_ready),
		T(rate__idle_is_idle),
		T(rate__a_list_of_a_quantum_ends_idle),
		T(rate__ends_with_the_qp),
		T(rate__a_jump_of_the_clock),
		T(rate__acks_do_not_wait),
		T(rate__atomic_responses_do_not_wait),
		T(rate__a_flush_does_not_wait),
		T(rate__sqd_does_not_wait),
		T(rate__reset_starts_anew),
		T(rate__read_responses_wait),
		T(ackreq__is_due_at_low_rates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
