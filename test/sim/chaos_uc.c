/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UC connections in the same runs: the same hosts, links and turns to send as the others. Their
 * model is another: nobody learns what became of a message, so messages may be lost. A message
 * that arrives was sent, whole, with its own bytes; in order and once, unless a link has duplicated
 * or reordered something. Each send completes once, in order; after one that fails, later ones
 * are flushed, receives continue, and RTS makes the QP send again.
 *
 * All of a message follows from its number, which it carries: in its first four bytes, or as its
 * immediate data.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "chaos.h"
#include "qp.h"

#define LEN_MIN	  4u
#define SLOTS	  64u  /* of each part of a region */
#define MISTAKES  200u /* one message in so many, about, has a bad key */
#define MESSAGES  500u /* of a side in a run: others are to have their turns, too */
#define POSTS_MAX 8u   /* a turn */

struct uc_totals uc_totals;

/* Parts of a region. */
enum {
	PART_SOURCE,
	PART_RECV,
	PART_TARGET, /* the peer writes there */
	PARTS
};

/* --- a message ------------------------------------------------------------------------ */

static uint64_t hash_of(const struct chaos_uc *u, int e, uint32_t n, uint32_t what)
{
	struct random r = {.state = (u->key ^ (uint64_t)e << 63 ^ (uint64_t)n << 20 ^ what) | 1};

	random_next(&r);
	return random_next(&r);
}

static uint8_t op_of(const struct chaos_uc *u, int e, uint32_t n)
{
	static const uint8_t ops[] = {ABI_WR_SEND, ABI_WR_SEND, ABI_WR_SEND_WITH_IMM,
		ABI_WR_RDMA_WRITE, ABI_WR_RDMA_WRITE_WITH_IMM};

	return ops[hash_of(u, e, n, 1) % ARRAY_SIZE(ops)];
}

static uint32_t len_of(const struct chaos_uc *u, int e, uint32_t n)
{
	return LEN_MIN + (uint32_t)(hash_of(u, e, n, 2) % (u->max_len - LEN_MIN + 1));
}

static void fill(const struct chaos_uc *u, int e, uint32_t n, uint8_t *to)
{
	struct random r = {.state = hash_of(u, e, n, 3) | 1};
	uint32_t len = len_of(u, e, n);

	for (uint32_t i = 0; i < len; i += 8) {
		uint64_t word = random_next(&r);

		memcpy(to + i, &word, len - i < 8 ? len - i : 8);
	}
	memcpy(to, &n, sizeof(n));
}

static void check(const struct chaos_uc *u, int e, uint32_t n, const uint8_t *at)
{
	static uint8_t want[CHAOS_UC_LEN_MAX];

	fill(u, e, n, want);
	if (memcmp(at, want, len_of(u, e, n)) != 0)
		fail_msg("UC: message %u of side %d, of %u bytes, is torn", n, e, len_of(u, e, n));
}

static uint32_t part_off(const struct chaos_uc *u, unsigned part, uint32_t i)
{
	return (part * SLOTS + i % SLOTS) * u->max_len;
}

/* --- making it ------------------------------------------------------------------------ */

static void make_end(struct chaos_world *w, struct chaos_uc *u, int e)
{
	struct uc_end *me = &u->end[e];
	struct app_qp_spec spec = {
		.type = ABI_QPT_UC,
		.sq_depth = 1u << random_below(&u->random, 6),
		.rq_depth = 1u << random_below(&u->random, 6),
		.max_sge = 2,
		.max_inline = 64,
		.sig_all = true,
	};

	me->bad = me->last = NO_MESSAGE;
	me->app = &w->app[random_below(&u->random, CHAOS_HOSTS)];
	me->cq = app_cq(me->app, 256);
	spec.send_cq = me->cq;
	spec.recv_cq = me->cq;
	me->qp = app_qp(me->app, &spec);
	me->mr = app_mr(me->app, (size_t)PARTS * SLOTS * u->max_len,
		ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE);
}

static uint32_t first_psn(const struct chaos_uc *u, int e)
{
	return (uint32_t)hash_of(u, e, 0, 4) & 0xFFFFFF;
}

static uint32_t mtu_of(const struct chaos_uc *u)
{
	return 256u << hash_of(u, A, 0, 5) % 4;
}

