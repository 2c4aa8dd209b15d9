/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"
#include "frame.h"
#include "headers.h"
#include "hole.h"
#include "icrc.h"
#include "qp.h"
#include "txd.h"

/* proves BTH-05, ICRC-02, ICRC-13: each length modulo 64 with each implementation; lone_tx() checks
 * the frame against the table. */
static void core_seal__every_length_and_implementation(void **state)
{
	const struct icrc_ops *ops;

	lone_start(&l);
	for (unsigned i = 0; i < LONE_MEM; i++)
		l.mr->mem[i] = (uint8_t)(i * 31 >> 2);
	for (unsigned k = 0; (ops = icrc_nth(k)); k++) {
		l.host->core.cfg.icrc = ops;
		l.host->core.cfg.icrc = ops;
		for (uint32_t len = 0; len < 130; len++) {
			lone_post(&l, ABI_WR_SEND, len, len, 0);
			lone_tx(&l);
			assert_memory_equal(l.frame + 54, l.mr->mem, len);
			assert_int_equal(l.frame_len, 54 + ((len + 3) & ~3u) + 4);
			lone_ack(&l, l.qp->qp->req.psn_new - 1, 0);
			lone_cqes(&l);
		}
	}
}

/* proves ICRC-13: one ICRC over pieces of odd lengths. */
static void core_seal__pieces(void **state)
{
	struct app_send s = {.opcode = ABI_WR_SEND, .num_sge = SGE_MAX};
	uint8_t want[512];
	uint32_t len = 0;

	lone_start(&l);
	for (unsigned i = 0; i < LONE_MEM; i++)
		l.mr->mem[i] = (uint8_t)(i * 13);
	for (unsigned i = 0; i < SGE_MAX; i++) {
		s.sge[i] = app_sge(l.mr, 1000 * i + i, 1 + 3 * i);
		memcpy(want + len, l.mr->mem + 1000 * i + i, 1 + 3 * i);
		len += 1 + 3 * i;
	}
	app_post_send(l.qp, &s);
	lone_tx(&l);
	assert_memory_equal(l.frame + 54, want, len);
}

/* proves ICRC-08: RoCEv2 over IPv6 and RoCEv1, parsed and checked by the receive path. */
static void core_seal__other_protocols(void **state)
{
	static struct sim_host peer;

	lone_start(&l);
	host_init(&peer, 2, icrc_best(), 0);
	for (int gid = HOST_GID_IPV6; gid <= HOST_GID_ROCEV1; gid++) {
		struct path_spec path = host_path(l.host, &peer, 0, (enum host_gid)gid);
		struct app_send s = {
			.opcode = ABI_WR_SEND, .num_sge = 1, .sge = {app_sge(l.mr, 0, 5)}};
		struct app_qp *q = app_qp(&l.app, &l.spec);
		struct txd t = {.frame = l.host->tx[0]};
		struct pkt p;
		uint64_t bytes;
		uint16_t len;

		assert_int_equal(app_to_init(q, &l.attr, l.now), 0);
		assert_int_equal(app_to_rtr(q, &l.attr, &path, l.now), 0);
		assert_int_equal(app_to_rts(q, &l.attr, l.now), 0);
		app_post_send(q, &s);
		assert_int_equal(core_tx(&l.host->core, &t, 1, l.now), 1);
		bytes = l.host->core.count.port[0].tx_bytes;
		len = core_seal(&l.host->core, &t);
		assert_int_equal(len, (gid == HOST_GID_IPV6 ? 74 : 66) + 8 + 4);
		assert_int_equal(frame_parse(&p, t.frame, len), DROP_NONE);
		assert_true(icrc_check(icrc_by_name("table"), &p));
		/* what the receiver adds to rx_bytes */
		assert_int_equal(l.host->core.count.port[0].tx_bytes - bytes,
			p.icrc_off + (uint64_t)ICRC_LEN);
		assert_int_equal(p.payload_len, 5);
		assert_memory_equal(p.payload, l.mr->mem, 5);
	}
}

/* decision 0000.5: a fault costs its own QP, and the packet is not sent. */
static void core_seal__gives_up_on_a_fault(void **state)
{
	struct app_send s = {.opcode = ABI_WR_SEND, .wr_id = 1, .num_sge = 1};
	struct mr *mr;

	l.attr.path_mtu = 256;
	lone_start(&l);
	lone_wait(&l, 1000);
	mr = hole_open(l.host, APP_PD);
	s.sge[0] = (struct abi_sge){mr->iova + HOLE_PAGE - 256, 600, mr->key};
	app_post_send(l.qp, &s);
	/* Later packets of the same burst go out; the peer misses 201 and drops them. */
	assert_string_equal(lone_tx(&l), "SEND_FIRST@200+256 SEND_LAST@202+88!");
	lone_tx(&l);
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	/* The time distinguishes a failure from the QP's next (session/failures.c). */
	assert_int_equal(l.qp->qp->why.error.cause, CAUSE_SOURCE_FAULT);
	assert_int_equal(l.qp->qp->why.error.time, l.now);
	assert_int_equal(l.host->core.count.access_faults, 1);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_FATAL), 1);
	assert_string_equal(lone_cqes(&l), "S1:FLUSH");
	hole_close(l.host);
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(core_seal__every_length_and_implementation),
		T(core_seal__pieces),
		T(core_seal__other_protocols),
		T(core_seal__gives_up_on_a_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
