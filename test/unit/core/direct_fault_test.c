/* SPDX-License-Identifier: BSD-3-Clause */
/* The two queue pairs of a message without frames, and all that they remember of it: memory that
 * goes away, a receive that is not there, a peer that was heard. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "app.h"
#include "fabric.h"
#include "hole.h"
#include "icrc.h"
#include "link.h"
#include "qp.h"

#define MEMORY 4096u
#define FRAMES 64u
#define START  5000000ull
#define PSN    0x100u
#define ALL    (ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ)

enum way {
	FRAMES_ONLY,
	RUNS,
	SINGLY,
	WAYS
};

enum {
	A,
	B,
	ENDS
};

/* A sends, B has an SRQ. */
static struct {
	struct fabric fabric;
	struct sim_host *host;
	struct sim_link loop;
	struct sim_frame frames[FRAMES], *places[FRAMES];
	struct app app;
	struct app_cq *cq[ENDS];
	struct app_mr *mr[ENDS];
	struct app_qp *qp[ENDS];
	struct app_srq *srq;
	struct mr *hole;
} w;

static void open_end(int e)
{
	struct app_qp_spec spec = {.sq_depth = 16, .rq_depth = 16, .max_sge = 2};

	w.cq[e] = app_cq(&w.app, 16);
	w.mr[e] = app_mr(&w.app, MEMORY, ALL);
	spec.send_cq = spec.recv_cq = w.cq[e];
	if (e == B)
		spec.srq = w.srq = app_srq(&w.app, 16, 2);
	w.qp[e] = app_qp(&w.app, &spec);
	w.qp[e]->free_ids = true;
}

static void connect(int e)
{
	struct path_spec path = host_path(w.host, w.host, 0, HOST_GID_IPV4);
	struct abi_qp_attr attr = app_attr(w.qp[!e]->qp->qpn, PSN, PSN);

	path.local = true;
	attr.path_mtu = 1024;
	assert_int_equal(app_to_init(w.qp[e], &attr, START), 0);
	assert_int_equal(app_to_rtr(w.qp[e], &attr, &path, START), 0);
	assert_int_equal(app_to_rts(w.qp[e], &attr, START), 0);
}

static void step(void)
{
	app_ring(&w.app, w.fabric.now);
	fabric_step(&w.fabric, w.fabric.now + 60000000000ull);
	app_events(&w.app);
}

static void run(void)
{
	for (unsigned i = 0; i < 64; i++)
		step();
}

static void post(uint8_t opcode, struct abi_sge own, uint64_t remote, uint32_t rkey)
{
	struct app_send s = {.opcode = opcode,
		.flags = ABI_WQE_SIGNALED,
		.remote_addr = remote,
		.rkey = rkey,
		.num_sge = 1,
		.sge = {own}};

	app_post_send(w.qp[A], &s);
}

static struct abi_sge lost(void)
{
	return (struct abi_sge){w.hole->iova + HOLE_PAGE, 8, w.hole->key};
}

static struct abi_sge whole(int e)
{
	return app_sge(w.mr[e], 0, 8);
}

/* The status of the next completion. */
static int completed(int e)
{
	struct abi_cqe cqe;

	assert_true(app_poll(&w.app, w.cq[e], &cqe));
	return cqe.status;
}

/* Two that know each other by one message. */
static void begin(enum way way)
{
	static const struct link_config perfect = {.delay_ns = 100};

	memset(&w, 0, sizeof(w));
	w.host = aligned_alloc(CACHE_LINE, sizeof(*w.host));
	assert_non_null(w.host);
	for (unsigned i = 0; i < FRAMES; i++)
		w.places[i] = &w.frames[i];
	fabric_init(&w.fabric, START);
	host_init(w.host, 1, icrc_best(), START);
	link_init(&w.loop, w.places, FRAMES, &perfect, 1);
	app_init(&w.app, w.host);
	fabric_add(&w.fabric, w.host);
	fabric_plug(&w.fabric, &w.loop, w.host, 0, w.host, 0);
	for (int e = A; e < ENDS; e++)
		open_end(e);
	for (int e = A; e < ENDS; e++)
		connect(e);
	core_direct(&w.host->core, way != FRAMES_ONLY);
	core_short_ways(&w.host->core, way == RUNS);
	post(ABI_WR_RDMA_WRITE, whole(A), app_va(w.mr[B], 0), w.mr[B]->mr.key);
	run();
	assert_int_equal(completed(A), ABI_WC_SUCCESS);
	assert_int_equal(w.host->core.count.direct_messages, way != FRAMES_ONLY);
	w.hole = hole_open(w.host, APP_PD);
}

static void end(void)
{
	hole_close(w.host);
	app_fini(&w.app);
	free(w.host);
}

static unsigned cause_of(int e)
{
	return w.qp[e]->qp->why.error.cause;
}

