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
#include "txd.h"
#include "verbs.h"

#define MEMORY 4096u
#define FRAMES 64u
#define CQES   16u
#define START  5000000ull
#define PSN    0x100u
#define LEN    NAMED_MIN
#define ALL    (ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ)

enum way {
	FRAMES_ONLY,
	RUNS,
	SINGLY,
	NAMED, /* by frames that name their payload */
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
	bool one_cq; /* both use that of A */
	/* what is copied to memory of B */
	unsigned copies;  /* so far */
	unsigned gone_at; /* the one in which the memory of A is withdrawn; 0: none */
} w;

static void copied(void *dst, const void *src, size_t words)
{
	const uint8_t *d = dst;

	icrc_best()->move_words(dst, src, words);
	if (!w.mr[B] || d < w.mr[B]->mem || d >= w.mr[B]->mem + MEMORY)
		return;
	if (++w.copies == w.gone_at)
		mr_withdraw(&w.host->mrs, &w.mr[A]->mr);
}

static void open_end(int e)
{
	struct app_qp_spec spec = {.sq_depth = 16, .rq_depth = 16, .max_sge = 2};

	w.cq[e] = e == B && w.one_cq ? w.cq[A] : app_cq(&w.app, CQES);
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
	return (struct abi_sge){w.hole->iova + HOLE_PAGE, LEN, w.hole->key};
}

static struct abi_sge whole(int e)
{
	return app_sge(w.mr[e], 0, LEN);
}

/* The status of the next completion. */
static int completed(int e)
{
	struct abi_cqe cqe;

	assert_true(app_poll(&w.app, w.cq[e], &cqe));
	return cqe.status;
}

/* Two that know each other by one message. */
static void begin_with(enum way way, bool one_cq)
{
	static const struct link_config perfect = {.delay_ns = 100};
	static struct icrc_ops ops;

	memset(&w, 0, sizeof(w));
	w.one_cq = one_cq;
	ops = *icrc_best();
	ops.move_words = copied;
	w.host = aligned_alloc(CACHE_LINE, sizeof(*w.host));
	assert_non_null(w.host);
	for (unsigned i = 0; i < FRAMES; i++)
		w.places[i] = &w.frames[i];
	fabric_init(&w.fabric, START);
	host_init(w.host, 1, &ops, START);
	link_init(&w.loop, w.places, FRAMES, &perfect, 1);
	app_init(&w.app, w.host);
	fabric_add(&w.fabric, w.host);
	fabric_plug(&w.fabric, &w.loop, w.host, 0, w.host, 0);
	for (int e = A; e < ENDS; e++)
		open_end(e);
	for (int e = A; e < ENDS; e++)
		connect(e);
	core_direct(&w.host->core, way == RUNS || way == SINGLY);
	core_names(&w.host->core, way == NAMED);
	core_fast_paths(&w.host->core, way == RUNS);
	post(ABI_WR_RDMA_WRITE, whole(A), app_va(w.mr[B], 0), w.mr[B]->mr.key);
	run();
	assert_int_equal(completed(A), ABI_WC_SUCCESS);
	assert_int_equal(w.host->core.count.direct_messages, way == RUNS || way == SINGLY);
	assert_int_equal(w.host->core.count.named_packets, way == NAMED);
	w.hole = hole_open(w.host, APP_PD);
}

