/* SPDX-License-Identifier: BSD-3-Clause */
#include "cc.h"
#include "fixture.h"
#include "qp_impl.h"
#include "txd.h"

/* A connected QP of @p session with a message of @p packets to send. */
static struct app_qp *busy_qp(uint32_t session, unsigned packets)
{
	static struct sim_host peer;
	struct app_send s = {
		.opcode = ABI_WR_SEND, .num_sge = 1, .sge = {app_sge(l.mr, 0, 256 * packets)}};
	struct path_spec path;
	struct app_qp *q;

	host_init(&peer, 2, icrc_best(), 0);
	path = host_path(l.host, &peer, 0, HOST_GID_IPV4);
	l.spec.session = session;
	q = app_qp(&l.app, &l.spec);
	assert_int_equal(app_to_init(q, &l.attr, l.now), 0);
	assert_int_equal(app_to_rtr(q, &l.attr, &path, l.now), 0);
	assert_int_equal(app_to_rts(q, &l.attr, l.now), 0);
	app_post_send(q, &s);
	return q;
}

/* One whole burst, and how many packets of it are of each session: sent[session]. */
static void count_burst(unsigned sent[], unsigned sessions)
{
	struct txd t[BURST];

	for (unsigned i = 0; i < BURST; i++)
		t[i].frame = l.host->tx[i];
	assert_int_equal(core_tx(&l.host->core, t, BURST, l.now), BURST);
	for (unsigned i = 0; i < BURST; i++) {
		assert_true(t[i].qp->session < sessions);
		sent[t[i].qp->session]++;
	}
}

/* QPs that all have much to send get the same share. */
static void core_tx__is_fair(void **state)
{
	struct app_qp *q[4];
	unsigned sent[4] = {0};
	struct txd t[BURST];

	lone_start(&l);
	for (unsigned i = 0; i < 4; i++)
		q[i] = busy_qp(1, 120);
	for (unsigned burst = 0; burst < 8; burst++) {
		unsigned n;

		for (unsigned i = 0; i < BURST; i++)
			t[i].frame = l.host->tx[i];
		n = core_tx(&l.host->core, t, BURST, l.now);
		assert_int_equal(n, BURST);
		for (unsigned i = 0; i < n; i++)
			for (unsigned k = 0; k < 4; k++)
				sent[k] += t[i].qp == q[k]->qp;
	}
	for (unsigned k = 0; k < 4; k++)
		assert_int_equal(sent[k], 8 * BURST / 4);
}

/* The only QP of a session gets as much as the thousand of another. */
static void core_tx__sessions_share_alike(void **state)
{
	unsigned sent[4] = {0};

	l.spec.sq_depth = 1;
	l.spec.rq_depth = 1;
	lone_start(&l);
	for (unsigned i = 0; i < 900; i++)
		busy_qp(1, 8);
	for (unsigned i = 0; i < 10; i++)
		busy_qp(2, 40);
	for (unsigned burst = 0; burst < 6; burst++)
		count_burst(sent, 4);
	assert_int_equal(sent[1], 3 * BURST);
	assert_int_equal(sent[2], 3 * BURST);
	busy_qp(3, 120);
	for (unsigned burst = 0; burst < 9; burst++)
		count_burst(sent, 4);
	assert_int_equal(sent[1], 6 * BURST);
	assert_int_equal(sent[2], 6 * BURST);
	assert_int_equal(sent[3], 3 * BURST);
}

/* Packets that session 2 sends in 100 us, in one burst a microsecond, beside one that others flood
 * with @p cnps CNPs a microsecond. */
static unsigned sent_beside_a_flood(unsigned cnps)
{
	struct port *port = &l.host->ports.port[0];
	unsigned sent[3] = {0};
	struct cc_config cfg;

	cc_config_init(&cfg, &cc_dcqcn, 0, 100e9);
	atomic_store(&port->cc, &cfg);
	atomic_store(&port->rcm, rcm_word(48 << 2, 6, true));
	l.ect = true;
	l.attr.path_mtu = 256;
	l.spec.window = 4096;
	l.spec.session = 1;
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 1 << 20, 0);
	core_doorbell(&l.host->core, l.qp->qp, l.now);
	busy_qp(2, 3300);
	for (unsigned us = 0; us < 100; us++, l.now += 1000) {
		count_burst(sent, 3);
		for (unsigned i = 0; i < cnps; i++)
			lone_rx(&l, &(struct shot){.opcode = 0x81, .len = 16});
	}
	assert_int_equal(count()->rp_cnp_handled, 100 * cnps);
	assert_int_equal(l.qp->qp->limited, cnps != 0);
	lone_fini(&l);
	lone_init(&l);
	return sent[2];
}

