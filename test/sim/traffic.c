/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "headers.h"
#include "qp.h"
#include "traffic_impl.h"

#define READABLE 8192u /* bytes of a region that nobody may write */
#define ALL_ACCESS                                                                   \
	(ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ | \
		ABI_ACCESS_REMOTE_ATOMIC | ABI_ACCESS_MW_BIND | ABI_ACCESS_FLUSH_GLOBAL)

const char *const traffic_op_name[TRAFFIC_OPS] = {"SEND", "SEND_IMM", "WRITE", "WRITE_IMM", "READ",
	"CMP_SWAP", "FETCH_ADD", "ATOMIC_WRITE", "FLUSH", "SEND_INV", "BIND", "LOCAL_INV"};
const char *const traffic_mistake_name[TRAFFIC_MISTAKES] = {"none", "lkey", "local_range",
	"local_access", "opcode", "sges", "rkey", "remote_range", "remote_access", "remote_pd",
	"too_long", "recv_lkey", "recv_sges"};

const char *const traffic_size_name[TRAFFIC_SIZES] = {
	"0", "1", "one-packet", "whole-packets", "to-64K", "below-1M", "1M"};

static const uint8_t op_code[TRAFFIC_OPS] = {ABI_WR_SEND, ABI_WR_SEND_WITH_IMM, ABI_WR_RDMA_WRITE,
	ABI_WR_RDMA_WRITE_WITH_IMM, ABI_WR_RDMA_READ, ABI_WR_ATOMIC_CMP_AND_SWP,
	ABI_WR_ATOMIC_FETCH_AND_ADD, ABI_WR_ATOMIC_WRITE, ABI_WR_FLUSH, ABI_WR_SEND_WITH_INV,
	ABI_WR_BIND_MW, ABI_WR_LOCAL_INV};

struct traffic_totals traffic_totals;

static bool found_by_peer(enum traffic_mistake m)
{
	return m >= MISTAKE_RKEY;
}

/* --- posting -------------------------------------------------------------------------- */

static unsigned sges_of(const struct traffic_pieces *p, const struct traffic_area *a,
	const struct traffic_place *place, struct abi_sge *sge)
{
	for (unsigned i = 0; i < p->n; i++) {
		sge[i] = app_sge(a->mr, (uint64_t)place_offset(a, place) + p->off[i], p->len[i]);
		if (!p->len[i])
			sge[i].lkey = 0xDEAD; /* MR-07: nobody looks */
	}
	return p->n;
}

/* A mistake is in the first piece that is not empty. */
static void spoil_sge(struct traffic_side *me, enum traffic_mistake how, struct app_send *w)
{
	unsigned i = 0;

	while (i < w->num_sge && !w->sge[i].length)
		i++;
	if (i == w->num_sge)
		return;
	if (how == MISTAKE_LKEY)
		w->sge[i].lkey ^= 0xFF;
	else if (how == MISTAKE_LOCAL_RANGE)
		w->sge[i].addr = app_va(me->local.mr, me->local.size) - w->sge[i].length + 1;
	else
		w->sge[i] = app_sge(me->readable.mr, 0, w->sge[i].length);
}

static void spoil(struct traffic *t, int e, enum traffic_mistake how, struct app_send *w)
{
	struct traffic_side *me = &t->side[e];
	struct traffic_side *peer = &t->side[!e];

	switch (how) {
	case MISTAKE_LKEY:
	case MISTAKE_LOCAL_RANGE:
	case MISTAKE_LOCAL_ACCESS:
		spoil_sge(me, how, w);
		break;
	case MISTAKE_OPCODE:
		w->opcode = 0xEE;
		break;
	case MISTAKE_SGES:
		w->num_sge = me->qp->spec.max_sge + 1;
		break;
	case MISTAKE_RKEY:
		w->rkey ^= 0xFF;
		break;
	case MISTAKE_REMOTE_RANGE:
		w->remote_addr = app_va(me->target.mr, me->target.size) - 1;
		break;
	case MISTAKE_REMOTE_ACCESS:
		w->rkey = peer->readable.mr->mr.key;
		w->remote_addr = app_va(peer->readable.mr, 0);
		break;
	case MISTAKE_REMOTE_PD:
		w->rkey = peer->foreign.mr->mr.key;
		w->remote_addr = app_va(peer->foreign.mr, 0);
		break;
	default:
		break;
	}
}

