/* SPDX-License-Identifier: BSD-3-Clause */
/* The same seeded work with and without the fast paths: every frame is the same and leaves at the
 * same time, and CQEs, memory, PSNs and counters are the same afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "effort.h"
#include "hole.h"
#include "lone.h"
#include "opcode.h"
#include "pair.h"
#include "qp.h"
#include "random.h"
#include "recv.h"
#include "same.h"

#define MEMORY 65536u
#define ROUNDS 12u
#define BATCH  24u
#define SEEDS  EFFORT(250u)

/* The random choices of a run besides its work; the same for both ways. */
struct weather {
	struct link_impair impair;
	uint64_t rate_bps;
	uint32_t mtu;
	uint32_t cq_depth;
	uint32_t sq_depth;
	uint32_t max_sge;
	uint32_t window;
	uint8_t retries;
	enum host_gid gid;
	bool srq;
	bool sig_all;
	uint32_t access;
	bool reads;	   /* most requests are READs ... */
	uint8_t max_reads; /* ... of which so many may be outstanding */
};

struct world {
	struct pair pair;
	uint64_t hash[ENDS]; /* of all frames that an end has sent */
	uint64_t frames[ENDS];
	bool reads;
};

struct tap {
	struct world *w;
	int end;
};

static struct tap taps[WAYS][ENDS];

static uint64_t mix(uint64_t hash, uint64_t word)
{
	return (hash ^ word) * 0x9E3779B97F4A7C15ull + (hash >> 29);
}

static void see(void *arg, const uint8_t *frame, size_t len, uint64_t now)
{
	const struct tap *t = arg;
	uint64_t hash = mix(t->w->hash[t->end], now);

	for (size_t i = 0; i < len; i++)
		hash = mix(hash, frame[i]);
	t->w->hash[t->end] = mix(hash, len);
	t->w->frames[t->end]++;
}

static struct weather any_weather(uint64_t seed)
{
	static const uint32_t mtus[] = {256, 1024, 4096};
	struct random r = {.state = seed * 0x9E3779B97F4A7C15ull | 1};
	struct weather t = {
		.rate_bps = random_below(&r, 2) ? 0 : 40000000000ull,
		.mtu = mtus[random_below(&r, 3)],
		.cq_depth = random_below(&r, 6) ? 1024 : 16,
		.sq_depth = random_below(&r, 3) ? 64 : 8,
		.max_sge = random_below(&r, 12) ? 4 : 0,
		.window = random_below(&r, 3) ? 0 : 5,
		.retries = (uint8_t)random_below(&r, 8),
		.gid = (enum host_gid)random_below(&r, HOST_GIDS),
		.srq = !random_below(&r, 4),
		.sig_all = !random_below(&r, 4),
		.access = random_below(&r, 8) ? ~0u : ~(uint32_t)ABI_ACCESS_REMOTE_WRITE,
	};

	if (random_below(&r, 3)) {
		t.impair.loss = 20000 * (uint32_t)random_below(&r, 4);
		t.impair.duplicate = 10000 * (uint32_t)random_below(&r, 3);
		t.impair.corrupt = 10000 * (uint32_t)random_below(&r, 3);
		t.impair.reorder = 20000 * (uint32_t)random_below(&r, 3);
		t.impair.reorder_ns = 5000;
	}
	t.reads = !random_below(&r, 3);
	t.max_reads = (uint8_t)(1 + random_below(&r, random_below(&r, 2) ? 16 : 3));
	return t;
}