static void begin(enum way way)
{
	begin_with(way, false);
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

/* EVT-03: of a packet with the end of one SGE and the beginning of the next, which is lost. */
static void source_of_a_write__is_not_the_responders(void **state)
{
	(void)state;
	for (int way = RUNS; way <= SINGLY; way++) {
		struct app_send s = {.opcode = ABI_WR_RDMA_WRITE, .flags = ABI_WQE_SIGNALED};

		begin((enum way)way);
		s.remote_addr = app_va(w.mr[B], 0);
		s.rkey = w.mr[B]->mr.key;
		s.num_sge = 2;
		s.sge[0] = app_sge(w.mr[A], 0, 100);
		s.sge[1] = lost();
		app_post_send(w.qp[A], &s);
		run();
		assert_int_equal(completed(A), ABI_WC_LOC_PROT_ERR);
		assert_int_equal(cause_of(B), CAUSE_NONE);
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

/* EVT-03. The fault withdrew the key (decision 0003): frames that follow the copy find none. */
static void target_of_a_write__is_the_responders(void **state)
{
	(void)state;
	for (int way = FRAMES_ONLY; way < WAYS; way++) {
		bool direct = way == RUNS || way == SINGLY;

		begin((enum way)way);
		post(ABI_WR_RDMA_WRITE, whole(A), lost().addr, w.hole->key);
		run();
		assert_int_equal(completed(A), direct ? ABI_WC_REM_ACCESS_ERR : ABI_WC_REM_OP_ERR);
		assert_int_equal(w.host->faults, 1);
		assert_int_equal(w.qp[B]->qp->state, ABI_QPS_ERR);
		end();
	}
}

/* RSP-30: a READ that the responder has no resources for. */
static void read_without_resources__is_refused(void **state)
{
	(void)state;
	for (int way = FRAMES_ONLY; way < WAYS; way++) {
		begin((enum way)way);
		w.qp[B]->qp->attr.max_dest_rd_atomic = 0;
		post(ABI_WR_RDMA_READ, whole(A), app_va(w.mr[B], 0), w.mr[B]->mr.key);
		run();
		assert_int_equal(completed(A), ABI_WC_REM_INV_REQ_ERR);
		end();
	}
}

/* CQ-03: also for a completion of a run. */
static void completion__raises_its_event(void **state)
{
	(void)state;
	for (int way = FRAMES_ONLY; way < WAYS; way++) {
		begin((enum way)way);
		app_arm(w.cq[A], false);
		post(ABI_WR_RDMA_WRITE, whole(A), app_va(w.mr[B], 0), w.mr[B]->mr.key);
		run();
		assert_int_equal(w.app.events, 1);
		assert_int_equal(completed(A), ABI_WC_SUCCESS);
		end();
	}
}

/* CQ-01: both completions of a SEND are for the same CQ, which has room for one. */
static void last_place_in_a_cq__is_taken_once(void **state)
{
	(void)state;
	for (int way = FRAMES_ONLY; way < WAYS; way++) {
		struct abi_sge into;
		struct abi_cqe cqe;
		unsigned n = 0;

		begin_with((enum way)way, true);
		for (unsigned i = 0; i < CQES - 1; i++) {
			post(ABI_WR_RDMA_WRITE, whole(A), app_va(w.mr[B], 0), w.mr[B]->mr.key);
			run();
		}
		into = whole(B);
		app_post_srq(w.srq, 1, &into, 1);
		post(ABI_WR_SEND, whole(A), 0, 0);
		run();
		for (; app_poll(&w.app, w.cq[A], &cqe); n++)
			assert_int_equal(
				cqe.opcode, n < CQES - 1 ? ABI_WC_RDMA_WRITE : ABI_WC_RECV);
		assert_int_equal(n, CQES);
		assert_int_equal(w.qp[A]->qp->state, ABI_QPS_ERR);
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
	for (int way = SINGLY; way < WAYS; way++) {
		begin((enum way)way);
		post(ABI_WR_RDMA_READ, lost(), app_va(w.mr[B], 0), w.mr[B]->mr.key);
		run();
		assert_int_equal(completed(A), ABI_WC_LOC_PROT_ERR);
		assert_int_equal(cause_of(A), CAUSE_READ_FAULT);
		end();
	}
}

/* --- names ------------------------------------------------------------------------------ */

/* Until the packet of A, or of B, that names its payload is on its way. */
static void until_named(uint64_t more)
{
	uint64_t wanted = w.host->core.count.named_packets + more;

	while (w.host->core.count.named_packets < wanted) {
		app_ring(&w.app, w.fabric.now);
		fabric_step(&w.fabric, w.fabric.now + 60000000000ull);
	}
}

/* No further: the host's turn would end the grace period. */
static void until_failed(void)
{
	for (;;) {
		w.fabric.now = fabric_next(&w.fabric);
		host_receive(w.host, &w.loop, 0, w.fabric.now);
		if (w.qp[A]->qp->state == ABI_QPS_ERR)
			return;
		host_turn(w.host, w.fabric.now);
	}
}

static void withdraw(int e)
{
	mr_withdraw(&w.host->mrs, &w.mr[e]->mr);
}

/* The target is untouched, and the NAK has A find at once that its memory is gone: no timer. */
static void key_that_goes_under_way__fails_its_requester(void **state)
{
	uint8_t before[MEMORY];

	(void)state;
	for (unsigned send = 0; send < 2; send++) {
		struct abi_sge into;
		uint64_t asked;

		begin(NAMED);
		into = whole(B);
		if (send)
			app_post_srq(w.srq, 1, &into, 1);
		memset(w.mr[A]->mem, 0x5A, MEMORY);
		memcpy(before, w.mr[B]->mem, MEMORY);
		post(send ? ABI_WR_SEND : ABI_WR_RDMA_WRITE, whole(A), app_va(w.mr[B], 0),
			w.mr[B]->mr.key);
		until_named(1);
		withdraw(A);
		asked = w.fabric.now;
		while (w.qp[A]->qp->state != ABI_QPS_ERR)
			step();
		assert_true(w.fabric.now - asked < 10000);
		run();
		assert_int_equal(completed(A), ABI_WC_LOC_PROT_ERR);
		assert_int_equal(cause_of(A), CAUSE_KEY_GONE);
		assert_int_equal(cause_of(B), CAUSE_NONE);
		assert_int_equal(w.qp[B]->qp->state, ABI_QPS_RTS);
		assert_int_equal(w.host->core.count.drop[DROP_NAMELESS], 1);
		assert_memory_equal(w.mr[B]->mem, before, MEMORY);
		end();
	}
}

/* A packet whose memory goes while it is placed is asked for again, and then placed where it
 * belongs: the same key may come back (MR-01). */
static void packet_that_is_lost_while_placed__is_placed_again(void **state)
{
	struct app_send s = {.flags = ABI_WQE_SIGNALED, .num_sge = 1};

	(void)state;
	for (unsigned send = 0; send < 2; send++) {
		struct abi_sge into;

		begin(NAMED);
		app_mr_fill(w.mr[A], 7);
		into = app_sge(w.mr[B], 0, MEMORY);
		app_post_srq(w.srq, 1, &into, 1);
		s.opcode = send ? ABI_WR_SEND : ABI_WR_RDMA_WRITE;
		s.sge[0] = app_sge(w.mr[A], 0, 3 * LEN);
		s.remote_addr = app_va(w.mr[B], 0);
		s.rkey = w.mr[B]->mr.key;
		app_post_send(w.qp[A], &s);
		w.gone_at = w.copies + 2;
		for (unsigned i = 0; i < 64; i++) {
			step();
			atomic_store(&w.host->mrs.slot[w.mr[A]->mr.key >> 8], &w.mr[A]->mr);
		}
		assert_int_equal(completed(A), ABI_WC_SUCCESS);
		assert_int_equal(w.host->core.count.drop[DROP_NAMELESS], 1);
		assert_memory_equal(w.mr[B]->mem, w.mr[A]->mem, 3 * LEN);
		end();
	}
}

/* RSP-31: the response of B finds no memory; the READ that is sent again gets the NAK. */
static void key_of_a_response_that_goes__is_refused(void **state)
{
	(void)state;
	begin(NAMED);
	memset(w.mr[A]->mem, 0x5A, MEMORY);
	post(ABI_WR_RDMA_READ, whole(A), app_va(w.mr[B], 0), w.mr[B]->mr.key);
	until_named(1);
	withdraw(B);
	run();
	assert_int_equal(completed(A), ABI_WC_REM_ACCESS_ERR);
	assert_int_equal(w.mr[A]->mem[0], 0x5A);
	assert_int_equal(w.host->core.count.drop[DROP_NAMELESS], 1);
	end();
}

/* A QP that fails takes its names back, although key and memory stay. */
static void names_of_a_failed_qp__are_void(void **state)
{
	uint8_t before[MEMORY];

	(void)state;
	begin(NAMED);
	memset(w.mr[A]->mem, 0x5A, MEMORY);
	memcpy(before, w.mr[B]->mem, MEMORY);
	post(ABI_WR_RDMA_WRITE, whole(A), app_va(w.mr[B], 0), w.mr[B]->mr.key);
	until_named(1);
	assert_int_equal(
		verbs_modify(&w.host->core, w.qp[A]->qp, ABI_QP_STATE,
			&(struct abi_qp_attr){.qp_state = ABI_QPS_ERR}, NULL, w.fabric.now),
		0);
	run();
	assert_int_equal(completed(A), ABI_WC_WR_FLUSH_ERR);
	assert_memory_equal(w.mr[B]->mem, before, MEMORY);
	end();
}

/* The names of a QP that fails in a turn are taken back before what it built in that turn is
 * sealed.
 */
static void packet_of_a_turn_that_fails__carries_its_payload(void **state)
{
	struct app_send s = {.opcode = ABI_WR_RDMA_WRITE, .num_sge = 2};
	struct txd t[2] = {0};
	struct core *c;

	(void)state;
	begin(NAMED);
	c = &w.host->core;
	for (unsigned i = 0; i < 2; i++)
		t[i].frame = w.host->tx[i];
	s.remote_addr = app_va(w.mr[B], 0);
	s.rkey = w.mr[B]->mr.key;
	s.sge[0] = app_sge(w.mr[A], 0, 2 * LEN);
	s.sge[1] = app_sge(w.mr[B], 0, LEN);
	app_post_send(w.qp[A], &s);
	app_ring(&w.app, w.fabric.now);
	assert_int_equal(core_tx(c, t, 1, w.fabric.now), 1);
	assert_int_not_equal(core_seal(c, &t[0]), 0);
	assert_true(t[0].named);
	withdraw(B);
	assert_int_equal(core_tx(c, t, 2, w.fabric.now), 1);
	assert_int_equal(w.qp[A]->qp->state, ABI_QPS_ERR);
	assert_int_not_equal(core_seal(c, &t[0]), 0);
	assert_false(t[0].named);
	end();
}

/* RSP-22: no completion gives the memory of a response back. */
static void responses_of_a_qp_that_failed__arrive(void **state)
{
	(void)state;
	begin(NAMED);
	memset(w.mr[B]->mem, 0x5A, MEMORY);
	post(ABI_WR_RDMA_READ, whole(A), app_va(w.mr[B], 0), w.mr[B]->mr.key);
	until_named(1);
	w.qp[B]->qp->named = true; /* as if it had sent requests, too */
	assert_int_equal(
		verbs_modify(&w.host->core, w.qp[B]->qp, ABI_QP_STATE,
			&(struct abi_qp_attr){.qp_state = ABI_QPS_ERR}, NULL, w.fabric.now),
		0);
	run();
	assert_int_equal(completed(A), ABI_WC_SUCCESS);
	assert_memory_equal(w.mr[A]->mem, w.mr[B]->mem, LEN);
	end();
}

/* The completion of a request that fails, and those that are flushed after it, wait until nobody
 * can be reading their memory; then they are as ever. */
static void failed_request__keeps_its_memory_for_a_grace_period(void **state)
{
	struct txd t = {0};
	struct abi_cqe cqe;
	struct core *c;

	(void)state;
	begin(NAMED);
	c = &w.host->core;
	t.frame = w.host->tx[0];
	post(ABI_WR_RDMA_WRITE, whole(A), app_va(w.mr[B], 0), w.mr[B]->mr.key + 1);
	post(ABI_WR_RDMA_WRITE, whole(A), app_va(w.mr[B], 0), w.mr[B]->mr.key);
	app_ring(&w.app, w.fabric.now);
	until_failed();
	for (unsigned i = 0; i < 8; i++) {
		core_tx(c, &t, 1, w.fabric.now);
		assert_false(app_poll(&w.app, w.cq[A], &cqe));
	}
	assert_int_not_equal(core_grace_wanted(c), 0);
	core_grace_end(c, core_grace_wanted(c));
	run();
	assert_int_equal(completed(A), ABI_WC_REM_ACCESS_ERR);
	assert_int_equal(completed(A), ABI_WC_WR_FLUSH_ERR);
	end();
}

/* A frame that somebody looks at is made whole, and is received like any other. */
static void frame_that_somebody_looks_at__is_whole(void **state)
{
	(void)state;
	begin(NAMED);
	memset(w.mr[A]->mem, 0x5A, MEMORY);
	post(ABI_WR_RDMA_WRITE, whole(A), app_va(w.mr[B], 0), w.mr[B]->mr.key);
	until_named(1);
	w.host->core.careful = CORE_TRACING;
	w.mr[A]->mem[LEN - 1] = 0x5B; /* it is read when it arrives */
	run();
	assert_int_equal(completed(A), ABI_WC_SUCCESS);
	assert_memory_equal(w.mr[B]->mem, w.mr[A]->mem, LEN);
	assert_int_equal(w.host->core.count.drop[DROP_ICRC], 0);
	assert_int_equal(w.host->core.count.drop[DROP_NAMELESS], 0);
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

/* A region of another protection domain than that of the two queue pairs. */
static struct app_mr *foreign(void)
{
	struct app_mr *m = app_mr(&w.app, MEMORY, ALL);

	m->mr.pd++;
	memset(m->mem, 0x5A, MEMORY);
	return m;
}

/* RSP-13, REQ-18: neither end reaches memory of another domain, and none is touched. */
static void region_of_another_domain__is_refused(void **state)
{
	static const uint8_t opcodes[] = {ABI_WR_RDMA_WRITE, ABI_WR_RDMA_READ};

	(void)state;
	for (unsigned i = 0; i < 2 * ARRAY_SIZE(opcodes) * WAYS; i++) {
		uint8_t opcode = opcodes[i / 2 % ARRAY_SIZE(opcodes)], before[MEMORY];
		bool own = i % 2;
		struct app_mr *m;

		begin((enum way)(i / 2 / ARRAY_SIZE(opcodes)));
		m = foreign();
		memcpy(before, w.mr[own]->mem, MEMORY);
		post(opcode, own ? app_sge(m, 0, LEN) : whole(A), app_va(own ? w.mr[B] : m, 0),
			own ? w.mr[B]->mr.key : m->mr.key);
		run();
		assert_int_equal(completed(A), own ? ABI_WC_LOC_PROT_ERR : ABI_WC_REM_ACCESS_ERR);
		assert_int_equal(m->mem[0], 0x5A);
		assert_memory_equal(w.mr[own]->mem, before, MEMORY);
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

/* The word of the target in which two segments of the source meet is stored once (decision 0000):
 * the packet is copied at once. */
static void packet_of_two_segments__is_placed_at_once(void **state)
{
	struct app_send s = {.flags = ABI_WQE_SIGNALED, .num_sge = 2};

	(void)state;
	for (unsigned send = 0; send < 2; send++) {
		struct abi_sge into;
		unsigned before;

		begin(SINGLY);
		app_mr_fill(w.mr[A], 7);
		into = app_sge(w.mr[B], 0, MEMORY);
		app_post_srq(w.srq, 1, &into, 1);
		s.opcode = send ? ABI_WR_SEND : ABI_WR_RDMA_WRITE;
		s.sge[0] = app_sge(w.mr[A], 0, 100);
		s.sge[1] = app_sge(w.mr[A], 100, 60);
		s.remote_addr = app_va(w.mr[B], 0);
		s.rkey = w.mr[B]->mr.key;
		app_post_send(w.qp[A], &s);
		before = w.copies;
		run();
		assert_int_equal(completed(A), ABI_WC_SUCCESS);
		assert_int_equal(w.copies, before + 1);
		assert_memory_equal(w.mr[B]->mem, w.mr[A]->mem, 160);
		end();
	}
}

/* One at a time. */
static void write_some(unsigned n, uint32_t len)
{
	for (unsigned i = 0; i < n; i++) {
		post(ABI_WR_RDMA_WRITE, app_sge(w.mr[A], 0, len), app_va(w.mr[B], 0),
			w.mr[B]->mr.key);
		run();
		assert_int_equal(completed(A), ABI_WC_SUCCESS);
	}
}

/* Only the WRITE that went by a frame: of the messages without frames there are no copies, and what
 * is in their slots was sent long before. */
static void sizes_before_a_failure__are_of_frames(void **state)
{
	struct core *c;

	(void)state;
	begin(RUNS);
	c = &w.host->core;
	core_direct(c, false);
	write_some(16, LEN); /* each slot of the private ring */
	core_direct(c, true);
	write_some(15, 8);
	assert_int_equal(c->count.direct_messages, 16);
	core_direct(c, false);
	write_some(1, 4);
	link_set_impair(&w.loop, &(struct link_impair){.loss = 1000000});
	post(ABI_WR_RDMA_WRITE, whole(A), app_va(w.mr[B], 0), w.mr[B]->mr.key);
	run();
	assert_int_equal(cause_of(A), CAUSE_RETRIES);
	assert_int_equal(w.qp[A]->qp->why.error.value, LEN);
	assert_int_equal(w.qp[A]->qp->why.error.limit, 4);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(source_of_a_send__is_not_the_receivers),
		cmocka_unit_test(target_of_a_send__is_the_receivers),
		cmocka_unit_test(target_of_a_write__is_the_responders),
		cmocka_unit_test(read_without_resources__is_refused),
		cmocka_unit_test(completion__raises_its_event),
		cmocka_unit_test(source_of_a_write__is_not_the_responders),
		cmocka_unit_test(last_place_in_a_cq__is_taken_once),
		cmocka_unit_test(source_of_a_read__is_not_the_requesters),
		cmocka_unit_test(target_of_a_read__is_the_requesters),
		cmocka_unit_test(key_that_goes_under_way__fails_its_requester),
		cmocka_unit_test(packet_that_is_lost_while_placed__is_placed_again),
		cmocka_unit_test(key_of_a_response_that_goes__is_refused),
		cmocka_unit_test(names_of_a_failed_qp__are_void),
		cmocka_unit_test(packet_of_a_turn_that_fails__carries_its_payload),
		cmocka_unit_test(responses_of_a_qp_that_failed__arrive),
		cmocka_unit_test(failed_request__keeps_its_memory_for_a_grace_period),
		cmocka_unit_test(frame_that_somebody_looks_at__is_whole),
		cmocka_unit_test(peer_that_was_heard__is_known),
		cmocka_unit_test(region_of_another_domain__is_refused),
		cmocka_unit_test(missing_receive__counts_once),
		cmocka_unit_test(overlap__writes_nothing_beside_it),
		cmocka_unit_test(packet_of_two_segments__is_placed_at_once),
		cmocka_unit_test(sizes_before_a_failure__are_of_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