/* The possible effects of a mistake of side @p e on the QPs of both. */
static void expect_mistake(struct traffic *t, int e, enum traffic_mistake how)
{
	const uint32_t gone = TRAFFIC_MAY(ABI_WC_WR_FLUSH_ERR);

	if (!how)
		return;
	traffic_totals.mistake[how]++;
	if (!found_by_peer(how))
		return;
	traffic_allow(t, !e, gone, gone);
	if (t->spec.lossy)
		traffic_allow(t, e, TRAFFIC_MAY(ABI_WC_RETRY_EXC_ERR), 0);
}

static bool places_take(struct traffic_side *me, struct traffic_message *m)
{
	struct traffic_area before = me->local;

	if (!area_take(&me->local, m->wr.len, &m->local))
		return false;
	if (traffic_has_target(m->wr.op) && !area_take(&me->target, m->wr.len, &m->target)) {
		me->local = before;
		return false;
	}
	return true;
}

static struct traffic_message *next_message(struct traffic_side *me)
{
	if (me->posted == me->msgs_room) {
		me->msgs_room = me->msgs_room ? 2 * me->msgs_room : 64;
		me->msg = realloc(me->msg, me->msgs_room * sizeof(*me->msg));
		assert_non_null(me->msg);
	}
	memset(&me->msg[me->posted], 0, sizeof(*me->msg));
	return &me->msg[me->posted];
}

/* A mistake that this message can show; with the others it is as good as any. */
static bool mistake_fits(const struct traffic_wr *wr, const struct app_qp *q)
{
	bool inl = wr->flags & ABI_WQE_INLINE;

	switch (wr->mistake) {
	case MISTAKE_LKEY:
	case MISTAKE_LOCAL_RANGE:
		return wr->len && !inl;
	case MISTAKE_LOCAL_ACCESS:
		return wr->len && wr->len <= READABLE && wr->op == TRAFFIC_READ;
	case MISTAKE_SGES:
		return !inl && q->spec.max_sge < SGE_MAX && traffic_has_data(wr->op);
	case MISTAKE_RKEY:
	case MISTAKE_REMOTE_RANGE:
	case MISTAKE_REMOTE_PD:
	case MISTAKE_REMOTE_ACCESS: /* two bytes, to reach over an end */
		return wr->len > 1 && traffic_has_target(wr->op);
	case MISTAKE_TOO_LONG:
		return !traffic_has_target(wr->op) && traffic_has_data(wr->op) && !inl;
	default:
		return wr->mistake != MISTAKE_RECV_LKEY && wr->mistake != MISTAKE_RECV_SGES;
	}
}

/* A word that lies where a word may, and what becomes of it. */
static void lay_out_atomic(struct traffic_message *m, struct random *r)
{
	uint64_t orig = word_of(m->key);

	m->compare_add = random_next(r);
	m->swap = random_next(r);
	m->result = orig + m->compare_add;
	if (m->wr.op != TRAFFIC_CMP_SWAP)
		return;
	m->compare_add = orig + m->imm % 2;
	m->result = m->imm % 2 ? orig : m->swap;
}

static void lay_out(struct traffic *t, struct traffic_side *me, struct traffic_message *m)
{
	bool inl = m->wr.flags & ABI_WQE_INLINE;

	m->key = random_next(&t->random);
	m->imm = (uint32_t)random_next(&t->random);
	m->at = pieces_cut(
		&t->random, m->wr.len, inl || traffic_is_atomic(m->wr.op) ? 0 : m->wr.sges);
	if (!traffic_has_data(m->wr.op))
		m->at.n = 0;
	m->remote = (struct traffic_pieces){.n = 1, .len = {m->wr.len}};
	m->remote.off[0] = (uint32_t)random_below(&t->random, TRAFFIC_GAP);
	if (traffic_is_word(m->wr.op))
		m->remote.off[0] &= ~7u;
	if (traffic_is_atomic(m->wr.op))
		lay_out_atomic(m, &t->random);
	if (traffic_fetches(m->wr.op))
		pieces_put(&me->target, &m->target, &m->remote, m->wr.len, m->key);
	else
		pieces_put(&me->local, &m->local, &m->at, m->wr.len, m->key);
}