static struct world *world_new(int way, uint64_t seed)
{
	struct weather t = any_weather(seed);
	struct pair_spec spec = pair_defaults();
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	spec.seed = seed;
	spec.gid = t.gid;
	spec.cq_depth = t.cq_depth;
	spec.srq_depth = t.srq ? 256 : 0;
	for (int e = A; e < ENDS; e++) {
		spec.link[e].rate_bps = t.rate_bps;
		spec.link[e].impair = t.impair;
		spec.qp[e].sq_depth = t.sq_depth;
		spec.qp[e].max_sge = t.max_sge;
		spec.qp[e].window = t.window;
		spec.qp[e].sig_all = t.sig_all;
		spec.attr[e].path_mtu = t.mtu;
		spec.attr[e].retry_cnt = t.retries;
		spec.attr[e].rnr_retry = 7;
		spec.attr[e].access_flags &= t.access;
		spec.attr[e].max_rd_atomic = t.max_reads;
	}
	w->reads = t.reads;
	pair_init(&w->pair, &spec);
	pair_memory(&w->pair, MEMORY);
	for (int e = A; e < ENDS; e++) {
		taps[way][e] = (struct tap){w, e};
		w->pair.end[e].link.tap = (struct link_tap){see, &taps[way][e]};
		w->pair.end[e].qp->free_ids = true;
		core_fast_paths(&w->pair.end[e].host->core, way == SHORT);
	}
	return w;
}

static void world_free(struct world *w)
{
	pair_fini(&w->pair);
	free(w);
}

/* --- work ----------------------------------------------------------------------------- */

/* Most are plain, and every other is unusual in a way of its own. */
static struct app_send any_request(struct pair *p, int e, struct random *r, bool reads)
{
	static const uint8_t bytes[32] = "inline";
	const struct app_mr *mine = p->end[e].mr, *peers = p->end[!e].mr;
	uint32_t mtu = p->spec.attr[e].path_mtu;
	uint32_t len = 1 + (uint32_t)random_below(r, random_below(r, 3) ? 200 : mtu);
	struct app_send s = {
		.opcode = random_below(r, 3) ? ABI_WR_RDMA_WRITE : ABI_WR_SEND,
		.flags = random_below(r, 4) ? ABI_WQE_SIGNALED : 0,
		.wr_id = random_next(r),
		.imm = (uint32_t)random_next(r),
		.remote_addr = app_va(peers, random_below(r, MEMORY / 2)),
		.rkey = peers->mr.key,
		.num_sge = 1,
	};

	s.flags |= random_below(r, 4) ? 0 : ABI_WQE_SOLICITED;
	if (reads && random_below(r, 8))
		s.opcode = ABI_WR_RDMA_READ;
	switch (random_below(r, 40)) {
	case 0:
		s.opcode = ABI_WR_RDMA_READ;
		break;
	case 1:
		s.opcode = ABI_WR_SEND_WITH_IMM;
		break;
	case 2:
		s.opcode = ABI_WR_RDMA_WRITE_WITH_IMM;
		break;
	case 3:
		s.flags |= ABI_WQE_FENCE;
		break;
	case 4:
		s.flags |= ABI_WQE_INLINE;
		s.inline_data = bytes;
		s.inline_len = (uint32_t)random_below(r, 4);
		break;
	case 5:
		len = 0;
		break;
	case 6:
	case 7:
		len = mtu + (uint32_t)random_below(r, 3 * mtu);
		break;
	case 8:
		len = mtu;
		break;
	case 9:
		s.opcode = ABI_WR_ATOMIC_FETCH_AND_ADD;
		s.remote_addr &= ~7ull;
		len = 8;
		break;
	case 10:
		s.num_sge = p->spec.qp[e].max_sge > 1 ? 2 : 1;
		break;
	default:
		break;
	}
	for (unsigned i = 0; i < s.num_sge; i++)
		s.sge[i] = app_sge(mine, random_below(r, MEMORY / 4), len);
	if (!len)
		s.sge[0].lkey = 0; /* nobody looks it up */
	return s;
}