static void watch_wire(struct chaos_world *w, const struct chaos_uc *u)
{
	struct wire_end end[ENDS];

	for (int e = A; e < ENDS; e++)
		end[e] = (struct wire_end){
			u->end[e].app->host->id, u->end[e].qp->qp->qpn, first_psn(u, e)};
	wirecheck_connect_by(&w->wire, &end[A], &end[B], mtu_of(u), WIRE_UC);
}

void uc_init(struct chaos_world *w, struct chaos_uc *u, uint64_t seed)
{
	memset(u, 0, sizeof(*u));
	u->random.state = (seed + 7) * 0xD1B54A32D192ED03ull | 1;
	u->key = random_next(&u->random);
	u->max_len = 64u << random_below(&u->random, 8);
	u->share = (uint32_t)random_below(&u->random, 100) + 1;
	for (int e = A; e < ENDS; e++)
		make_end(w, u, e);
	watch_wire(w, u);
	for (int e = A; e < ENDS; e++) {
		struct uc_end *me = &u->end[e], *peer = &u->end[!e];
		struct path_spec path = host_path(me->app->host, peer->app->host, 0, w->gid);
		struct abi_qp_attr a =
			app_attr(peer->qp->qp->qpn, first_psn(u, e), first_psn(u, !e));

		a.path_mtu = mtu_of(u);
		assert_int_equal(app_to_init(me->qp, &a, now_of(w)), 0);
		assert_int_equal(app_to_rtr(me->qp, &a, &path, now_of(w)), 0);
		assert_int_equal(app_to_rts(me->qp, &a, now_of(w)), 0);
	}
}

/* --- posting -------------------------------------------------------------------------- */

static void post_recv(const struct chaos_uc *u, struct uc_end *me)
{
	struct abi_sge sge[2];
	uint32_t off = part_off(u, PART_RECV, me->recv_posted), cut = u->max_len / 3;

	sge[0] = app_sge(me->mr, off, cut);
	sge[1] = app_sge(me->mr, off + cut, u->max_len - cut);
	app_post_recv(me->qp, me->recv_posted++, sge, 2);
}

static void post_send(struct chaos_uc *u, int e)
{
	struct uc_end *me = &u->end[e], *peer = &u->end[!e];
	uint32_t n = me->posted++, off = part_off(u, PART_SOURCE, n), len = len_of(u, e, n);
	struct app_send s = {
		.opcode = op_of(u, e, n),
		.flags = ABI_WQE_SIGNALED,
		.imm = n,
		.wr_id = n,
		.remote_addr = app_va(peer->mr, part_off(u, PART_TARGET, n)),
		.rkey = peer->mr->mr.key,
		.num_sge = 1,
		.sge = {app_sge(me->mr, off, len)},
	};

	fill(u, e, n, me->mr->mem + off);
	if (len <= me->qp->spec.max_inline && n % 2) {
		s.flags |= ABI_WQE_INLINE;
		s.inline_data = me->mr->mem + off;
		s.inline_len = len;
	} else if (me->bad == NO_MESSAGE && !random_below(&u->random, MISTAKES)) {
		s.sge[0].lkey ^= 0xFF;
		me->bad = n;
	}
	app_post_send(me->qp, &s);
	if (s.flags & ABI_WQE_INLINE) /* REQ-15 */
		memset(me->mr->mem + off, 0xA5, len);
}

/* SQE: all is flushed, so it may send again (QPS-11). */
static void recover(struct chaos_world *w, struct uc_end *me)
{
	if (me->bad == NO_MESSAGE || me->qp->qp->state != ABI_QPS_SQE || me->done != me->posted)
		return;
	assert_int_equal(app_to_state(me->qp, ABI_QPS_RTS, now_of(w)), 0);
	me->void_from = me->bad;
	me->void_to = me->posted;
	me->bad = NO_MESSAGE;
	uc_totals.recovered++;
}