/* proves CNP-11: one per microsecond, or all that a round can receive, take nothing from another
 * session: the QP that they slow leaves it the rest. */
static void core_tx__cnps_of_others(void **state)
{
	unsigned alone = sent_beside_a_flood(0);

	assert_int_equal(alone, 100 * BURST / 2);
	assert_true(sent_beside_a_flood(1) >= alone);
	assert_true(sent_beside_a_flood(BURST) >= alone);
}

/* A session whose ready QPs go away has no turn left. */
static void core_tx__destroyed_while_ready(void **state)
{
	struct app_qp *q[3];
	unsigned sent[3] = {0};

	lone_start(&l);
	q[0] = busy_qp(1, 8);
	q[1] = busy_qp(1, 8);
	q[2] = busy_qp(2, 120);
	app_qp_destroy(q[0], l.now);
	app_qp_destroy(q[1], l.now);
	count_burst(sent, 3);
	assert_int_equal(sent[2], BURST);
	app_qp_destroy(q[2], l.now);
	assert_string_equal(lone_tx(&l), "");
	assert_true(list_empty(&l.host->core.ready));
}

#define PORT_0 (1u << EGRESS_PORT(0))
#define PORT_1 (1u << EGRESS_PORT(1))

/* The same as busy_qp(), by port 1. */
static struct app_qp *busy_qp_of_port_1(uint32_t session, unsigned packets)
{
	struct app_qp *q = busy_qp(session, packets);

	q->qp->path.port = 1;
	qp_rerouted(&l.host->core, q->qp);
	return q;
}

static void assert_no_packet(void)
{
	struct txd t = {.frame = l.host->tx[0]};

	assert_int_equal(core_tx(&l.host->core, &t, 1, l.now), 0);
}

/* A port that takes nothing holds up its own QPs, and they go on when it does. */
static void core_tx__closed_egress_holds_up_no_other(void **state)
{
	unsigned sent[3] = {0};

	lone_start(&l);
	busy_qp(1, 120);
	busy_qp_of_port_1(2, 120);
	core_open_egress(&l.host->core, ~PORT_0);
	count_burst(sent, 3);
	assert_int_equal(sent[2], BURST);
	core_open_egress(&l.host->core, ~(PORT_0 | PORT_1));
	assert_no_packet();
	assert_no_packet();
	assert_int_equal(core_deadline(&l.host->core), 0); /* somebody must look at the ports */
	core_open_egress(&l.host->core, ~PORT_1);
	count_burst(sent, 3);
	assert_int_equal(sent[1], BURST);
	core_open_egress(&l.host->core, UINT32_MAX);
	for (unsigned burst = 0; burst < 4; burst++)
		count_burst(sent, 3);
	assert_int_equal(sent[1], 3 * BURST);
	assert_int_equal(sent[2], 3 * BURST);
}

/* Nor does it cost others a turn, however many QPs wait for it. */
static void core_tx__closed_egress_is_not_walked(void **state)
{
	unsigned sent[3] = {0};

	l.spec.sq_depth = 1;
	l.spec.rq_depth = 1;
	lone_start(&l);
	for (unsigned i = 0; i < 900; i++)
		busy_qp(1, 8);
	busy_qp_of_port_1(1, 120);
	for (unsigned burst = 0; burst < 3; burst++) {
		core_open_egress(&l.host->core, UINT32_MAX);
		core_open_egress(&l.host->core, ~PORT_0);
		count_burst(sent, 3);
	}
	assert_int_equal(sent[1], 3 * BURST);
	while (strcmp(lone_tx(&l), ""))
		;
	busy_qp_of_port_1(2, 8); /* a session that was not blocked */
	busy_qp_of_port_1(1, 8); /* and one that was */
	assert_string_not_equal(lone_tx(&l), "");
}