/* Now and then, the end of a connection. */
static void spoil(struct pair *p, int e, struct random *r, struct app_send *s)
{
	switch (random_below(r, 4000)) {
	case 0:
		s->sge[0].lkey ^= 1;
		break;
	case 1:
		s->rkey ^= 1;
		break;
	case 2:
		s->remote_addr = app_va(p->end[!e].mr, MEMORY - 8);
		break;
	case 3:
		s->sge[0] = app_sge(p->end[e].mr, MEMORY - 8, 64);
		break;
	case 4:
		s->opcode = 200;
		break;
	case 5:
		app_mr_dereg(&p->end[!e].app, p->end[!e].mr);
		break;
	default:
		break;
	}
}

static void post(struct pair *p, int e, struct random *r, bool reads)
{
	struct pair_end *end = &p->end[e];
	unsigned n = (unsigned)random_below(r, BATCH);

	for (unsigned i = 0; i < n && app_sq_room(end->qp); i++) {
		struct app_send s = any_request(p, e, r, reads);

		if (p->spec.qp[e].max_sge || s.flags & ABI_WQE_INLINE || random_below(r, 64) == 0) {
			spoil(p, e, r, &s);
			app_post_send(end->qp, &s);
		}
	}
}

static void post_recvs(struct pair *p, int e, struct random *r)
{
	struct pair_end *end = &p->end[e];
	unsigned n = (unsigned)random_below(r, BATCH);
	struct abi_sge sge = app_sge(end->mr, MEMORY / 2, MEMORY / 4);

	for (unsigned i = 0; i < n && (end->srq ? app_srq_room(end->srq) : app_rq_room(end->qp));
		i++) {
		unsigned sges = p->spec.qp[e].max_sge ? 1 : 0;

		if (random_below(r, 1500) == 0)
			sge.length = 16;
		if (end->srq)
			app_post_srq(end->srq, random_next(r), &sge, sges);
		else
			app_post_recv(end->qp, random_next(r), &sge, sges);
	}
}

/* Takes completions, if @p poll, and events; as pair_step(), of QPs that may fail. */
static void step(struct pair *p, uint64_t until, bool poll)
{
	for (int e = A; e < ENDS; e++)
		app_ring(&p->end[e].app, p->fabric.now);
	fabric_step(&p->fabric, until);
	for (int e = A; e < ENDS; e++) {
		struct pair_end *end = &p->end[e];
		struct app_cq *cqs[] = {end->send_cq, end->recv_cq};

		app_events(&end->app);
		for (unsigned i = 0; i < 2 && poll; i++)
			while (app_poll(&end->app, cqs[i], &end->cqe[end->cqes % 4096]))
				end->cqes++;
		invariants_check(&end->app, p->fabric.now);
	}
}

static void work(struct world *w, uint64_t seed, unsigned round)
{
	struct pair *p = &w->pair;
	struct random r = {.state = (seed * ROUNDS + round) * 0x9E3779B97F4A7C15ull | 1};
	bool poll = random_below(&r, 8);
	unsigned steps = 20 + (unsigned)random_below(&r, 200);

	for (int e = A; e < ENDS; e++) {
		if (random_below(&r, 3))
			post_recvs(p, e, &r);
		if (e == A || random_below(&r, 3) == 0)
			post(p, e, &r, w->reads);
	}
	for (unsigned i = 0; i < steps; i++)
		step(p, p->fabric.now + 100000000, poll);
}

/* --- the same ------------------------------------------------------------------------- */

static void same_end(const struct pair_end *a, const struct pair_end *b)
{
	assert_int_equal(a->cqes, b->cqes);
	assert_memory_equal(a->cqe, b->cqe, a->cqes * sizeof(a->cqe[0]));
	assert_memory_equal(a->mr->mem, b->mr->mem, MEMORY);
	same_qp(a->qp->qp, b->qp->qp);
	assert_memory_equal(
		&a->host->core.count, &b->host->core.count, sizeof(a->host->core.count));
	assert_int_equal(a->app.events, b->app.events);
	for (unsigned i = 0; i < a->app.events; i++)
		assert_int_equal(a->app.event[i].type, b->app.event[i].type);
}

