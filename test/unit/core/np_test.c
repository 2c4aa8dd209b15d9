/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion notification of a connected QP: marks in, CNPs out, and CNPs in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "core_command.h"
#include "lone.h"
#include "qp.h"
#include "txd.h"

#define WRITE_ONLY   0x0A
#define READ_REQ     0x0C
#define READ_RESP    0x10
#define ACK	     0x11
#define UC_WRITE     0x2A
#define CNP	     0x81
#define CE	     3
#define INTERVAL     4000
#define PRIVATE_PKEY 0x8123

static struct lone l;

static struct port *port(void)
{
	return &l.host->ports.port[0];
}

static struct core_counters *count(void)
{
	return &l.host->core.count;
}

static void rcm_on(void)
{
	atomic_store(&port()->rcm, rcm_word(48 << 2, 6, true));
	atomic_store(&port()->cnp_interval, INTERVAL);
	l.ect = true;
	l.tos = 2;
	l.cnp_tos = 48 << 2;
}

static int setup(void **state)
{
	lone_init(&l);
	rcm_on();
	return 0;
}

static int teardown(void **state)
{
	lone_fini(&l);
	return 0;
}

static struct shot a_write(uint32_t psn)
{
	return (struct shot){.opcode = WRITE_ONLY,
		.psn = psn,
		.tos = CE,
		.va = app_va(l.mr, 0),
		.rkey = l.mr->mr.key,
		.dma_len = 8,
		.len = 8};
}

static void marked_write(uint32_t psn)
{
	struct shot s = a_write(psn);

	lone_rx(&l, &s);
}

/* --- CNPs that leave ------------------------------------------------------------------------ */

/* proves CNP-01, CNP-02, CNP-03, CNP-04, CNP-05, CNP-10: each byte, and before the ACK. */
static void np__answers_a_mark(void **state)
{
	static const uint8_t bth[28] = {0x81, 0, 0xFF, 0xFF, 0x40, 0, 0, PEER_QPN};
	struct shot s;

	lone_start(&l);
	s = a_write(0x100);
	s.ackreq = true;
	assert_int_equal(lone_rx(&l, &s), DROP_NONE);
	assert_int_equal(core_deadline(&l.host->core), 0);
	assert_string_equal(lone_tx_max(&l, 1), "CNP");
	assert_int_equal(l.frame_len, 74);
	assert_int_equal(get_be16(l.frame + 16), 60);
	assert_int_equal(l.frame[15], 48 << 2);
	assert_int_equal(get_be16(l.frame + 34), path_sport(&l.qp->qp->path));
	assert_memory_equal(l.frame + 42, bth, sizeof(bth));
	assert_string_equal(lone_tx(&l), "ACK@1001f/1");
	assert_int_equal(count()->np_cnp_sent, 1);
	assert_int_equal(count()->np_ecn_marked_roce_packets, 1);
}

/* proves CNP-01: also a packet in a run of WRITEs, which the fast path executes. */
static void np__answers_a_mark_in_a_run(void **state)
{
	struct shot s[4];

	lone_start(&l);
	marked_write(0x100);
	lone_tx(&l);
	l.now += INTERVAL;
	for (uint32_t i = 0; i < ARRAY_SIZE(s); i++) {
		s[i] = a_write(0x101 + i);
		s[i].tos = i == 2 ? CE : 2;
	}
	lone_rx_burst(&l, s, ARRAY_SIZE(s));
	assert_string_equal(lone_tx(&l), "CNP");
	assert_int_equal(count()->np_ecn_marked_roce_packets, 2);
}

/* proves CNP-02, CNP-05, CNP-10: P_Key of the packet; traffic class and BECN as configured. */
static void np__takes_pkey_and_configuration(void **state)
{
	struct shot s;

	port()->pkey[0] = PRIVATE_PKEY;
	atomic_store(&port()->rcm, rcm_word(46 << 2 | 2, 0, false));
	l.cnp_tos = 46 << 2 | 2;
	lone_start(&l);
	s = a_write(0x100);
	s.pkey = PRIVATE_PKEY & 0x7FFF;
	lone_rx(&l, &s);
	assert_int_equal(l.host->core.np.owed, 1);
	assert_int_equal(l.host->core.np.cnp[0].pkey, PRIVATE_PKEY & 0x7FFF);
	l.host->core.np.cnp[0].pkey = 0xFFFF; /* as lone_tx() expects it */
	assert_string_equal(lone_tx_max(&l, 1), "CNP");
	assert_int_equal(l.frame[46], 0);
}