void uc_turn(struct chaos_world *w, struct chaos_uc *u)
{
	for (int e = A; e < ENDS; e++) {
		struct uc_end *me = &u->end[e];

		recover(w, me);
		while (!w->winding_up && app_rq_room(me->qp) &&
			me->recv_posted - me->received < me->qp->spec.rq_depth &&
			random_below(&u->random, 100) < u->share)
			post_recv(u, me);
		for (unsigned i = 0; !w->winding_up && i < POSTS_MAX; i++)
			if (me->posted < MESSAGES &&
				me->posted - me->done < me->qp->spec.sq_depth &&
				random_below(&u->random, 100) < u->share / 4 + 1)
				post_send(u, e);
	}
}

/* --- judging -------------------------------------------------------------------------- */

static void sent(struct chaos_uc *u, int e, const struct abi_cqe *cqe)
{
	struct uc_end *me = &u->end[e];
	uint32_t n = me->done++;
	uint8_t want = n < me->bad    ? ABI_WC_SUCCESS
		       : n == me->bad ? ABI_WC_LOC_PROT_ERR
				      : ABI_WC_WR_FLUSH_ERR;

	assert_int_equal(cqe->wr_id, n);
	assert_int_equal(cqe->status, want);
	/* The application has its memory back: what is sent of it later is torn (UC-03). */
	memset(me->mr->mem + part_off(u, PART_SOURCE, n), 0x5A, len_of(u, e, n));
	uc_totals.sent += want == ABI_WC_SUCCESS;
	uc_totals.failed += want != ABI_WC_SUCCESS;
}

/* Whether the links have kept order so far, and doubled nothing. */
static bool in_order(const struct chaos_world *w)
{
	for (unsigned f = 0; f < CHAOS_HOSTS; f++)
		for (unsigned t = 0; t < CHAOS_HOSTS; t++)
			if (w->link[f][t].count.duplicated || w->link[f][t].count.reordered)
				return false;
	return true;
}

static void received(
	const struct chaos_world *w, struct chaos_uc *u, int e, const struct abi_cqe *cqe)
{
	struct uc_end *me = &u->end[e], *peer = &u->end[!e];
	const uint8_t *at = me->mr->mem + part_off(u, PART_RECV, me->received);
	bool write = cqe->opcode == ABI_WC_RECV_RDMA_WITH_IMM;
	bool imm = cqe->flags & ABI_WC_WITH_IMM;
	uint32_t n = cqe->imm;
	uint8_t op;

	assert_int_equal(cqe->wr_id, me->received++);
	assert_int_equal(cqe->status, ABI_WC_SUCCESS);
	if (!imm)
		memcpy(&n, at, sizeof(n));
	assert_true(n < peer->posted);
	assert_true(n < peer->void_from || n >= peer->void_to); /* it was flushed */
	op = op_of(u, !e, n);
	assert_int_equal(write, op == ABI_WR_RDMA_WRITE_WITH_IMM);
	assert_int_equal(imm, write || op == ABI_WR_SEND_WITH_IMM);
	assert_int_equal(cqe->byte_len, len_of(u, !e, n));
	uc_totals.received++;
	if (in_order(w)) {
		assert_true(me->last == NO_MESSAGE || n > me->last);
		uc_totals.lost += n - (me->last == NO_MESSAGE ? 0 : me->last + 1);
	}
	if (!write)
		check(u, !e, n, at);
	else if (in_order(w) && peer->posted - n <= SLOTS) /* nobody writes there again */
		check(u, !e, n, me->mr->mem + part_off(u, PART_TARGET, n));
	me->last = n;
}

void uc_take(struct chaos_world *w, struct chaos_uc *u)
{
	for (int e = A; e < ENDS; e++) {
		struct uc_end *me = &u->end[e];
		struct abi_cqe cqe;

		while (app_poll(me->app, me->cq, &cqe)) {
			world_digest(w, cqe.wr_id << 8 ^ cqe.status ^ (uint64_t)cqe.qpn << 32);
			if (cqe.opcode & ABI_WC_RECV)
				received(w, u, e, &cqe);
			else
				sent(u, e, &cqe);
		}
		assert_true(me->qp->qp->state == ABI_QPS_RTS ||
			    (me->qp->qp->state == ABI_QPS_SQE && me->bad != NO_MESSAGE));
	}
}

bool uc_idle(const struct chaos_uc *u)
{
	for (int e = A; e < ENDS; e++)
		if (u->end[e].done != u->end[e].posted)
			return false;
	return true;
}