static void same(const struct world *a, const struct world *b)
{
	for (int e = A; e < ENDS; e++) {
		assert_int_equal(a->frames[e], b->frames[e]);
		assert_int_equal(a->hash[e], b->hash[e]);
		same_end(&a->pair.end[e], &b->pair.end[e]);
	}
}

static void any_work__is_the_same(void **state)
{
	uint64_t frames = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world *w[WAYS];

		for (int way = 0; way < WAYS; way++)
			w[way] = world_new(way, seed);
		for (unsigned round = 0; round < ROUNDS; round++) {
			for (int way = 0; way < WAYS; way++)
				work(w[way], seed, round);
			same(w[LONG], w[SHORT]);
		}
		frames += w[LONG]->frames[A];
		for (int way = 0; way < WAYS; way++)
			world_free(w[way]);
	}
	assert_true(frames > SEEDS * 50);
}

/* --- packets that are written by hand ----------------------------------------------------- */

#define SHOTS 6u

/* Gives a burst of requests, the third of which @p change has changed, to a QP that has received
 * one before. @return what happened, in @p l. */
static void shoot(struct lone *l, bool on, uint8_t opcode, stranger change)
{
	static const uint8_t bytes[8] = "payload";
	struct shot s[SHOTS];

	lone_init(l);
	lone_start(l);
	core_fast_paths(&l->host->core, on);
	for (unsigned i = 0; i < SHOTS; i++)
		lone_recv(l, i, 1024 + 64 * i, 64);
	for (unsigned i = 0; i <= SHOTS; i++) {
		struct shot one = {.opcode = opcode,
			.psn = RQ_PSN + i,
			.ackreq = true,
			.va = app_va(l->mr, 64 * i),
			.rkey = l->mr->mr.key,
			.dma_len = sizeof(bytes),
			.payload = bytes,
			.len = sizeof(bytes)};

		if (i == 3)
			change(l, &one);
		if (i)
			s[i - 1] = one;
		else
			lone_rx(l, &one);
	}
	lone_rx_burst(l, s, SHOTS);
}

static void longer_than_it_is(struct lone *l, struct shot *s)
{
	(void)l;
	s->dma_len = 100;
}

static void empty(struct lone *l, struct shot *s)
{
	(void)l;
	s->len = 0;
	s->dma_len = 0;
	s->rkey = 0; /* RSP-12: nobody looks it up */
}

static void with_another_key(struct lone *l, struct shot *s)
{
	(void)l;
	s->rkey ^= 1;
}

static void to_where_it_must_not(struct lone *l, struct shot *s)
{
	s->va = app_va(l->mr, LONE_MEM - 4);
}

static void strangers__end_a_run(void **state)
{
	static const stranger changes[] = {
		longer_than_it_is, empty, with_another_key, to_where_it_must_not};
	static struct lone ways[WAYS];
	const unsigned all = STRANGERS + ARRAY_SIZE(changes);

	(void)state;
	for (unsigned i = 0; i < 2 * all; i++) {
		stranger change = i / 2 < STRANGERS ? strangers[i / 2] : changes[i / 2 - STRANGERS];

		for (int way = 0; way < WAYS; way++)
			shoot(&ways[way], way == SHORT, i % 2 ? OP_SEND_ONLY : OP_WRITE_ONLY,
				change);
		same_lone(&ways[LONG], &ways[SHORT]);
		for (int way = 0; way < WAYS; way++)
			lone_fini(&ways[way]);
	}
}

/* Receives of which not each takes a SEND of eight bytes. */
enum receive {
	GOOD,
	TOO_SHORT, /* RSP-20 */
	OF_TWO_PARTS,
	OF_NO_PART,
	OF_TOO_MANY,
	OF_ONE_TOO_MANY, /* for a queue without SGEs */
	WITH_NO_KEY,	 /* RSP-21 */
	READ_ONLY,
	BEYOND_ITS_REGION,
	NOT_POSTED, /* RSP-16 */
	TAKEN,	    /* of which direct.c has taken the first */
	LOST,	    /* a completion, by another QP of the CQ (CQ-01) */
	RECEIVES
};