/* Responders wait for their port, too, and lose nothing. */
static void core_tx__answers_wait_for_their_egress(void **state)
{
	lone_start(&l);
	core_open_egress(&l.host->core, ~PORT_0);
	lone_recv(&l, 1, 0, 64);
	lone_rx(&l, &(struct shot){.opcode = 0x04, .psn = RQ_PSN, .ackreq = true, .len = 4});
	assert_string_equal(lone_tx(&l), "");
	lone_rx(&l, &(struct shot){.opcode = 0x0C,
			    .psn = RQ_PSN + 1,
			    .va = app_va(l.mr, 0),
			    .rkey = l.mr->mr.key,
			    .dma_len = 8});
	assert_string_equal(lone_tx(&l), "");
	core_open_egress(&l.host->core, UINT32_MAX);
	assert_string_equal(lone_tx(&l), "ACK@1001f/1 RESP_ONLY@101+81f/2");
}

/* Work that is flushed does not wait for a port that takes nothing. */
static void core_tx__flush_does_not_wait(void **state)
{
	lone_start(&l);
	core_open_egress(&l.host->core, ~PORT_0);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:FLUSH");
	assert_no_packet();
	assert_true(list_empty(&l.host->core.ready));
}

/* A QP whose path leads elsewhere while it waits continues there. */
static void core_tx__rerouted_while_it_waits(void **state)
{
	unsigned sent[3] = {0};
	struct app_qp *q;

	lone_start(&l);
	q = busy_qp(1, 120);
	core_open_egress(&l.host->core, ~PORT_0);
	assert_no_packet();
	q->qp->path.local = true;
	qp_rerouted(&l.host->core, q->qp);
	count_burst(sent, 3);
	assert_int_equal(sent[1], BURST);
	core_open_egress(&l.host->core, ~(1u << EGRESS_LOCAL(0)));
	assert_no_packet();
}

/* Neither requests nor responses of one QP starve the other. */
static void core_tx__alternates_requests_and_responses(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 256 * 3, 0);
	lone_rx(&l, &(struct shot){.opcode = 0x0C,
			    .psn = RQ_PSN,
			    .va = app_va(l.mr, 0),
			    .rkey = l.mr->mr.key,
			    .dma_len = 600});
	assert_string_equal(lone_tx(&l),
		"RESP_FIRST@100+2561f/1 WRITE_FIRST@200+256(0,768) RESP_MIDDLE@101+256 "
		"WRITE_MIDDLE@201+256 RESP_LAST@102+881f/1 WRITE_LAST@202+256!");
}

/* As few as there is room for: nothing is lost when the caller has one descriptor. */
static void core_tx__one_at_a_time(void **state)
{
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 600, 0);
	assert_string_equal(lone_tx_max(&l, 0), "");
	assert_string_equal(lone_tx_max(&l, 1), "SEND_FIRST@200+256");
	assert_string_equal(lone_tx_max(&l, 1), "SEND_MIDDLE@201+256");
	assert_string_equal(lone_tx_max(&l, 1), "SEND_LAST@202+88!");
	assert_string_equal(lone_tx_max(&l, 1), "");
	assert_true(list_empty(&l.host->core.ready));
}

/* A QP fails in the call that built a packet with inline data, and the application, which sees
 * the flush at once, uses the only slot again: the packet is sealed after that. */
static void core_tx__flush_spares_inline_data(void **state)
{
	char first[] = "first", again[] = "again";
	struct app_send s = {.opcode = ABI_WR_SEND,
		.flags = ABI_WQE_INLINE,
		.inline_data = first,
		.inline_len = sizeof(first)};
	struct app_mr *gone;
	struct txd t[8];
	unsigned n;

	l.spec.sq_depth = 1;
	lone_start(&l);
	gone = app_mr(&l.app, 64, ABI_ACCESS_REMOTE_READ);
	app_post_send(l.qp, &s);
	lone_tx(&l);
	s.inline_data = again;
	app_post_send(l.qp, &s);
	/* Both are for the next call: the SEND once more, and two READs of which one will fail. */
	lone_rx(&l, &(struct shot){.opcode = 0x11, .psn = SQ_PSN, .syndrome = 0x60});
	for (unsigned i = 0; i < 2; i++) {
		struct app_mr *mr = i ? gone : l.mr;

		lone_rx(&l, &(struct shot){.opcode = 0x0C,
				    .psn = RQ_PSN + i,
				    .va = app_va(mr, 0),
				    .rkey = mr->mr.key,
				    .dma_len = 8});
	}
	app_mr_dereg(&l.app, gone);
	for (unsigned i = 0; i < 8; i++)
		t[i].frame = l.host->tx[i];
	n = core_tx(&l.host->core, t, 8, l.now);
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_true(n >= 2);
	for (unsigned i = 0; i < n; i++)
		core_seal(&l.host->core, &t[i]);
	assert_string_equal((char *)t[1].frame + t[1].hdr_len, "first");
	lone_tx(&l);
	assert_string_equal(lone_cqes(&l), "S0:FLUSH S0:FLUSH");
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup_256, lone_teardown)

