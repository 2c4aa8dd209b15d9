/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak [--seed S] [--runs N]: random traffic in both directions of a pair of QPs over bad links.
 * Each run is decided by its seed. Every byte is compared: what a SEND, WRITE or READ moved, and
 * what lies around it. On a failure the seed is printed; `soak --seed S` repeats that run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "pair.h"

#define GAP	   16u	/* bytes between the pieces of a message, at most */
#define FILL	   0x5A /* what lies around messages */
#define TIME_LIMIT (120 * SEC)

enum op {
	SEND,
	SEND_IMM,
	WRITE,
	WRITE_IMM,
	READ,
	OPS
};
static const char *const op_name[OPS] = {"SEND", "SEND_IMM", "WRITE", "WRITE_IMM", "READ"};
static const uint8_t op_code[OPS] = {ABI_WR_SEND, ABI_WR_SEND_WITH_IMM, ABI_WR_RDMA_WRITE,
	ABI_WR_RDMA_WRITE_WITH_IMM, ABI_WR_RDMA_READ};

/* Pieces of a buffer inside its slot. */
struct pieces {
	unsigned n;
	uint32_t off[SGE_MAX];
	uint32_t len[SGE_MAX];
};

struct message {
	enum op op;
	uint32_t len;
	uint32_t imm;
	bool solicited;
	uint32_t slot;
	uint32_t remote_off; /* in the slot of the peer's target area */
	struct pieces at;
};

/* A receive work request, or a place in the send queue. */
struct side {
	struct pair_end *end;
	struct app_mr *local;  /* sources of SEND and WRITE, destinations of READ */
	struct app_mr *target; /* what the peer WRITEs and READs */
	struct app_mr *recv;
	struct message *msg; /* all messages of the run, in post order */
	struct pieces *rq;   /* by place in the receive queue */
	unsigned posted;
	unsigned done;
	unsigned expect; /* peer's messages that completed a receive */
	unsigned recv_done;
	unsigned recv_posted;
	unsigned cqes;
	bool failed;
};

struct soak {
	struct pair pair;
	struct side side[ENDS];
	struct random random;
	unsigned messages;
	uint32_t max_len;
	uint32_t slot;	     /* bytes of a slot */
	uint32_t recv_share; /* receives are posted one step of so many */
};

static struct totals {
	uint64_t runs, ops[OPS], bytes, packets, retransmits, rnr, timeouts, seq_naks, implied;
	uint64_t lost, duplicated, reordered, corrupted, truncated, failed_runs;
} totals;

static uint32_t pick(struct soak *s, uint32_t from, uint32_t to)
{
	return from + (uint32_t)random_below(&s->random, to - from + 1);
}

static bool chance(struct soak *s, uint32_t percent)
{
	return random_below(&s->random, 100) < percent;
}

/* --- making a run --------------------------------------------------------------------- */

static uint32_t pow2(struct soak *s, uint32_t from_log2, uint32_t to_log2)
{
	return 1u << pick(s, from_log2, to_log2);
}

static struct link_config link_of(struct soak *s, bool faults)
{
	struct link_config c = {
		.delay_ns = pick(s, 100, 20000),
		.rate_bps = chance(s, 30) ? 0 : 1000000000ull * pick(s, 1, 100),
	};
	struct link_faults *f = &c.faults;

	f->reorder_ns = pick(s, 1, 50000);
	if (!faults)
		return c;
	if (chance(s, 60))
		f->loss = pick(s, 100, chance(s, 30) ? 100000 : 10000);
	if (chance(s, 30))
		f->duplicate = pick(s, 100, 50000);
	if (chance(s, 30))
		f->reorder = pick(s, 100, 50000);
	if (chance(s, 30))
		f->corrupt = pick(s, 100, 20000);
	if (chance(s, 30))
		f->truncate = pick(s, 100, 20000);
	return c;
}

static struct pair_spec spec_of(struct soak *s, uint64_t seed)
{
	struct pair_spec p = pair_defaults();
	uint32_t mtu = pow2(s, 8, 12);
	uint32_t rd[ENDS] = {pick(s, 1, 16), pick(s, 1, 16)};
	bool faults = chance(s, 80);