/* proves CNP-06: the first at once; nothing at the end of the interval without a new mark. */
static void np__sends_one_per_interval(void **state)
{
	lone_start(&l);
	for (uint32_t i = 0; i < 10; i++)
		marked_write(0x100 + i);
	assert_string_equal(lone_tx(&l), "CNP");
	l.now += INTERVAL - 1;
	marked_write(0x10A);
	assert_string_equal(lone_tx(&l), "");
	l.now += 1000 * INTERVAL;
	assert_string_equal(lone_tx(&l), "");
	marked_write(0x10B);
	assert_string_equal(lone_tx(&l), "CNP");
	l.now += INTERVAL;
	marked_write(0x10C);
	assert_string_equal(lone_tx(&l), "CNP");
	assert_int_equal(count()->np_ecn_marked_roce_packets, 13);
	assert_int_equal(count()->np_cnp_sent, 3);
}

/* A packet that is valid, but early or executed before, has met congestion all the same. */
static void np__answers_early_packets_and_duplicates(void **state)
{
	lone_start(&l);
	marked_write(0x105);
	assert_string_equal(lone_tx(&l), "CNP ACK@10060/0"); /* and a NAK */
	l.now += INTERVAL;
	marked_write(0x100);
	l.now += INTERVAL;
	marked_write(0x100);
	assert_int_equal(l.host->core.np.owed, 2);
}

/* proves CNP-09 */
static void np__answers_acks_and_read_responses(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 8, ABI_WQE_SIGNALED);
	lone_post(&l, ABI_WR_RDMA_READ, 2, 8, ABI_WQE_SIGNALED);
	lone_tx(&l);
	lone_rx(&l,
		&(struct shot){.opcode = ACK, .psn = 0x200, .tos = CE, .syndrome = 0x1F, .msn = 1});
	assert_string_equal(lone_tx(&l), "CNP");
	l.now += INTERVAL;
	lone_rx(&l, &(struct shot){.opcode = READ_RESP,
			    .psn = 0x201,
			    .tos = CE,
			    .syndrome = 0x1F,
			    .msn = 2,
			    .len = 8});
	assert_string_equal(lone_tx(&l), "CNP");
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
}

/* UC has no ACKs, but CNPs. */
static void np__answers_uc(void **state)
{
	struct shot s;

	l.spec.type = ABI_QPT_UC;
	lone_start(&l);
	s = a_write(0x100);
	s.opcode = UC_WRITE;
	lone_rx(&l, &s);
	assert_string_equal(lone_tx(&l), "CNP");
}

/* proves CNP-08: nothing that fails a check is answered. proves CNP-15: nor FECN or BECN. */
static void np__does_not_answer(void **state)
{
	struct shot s;

	lone_start(&l);
	s = a_write(0x100);
	s.bad_icrc = true;
	assert_int_equal(lone_rx(&l, &s), DROP_ICRC);
	s = a_write(0x100);
	s.pkey = 0x8001;
	assert_int_equal(lone_rx(&l, &s), DROP_PKEY);
	s = a_write(0x100);
	s.src_ip = 77;
	assert_int_equal(lone_rx(&l, &s), DROP_QP_ADDRESS);
	s = a_write(0x100);
	s.opcode = UC_WRITE;
	assert_int_equal(lone_rx(&l, &s), DROP_QP_TYPE);
	s = a_write(0x100);
	s.opcode = CNP;
	s.len = 16;
	assert_int_equal(lone_rx(&l, &s), DROP_NONE);
	for (uint8_t ecn = 0; ecn < CE; ecn++) {
		s = a_write(0x100 + ecn);
		s.tos = 0xFC | ecn;
		s.dest_qp = 0xC0000000u | l.qp->qp->qpn;
		assert_int_equal(lone_rx(&l, &s), DROP_NONE);
	}
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(count()->np_ecn_marked_roce_packets, 0);
}