/* proves RSP-23: ACKs leave before the data of all others, and of their own QP. */
static void core_tx__answers_leave_first(void **state)
{
	struct txd t = {.frame = l.host->tx[0]};

	lone_start(&l);
	for (unsigned i = 0; i < 10; i++)
		busy_qp(1, 120);
	lone_post(&l, ABI_WR_SEND, 1, 1024, 0);
	core_doorbell(&l.host->core, l.qp->qp, l.now);
	lone_request(&l, 0x0A, RQ_PSN, 0, 8, 8);
	assert_int_equal(core_tx(&l.host->core, &t, 1, l.now), 1);
	assert_ptr_equal(t.qp, l.qp->qp);
	assert_int_equal(*txd_bth(&t), 0x11);
	assert_int_equal(core_tx(&l.host->core, &t, 1, l.now), 1);
	assert_int_not_equal(*txd_bth(&t), 0x11); /* once */
}

/* As many QPs as fill a burst owe ACKs: half of it is the data's. When there are no data, it is all
 * theirs. */
static void core_tx__answers_take_half_of_a_burst(void **state)
{
	struct txd t[BURST];
	unsigned acks = 0;

	l.spec.sq_depth = 1;
	l.spec.rq_depth = 1;
	lone_start(&l);
	for (unsigned i = 0; i < 2 * BURST; i++) {
		struct qp *qp = busy_qp(1, 8)->qp;

		qp->resp.owed = OWE_ACK;
		qp_make_urgent(&l.host->core, qp);
		qp_make_urgent(&l.host->core, qp); /* harmless */
	}
	for (unsigned i = 0; i < BURST; i++)
		t[i].frame = l.host->tx[i];
	assert_int_equal(core_tx(&l.host->core, t, BURST, l.now), BURST);
	for (unsigned i = 0; i < BURST; i++)
		acks += *txd_bth(&t[i]) == 0x11;
	/* and those of the QPs that had their turns */
	assert_in_range(acks, BURST / 2, BURST / 2 + 2);
	while (core_tx(&l.host->core, t, BURST, l.now))
		;
	assert_int_equal(count()->tx_acks, 2 * BURST);
	assert_int_equal(l.host->core.urgent_ways, 0);
}

/* A QP that ends owes nothing. */
static void core_tx__answers_of_no_qp(void **state)
{
	struct app_qp *q;

	lone_start(&l);
	q = busy_qp(1, 1);
	assert_string_not_equal(lone_tx(&l), "");
	q->qp->resp.owed = OWE_ACK;
	qp_make_urgent(&l.host->core, q->qp);
	app_qp_destroy(q, l.now);
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(l.host->core.urgent_ways, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(core_tx__is_fair),
		T(core_tx__sessions_share_alike),
		T(core_tx__cnps_of_others),
		T(core_tx__destroyed_while_ready),
		T(core_tx__flush_spares_inline_data),
		T(core_tx__closed_egress_holds_up_no_other),
		T(core_tx__closed_egress_is_not_walked),
		T(core_tx__answers_wait_for_their_egress),
		T(core_tx__flush_does_not_wait),
		T(core_tx__rerouted_while_it_waits),
		T(core_tx__alternates_requests_and_responses),
		T(core_tx__one_at_a_time),
		T(core_tx__answers_leave_first),
		T(core_tx__answers_take_half_of_a_burst),
		T(core_tx__answers_of_no_qp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