	p.seed = seed;
	p.gid = (enum host_gid)pick(s, 0, 2);
	p.cq_depth = 256;
	for (int e = A; e < ENDS; e++) {
		p.link[e] = link_of(s, faults);
		p.qp[e] = (struct app_qp_spec){
			.sq_depth = pow2(s, 0, 6),
			.rq_depth = pow2(s, 0, 6),
			.max_sge = pick(s, 1, SGE_MAX),
			.max_inline = chance(s, 50) ? pick(s, 1, 256) : 0,
			.window = chance(s, 50) ? pick(s, 1, 64) : 0,
			.sig_all = chance(s, 20),
		};
		p.attr[e].path_mtu = mtu;
		p.attr[e].sq_psn =
			(chance(s, 50) ? 0xFFFFFFu - pick(s, 0, 200) : pick(s, 0, 0xFFFFFF));
		p.attr[e].max_rd_atomic = (uint8_t)rd[e];
		p.attr[e].max_dest_rd_atomic = (uint8_t)rd[!e];
		p.attr[e].timeout = (uint8_t)pick(s, 14, 16);
		p.attr[e].min_rnr_timer = (uint8_t)pick(s, 1, 14);
	}
	return p;
}

static void side_init(struct soak *s, int e)
{
	struct side *me = &s->side[e];
	struct app_qp_spec *q = &s->pair.spec.qp[e];
	uint32_t peer_depth = s->pair.spec.qp[!e].sq_depth;

	memset(me, 0, sizeof(*me));
	me->end = &s->pair.end[e];
	me->local = app_mr(&me->end->app, (size_t)s->slot * q->sq_depth, ABI_ACCESS_LOCAL_WRITE);
	me->target = app_mr(&me->end->app, (size_t)s->slot * peer_depth,
		ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ);
	me->recv = app_mr(&me->end->app, (size_t)s->slot * q->rq_depth, ABI_ACCESS_LOCAL_WRITE);
	me->msg = calloc(s->messages, sizeof(*me->msg));
	me->rq = calloc(q->rq_depth, sizeof(*me->rq));
	assert_true(me->msg && me->rq);
	me->end->host->burst = pick(s, 1, BURST);
}

static void soak_init(struct soak *s, uint64_t seed)
{
	struct pair_spec spec;

	memset(s, 0, offsetof(struct soak, side));
	s->random.state = seed * 0x9E3779B97F4A7C15ull | 1;
	for (int i = 0; i < 8; i++)
		random_next(&s->random);
	s->messages = pick(s, 40, 120);
	s->max_len = chance(s, 30) ? 65536 : pick(s, 1, 16384);
	s->slot = (s->max_len + SGE_MAX * GAP + 2 * GAP + 63) & ~63u;
	s->recv_share = chance(s, 30) ? pick(s, 1, 400) : 1;
	spec = spec_of(s, seed);
	pair_init(&s->pair, &spec);
	for (int e = A; e < ENDS; e++)
		side_init(s, e);
}

static void soak_fini(struct soak *s)
{
	for (int e = A; e < ENDS; e++) {
		free(s->side[e].msg);
		free(s->side[e].rq);
	}
	pair_fini(&s->pair);
}

/* --- posting -------------------------------------------------------------------------- */

/* Cuts @p len bytes into at most @p max pieces, empty ones among them, with gaps between. */
static struct pieces cut(struct soak *s, uint32_t len, uint32_t max)
{
	struct pieces p = {.n = len ? pick(s, 1, max) : pick(s, 0, max)};
	uint32_t off = pick(s, 0, GAP);

	for (unsigned i = 0; i < p.n; i++) {
		uint32_t part = i == p.n - 1 ? len : chance(s, 15) ? 0 : pick(s, 0, len);

		p.off[i] = off;
		p.len[i] = part;
		off += part + pick(s, 0, GAP - 1);
		len -= part;
	}
	return p;
}

static unsigned sges_of(
	const struct pieces *p, const struct app_mr *mr, uint32_t base, struct abi_sge *sge)
{
	for (unsigned i = 0; i < p->n; i++) {
		sge[i] = app_sge(mr, base + p->off[i], p->len[i]);
		if (!p->len[i])
			sge[i].lkey = 0xDEAD; /* MR-07: nobody looks */
	}
	return p->n;
}

static uint32_t length_of(struct soak *s)
{
	uint32_t mtu = s->pair.spec.attr[A].path_mtu;

	switch (pick(s, 0, 5)) {
	case 0:
		return 0;
	case 1:
		return pick(s, 0, s->max_len < 64 ? s->max_len : 64);
	case 2: { /* around a multiple of the MTU */
		uint64_t n = (uint64_t)mtu * pick(s, 1, 5) + pick(s, 0, 2) - 1;

		return n < s->max_len ? (uint32_t)n : s->max_len;
	}
	default:
		return pick(s, 0, s->max_len);
	}
}

