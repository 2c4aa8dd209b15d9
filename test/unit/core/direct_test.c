/* SPDX-License-Identifier: BSD-3-Clause */
/* The same work by frames, which may name their payload, without frames (in runs or one by one),
 * and by all of these in turns: CQEs, memory, PSNs and counters are the same afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "ah.h"
#include "app.h"
#include "core_command.h"
#include "effort.h"
#include "fabric.h"
#include "headers.h"
#include "hole.h"
#include "icrc.h"
#include "invariants.h"
#include "link.h"
#include "opcode.h"
#include "qp.h"
#include "random.h"

#define AREA	(1u << 19)
#define MEMORY	(AREAS * AREA)
#define FRAMES	512u
#define CQES	256u
#define START	5000000ull
#define ROUNDS	40u
#define LEN_MAX 300000u
#define ALL_REMOTE                                                                   \
	(ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ | \
		ABI_ACCESS_REMOTE_ATOMIC | ABI_ACCESS_FLUSH_GLOBAL | ABI_ACCESS_MW_BIND)
#define QKEY 0x1234u

enum way {
	FRAMES_ONLY,
	NAMED, /* by frames that name their payload */
	DIRECT,
	SINGLY, /* the same without runs */
	MIXED,	/* each step another way */
	WAYS
};

enum {
	A,
	B,
	ENDS
};

/* Requests that are under way together use different memory: nobody promises their order. */
enum area {
	SOURCES,  /* of SEND and WRITE */
	FETCHED,  /* by READs and atomics */
	RECEIVED, /* by SENDs */
	WRITTEN,  /* by WRITEs and atomics of the peer */
	READ,	  /* by the peer */
	AREAS
};

struct end {
	struct app_qp *qp;
	struct app_cq *cq;
	struct app_mr *mr;
	struct app_mw *mw; /* for the peer; NULL: none */
	bool bound;
	uint32_t key; /* of the window, as soon as what is posted was executed */
	struct ah ah; /* UD: to the peer */
	struct abi_cqe cqe[CQES];
	unsigned cqes;
};

/** Two QPs of one host. */
struct world {
	struct fabric fabric;
	struct sim_host *host;
	struct sim_link loop;
	struct sim_frame *frames;
	struct sim_frame *places[FRAMES];
	struct app app;
	struct end end[ENDS];
	struct app_srq *srq; /* of B; NULL: it has a receive queue */
	enum way way;
	unsigned steps;
};

/** Why nothing of the kind may succeed. */
enum obstacle {
	NONE,
	SHORT_RECEIVE,	 /* RSP-20 */
	NO_RIGHT,	 /* RSP-08: of B's queue pair */
	PAST_THE_END,	 /* RSP-13: the last bytes of a WRITE are outside the region */
	READ_PAST,	 /* of a READ */
	WRONG_KEY,	 /* RSP-14 */
	OTHER_PARTITION, /* VAL-08 */
	OTHER_PEER,	 /* SEC-03: B is connected to another queue pair */
	OTHER_MTU,	 /* of B, which is larger than A's */
	OTHER_ADDRESS,	 /* VAL-12: B expects another protocol */
	NO_ATOMIC_RIGHT, /* RSP-08: of B's queue pair */
	ODD_ATOMIC,	 /* RSP-32: between two words */
	ODD_WRITE,	 /* FLU-08: of a word */
	NO_FLUSH_RIGHT,	 /* FLU-04: of B's queue pair */
	NO_FLUSH_TYPE,	 /* FLU-01 */
	FLUSH_PAST,	 /* FLU-05: the last bytes are outside the region */
	UNKNOWN_WINDOW,	 /* INV-03: the key that a SEND invalidates */
	NO_READ_RIGHT,	 /* RSP-08: of B's queue pair */
	OWN_RIGHT,	 /* REQ-45: A's memory takes no data of a READ */
	OWN_KEY,	 /* REQ-18 */
	OWN_RANGE,	 /* REQ-18: of A's region */
	NO_READS,	 /* REQ-09: A agreed on none */
	TOO_MANY_BYTES,	 /* REQ-16: more inline data than was agreed on */
	INLINE_READ,	 /* REQ-16 */
	UNKNOWN_OPCODE,	 /* REQ-17 */
	LIMITED_PEER,	 /* whose READ responses wait for their departures */
	OBSTACLES
};

struct world_spec {
	uint32_t mtu;
	bool srq;
	bool xrc;
	bool uc;
	bool ud;
	bool self;    /* A and B are the same queue pair */
	bool plain;   /* most messages are such that go in runs */
	bool windows; /* are bound, used and invalidated */
	enum obstacle obstacle;
	uint32_t cqes_of_a, cqes_of_b; /* that its completion queue holds; 0: all that are made */
};

/* --- life ----------------------------------------------------------------------------- */