/* proves CNP-14 (CA17-5, CA17-14): off, CE is ignored, and packets are not ECN-capable. */
static void np__is_off_by_default(void **state)
{
	atomic_store(&port()->rcm, 0);
	l.ect = false;
	l.tos = 0;
	lone_start(&l);
	marked_write(0x100);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 8, ABI_WQE_SIGNALED);
	assert_string_equal(lone_tx(&l), "WRITE_ONLY@200+8!(0,8)");
	lone_rx(&l, &(struct shot){.opcode = CNP, .len = 16});
	assert_int_equal(l.verdict, DROP_CNP_IGNORED);
	assert_int_equal(count()->np_ecn_marked_roce_packets, 0);
	assert_int_equal(count()->rp_cnp_ignored, 1);
	assert_int_equal(count()->rp_cnp_handled, 0);
}

/* proves IP4-05: ECT(0) on requests and ACKs; lone_tx() looks at each. */
static void np__makes_packets_ecn_capable(void **state)
{
	struct shot s;

	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 8, ABI_WQE_SIGNALED);
	assert_string_equal(lone_tx(&l), "WRITE_ONLY@200+8!(0,8)");
	s = a_write(0x100);
	s.tos = 2;
	s.ackreq = true;
	lone_rx(&l, &s);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1");
}

/* --- order and bounds ------------------------------------------------------------------- */

/* A quarter of a burst at most; what finds no place is not answered, and not counted as sent. */
static void np__is_bounded(void **state)
{
	struct txd t[BURST];

	lone_start(&l);
	atomic_store(&port()->cnp_interval, 0);
	for (uint32_t i = 0; i < 2 * CNP_OWED; i++)
		marked_write(0x100 + i);
	assert_int_equal(l.host->core.np.owed, CNP_OWED);
	for (unsigned i = 0; i < BURST; i++)
		t[i].frame = l.host->tx[i];
	for (unsigned n = CNP_OWED; n; n -= BURST / 4) {
		assert_int_equal(l.host->core.np.owed, n);
		assert_int_equal(core_tx(&l.host->core, t, BURST, l.now), BURST / 4);
	}
	assert_int_equal(l.host->core.np.owed, 0);
	assert_int_equal(count()->np_cnp_sent, CNP_OWED);
}

/* proves CNP-06: CNPs of a port that cannot send take no place of another port's, not even all. */
static void np__of_a_closed_port_give_way(void **state)
{
	struct core_np *np = &l.host->core.np;

	lone_start(&l);
	atomic_store(&port()->cnp_interval, 0);
	for (uint32_t i = 0; i < CNP_OWED; i++) {
		marked_write(0x100 + i);
		np->cnp[i].path.port = 1; /* of a QP there */
	}
	core_open_egress(&l.host->core, ~(1u << EGRESS_PORT(1)));
	marked_write(0x100 + CNP_OWED);
	assert_int_equal(np->owed, CNP_OWED);
	assert_string_equal(lone_tx(&l), "CNP");
	assert_int_equal(np->owed, CNP_OWED - 1);
}

/* While its port is closed it waits, and nothing else does. */
static void np__waits_for_its_port(void **state)
{
	lone_start(&l);
	marked_write(0x100);
	core_open_egress(&l.host->core, ~(1u << EGRESS_PORT(0)));
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(core_deadline(&l.host->core), 0);
	core_open_egress(&l.host->core, ~0u);
	assert_string_equal(lone_tx(&l), "CNP");
}

/* A QP that starts anew, moves or ends takes its CNPs with it. */
static void np__forgets_with_the_qp(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_GIVE_QP, .worker = 1};

	lone_start(&l);
	marked_write(0x100);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RESET, l.now), 0);
	assert_string_equal(lone_tx(&l), "");
	lone_climb(&l, ABI_QPS_RTS);
	marked_write(0x100); /* the interval began anew, too */
	assert_int_equal(l.host->core.np.owed, 1);
	cmd.qp = l.qp->qp;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_int_equal(l.host->core.np.owed, 0);
	atomic_store(&l.qp->qp->owner, 0);
	marked_write(0x101);
	cmd.type = CORE_CMD_DETACH_QP;
	assert_int_equal(l.host->core.np.owed, 1);
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_int_equal(l.host->core.np.owed, 0);
}