static void describe(struct soak *s, const struct side *me, struct message *m)
{
	const struct app_qp_spec *q = &me->end->qp->spec;

	m->op = (enum op)pick(s, 0, OPS - 1);
	m->len = length_of(s);
	m->imm = (uint32_t)random_next(&s->random);
	m->solicited = chance(s, 30);
	m->slot = me->posted & (q->sq_depth - 1);
	m->remote_off = pick(s, 0, GAP);
	m->at = cut(s, m->len, q->max_sge);
}

static void post_message(struct soak *s, int e)
{
	struct side *me = &s->side[e];
	struct side *peer = &s->side[!e];
	struct message *m = &me->msg[me->posted];
	const struct app_qp_spec *q = &me->end->qp->spec;
	uint8_t *local, *target;
	struct app_send w;

	describe(s, me, m);
	local = me->local->mem + (size_t)m->slot * s->slot;
	target = peer->target->mem + (size_t)m->slot * s->slot;
	memset(target, FILL, s->slot);
	if (m->op == READ) {
		memset(local, FILL, s->slot);
		random_fill(&s->random, target + m->remote_off, m->len);
	} else {
		random_fill(&s->random, local, s->slot);
	}
	w = (struct app_send){
		.opcode = op_code[m->op],
		.imm = m->imm,
		.wr_id = me->posted,
		.remote_addr = app_va(peer->target, (uint64_t)m->slot * s->slot + m->remote_off),
		.rkey = peer->target->mr.key,
	};
	w.num_sge = sges_of(&m->at, me->local, m->slot * s->slot, w.sge);
	if (!m->len && chance(s, 50))
		w.rkey = 0x5555; /* RSP-12 */
	if (m->op != READ && m->len <= q->max_inline && chance(s, 50)) {
		m->at = (struct pieces){.n = 1, .len = {m->len}};
		w.flags |= ABI_WQE_INLINE;
		w.inline_data = local;
		w.inline_len = m->len;
	}
	w.flags |= m->solicited ? ABI_WQE_SOLICITED : 0;
	w.flags |= chance(s, 10) ? ABI_WQE_FENCE : 0;
	/* A slot is free when its message has been checked: somebody has to ask. */
	if (me->posted + 1 == s->messages || me->posted + 1 - me->done == q->sq_depth ||
		chance(s, 50))
		w.flags |= ABI_WQE_SIGNALED;
	app_post_send(me->end->qp, &w);
	if (w.flags & ABI_WQE_INLINE) /* REQ-15: it may change at once, but we compare with it */
		memmove(local, w.inline_data, m->len);
	me->posted++;
}

static void post_recv(struct soak *s, int e)
{
	struct side *me = &s->side[e];
	const struct app_qp_spec *q = &me->end->qp->spec;
	uint32_t place = me->recv_posted & (q->rq_depth - 1);
	struct abi_sge sge[SGE_MAX];

	memset(me->recv->mem + (size_t)place * s->slot, FILL, s->slot);
	me->rq[place] = cut(s, s->max_len, q->max_sge);
	app_post_recv(me->end->qp, me->recv_posted++, sge,
		sges_of(&me->rq[place], me->recv, place * s->slot, sge));
}

/* --- checking ------------------------------------------------------------------------- */

/* Gathers the first @p len bytes of the pieces and checks that all else in the slot is FILL. */
static void take(
	const struct soak *s, uint8_t *slot, const struct pieces *p, uint32_t len, uint8_t *to)
{
	for (unsigned i = 0; i < p->n; i++) {
		uint32_t part = p->len[i] < len ? p->len[i] : len;

		memcpy(to, slot + p->off[i], part);
		memset(slot + p->off[i], FILL, part);
		to += part;
		len -= part;
	}
	assert_int_equal(len, 0);
	/* All FILL: the first is, and each is like the one before it. */
	assert_true(slot[0] == FILL && !memcmp(slot, slot + 1, s->slot - 1));
}

static void source(
	const struct soak *s, const struct side *me, const struct message *m, uint8_t *to)
{
	const uint8_t *slot = me->local->mem + (size_t)m->slot * s->slot;

	for (unsigned i = 0; i < m->at.n; i++) {
		memcpy(to, slot + m->at.off[i], m->at.len[i]);
		to += m->at.len[i];
	}
}