/* Somebody has to ask when the queue or the area is full. */
static bool must_signal(struct traffic_side *me, const struct traffic_message *m)
{
	me->quiet += area_need(m->wr.len);
	if (!(m->wr.flags & ABI_WQE_SIGNALED) && me->quiet < me->local.size / 4 &&
		me->posted + 1 - me->done < me->qp->spec.sq_depth)
		return false;
	me->quiet = 0;
	return true;
}

/* The work request of @p m, without its mistake. */
static void describe(struct traffic_side *me, const struct traffic_message *m, struct app_send *w)
{
	*w = (struct app_send){
		.opcode = op_code[m->wr.op],
		.flags = m->wr.flags,
		.imm = m->imm,
		.wr_id = me->wr_base + me->posted,
		.compare_add = m->compare_add,
		.swap = m->swap,
		.srqn = me->srqn,
		.inline_data = place_mem(&me->local, &m->local),
		.inline_len = m->wr.len,
	};
	if (traffic_has_target(m->wr.op)) {
		w->remote_addr = app_va(me->target.mr,
			(uint64_t)place_offset(&me->target, &m->target) + m->remote.off[0]);
		w->rkey = me->target.mr->mr.key;
	}
	if (m->wr.op == TRAFFIC_FLUSH) { /* FLU-05 */
		w->remote_addr = m->imm & 8 ? m->key : app_va(me->target.mr, 0);
		w->rkey = me->target.mr->mr.key;
		w->flush_len = m->imm & 8 ? m->imm >> 8 : me->target.size;
		w->imm = FETH_PLT_GLOBAL | (m->imm & 8 ? FETH_SEL_MR : FETH_SEL_RANGE);
	} else if (!m->wr.len && m->imm % 2)
		w->rkey = 0x5555; /* RSP-12 */
	w->num_sge = sges_of(&m->at, &me->local, &m->local, w->sge);
}

/* With bytes it needs its regions, without it needs the peer's consent all the same. */
static bool is_doomed(const struct traffic_side *me, const struct traffic_wr *wr)
{
	if (me->refused >> wr->op & 1)
		return true;
	if (wr->op == TRAFFIC_FLUSH)
		return me->target.shadow;
	return wr->len && ((me->local.shadow && !(wr->flags & ABI_WQE_INLINE)) ||
				  (me->target.shadow && traffic_has_target(wr->op)));
}

bool traffic_post(struct traffic *t, int e, const struct traffic_wr *wr)
{
	struct traffic_side *me = &t->side[e];
	struct traffic_message *m = next_message(me);
	struct app_send w;

	m->wr = *wr;
	m->wr.op = target_mw_op(t, e, wr->op);
	if (traffic_is_word(m->wr.op))
		m->wr.len = sizeof(uint64_t);
	if (!traffic_has_data(m->wr.op))
		m->wr.len = 0;
	if (traffic_is_atomic(m->wr.op) || !traffic_has_data(m->wr.op) ||
		m->wr.len > me->qp->spec.max_inline)
		m->wr.flags &= ~ABI_WQE_INLINE;
	if (!mistake_fits(&m->wr, me->qp))
		m->wr.mistake = MISTAKE_NONE;
	if (m->wr.mistake == MISTAKE_TOO_LONG)
		m->wr.len = t->spec.recv_len + 1;
	if (!app_sq_room(me->qp) || me->posted - me->done >= me->qp->spec.sq_depth ||
		!places_take(me, m))
		return false;
	if (must_signal(me, m))
		m->wr.flags |= ABI_WQE_SIGNALED;
	m->doomed = is_doomed(me, &m->wr);
	lay_out(t, me, m);
	target_mw_lay_out(t, e, m);
	describe(me, m, &w);
	target_mw_describe(t, e, m, &w);
	spoil(t, e, m->wr.mistake, &w);
	expect_mistake(t, e, m->wr.mistake);
	app_post_send(me->qp, &w);
	if (m->wr.flags & ABI_WQE_INLINE) /* REQ-15 */
		pieces_wipe(&me->local, &m->local, m->wr.len);
	me->posted++;
	traffic_totals.posted[m->wr.op]++;
	for (unsigned i = 0; i < ARRAY_SIZE(traffic_totals.flags); i++)
		traffic_totals.flags[i] += m->wr.flags >> (i + 1) & 1;
	return true;
}

static struct traffic_recv *next_recv(struct traffic_side *me)
{
	if (me->recv_posted == me->rq_room) {
		me->rq_room = me->rq_room ? 2 * me->rq_room : 64;
		me->rq = realloc(me->rq, me->rq_room * sizeof(*me->rq));
		assert_non_null(me->rq);
	}
	memset(&me->rq[me->recv_posted], 0, sizeof(*me->rq));
	return &me->rq[me->recv_posted];
}