#define RQ_DEPTH 8u

static void post_receive(struct lone *l, unsigned i, enum receive kind)
{
	struct abi_sge sge[2] = {
		app_sge(l->mr, 1024 + 64 * i, 64), app_sge(l->mr, 8192 + 64 * i, 64)};
	struct abi_recv_wqe raw = {
		.ctl = ABI_WQE_CTL(0, kind == OF_TOO_MANY ? 200 : 1, 0), .sge = {sge[0]}};

	if (kind == TOO_SHORT)
		sge[0].length = 7;
	if (kind == OF_TWO_PARTS)
		sge[0].length = 5;
	if (kind == WITH_NO_KEY)
		sge[0].lkey ^= 1;
	if (kind == READ_ONLY)
		sge[0] = app_sge(app_mr(&l->app, 64, 0), 0, 64);
	if (kind == BEYOND_ITS_REGION)
		sge[0].addr = app_va(l->mr, LONE_MEM - 4);
	if (kind == OF_TOO_MANY || kind == OF_ONE_TOO_MANY)
		app_post_recv_raw(l->qp, &raw, sizeof(raw));
	else if (kind != NOT_POSTED)
		app_post_recv(l->qp, i, sge, kind == OF_NO_PART ? 0 : kind == OF_TWO_PARTS ? 2 : 1);
}

/* A QP that has received SENDs without payload, so that each entry of its queue has been used. */
static void use_receives(struct lone *l, bool on, enum receive kind, uint32_t room)
{
	lone_init(l);
	l->cq_depth = room;
	l->spec.rq_depth = RQ_DEPTH;
	if (kind == OF_ONE_TOO_MANY)
		l->spec.max_sge = 0;
	lone_start(l);
	core_fast_paths(&l->host->core, on);
	for (unsigned i = 0; i < RQ_DEPTH; i++) {
		post_receive(l, i, l->spec.max_sge ? GOOD : OF_NO_PART);
		lone_rx(l, &(struct shot){.opcode = OP_SEND_ONLY, .psn = RQ_PSN + i});
		lone_cqes(l);
	}
}

/* Gives a burst of SENDs to a QP whose receives from the third on are of @p kind, and whose CQ has
 * room for @p room completions. */
static void send_burst(struct lone *l, bool on, enum receive kind, uint32_t room)
{
	static const uint8_t bytes[8] = "payload";
	struct shot s[SHOTS];

	use_receives(l, on, kind, room);
	for (unsigned i = 0; i < SHOTS; i++) {
		post_receive(l, i, i > 1 || kind == OF_ONE_TOO_MANY ? kind : GOOD);
		s[i] = (struct shot){.opcode = OP_SEND_ONLY,
			.psn = RQ_PSN + RQ_DEPTH + i,
			.ackreq = i % 2,
			.se = i == 1,
			.payload = bytes,
			.len = sizeof(bytes)};
	}
	if (kind == TAKEN)
		assert_true(recv_wqe_take(&l->host->core, l->qp->qp));
	if (kind == LOST)
		l->qp->qp->recv_lane->overflow = true;
	lone_rx_burst(l, s, SHOTS);
}

/* Also CQ-01: a CQ that is full in the middle of a run. */
static void receives__end_a_run(void **state)
{
	static const uint32_t rooms[] = {1024, 4};
	static struct lone ways[WAYS];

	(void)state;
	for (unsigned i = 0; i < RECEIVES * ARRAY_SIZE(rooms); i++) {
		for (int way = 0; way < WAYS; way++)
			send_burst(&ways[way], way == SHORT, (enum receive)(i / 2), rooms[i % 2]);
		same_lone(&ways[LONG], &ways[SHORT]);
		for (int way = 0; way < WAYS; way++)
			lone_fini(&ways[way]);
	}
}