static uint8_t got[1 << 17], want[1 << 17];

/* A message that its sender was told is done. */
static void check_message(struct soak *s, int e, const struct message *m)
{
	struct side *me = &s->side[e];
	uint8_t *local = me->local->mem + (size_t)m->slot * s->slot;
	uint8_t *target = s->side[!e].target->mem + (size_t)m->slot * s->slot;
	struct pieces at = {.n = 1, .off = {m->remote_off}, .len = {m->len}};

	totals.ops[m->op]++;
	totals.bytes += m->len;
	if (m->op == READ) {
		take(s, local, &m->at, m->len, got);
		assert_memory_equal(got, target + m->remote_off, m->len);
	} else if (m->op == WRITE || m->op == WRITE_IMM) {
		source(s, me, m, want);
		take(s, target, &at, m->len, got);
		assert_memory_equal(got, want, m->len);
	}
}

static void send_cqe(struct soak *s, int e, const struct abi_cqe *cqe)
{
	struct side *me = &s->side[e];

	if (cqe->status != ABI_WC_SUCCESS) {
		if (!me->failed) /* only the network may be at fault */
			assert_true(cqe->status == ABI_WC_RETRY_EXC_ERR ||
				    (s->side[!e].failed && cqe->status == ABI_WC_WR_FLUSH_ERR));
		else
			assert_int_equal(cqe->status, ABI_WC_WR_FLUSH_ERR);
		me->failed = true;
		return;
	}
	assert_false(me->failed); /* CQ-10 */
	assert_true(cqe->wr_id < me->posted);
	while (me->done <= cqe->wr_id)
		check_message(s, e, &me->msg[me->done++]);
}

static void recv_cqe(struct soak *s, int e, const struct abi_cqe *cqe)
{
	struct side *me = &s->side[e];
	const struct side *peer = &s->side[!e];
	const struct message *m;
	uint32_t place = me->recv_done++ & (me->end->qp->spec.rq_depth - 1);
	bool imm;

	if (cqe->status == ABI_WC_WR_FLUSH_ERR) {
		me->failed = true;
		return;
	}
	assert_int_equal(cqe->status, ABI_WC_SUCCESS);
	while (peer->msg[me->expect].op == WRITE || peer->msg[me->expect].op == READ)
		me->expect++;
	m = &peer->msg[me->expect++];
	assert_true(me->expect <= peer->posted);
	imm = m->op != SEND;
	assert_int_equal(cqe->byte_len, m->len); /* CQ-09 */
	assert_int_equal(cqe->opcode, m->op == WRITE_IMM ? ABI_WC_RECV_RDMA_WITH_IMM : ABI_WC_RECV);
	assert_int_equal(!!(cqe->flags & ABI_WC_WITH_IMM), imm);
	assert_int_equal(!!(cqe->flags & ABI_WC_SOLICITED), m->solicited);
	if (imm)
		assert_int_equal(cqe->imm, m->imm);
	take(s, me->recv->mem + (size_t)place * s->slot, &me->rq[place],
		m->op == WRITE_IMM ? 0 : m->len, got);
	if (m->op == WRITE_IMM)
		return;
	source(s, peer, m, want);
	assert_memory_equal(got, want, m->len);
}

/* Receives first: the sender's slot is free once its own CQE is taken. */
static void check_cqes(struct soak *s)
{
	for (int recv = 1; recv >= 0; recv--)
		for (int e = A; e < ENDS; e++) {
			struct side *me = &s->side[e];

			for (unsigned i = me->cqes; i < me->end->cqes; i++) {
				const struct abi_cqe *cqe = &me->end->cqe[i % 4096];

				if (recv && (cqe->opcode & ABI_WC_RECV))
					recv_cqe(s, e, cqe);
				if (!recv && !(cqe->opcode & ABI_WC_RECV))
					send_cqe(s, e, cqe);
			}
			if (!recv)
				me->cqes = me->end->cqes;
		}
}

/* --- running -------------------------------------------------------------------------- */

static void post(struct soak *s, int e)
{
	struct side *me = &s->side[e];
	struct app_qp *q = me->end->qp;

	while (me->posted < s->messages && app_sq_room(q) &&
		me->posted - me->done < q->spec.sq_depth && chance(s, 70)) {
		post_message(s, e);
	}
	while (me->recv_posted - me->recv_done < q->spec.rq_depth &&
		random_below(&s->random, s->recv_share) == 0)
		post_recv(s, e);
}