/* The part of them that is in the attributes of B. */
static void obstruct(struct abi_qp_attr *attr, struct path_spec *path, const struct sim_host *host,
	enum obstacle obstacle)
{
	switch (obstacle) {
	case NO_RIGHT:
		attr->access_flags = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_READ;
		break;
	case NO_READ_RIGHT:
		attr->access_flags = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE;
		break;
	case NO_FLUSH_RIGHT:
		attr->access_flags &= ~(uint32_t)ABI_ACCESS_FLUSH_GLOBAL;
		break;
	case NO_ATOMIC_RIGHT:
		attr->access_flags &= ~(uint32_t)ABI_ACCESS_REMOTE_ATOMIC;
		break;
	case OTHER_PARTITION:
		attr->pkey_index = 1;
		break;
	case OTHER_PEER:
		attr->dest_qpn++;
		break;
	case OTHER_MTU:
		attr->path_mtu *= 2;
		break;
	case OTHER_ADDRESS:
		*path = host_path(host, host, 0, HOST_GID_IPV6);
		break;
	default:
		break;
	}
}

/* IPv6, because IPv4 headers, which a receive gets, have a number of their own. */
static void address(struct world *w, int e)
{
	struct path_spec path = host_path(w->host, w->host, 0, HOST_GID_IPV6);
	struct ah *ah = &w->end[e].ah;

	path.local = true;
	*ah = (struct ah){.id = (uint32_t)e + 1, .pd = w->end[e].qp->qp->pd};
	path_init(&ah->path, &path);
	atomic_store(&w->host->ahs.slot[AH_SLOT(ah->id)], ah);
}

static void connect(struct world *w, const struct world_spec *spec)
{
	struct path_spec path = host_path(w->host, w->host, 0, HOST_GID_IPV4);

	atomic_store(&w->host->ports.port[0].pkey[1], 0x8001);
	w->host->ports.port[0].pkeys = 2;
	for (int e = A; e < (spec->self ? B : ENDS); e++) {
		struct end *me = &w->end[e];
		struct abi_qp_attr attr = app_attr(w->end[!e].qp->qp->qpn,
			e == A ? 0xFFFFF0 : 0x100, e == A && !spec->self ? 0x100 : 0xFFFFF0);

		attr.path_mtu = spec->mtu;
		attr.qkey = QKEY;
		if (e == A && spec->obstacle == NO_READS)
			attr.max_rd_atomic = 0;
		if (e == B)
			obstruct(&attr, &path, w->host, spec->obstacle);
		if (spec->ud)
			address(w, e);
		assert_int_equal(app_to_init(me->qp, &attr, START), 0);
		assert_int_equal(app_to_rtr(me->qp, &attr, &path, START), 0);
		assert_int_equal(app_to_rts(me->qp, &attr, START), 0);
	}
}

/* The queue pair at both ends; A takes the completions of what it sends, B those of receives. */
static void make_self(struct world *w)
{
	struct app_qp_spec qp = {.sq_depth = 64, .rq_depth = 64, .max_sge = 4, .max_inline = 64};

	for (int e = A; e < ENDS; e++) {
		w->end[e].cq = app_cq(&w->app, CQES);
		w->end[e].mr = app_mr(&w->app, MEMORY, ALL_REMOTE);
	}
	qp.send_cq = w->end[A].cq;
	qp.recv_cq = w->end[B].cq;
	w->end[A].qp = app_qp(&w->app, &qp);
	w->end[A].qp->free_ids = true;
	w->end[B].qp = w->end[A].qp;
}

static void make_end(struct world *w, int e, const struct world_spec *spec)
{
	struct end *me = &w->end[e];
	struct app_qp_spec qp = {.sq_depth = 64, .rq_depth = 64, .max_sge = 4, .max_inline = 64};
	uint32_t cqes = e == B ? spec->cqes_of_b : spec->cqes_of_a;

	me->cq = app_cq(&w->app, cqes ? cqes : CQES);
	qp.send_cq = me->cq;
	qp.recv_cq = me->cq;
	if (spec->uc)
		qp.type = ABI_QPT_UC;
	if (spec->ud)
		qp.type = ABI_QPT_UD;
	if (spec->xrc)
		qp.type = e == A ? ABI_QPT_XRC_SEND : ABI_QPT_XRC_RECV;
	if (e == B && spec->xrc) {
		qp.xrcd = 9;
		w->srq = app_xrc_srq(&w->app, 64, 4, 9, me->cq);
	} else if (e == B && spec->srq) {
		w->srq = app_srq(&w->app, 64, 4);
		qp.srq = w->srq;
	}
	me->qp = app_qp(&w->app, &qp);
	me->qp->free_ids = true;
	me->mr = app_mr(&w->app, MEMORY,
		e == A && spec->obstacle == OWN_RIGHT ? ABI_ACCESS_REMOTE_READ : ALL_REMOTE);
	if (spec->windows) {
		me->mw = app_mw(&w->app, MW_TYPE_2);
		me->key = app_mw_key(me->mw);
	}
}