/* proves CNP-06: a move does not end the interval after a CNP that was sent; RESET does. */
static void np__keeps_the_interval_in_a_move(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_GIVE_QP, .worker = 1};

	lone_start(&l);
	marked_write(0x100);
	assert_string_equal(lone_tx_max(&l, 1), "CNP");
	cmd.qp = l.qp->qp;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	atomic_store(&l.qp->qp->owner, 0);
	marked_write(0x101);
	assert_int_equal(l.host->core.np.owed, 0);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RESET, l.now), 0);
	lone_climb(&l, ABI_QPS_RTS);
	marked_write(0x100);
	assert_int_equal(l.host->core.np.owed, 1);
}

/* --- CNPs that arrive ------------------------------------------------------------------- */

static struct shot a_cnp(void)
{
	return (struct shot){.opcode = CNP, .len = 16};
}

/* proves CNP-11: nothing of the QP changes, nothing is sent. proves CNP-05: BECN does not
 * matter; proves CNP-03: nor do the 16 bytes. */
static void rp__accepts_the_peers_cnp(void **state)
{
	static struct qp before;
	struct shot s;

	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 8, ABI_WQE_SIGNALED);
	lone_tx(&l);
	before = *l.qp->qp;
	for (unsigned i = 0; i < 2; i++) {
		s = a_cnp();
		s.dest_qp = i ? 0x40000000u | l.qp->qp->qpn : 0;
		s.payload = i ? "0123456789ABCDEF" : NULL;
		assert_int_equal(lone_rx(&l, &s), DROP_NONE);
	}
	before.notice = l.qp->qp->notice; /* what it is for */
	assert_memory_equal(&before, l.qp->qp, sizeof(before));
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(count()->rp_cnp_handled, 2);
	assert_int_equal(count()->rp_cnp_ignored, 0);
}

/* proves CNP-16 */
static void rp__ignores_others_and_says_why(void **state)
{
	struct shot s = a_cnp();

	lone_start(&l);
	s.src_ip = 77;
	assert_int_equal(lone_rx(&l, &s), DROP_QP_ADDRESS);
	s = a_cnp();
	s.pkey = 0x8001;
	assert_int_equal(lone_rx(&l, &s), DROP_PKEY);
	assert_int_equal(count()->bad_pkey[0], 1);
	s = a_cnp();
	s.bad_icrc = true;
	assert_int_equal(lone_rx(&l, &s), DROP_ICRC); /* CA17-24: counted as that alone */
	assert_int_equal(count()->rp_cnp_ignored, 2);
	assert_int_equal(count()->rp_cnp_handled, 0);
}

/* A responder may stream READ responses before RTS; a QP that sends nothing has no rate. */
static void rp__by_state(void **state)
{
	static const struct {
		unsigned state;
		enum drop why;
	} row[] = {{ABI_QPS_INIT, DROP_QP_ADDRESS}, {ABI_QPS_RTR, DROP_NONE},
		{ABI_QPS_RTS, DROP_NONE}, {ABI_QPS_ERR, DROP_QP_STATE}};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		struct shot s = a_cnp();

		if (i)
			setup(state);
		lone_start_in(&l, row[i].state == ABI_QPS_ERR ? ABI_QPS_RTS : row[i].state);
		if (row[i].state == ABI_QPS_ERR)
			assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
		if (row[i].state == ABI_QPS_INIT)
			assert_int_not_equal(lone_rx(&l, &s), DROP_NONE);
		else
			assert_int_equal(lone_rx(&l, &s), row[i].why);
		assert_int_equal(count()->rp_cnp_handled, row[i].why == DROP_NONE);
		if (i < ARRAY_SIZE(row) - 1)
			lone_fini(&l);
	}
}

#define LATELY 10000000u

static void expect_told(enum drop why)
{
	struct shot s = a_cnp();

	assert_int_equal(lone_rx(&l, &s), why);
}

/* proves CNP-16: a QP that has sent nothing for 10 ms is not told; one to three rounds of 10 ms
 * are forgiven. */