static bool over(const struct soak *s)
{
	if (s->side[A].failed || s->side[B].failed)
		return true;
	return s->side[A].done == s->messages && s->side[B].done == s->messages;
}

/* What is left when the connection broke must come back flushed (QPS-20). */
static void finish(struct soak *s)
{
	for (int e = A; e < ENDS; e++)
		assert_int_equal(
			app_to_state(s->side[e].end->qp, ABI_QPS_ERR, s->pair.fabric.now), 0);
	for (int e = A; e < ENDS; e++)
		s->side[e].failed = true;
	for (int i = 0; i < 1000; i++) {
		pair_step(&s->pair, s->pair.fabric.now);
		check_cqes(s);
	}
	for (int e = A; e < ENDS; e++) {
		assert_int_equal(s->side[e].end->qp->sq_done, s->side[e].posted);
		assert_int_equal(s->side[e].end->qp->rq_done, s->side[e].recv_posted);
	}
}

static void count(const struct soak *s)
{
	for (int e = A; e < ENDS; e++) {
		const struct core_counters *c = &s->side[e].end->host->core.count;
		const struct link_counters *l = &s->side[e].end->link.count;

		totals.packets += c->tx_packets;
		totals.retransmits += c->retransmits;
		totals.rnr += c->rnr_nak_recv;
		totals.timeouts += c->local_ack_timeout_err;
		totals.seq_naks += c->packet_seq_err;
		totals.implied += c->implied_nak_seq_err;
		totals.lost += l->lost;
		totals.duplicated += l->duplicated;
		totals.reordered += l->reordered;
		totals.corrupted += l->corrupted;
		totals.truncated += l->truncated;
	}
}

static void run(uint64_t seed)
{
	static struct soak s;
	bool broke;

	soak_init(&s, seed);
	while (!over(&s)) {
		for (int e = A; e < ENDS; e++)
			post(&s, e);
		/* Receives must be posted while nothing else happens. */
		pair_step(&s.pair, s.pair.fabric.now + (s.recv_share > 1 ? 50 * USEC : 50 * MSEC));
		check_cqes(&s);
		assert_true(s.pair.fabric.now < TIME_LIMIT);
	}
	broke = s.side[A].failed || s.side[B].failed;
	finish(&s);
	count(&s);
	totals.runs++;
	totals.failed_runs += broke;
	soak_fini(&s);
}

static uint64_t first_seed = 1;
static uint64_t runs = 200;
static uint64_t current;

static void soak__every_seed(void **state)
{
	for (uint64_t i = 0; i < runs; i++) {
		current = first_seed + i;
		run(current);
	}
	current = 0;
	/* RETRY_EXC with seven retries needs bad luck. */
	if (runs >= 100)
		assert_true(totals.failed_runs * 20 < runs);
}

static void report(void)
{
	printf("%llu runs:", (unsigned long long)totals.runs);
	for (unsigned o = 0; o < OPS; o++)
		printf(" %s %llu", op_name[o], (unsigned long long)totals.ops[o]);
	printf("\nbytes %llu packets %llu again %llu", (unsigned long long)totals.bytes,
		(unsigned long long)totals.packets, (unsigned long long)totals.retransmits);
	printf(" rnr %llu timeouts %llu seq-nak %llu implied-nak %llu broken runs %llu\n",
		(unsigned long long)totals.rnr, (unsigned long long)totals.timeouts,
		(unsigned long long)totals.seq_naks, (unsigned long long)totals.implied,
		(unsigned long long)totals.failed_runs);
	printf("lost %llu duplicated %llu reordered %llu corrupted %llu truncated %llu\n",
		(unsigned long long)totals.lost, (unsigned long long)totals.duplicated,
		(unsigned long long)totals.reordered, (unsigned long long)totals.corrupted,
		(unsigned long long)totals.truncated);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(soak__every_seed)};
	int rc;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seed")) {
			first_seed = strtoull(argv[i + 1], NULL, 0);
			runs = runs == 200 ? 1 : runs;
		} else if (!strcmp(argv[i], "--runs")) {
			runs = strtoull(argv[i + 1], NULL, 0);
		}
	}
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	report();
	if (current)
		printf("failed with --seed %llu\n", (unsigned long long)current);
	return rc;
}