static struct world *world_new(enum way way, const struct world_spec *spec)
{
	static const struct link_config perfect = {.delay_ns = 100};
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->way = way;
	w->frames = calloc(FRAMES, sizeof(*w->frames));
	w->host = aligned_alloc(CACHE_LINE, sizeof(*w->host));
	assert_true(w->frames && w->host);
	for (unsigned i = 0; i < FRAMES; i++)
		w->places[i] = &w->frames[i];
	fabric_init(&w->fabric, START);
	host_init(w->host, 1, icrc_best(), START);
	link_init(&w->loop, w->places, FRAMES, &perfect, 1);
	app_init(&w->app, w->host);
	fabric_add(&w->fabric, w->host);
	fabric_plug(&w->fabric, &w->loop, w->host, 0, w->host, 0);
	if (spec->self)
		make_self(w);
	for (int e = A; e < ENDS && !spec->self; e++)
		make_end(w, e, spec);
	for (int e = A; e < ENDS; e++)
		app_mr_fill(w->end[e].mr, 7 + (unsigned)e);
	connect(w, spec);
	if (spec->obstacle == LIMITED_PEER)
		core_cmd(&w->host->core,
			&(struct core_cmd){
				CORE_CMD_SET_RATE, .qp = w->end[B].qp->qp, .rate = 1000000000},
			0);
	return w;
}

static void world_free(struct world *w)
{
	app_fini(&w->app);
	free(w->frames);
	free(w->host);
	free(w);
}

/* --- running -------------------------------------------------------------------------- */

/* The way of the next step. */
static void choose(struct world *w)
{
	bool direct = w->way == MIXED ? w->steps % 3 != 0 : w->way >= DIRECT;
	bool names = w->way == MIXED ? w->steps % 4 < 2 : w->way == NAMED;
	bool runs = w->way == MIXED ? w->steps % 2 : w->way != SINGLY;

	core_direct(&w->host->core, direct);
	core_names(&w->host->core, names);
	core_fast_paths(&w->host->core, runs);
	w->steps++;
}

static void drain_end(struct world *w, int e)
{
	struct end *me = &w->end[e];

	while (me->cqes < CQES && app_poll(&w->app, me->cq, &me->cqe[me->cqes]))
		me->cqes++;
}

static void drain(struct world *w)
{
	app_events(&w->app);
	for (int e = A; e < ENDS; e++)
		drain_end(w, e);
}

/* Until nothing moves; @p ends take completions meanwhile. */
static void run_with(struct world *w, int ends)
{
	bool more = true;

	while (more) {
		choose(w);
		app_ring(&w->app, w->fabric.now);
		more = fabric_step(&w->fabric, w->fabric.now + 60000000000ull);
		app_events(&w->app);
		for (int e = A; e < ends; e++)
			drain_end(w, e);
		invariants_check(&w->app, w->fabric.now);
	}
}

static void run(struct world *w)
{
	run_with(w, ENDS);
}

/* --- the same ------------------------------------------------------------------------- */

static void same_qp(const struct qp *a, const struct qp *b)
{
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->req.psn, b->req.psn);
	assert_int_equal(a->req.psn_new, b->req.psn_new);
	assert_int_equal(a->req.psn_assign, b->req.psn_assign);
	assert_int_equal(a->req.ssn, b->req.ssn);
	assert_int_equal(a->comp.una, b->comp.una);
	assert_int_equal(a->comp.head, b->comp.head);
	assert_int_equal(a->comp.cqes, b->comp.cqes);
	assert_int_equal(a->resp.epsn, b->resp.epsn);
	assert_int_equal(a->resp.msn, b->resp.msn);
	assert_int_equal(a->resp.ack_psn, b->resp.ack_psn);
	assert_int_equal(a->resp.open, b->resp.open);
	assert_int_equal(a->resp.have_wqe, b->resp.have_wqe);
	assert_int_equal(a->resp.cqes, b->resp.cqes);
	assert_int_equal(a->comm_est, b->comm_est);
	assert_int_equal(a->sq.next, b->sq.next);
	assert_int_equal(a->rq.next, b->rq.next);
	assert_int_equal(a->windows, b->windows);
	assert_int_equal(a->sq.shared->consumer, b->sq.shared->consumer);
}

static void same_counters(const struct core_counters *a, const struct core_counters *b)
{
	assert_int_equal(a->rx_write_requests, b->rx_write_requests);
	assert_int_equal(a->rx_send_requests, b->rx_send_requests);
	assert_int_equal(a->rx_read_requests, b->rx_read_requests);
	assert_int_equal(a->rx_atomic_requests, b->rx_atomic_requests);
	assert_int_equal(a->rx_atomic_write_requests, b->rx_atomic_write_requests);
	assert_int_equal(a->rx_flush_requests, b->rx_flush_requests);
	assert_int_equal(a->req_cqe_error, b->req_cqe_error);
	assert_int_equal(a->resp_cqe_error, b->resp_cqe_error);
	assert_int_equal(a->resp_remote_access_errors, b->resp_remote_access_errors);
	assert_int_equal(a->resp_remote_invalid_request, b->resp_remote_invalid_request);
	assert_int_equal(a->resp_local_length_error, b->resp_local_length_error);
	assert_int_equal(a->access_faults, b->access_faults);
}