/* Puts the mistake into the receive request.  @return the number of its SGEs. */
static unsigned spoil_recv(struct traffic *t, int e, struct traffic_recv *r, struct abi_sge *sge)
{
	uint32_t max = t->side[e].qp->spec.max_sge;
	uint32_t gone = TRAFFIC_MAY(ABI_WC_WR_FLUSH_ERR);
	unsigned n = r->at.n;

	if (r->mistake == MISTAKE_RECV_SGES && max == SGE_MAX)
		r->mistake = MISTAKE_RECV_LKEY;
	if (r->mistake == MISTAKE_NONE)
		return n;
	if (r->mistake == MISTAKE_RECV_SGES)
		n = max + 1;
	for (unsigned i = 0; i < r->at.n; i++)
		sge[i].lkey = 0xDEAD;
	traffic_totals.mistake[r->mistake]++;
	/* A send of the peer finds it, and both QPs fail. */
	traffic_allow(t, e, gone, 0);
	traffic_allow(t, !e, t->spec.lossy ? TRAFFIC_MAY(ABI_WC_RETRY_EXC_ERR) : 0, gone);
	return n;
}

static uint32_t recv_room(const struct traffic_side *me)
{
	return me->srq ? app_srq_room(me->srq) : app_rq_room(me->qp);
}

bool traffic_post_recv(struct traffic *t, int e, unsigned sges, enum traffic_mistake mistake)
{
	struct traffic_side *me = &t->side[e];
	struct traffic_recv *r = next_recv(me);
	struct abi_sge sge[SGE_MAX + 1] = {0};
	unsigned n;

	if (!recv_room(me) || me->recv_posted - me->recv_done >= me->qp->spec.rq_depth ||
		!area_take(&me->recv, t->spec.recv_len, &r->place))
		return false;
	r->at = pieces_cut(&t->random, t->spec.recv_len, sges);
	r->mistake = mistake;
	sges_of(&r->at, &me->recv, &r->place, sge);
	n = spoil_recv(t, e, r, sge);
	if (me->srq)
		app_post_srq(me->srq, me->wr_base + me->recv_posted, sge, n);
	else
		app_post_recv(me->qp, me->wr_base + me->recv_posted, sge, n);
	me->recv_posted++;
	return true;
}

/* --- the connection ------------------------------------------------------------------- */

void traffic_allow(struct traffic *t, int e, uint32_t may, uint32_t recv_may)
{
	t->side[e].may |= may;
	t->side[e].recv_may |= recv_may;
}

bool traffic_broken(const struct traffic *t, int e)
{
	return t->side[e].failed || t->side[e].recv_failed;
}

bool traffic_idle(const struct traffic *t)
{
	for (int e = A; e < ENDS; e++)
		if (t->side[e].done != t->side[e].posted)
			return false;
	return true;
}

static void side_start(struct traffic *t, int e, struct app_qp *q)
{
	struct traffic_side *me = &t->side[e];

	me->qp = q;
	me->qpn = q->qp->qpn;
	me->posted = me->done = 0;
	me->recv_posted = me->recv_done = 0;
	me->expect = 0;
	me->may = me->recv_may = 0;
	me->refused = 0;
	me->failed = me->recv_failed = 0;
	me->cqes_lost = false;
	me->unexplained = false;
	me->quiet = 0;
	me->wr_base = random_next(&t->random);
}

void traffic_dereg(struct traffic *t, int e, enum traffic_region region)
{
	const uint32_t gone = TRAFFIC_MAY(ABI_WC_WR_FLUSH_ERR);
	uint32_t retry = t->spec.lossy ? TRAFFIC_MAY(ABI_WC_RETRY_EXC_ERR) : 0;
	struct traffic_side *me = &t->side[e];

	switch (region) {
	case REGION_LOCAL:
		area_dereg(&me->local, me->qp->app);
		traffic_allow(t, e, TRAFFIC_MAY(ABI_WC_LOC_PROT_ERR), 0);
		break;
	case REGION_TARGET: /* RSP-15, RSP-31 */
		area_dereg(&me->target, t->side[!e].qp->app);
		traffic_allow(t, e, TRAFFIC_MAY(ABI_WC_REM_ACCESS_ERR) | retry, 0);
		/* or the window that it is to be bound to */
		traffic_allow(t, !e, gone | TRAFFIC_MAY(ABI_WC_MW_BIND_ERR), gone);
		break;
	default: /* RSP-21 */
		area_dereg(&me->recv, me->qp->app);
		traffic_allow(t, e, gone, TRAFFIC_MAY(ABI_WC_LOC_PROT_ERR));
		traffic_allow(t, !e, TRAFFIC_MAY(ABI_WC_REM_OP_ERR) | retry, gone);
		break;
	}
}