static void rp__ignores_cnps_for_an_idle_qp(void **state)
{
	lone_start(&l);
	expect_told(DROP_NONE); /* it has just begun */
	l.now += 3 * LATELY;
	expect_told(DROP_CNP_IDLE);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 8, ABI_WQE_SIGNALED);
	lone_tx(&l);
	l.now += 60 * LATELY; /* not acknowledged yet: the CNP may be as late */
	expect_told(DROP_NONE);
	lone_ack(&l, 0x200, 1);
	expect_told(DROP_CNP_IDLE);
	assert_int_equal(count()->rp_cnp_handled, 2);
	assert_int_equal(count()->rp_cnp_ignored, 2);
	assert_int_equal(count()->drop[DROP_CNP_IDLE], 2);
	assert_false(l.qp->qp->limited);
}

/* Also while the core sends for others, and at any point of its rounds. */
static void rp__remembers_for_ten_milliseconds(void **state)
{
	const uint64_t step = LATELY / 20;

	for (unsigned begin = 0; begin < 20; begin += 3) {
		uint64_t last;

		if (begin)
			setup(state);
		lone_start(&l);
		for (unsigned i = 0; i < 100 + begin; i++, l.now += step)
			lone_tx(&l);
		lone_post(&l, ABI_WR_RDMA_WRITE, 1, 8, ABI_WQE_SIGNALED);
		lone_tx(&l);
		last = l.now;
		lone_ack(&l, 0x200, 1);
		while (l.now < last + LATELY) {
			expect_told(DROP_NONE);
			l.now += step;
			lone_tx(&l);
		}
		l.now = last + 3 * LATELY;
		lone_tx(&l);
		expect_told(DROP_CNP_IDLE);
		if (begin < 18)
			lone_fini(&l);
	}
}

/* An ACK is ECN-capable, too, and a switch may mark it. */
static void rp__takes_an_ack_for_a_packet(void **state)
{
	struct shot s;

	lone_start(&l);
	l.now += 3 * LATELY;
	lone_tx(&l);
	s = a_write(0x100);
	s.tos = 2;
	s.ackreq = true;
	lone_rx(&l, &s);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1");
	expect_told(DROP_NONE);
}

/* The worker stood still, and the CNP waited for it. */
static void rp__forgives_pauses(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 8, ABI_WQE_SIGNALED);
	lone_tx(&l);
	lone_ack(&l, 0x200, 1);
	core_resumed(&l.host->core, l.now, l.now + 20 * LATELY);
	l.now += 20 * LATELY;
	expect_told(DROP_NONE);
	core_expire(&l.host->core, l.now);
	expect_told(DROP_NONE);
	l.now += 3 * LATELY;
	expect_told(DROP_CNP_IDLE);
}

/* The numbers of calls are those of one core, and wrap around. */
static void rp__moves_and_wraps(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_TAKE_QP};

	lone_start(&l);
	cmd.qp = l.qp->qp;
	l.host->core.tx_call = UINT32_MAX - 1;
	l.now += 3 * LATELY;
	expect_told(DROP_CNP_IDLE);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 8, ABI_WQE_SIGNALED);
	lone_tx(&l);
	lone_tx(&l);
	lone_ack(&l, 0x200, 1);
	expect_told(DROP_NONE);
	l.now += 3 * LATELY;
	expect_told(DROP_CNP_IDLE);
	l.qp->qp->tx_call = 0x1234; /* another core's */
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	expect_told(DROP_NONE);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(np__answers_a_mark),
		T(np__answers_a_mark_in_a_run),
		T(np__takes_pkey_and_configuration),
		T(np__sends_one_per_interval),
		T(np__answers_early_packets_and_duplicates),
		T(np__answers_acks_and_read_responses),
		T(np__answers_uc),
		T(np__does_not_answer),
		T(np__is_off_by_default),
		T(np__makes_packets_ecn_capable),
		T(np__is_bounded),
		T(np__of_a_closed_port_give_way),
		T(np__waits_for_its_port),
		T(np__forgets_with_the_qp),
		T(np__keeps_the_interval_in_a_move),
		T(rp__accepts_the_peers_cnp),
		T(rp__ignores_others_and_says_why),
		T(rp__by_state),
		T(rp__ignores_cnps_for_an_idle_qp),
		T(rp__remembers_for_ten_milliseconds),
		T(rp__takes_an_ack_for_a_packet),
		T(rp__forgives_pauses),
		T(rp__moves_and_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