static void same(const struct world *a, const struct world *b)
{
	for (int e = A; e < ENDS; e++) {
		const struct end *x = &a->end[e], *y = &b->end[e];

		assert_int_equal(x->cqes, y->cqes);
		assert_memory_equal(x->cqe, y->cqe, x->cqes * sizeof(x->cqe[0]));
		assert_false(memcmp(x->mr->mem, y->mr->mem, MEMORY)); /* cmocka's own is slow */
		assert_int_equal(x->mr->mr.windows, y->mr->mr.windows);
		same_qp(x->qp->qp, y->qp->qp);
	}
	same_counters(&a->host->core.count, &b->host->core.count);
	assert_int_equal(a->app.events, b->app.events);
	for (unsigned i = 0; i < a->app.events; i++)
		assert_int_equal(a->app.event[i].type, b->app.event[i].type);
}

/* --- random work ---------------------------------------------------------------------- */

static const uint8_t opcodes[] = {ABI_WR_SEND, ABI_WR_SEND_WITH_IMM, ABI_WR_RDMA_WRITE,
	ABI_WR_RDMA_WRITE_WITH_IMM, ABI_WR_RDMA_READ, ABI_WR_ATOMIC_CMP_AND_SWP,
	ABI_WR_ATOMIC_FETCH_AND_ADD, ABI_WR_ATOMIC_WRITE, ABI_WR_FLUSH};

/* UC has the first of them, UD the first of these. */
#define OPCODES_UC 4u
#define OPCODES_UD 2u

static const uint8_t plain_opcodes[] = {ABI_WR_SEND, ABI_WR_RDMA_WRITE, ABI_WR_RDMA_READ};

static uint32_t any_length(struct random *r)
{
	switch (random_below(r, 5)) {
	case 0:
		return (uint32_t)random_below(r, 65);
	case 1:
		return 1024 * (uint32_t)random_below(r, 9);
	case 2:
		return (uint32_t)random_below(r, LEN_MAX);
	default:
		return (uint32_t)random_below(r, 5000);
	}
}

/* Cuts @p len bytes into pieces in @p area of the memory, one here, one there. */
static unsigned cut(struct random *r, const struct app_mr *mr, enum area area, uint32_t len,
	struct abi_sge sge[])
{
	unsigned n = 1 + (unsigned)random_below(r, 4);
	uint32_t at = area * AREA + (uint32_t)random_below(r, 64);

	for (unsigned i = 0; i < n; i++) {
		uint32_t part = i == n - 1 ? len : (uint32_t)random_below(r, len + 1);

		sge[i] = app_sge(mr, at, part);
		at += part + (uint32_t)random_below(r, 16);
		len -= part;
	}
	return n;
}