void traffic_refuse(struct traffic *t, int e, uint32_t access)
{
	const uint32_t gone = TRAFFIC_MAY(ABI_WC_WR_FLUSH_ERR);
	struct traffic_side *peer = &t->side[!e];

	if (access & ABI_ACCESS_REMOTE_WRITE)
		peer->refused |=
			1u << TRAFFIC_WRITE | 1u << TRAFFIC_WRITE_IMM | 1u << TRAFFIC_ATOMIC_WRITE;
	if (access & ABI_ACCESS_REMOTE_READ)
		peer->refused |= 1u << TRAFFIC_READ;
	if (access & ABI_ACCESS_REMOTE_ATOMIC)
		peer->refused |= 1u << TRAFFIC_CMP_SWAP | 1u << TRAFFIC_FETCH_ADD;
	if (access & ABI_ACCESS_FLUSH_GLOBAL)
		peer->refused |= 1u << TRAFFIC_FLUSH;
	traffic_allow(t, e, gone, gone);
	traffic_allow(t, !e,
		TRAFFIC_MAY(ABI_WC_REM_INV_REQ_ERR) |
			(t->spec.lossy ? TRAFFIC_MAY(ABI_WC_RETRY_EXC_ERR) : 0),
		0);
}

static void side_register(struct traffic_side *me, struct app *own, struct app *peer)
{
	area_again(&me->local, own);
	area_again(&me->target, peer);
	area_again(&me->recv, own);
}

static void side_clear(struct traffic_side *me)
{
	area_clear(&me->local);
	area_clear(&me->target);
	area_clear(&me->recv);
	area_clear(&me->readable);
	area_clear(&me->foreign);
}

void traffic_restart(struct traffic *t, struct app_qp *a, struct app_qp *b)
{
	for (int e = A; e < ENDS; e++) {
		target_mw_forget(&t->side[e].window);
		assert_int_equal(t->side[e].target.mr->mr.windows, 0); /* MR-05 */
	}
	side_register(&t->side[A], a->app, b->app);
	side_register(&t->side[B], b->app, a->app);
	judge_rest(t);
	side_clear(&t->side[A]);
	side_clear(&t->side[B]);
	side_start(t, A, a);
	side_start(t, B, b);
}

void traffic_init(
	struct traffic *t, struct app_qp *a, struct app_qp *b, const struct traffic_spec *spec)
{
	struct app_qp *q[ENDS] = {a, b};

	memset(t, 0, sizeof(*t));
	t->spec = *spec;
	t->random.state = (spec->seed + 1) * 0x9E3779B97F4A7C15ull | 1;
	assert_true(spec->recv_len <= TRAFFIC_MAX);
	assert_true(spec->area >= area_need(spec->recv_len + 1));
	for (int e = A; e < ENDS; e++) {
		struct traffic_side *me = &t->side[e];

		area_init(&me->local, q[e]->app, spec->area, ALL_ACCESS);
		area_init(&me->target, q[!e]->app, spec->area, ALL_ACCESS);
		target_mw_init(t, e, q[!e]->app);
		area_init(&me->recv, q[e]->app, spec->area, ABI_ACCESS_LOCAL_WRITE);
		area_init(&me->readable, q[e]->app, READABLE, 0);
		area_init(&me->foreign, q[e]->app, READABLE, ALL_ACCESS);
		me->foreign.mr->mr.pd = APP_PD + 1;
		side_start(t, e, q[e]);
	}
}

void traffic_fini(struct traffic *t)
{
	for (int e = A; e < ENDS; e++) {
		free(t->side[e].msg);
		free(t->side[e].rq);
		area_fini(&t->side[e].local);
		area_fini(&t->side[e].target);
		area_fini(&t->side[e].recv);
	}
	memset(t, 0, sizeof(*t));
}
