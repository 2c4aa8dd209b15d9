/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "icrc.h"
#include "pair.h"
#include "qp.h"

static void fabric_step__jumps_to_the_next_happening(void **state)
{
	struct pair_spec s = pair_defaults();
	static struct pair p;
	uint64_t start;

	s.link[A] = (struct link_config){.delay_ns = 7000};
	s.link[B] = (struct link_config){.delay_ns = 9000};
	pair_init(&p, &s);
	pair_memory(&p, 4096);
	pair_run(&p, MSEC);
	start = p.fabric.now;
	app_post_send(p.end[A].qp, &(struct app_send){.opcode = ABI_WR_RDMA_WRITE,
					   .flags = ABI_WQE_SIGNALED,
					   .remote_addr = app_va(p.end[B].mr, 0),
					   .rkey = p.end[B].mr->mr.key,
					   .num_sge = 1,
					   .sge = {app_sge(p.end[A].mr, 0, 64)}});
	pair_until_cqes(&p, A, 1, SEC);
	assert_int_equal(p.fabric.now - start, 16000); /* there and back, and nothing else */
	assert_false(fabric_step(&p.fabric, p.fabric.now + 5));
	pair_fini(&p);
}

/* The same seed is the same run, packet by packet. */
static void fabric_step__repeats_itself(void **state)
{
	uint64_t packets[2], end[2];

	for (unsigned run = 0; run < 2; run++) {
		struct pair_spec s = pair_defaults();
		static struct pair p;

		s.seed = 42;
		s.link[A].impair.loss = 50000;
		s.link[B].impair.loss = 50000;
		pair_init(&p, &s);
		pair_memory(&p, 1u << 20);
		app_post_send(p.end[A].qp, &(struct app_send){.opcode = ABI_WR_RDMA_READ,
						   .flags = ABI_WQE_SIGNALED,
						   .remote_addr = app_va(p.end[B].mr, 0),
						   .rkey = p.end[B].mr->mr.key,
						   .num_sge = 1,
						   .sge = {app_sge(p.end[A].mr, 0, 1u << 20)}});
		pair_until_cqes(&p, A, 1, 100 * SEC);
		packets[run] = p.end[B].host->core.count.port[0].tx_packets;
		end[run] = p.fabric.now;
		assert_true(p.end[B].link.count.lost > 0);
		pair_fini(&p);
	}
	assert_int_equal(packets[0], packets[1]);
	assert_int_equal(end[0], end[1]);
}

/* decision 0000.1: a QP that is connected to itself. */
static void fabric_plug__loops_back(void **state)
{
	static struct sim_frame frames[64];
	struct sim_frame *places[64];
	struct link_config cfg = {.delay_ns = 500};
	struct app_qp_spec spec = {.sq_depth = 8, .rq_depth = 8, .max_sge = 1};
	struct sim_host *h = aligned_alloc(CACHE_LINE, sizeof(*h));
	struct sim_link l;
	struct path_spec path;
	struct abi_qp_attr attr;
	struct abi_cqe cqe;
	struct fabric f;
	struct app_qp *q;
	struct app_mr *mr;
	struct abi_sge sge;
	struct app a;

	assert_non_null(h);
	for (unsigned i = 0; i < 64; i++)
		places[i] = &frames[i];
	fabric_init(&f, 1000);
	host_init(h, 1, icrc_best(), 1000);
	link_init(&l, places, 64, &cfg, 1);
	fabric_add(&f, h);
	fabric_plug(&f, &l, h, 0, h, 0);
	app_init(&a, h);
	spec.send_cq = app_cq(&a, 16);
	spec.recv_cq = app_cq(&a, 16);
	q = app_qp(&a, &spec);
	mr = app_mr(&a, 8192, ABI_ACCESS_LOCAL_WRITE);
	path = host_path(h, h, 0, HOST_GID_IPV6);
	attr = app_attr(q->qp->qpn, 0x77, 0x77);
	assert_int_equal(app_to_init(q, &attr, f.now), 0);
	assert_int_equal(app_to_rtr(q, &attr, &path, f.now), 0);
	assert_int_equal(app_to_rts(q, &attr, f.now), 0);
	memset(mr->mem, 0x3C, 4000);
	sge = app_sge(mr, 4096, 4000);
	app_post_recv(q, 1, &sge, 1);
	app_post_send(q, &(struct app_send){.opcode = ABI_WR_SEND,
				 .flags = ABI_WQE_SIGNALED,
				 .wr_id = 2,
				 .num_sge = 1,
				 .sge = {app_sge(mr, 0, 4000)}});
	while (!app_poll(&a, spec.send_cq, &cqe)) {
		app_ring(&a, f.now);
		assert_true(fabric_step(&f, 1000000000));
	}
	assert_int_equal(cqe.status, ABI_WC_SUCCESS);
	assert_true(app_poll(&a, spec.recv_cq, &cqe));
	assert_int_equal(cqe.byte_len, 4000);
	assert_memory_equal(mr->mem, mr->mem + 4096, 4000);
	app_fini(&a);
	free(h);
}