static bool is_atomic(uint8_t opcode)
{
	return opcode == ABI_WR_ATOMIC_CMP_AND_SWP || opcode == ABI_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_word(uint8_t opcode)
{
	return is_atomic(opcode) || opcode == ABI_WR_ATOMIC_WRITE;
}

static uint8_t any_opcode(const struct end *me, struct random *r, bool plain)
{
	if (plain)
		return plain_opcodes[random_below(r, ARRAY_SIZE(plain_opcodes))];
	if (me->qp->qp->opc == OPC_UD)
		return opcodes[random_below(r, OPCODES_UD)];
	return opcodes[random_below(r, me->qp->qp->reliable ? ARRAY_SIZE(opcodes) : OPCODES_UC)];
}

/* The window of @p me is bound to all of its memory, or is no longer. */
static void post_window(struct end *me, uint64_t wr_id, bool fence)
{
	uint32_t key = me->key;
	struct app_send s = {
		.opcode = me->bound ? ABI_WR_LOCAL_INV : ABI_WR_BIND_MW,
		.flags = ABI_WQE_SIGNALED | (fence ? ABI_WQE_FENCE : 0),
		.wr_id = wr_id,
		.imm = key,
		.mw = key,
		.rkey = (key & ~0xFFu) | ((key + 1) & 0xFF),
		.lkey = me->mr->mr.key,
		.access = ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ,
		.remote_addr = app_va(me->mr, 0),
		.bind_len = MEMORY,
	};

	me->bound = !me->bound;
	me->key = me->bound ? s.rkey : key;
	app_post_send(me->qp, &s);
}

/* A message may use the window of the peer, or a SEND invalidate it: after the READs that use it,
 * whose responses look the key up again. */
static void use_window(struct end *peer, struct random *r, struct app_send *s)
{
	if (!peer->bound || random_below(r, 2))
		return;
	if (s->opcode == ABI_WR_RDMA_WRITE || s->opcode == ABI_WR_RDMA_READ)
		s->rkey = peer->key;
	if (s->opcode != ABI_WR_SEND)
		return;
	s->opcode = ABI_WR_SEND_WITH_INV;
	s->flags |= ABI_WQE_FENCE;
	s->imm = peer->key;
	peer->bound = false;
}

/* @p r is the same in all worlds. */
static void post_any(
	struct world *w, int e, struct random *r, uint64_t wr_id, const struct world_spec *spec)
{
	static uint8_t inline_data[64];
	struct end *me = &w->end[e], *peer = &w->end[!e];
	struct app_send s = {.wr_id = wr_id, .imm = (uint32_t)random_next(r)};
	uint32_t len = any_length(r);
	bool plain = spec->plain && random_below(r, 8);
	bool fetches;

	if (me->mw && !random_below(r, 6)) {
		post_window(me, wr_id, random_below(r, 2));
		return;
	}
	s.opcode = any_opcode(me, r, plain);
	if (plain || spec->ud)
		len = (uint32_t)random_below(r, 4097);
	s.flags = (random_below(r, 3) ? ABI_WQE_SIGNALED : 0) |
		  (random_below(r, 4) ? 0 : ABI_WQE_SOLICITED) |
		  (random_below(r, 4) ? 0 : ABI_WQE_FENCE);
	if (is_word(s.opcode))
		len = 8;
	fetches = s.opcode == ABI_WR_RDMA_READ || is_atomic(s.opcode);
	s.remote_addr = app_va(peer->mr,
		(s.opcode == ABI_WR_RDMA_READ ? READ : WRITTEN) * AREA + 8 * random_below(r, 1000));
	s.rkey = peer->mr->mr.key;
	if (me->mw)
		use_window(peer, r, &s);
	if (spec->ud) {
		s.remote_addr = (uint64_t)peer->qp->qp->qpn << 32 | me->ah.id;
		s.rkey = QKEY;
	}
	s.compare_add = random_below(r, 2) ? 0 : random_next(r);
	s.swap = random_next(r);
	s.srqn = w->srq ? w->srq->srq.srqn : 0;
	if (s.opcode == ABI_WR_FLUSH) {
		s.imm = FETH_PLT_GLOBAL;
		s.flush_len = len;
	} else if (s.opcode != ABI_WR_RDMA_READ && len <= 64 && !is_word(s.opcode) &&
		   random_below(r, 2)) {
		random_fill(r, inline_data, sizeof(inline_data));
		s.flags |= ABI_WQE_INLINE;
		s.inline_data = inline_data;
		s.inline_len = len;
	} else {
		s.num_sge = cut(r, me->mr, fetches ? FETCHED : SOURCES, len, s.sge);
		if (plain || is_word(s.opcode)) {
			s.num_sge = 1;
			s.sge[0] = app_sge(me->mr, fetches ? FETCHED * AREA : 0, len);
		}
	}
	app_post_send(me->qp, &s);
}

static void post_recv(struct world *w, int e, uint64_t wr_id, const struct abi_sge *sge, unsigned n)
{
	if (e == B && w->srq)
		app_post_srq(w->srq, wr_id, sge, n);
	else
		app_post_recv(w->end[e].qp, wr_id, sge, n);
}

static void post_recv_any(struct world *w, int e, struct random *r, uint64_t wr_id)
{
	struct abi_sge sge[4];

	post_recv(w, e, wr_id, sge, cut(r, w->end[e].mr, RECEIVED, LEN_MAX, sge));
}

static void post_recvs(struct world *w, int e, struct random *r, unsigned n, uint64_t wr_id)
{
	for (unsigned i = 0; i < n; i++)
		post_recv_any(w, e, r, wr_id + i);
}

/* Receives for messages to @p e, as far as there is room before the round: in the midst of it, the
 * worlds need not be equal. */
static unsigned recvs_for(const struct world *w, int e, unsigned messages)
{
	unsigned room = e == B && w->srq ? app_srq_room(w->srq) : app_rq_room(w->end[e].qp);

	return room < messages ? room : messages;
}

/* Some steps in which the receiver is not ready. */
static void run_early(struct world *w)
{
	app_ring(&w->app, w->fabric.now);
	for (unsigned i = 0; i < 4; i++) {
		choose(w);
		fabric_step(&w->fabric, w->fabric.now + 1000);
		drain(w);
	}
}

/* One round of work in @p w; what is random follows from @p seed. UC does not wait for receives, so
 * there they come first. */
static void work(struct world *w, uint64_t seed, const struct world_spec *spec)
{
	struct random r = {.state = seed * 0x9E3779B97F4A7C15ull | 1};
	unsigned n = 1 + (unsigned)random_below(&r, spec->plain ? 40 : 8);
	bool late = !random_below(&r, 4) && !spec->uc && !spec->ud;
	int e = spec->xrc ? A : (int)random_below(&r, 2);
	unsigned recvs = recvs_for(w, !e, n);

	w->end[A].cqes = w->end[B].cqes = 0;
	if (!late)
		post_recvs(w, !e, &r, recvs, seed << 8 | 0x80);
	for (unsigned i = 0; i < n; i++)
		post_any(w, e, &r, seed << 8 | i, spec);
	if (late) {
		run_early(w);
		post_recvs(w, !e, &r, recvs, seed << 8 | 0x80);
	}
	run(w);
}

static void compare(const struct world_spec *spec, uint64_t seed)
{
	struct world *w[WAYS];

	for (int way = 0; way < WAYS; way++)
		w[way] = world_new((enum way)way, spec);
	for (unsigned round = 0; round < ROUNDS; round++)
		for (int way = 0; way < WAYS; way++) {
			work(w[way], seed * ROUNDS + round, spec);
			same(w[FRAMES_ONLY], w[way]);
		}
	assert_int_equal(w[FRAMES_ONLY]->host->core.count.direct_messages, 0);
	assert_int_equal(w[FRAMES_ONLY]->host->core.count.named_packets, 0);
	assert_int_equal(w[NAMED]->host->core.count.direct_messages, 0);
	assert_int_equal(w[NAMED]->host->core.count.named_packets > ROUNDS,
		!(spec->uc || spec->ud || spec->xrc) && spec->mtu >= NAMED_MIN);
	assert_true(w[DIRECT]->host->core.count.direct_messages >= ROUNDS);
	assert_true(w[MIXED]->host->core.count.direct_messages > 0);
	assert_true(w[MIXED]->host->core.count.direct_messages <
		    w[DIRECT]->host->core.count.direct_messages);
	for (int way = 0; way < WAYS; way++)
		world_free(w[way]);
}

static void any_work__ends_the_same(void **state)
{
	static const uint32_t mtus[] = {256, 1024, 4096};

	(void)state;
	for (uint64_t seed = 1; seed <= EFFORT_OF(12, 4); seed++) {
		const struct world_spec spec = {
			.mtu = mtus[seed % 3], .srq = seed % 4 == 0, .windows = seed % 2};

		compare(&spec, seed);
	}
}

/* Messages that go in runs. */
static void any_plain_work__ends_the_same(void **state)
{
	static const uint32_t mtus[] = {256, 1024, 4096};

	(void)state;
	for (uint64_t seed = 1; seed <= EFFORT_OF(8, 5); seed++) {
		const struct world_spec spec = {.mtu = mtus[seed % 3],
			.srq = seed % 4 == 0,
			.windows = seed % 5 == 0,
			.plain = true};

		compare(&spec, 300 + seed);
	}
}

static void any_work_with_oneself__ends_the_same(void **state)
{
	for (uint64_t seed = 1; seed <= EFFORT_OF(4, 2); seed++) {
		const struct world_spec spec = {.mtu = 1024, .self = true, .plain = seed % 2};

		compare(&spec, 400 + seed);
	}
}

static void any_datagrams__end_the_same(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= EFFORT_OF(6, 3); seed++) {
		const struct world_spec spec = {.mtu = 4096, .ud = true, .srq = seed % 3 == 0};

		compare(&spec, 500 + seed);
	}
}