/* RSP-05, RSP-18: WRITEs inside a message, and instead of one for which there was no receive. */
static void open_requests__are_no_run(void **state)
{
	static struct lone ways[WAYS];

	(void)state;
	for (unsigned inside = 0; inside < 2; inside++) {
		for (int way = 0; way < WAYS; way++) {
			struct lone *l = &ways[way];
			struct shot s[SHOTS];

			lone_init(l);
			lone_start(l);
			core_fast_paths(&l->host->core, way == SHORT);
			if (inside)
				lone_recv(l, 1, 0, 4096);
			lone_rx(l, &(struct shot){.opcode = inside ? OP_SEND_FIRST : OP_SEND_ONLY,
					   .psn = RQ_PSN,
					   .len = l->attr.path_mtu});
			lone_tx(l);
			for (unsigned i = 0; i < SHOTS; i++)
				s[i] = (struct shot){.opcode = OP_WRITE_ONLY,
					.psn = RQ_PSN + inside + i,
					.va = app_va(l->mr, 64 * i),
					.rkey = l->mr->mr.key,
					.dma_len = 8,
					.len = 8};
			lone_rx_burst(l, s, SHOTS);
		}
		same_lone(&ways[LONG], &ways[SHORT]);
		for (int way = 0; way < WAYS; way++)
			lone_fini(&ways[way]);
	}
}

/* RSP-21, EVT-03: memory that is not there, under the third of a run. */
static void shoot_at_a_hole(struct lone *l, bool on, uint8_t opcode)
{
	struct shot s[SHOTS];
	struct mr *mr;

	lone_init(l);
	lone_start(l);
	core_fast_paths(&l->host->core, on);
	mr = hole_open(l->host, APP_PD);
	for (unsigned i = 0; i <= SHOTS; i++) {
		uint64_t va = mr->iova + (i == 3 ? HOLE_PAGE : 64 * i);
		struct abi_sge sge = {.addr = va, .length = 64, .lkey = mr->key};
		struct shot one = {.opcode = opcode,
			.psn = RQ_PSN + i,
			.ackreq = true,
			.va = va,
			.rkey = mr->key,
			.dma_len = 8,
			.len = 8};

		app_post_recv(l->qp, i, &sge, 1);
		if (i)
			s[i - 1] = one;
		else
			lone_rx(l, &one);
	}
	lone_rx_burst(l, s, SHOTS);
	assert_int_equal(l->host->core.count.access_faults, 1);
	assert_int_equal(l->qp->qp->state, ABI_QPS_ERR);
}

static void fault__ends_a_run(void **state)
{
	static const uint8_t opcodes[] = {OP_WRITE_ONLY, OP_SEND_ONLY};
	static struct lone l;
	char sent[WAYS][sizeof(l.log)], done[WAYS][sizeof(l.log)];

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(opcodes); i++) {
		bool send = opcodes[i] == OP_SEND_ONLY;

		for (int way = 0; way < WAYS; way++) {
			shoot_at_a_hole(&l, way == SHORT, opcodes[i]);
			strcpy(sent[way], lone_tx(&l));
			strcpy(done[way], lone_cqes(&l));
			assert_int_equal(l.host->core.count.rx_write_requests, send ? 0 : 3);
			assert_int_equal(l.host->core.count.rx_send_requests, send ? 3 : 0);
			assert_int_equal(app_event_count(&l.app, ABI_EVENT_QP_FATAL), send ? 0 : 1);
			assert_int_equal(l.qp->qp->why.error.cause,
				send ? CAUSE_RECV_FAULT : CAUSE_WRITE_FAULT);
			hole_close(l.host);
			lone_fini(&l);
		}
		assert_string_equal(sent[LONG], sent[SHORT]);
		assert_string_equal(done[LONG], done[SHORT]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_work__is_the_same),
		cmocka_unit_test(strangers__end_a_run),
		cmocka_unit_test(receives__end_a_run),
		cmocka_unit_test(open_requests__are_no_run),
		cmocka_unit_test(fault__ends_a_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