/* A sender that is faster than the wire waits for room: nothing is lost. */
static void host_turn__waits_for_the_link(void **state)
{
	struct pair_spec s = pair_defaults();
	static struct pair p;

	for (int e = A; e < ENDS; e++) {
		s.link[e].rate_bps = 100000000;
		s.attr[e].path_mtu = 256;
		s.attr[e].timeout = 20;
	}
	pair_init(&p, &s);
	pair_memory(&p, 1u << 20);
	for (unsigned i = 0; i < 8; i++)
		app_post_send(p.end[A].qp, &(struct app_send){.opcode = ABI_WR_RDMA_READ,
						   .flags = ABI_WQE_SIGNALED,
						   .wr_id = i,
						   .remote_addr = app_va(p.end[B].mr, 0),
						   .rkey = p.end[B].mr->mr.key,
						   .num_sge = 1,
						   .sge = {app_sge(p.end[A].mr, 0, 1u << 20)}});
	pair_until_cqes(&p, A, 8, 10 * SEC);
	assert_int_equal(p.end[A].host->core.count.retransmits, 0);
	assert_int_equal(p.end[B].link.count.frames, 8 * 4096);
	pair_fini(&p);
}

static void write_64(struct pair *p)
{
	app_post_send(p->end[A].qp, &(struct app_send){.opcode = ABI_WR_RDMA_WRITE,
					    .flags = ABI_WQE_SIGNALED,
					    .remote_addr = app_va(p->end[B].mr, 0),
					    .rkey = p->end[B].mr->mr.key,
					    .num_sge = 1,
					    .sge = {app_sge(p->end[A].mr, 0, 64)}});
}

/* Packets that arrive at a paused host wait for it; they are not lost. */
static void host_pause__keeps_frames(void **state)
{
	struct pair_spec s = pair_defaults();
	static struct pair p;
	uint64_t until;

	s.link[A] = s.link[B] = (struct link_config){.delay_ns = 1000};
	pair_init(&p, &s);
	pair_memory(&p, 4096);
	until = p.fabric.now + 50000;
	host_pause(p.end[B].host, until);
	write_64(&p);
	pair_until_cqes(&p, A, 1, SEC);
	assert_int_equal(p.fabric.now, until + 1000); /* the ACK's way */
	assert_int_equal(p.end[B].link.count.frames, 1);
	pair_fini(&p);
}

/* decision 0000.3, "Pauses": the ACK that came meanwhile is taken before the timer that ran out. */
static void host_pause__receives_before_timers(void **state)
{
	struct pair_spec s = pair_defaults();
	static struct pair p;

	s.attr[A].timeout = 1; /* 8 us */
	pair_init(&p, &s);
	pair_memory(&p, 4096);
	write_64(&p);
	assert_true(pair_step(&p, p.fabric.now)); /* it is sent */
	host_pause(p.end[A].host, p.fabric.now + 60 * MSEC);
	pair_until_cqes(&p, A, 1, SEC);
	assert_int_equal(p.end[A].cqe[0].status, ABI_WC_SUCCESS);
	assert_int_equal(p.end[A].host->core.count.local_ack_timeout_err, 0);
	pair_fini(&p);
}

/* And without an ACK, a pause of many time-outs costs one retry. */
static void host_pause__costs_one_retry(void **state)
{
	struct pair_spec s = pair_defaults();
	static struct pair p;

	s.attr[A].timeout = 1;
	s.link[A].impair.loss_mask = 1;
	pair_init(&p, &s);
	pair_memory(&p, 4096);
	write_64(&p);
	assert_true(pair_step(&p, p.fabric.now));
	host_pause(p.end[A].host, p.fabric.now + 60 * MSEC);
	pair_until_cqes(&p, A, 1, SEC);
	assert_int_equal(p.end[A].cqe[0].status, ABI_WC_SUCCESS);
	assert_int_equal(p.end[A].host->core.count.local_ack_timeout_err, 1);
	pair_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fabric_step__jumps_to_the_next_happening),
		cmocka_unit_test(fabric_step__repeats_itself),
		cmocka_unit_test(fabric_plug__loops_back),
		cmocka_unit_test(host_turn__waits_for_the_link),
		cmocka_unit_test(host_pause__keeps_frames),
		cmocka_unit_test(host_pause__receives_before_timers),
		cmocka_unit_test(host_pause__costs_one_retry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