static void any_work_of_xrc__ends_the_same(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= EFFORT(4); seed++) {
		const struct world_spec spec = {.mtu = 1024, .xrc = true};

		compare(&spec, 100 + seed);
	}
}

static void any_work_of_uc__ends_the_same(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= EFFORT_OF(6, 3); seed++) {
		const struct world_spec spec = {.mtu = 1024, .uc = true, .srq = seed % 3 == 0};

		compare(&spec, 200 + seed);
	}
}

/* Makes @p s one for a word of B. */
static void use_word(const struct world *w, struct app_send *s, uint8_t opcode, uint32_t at)
{
	s->opcode = opcode;
	s->remote_addr = app_va(w->end[B].mr, at);
	s->sge[0] = app_sge(w->end[A].mr, 0, 8);
	s->compare_add = 5;
}

/* A request of A for @p len bytes that meets the obstacle. */
static void post_obstructed(struct world *w, enum obstacle obstacle, uint32_t len)
{
	static const uint8_t bytes[128];
	struct app_send s = {.opcode = ABI_WR_RDMA_WRITE,
		.flags = ABI_WQE_SIGNALED,
		.wr_id = 7,
		.rkey = w->end[B].mr->mr.key,
		.num_sge = 1,
		.sge = {app_sge(w->end[A].mr, 0, len)}};
	struct abi_sge recv = app_sge(w->end[B].mr, RECEIVED * AREA, len);
	bool past = obstacle == PAST_THE_END || obstacle == READ_PAST || obstacle == FLUSH_PAST;

	s.remote_addr = app_va(w->end[B].mr, past ? MEMORY - len + 1 : 0);
	switch (obstacle) {
	case SHORT_RECEIVE:
		s.opcode = ABI_WR_SEND;
		recv.length--;
		post_recv(w, B, 8, &recv, 1);
		break;
	case READ_PAST:
	case NO_READ_RIGHT:
	case OWN_RIGHT:
	case NO_READS:
	case LIMITED_PEER:
		s.opcode = ABI_WR_RDMA_READ;
		break;
	case WRONG_KEY:
		s.rkey++;
		break;
	case OWN_KEY:
		s.sge[0].lkey++;
		break;
	case OWN_RANGE:
		s.sge[0] = app_sge(w->end[A].mr, MEMORY - len + 1, len);
		break;
	case NO_ATOMIC_RIGHT:
		use_word(w, &s, ABI_WR_ATOMIC_FETCH_AND_ADD, 8);
		break;
	case ODD_ATOMIC:
		use_word(w, &s, ABI_WR_ATOMIC_CMP_AND_SWP, 12);
		break;
	case ODD_WRITE:
		use_word(w, &s, ABI_WR_ATOMIC_WRITE, 12);
		break;
	case NO_FLUSH_RIGHT:
	case NO_FLUSH_TYPE:
	case FLUSH_PAST:
		s.opcode = ABI_WR_FLUSH;
		s.imm = obstacle == NO_FLUSH_TYPE ? 0 : FETH_PLT_GLOBAL;
		s.flush_len = len;
		s.num_sge = 0;
		break;
	case UNKNOWN_WINDOW:
		s.opcode = ABI_WR_SEND_WITH_INV;
		s.imm = w->end[B].mr->mr.key;
		app_post_recv(w->end[B].qp, 8, &recv, 1);
		break;
	case TOO_MANY_BYTES:
	case INLINE_READ:
		s.opcode = obstacle == INLINE_READ ? ABI_WR_RDMA_READ : ABI_WR_RDMA_WRITE;
		s.flags |= ABI_WQE_INLINE;
		s.inline_data = bytes;
		s.inline_len = obstacle == INLINE_READ ? 8 : 65;
		break;
	case UNKNOWN_OPCODE:
		s.opcode = 12;
		break;
	default:
		break;
	}
	app_post_send(w->end[A].qp, &s);
}