/* The receiver has done nothing, and may fail by itself later. */
static void source_of_a_send__is_not_the_receivers(void **state)
{
	(void)state;
	for (int way = RUNS; way < WAYS; way++) {
		struct abi_sge into;

		begin((enum way)way);
		into = whole(B);
		app_post_srq(w.srq, 1, &into, 1);
		post(ABI_WR_SEND, lost(), 0, 0);
		run();
		assert_int_equal(completed(A), ABI_WC_LOC_PROT_ERR);
		assert_int_equal(cause_of(B), CAUSE_NONE);
		assert_int_not_equal(w.qp[B]->qp->state, ABI_QPS_ERR);
		end();
	}
}

/* RSP-21: the receiver's own, by whichever way. */
static void target_of_a_send__is_the_receivers(void **state)
{
	(void)state;
	for (int way = FRAMES_ONLY; way < WAYS; way++) {
		struct abi_sge into;

		begin((enum way)way);
		into = lost();
		app_post_srq(w.srq, 1, &into, 1);
		post(ABI_WR_SEND, whole(A), 0, 0);
		run();
		assert_int_equal(completed(A), ABI_WC_REM_OP_ERR);
		assert_int_equal(completed(B), ABI_WC_LOC_PROT_ERR);
		assert_int_equal(cause_of(B), CAUSE_RECV_FAULT);
		end();
	}
}

/* The peer's memory: the requester reads what its NAK says. */
static void source_of_a_read__is_not_the_requesters(void **state)
{
	(void)state;
	for (int way = RUNS; way < WAYS; way++) {
		begin((enum way)way);
		post(ABI_WR_RDMA_READ, whole(A), lost().addr, w.hole->key);
		run();
		assert_int_equal(completed(A), ABI_WC_REM_ACCESS_ERR);
		assert_int_equal(cause_of(A), CAUSE_REFUSED_ACCESS);
		end();
	}
}

/* REQ-45: by a response, or by the copy without one. */
static void target_of_a_read__is_the_requesters(void **state)
{
	(void)state;
	begin(SINGLY);
	post(ABI_WR_RDMA_READ, lost(), app_va(w.mr[B], 0), w.mr[B]->mr.key);
	run();
	assert_int_equal(completed(A), ABI_WC_LOC_PROT_ERR);
	assert_int_equal(cause_of(A), CAUSE_READ_FAULT);
	end();
}

/* Its silence later is no sign that it never was there. */
static void peer_that_was_heard__is_known(void **state)
{
	(void)state;
	for (int way = FRAMES_ONLY; way < WAYS; way++) {
		begin((enum way)way);
		assert_true(qp_heard(w.qp[A]->qp));
		assert_false(qp_heard(w.qp[B]->qp)); /* it has asked for nothing */
		post(ABI_WR_RDMA_WRITE, whole(A), app_va(w.mr[B], 0), w.mr[B]->mr.key + 1);
		run();
		assert_int_equal(completed(A), ABI_WC_REM_ACCESS_ERR);
		assert_true(w.qp[A]->qp->why.error.heard);
		end();
	}
}

/* SRQ-03: a message that finds no receive is one, in however many ways it was looked at. */
static void missing_receive__counts_once(void **state)
{
	(void)state;
	for (int way = FRAMES_ONLY; way < WAYS; way++) {
		begin((enum way)way);
		post(ABI_WR_SEND, whole(A), 0, 0);
		while (!w.host->core.count.rnr_nak_sent)
			step();
		assert_int_equal(atomic_load(&w.srq->srq.starved), 1);
		assert_int_equal(w.host->core.count.out_of_buffer, 1);
		end();
	}
}

/* The bytes of the target are undefined, as those of a buffer that is written while it is sent;
 * nothing outside it is written. */
static void overlap__writes_nothing_beside_it(void **state)
{
	uint8_t before[MEMORY];

	(void)state;
	for (unsigned shift = 1; shift < 200; shift += 7) {
		begin(shift % 2 ? RUNS : SINGLY);
		for (unsigned i = 0; i < MEMORY; i++)
			w.mr[B]->mem[i] = before[i] = (uint8_t)(i * 13);
		post(ABI_WR_RDMA_WRITE, app_sge(w.mr[B], 1000, 1000), app_va(w.mr[B], 1000 + shift),
			w.mr[B]->mr.key);
		run();
		assert_int_equal(completed(A), ABI_WC_SUCCESS);
		assert_memory_equal(w.mr[B]->mem, before, 1000 + shift);
		assert_memory_equal(
			w.mr[B]->mem + 2000 + shift, before + 2000 + shift, MEMORY - 2000 - shift);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(source_of_a_send__is_not_the_receivers),
		cmocka_unit_test(target_of_a_send__is_the_receivers),
		cmocka_unit_test(source_of_a_read__is_not_the_requesters),
		cmocka_unit_test(target_of_a_read__is_the_requesters),
		cmocka_unit_test(peer_that_was_heard__is_known),
		cmocka_unit_test(missing_receive__counts_once),
		cmocka_unit_test(overlap__writes_nothing_beside_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