/* The datagram of A that meets the obstacle. */
static void post_datagram(struct world *w, enum obstacle obstacle, uint32_t len)
{
	struct app_send s = {.opcode = ABI_WR_SEND,
		.flags = ABI_WQE_SIGNALED,
		.remote_addr = (uint64_t)w->end[B].qp->qp->qpn << 32 | w->end[A].ah.id,
		.rkey = obstacle == WRONG_KEY ? QKEY + 1 : QKEY,
		.num_sge = 1,
		.sge = {app_sge(w->end[A].mr, 0, len)}};
	struct abi_sge recv =
		app_sge(w->end[B].mr, RECEIVED * AREA, 40 + len - (obstacle == SHORT_RECEIVE));

	app_post_recv(w->end[B].qp, 8, &recv, 1);
	app_post_send(w->end[A].qp, &s);
}

/* A message that succeeds, after which B has received one before. */
static void post_good(struct world *w)
{
	struct app_send s = {.opcode = ABI_WR_RDMA_WRITE,
		.flags = ABI_WQE_SIGNALED,
		.rkey = w->end[B].mr->mr.key,
		.remote_addr = app_va(w->end[B].mr, WRITTEN * AREA),
		.num_sge = 1,
		.sge = {app_sge(w->end[A].mr, 0, 8)}};

	app_post_send(w->end[A].qp, &s);
}

/* @param after  messages that come before and succeed */
static void meet(const struct world_spec *spec, uint32_t len, unsigned after)
{
	struct world *w[WAYS];

	for (int way = 0; way < WAYS; way++) {
		w[way] = world_new((enum way)way, spec);
		for (unsigned i = 0; i < after; i++)
			post_good(w[way]);
		if (spec->ud)
			post_datagram(w[way], spec->obstacle, len);
		else
			post_obstructed(w[way], spec->obstacle, len);
		run(w[way]);
		same(w[FRAMES_ONLY], w[way]);
	}
	assert_int_equal(w[DIRECT]->end[A].cqes, after + 1);
	assert_int_equal(w[DIRECT]->end[A].cqe[after].status == ABI_WC_SUCCESS,
		spec->uc || spec->ud || spec->obstacle == NONE || spec->obstacle == LIMITED_PEER);
	assert_int_equal(
		w[DIRECT]->host->core.count.direct_messages, after + (spec->obstacle == NONE));
	for (int way = 0; way < WAYS; way++)
		world_free(w[way]);
}

/* Whether it is about the two queue pairs, so that no message succeeds before. */
static bool is_total(enum obstacle obstacle)
{
	return obstacle == NO_RIGHT || obstacle == OTHER_PARTITION || obstacle == OTHER_PEER ||
	       obstacle == OTHER_MTU || obstacle == OTHER_ADDRESS;
}

/* Messages that are longer than what goes in one turn, and such as go in runs. */
static void errors__end_the_same(void **state)
{
	(void)state;
	for (int obstacle = NONE; obstacle < OBSTACLES; obstacle++) {
		const struct world_spec spec = {.mtu = 1024, .obstacle = (enum obstacle)obstacle};

		meet(&spec, 200000, 0);
		if (spec.obstacle != OTHER_MTU) /* a packet that fits has no MTU */
			meet(&spec, 1000, 0);
		if (!is_total(spec.obstacle))
			meet(&spec, 1000, 3);
	}
}

/* UC-10: nobody tells the requester. */
static void errors_of_uc__end_the_same(void **state)
{
	static const enum obstacle obstacles[] = {NONE, SHORT_RECEIVE, NO_RIGHT, PAST_THE_END,
		WRONG_KEY, OTHER_PARTITION, OTHER_PEER, OTHER_MTU, OTHER_ADDRESS};

	(void)state;
	for (unsigned i = 0; i < 2 * ARRAY_SIZE(obstacles); i++)
		meet(&(struct world_spec){1024, i % 2, .uc = true, .obstacle = obstacles[i / 2]},
			i % 2 && obstacles[i / 2] == SHORT_RECEIVE ? 1000 : 200000, 0);
}

/* VAL-09, VAL-16, UD-12: nobody tells the sender. */
static void errors_of_datagrams__end_the_same(void **state)
{
	static const enum obstacle obstacles[] = {NONE, SHORT_RECEIVE, WRONG_KEY, OTHER_PARTITION};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(obstacles); i++)
		meet(&(struct world_spec){.mtu = 4096, .ud = true, .obstacle = obstacles[i]}, 1000,
			0);
}

/* RSP-36: the word that comes back has no place, but the operation is not made twice. */
static void atomic_into_a_hole__executes_once(void **state)
{
	const struct world_spec spec = {.mtu = 1024};
	struct world *w[WAYS];

	(void)state;
	for (int way = 0; way < WAYS; way++) {
		struct app_send s = {.flags = ABI_WQE_SIGNALED, .num_sge = 1};
		struct mr *hole;
		uint64_t before, word;

		w[way] = world_new((enum way)way, &spec);
		hole = hole_open(w[way]->host, APP_PD);
		s.rkey = w[way]->end[B].mr->mr.key;
		use_word(w[way], &s, ABI_WR_ATOMIC_FETCH_AND_ADD, 8);
		s.sge[0] = (struct abi_sge){hole->iova + HOLE_PAGE, 8, hole->key};
		w[way]->steps = 1; /* the third way begins directly */
		memcpy(&before, w[way]->end[B].mr->mem + 8, sizeof(before));
		app_post_send(w[way]->end[A].qp, &s);
		run(w[way]);
		hole_close(w[way]->host);
		same(w[FRAMES_ONLY], w[way]);
		memcpy(&word, w[way]->end[B].mr->mem + 8, sizeof(word));
		assert_int_equal(word, before + 5);
		assert_int_equal(w[way]->end[A].cqe[0].status, ABI_WC_LOC_PROT_ERR);
		assert_int_equal(w[way]->end[A].qp->qp->state, ABI_QPS_ERR);
		assert_int_equal(w[way]->host->core.count.direct_messages, way >= DIRECT);
	}
	for (int way = 0; way < WAYS; way++)
		world_free(w[way]);
}

/* CQ-01: A does not take its completions. All that was executed before is the same. */
static void full_cq_of_the_requester__ends_the_same(void **state)
{
	const struct world_spec spec = {.mtu = 1024, .cqes_of_a = 4};
	struct world *w[WAYS];

	(void)state;
	for (int way = 0; way < WAYS; way++) {
		w[way] = world_new((enum way)way, &spec);
		for (unsigned i = 0; i < 8; i++) {
			post_good(w[way]);
			run_with(w[way], A);
		}
		drain(w[way]);
		same(w[FRAMES_ONLY], w[way]);
		assert_int_equal(w[way]->end[A].cqes, spec.cqes_of_a);
		assert_int_equal(w[way]->end[A].qp->qp->state, ABI_QPS_ERR);
	}
	for (int way = 0; way < WAYS; way++)
		world_free(w[way]);
}

/* CQ-01: B does not take its completions, and the last one has no room. A reports no success that
 * no ACK would tell it of. */
static void full_cq__ends_the_same(void **state)
{
	const struct world_spec spec = {.mtu = 1024, .cqes_of_b = 4};
	struct world *w[WAYS];

	(void)state;
	for (int way = 0; way < WAYS; way++) {
		w[way] = world_new((enum way)way, &spec);
		for (uint64_t i = 0; i <= spec.cqes_of_b; i++) {
			struct app_send s = {.opcode = ABI_WR_SEND,
				.flags = ABI_WQE_SIGNALED,
				.wr_id = i,
				.num_sge = 1,
				.sge = {app_sge(w[way]->end[A].mr, 0, 64)}};
			struct abi_sge recv = app_sge(w[way]->end[B].mr, RECEIVED * AREA, 64);

			app_post_recv(w[way]->end[B].qp, i, &recv, 1);
			app_post_send(w[way]->end[A].qp, &s);
			run_with(w[way], B);
		}
		drain(w[way]);
		same(w[FRAMES_ONLY], w[way]);
		assert_int_equal(w[way]->end[A].cqes, spec.cqes_of_b + 1);
		assert_int_equal(w[way]->end[A].cqe[spec.cqes_of_b].status, ABI_WC_RETRY_EXC_ERR);
	}
	assert_int_equal(w[DIRECT]->host->core.count.direct_messages, spec.cqes_of_b);
	for (int way = 0; way < WAYS; way++)
		world_free(w[way]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_work__ends_the_same),
		cmocka_unit_test(any_plain_work__ends_the_same),
		cmocka_unit_test(any_work_with_oneself__ends_the_same),
		cmocka_unit_test(any_datagrams__end_the_same),
		cmocka_unit_test(any_work_of_xrc__ends_the_same),
		cmocka_unit_test(any_work_of_uc__ends_the_same),
		cmocka_unit_test(errors__end_the_same),
		cmocka_unit_test(errors_of_uc__end_the_same),
		cmocka_unit_test(errors_of_datagrams__end_the_same),
		cmocka_unit_test(atomic_into_a_hole__executes_once),
		cmocka_unit_test(full_cq__ends_the_same),
		cmocka_unit_test(full_cq_of_the_requester__ends_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
