/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives of flows: posted, found again by their numbers, counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "chaos.h"
#include "chaos_flow.h"
#include "qp.h"
#include "srq.h"

#define SHARE	 60u  /* percent: how eagerly a receive is posted */
#define MISTAKES 120u /* one in so many, about */
#define POSTS	 8u   /* a turn */
#define MAX_SGE	 2u

/* A receive's number: its pool, which SRQ that had then, its place in the queue, its buffer. */
#define WR_ID(pool, epoch, serial, buf)                              \
	((uint64_t)(pool) << 56 | (uint64_t)((epoch)&0xFFFF) << 40 | \
		(uint64_t)((serial)&0xFFFFFF) << 8 | (uint64_t)(buf))

/* --- made ------------------------------------------------------------------------------- */

struct pool *pool_new(struct flows *f, struct app *app, uint32_t buf_len)
{
	struct pool *p = &f->pool[f->pools++];

	assert_true(f->pools <= POOLS);
	p->app = app;
	p->buf_len = buf_len;
	p->depth = 1u << flows_below(f, 6);
	p->max_sge = MAX_SGE;
	p->mr = app_mr(app, (size_t)POOL_BUFS * buf_len, ABI_ACCESS_LOCAL_WRITE);
	memset(p->mr->mem, FLOW_FILL, p->mr->len);
	return p;
}

static void begin(struct pool *p)
{
	for (unsigned i = 0; i < POOL_BUFS; i++)
		p->buf[i].posted = false;
	p->epoch++;
	p->posted = p->done = p->lost = 0;
	p->head = p->limit = 0;
	p->starved = 0;
	p->limit_events = p->errors = 0;
	p->broken = false;
}

void pool_make_srq(struct flows *f, struct pool *p)
{
	p->srq = p->xrcd ? app_xrc_srq(p->app, p->depth, p->max_sge, p->xrcd, p->cq)
			 : app_srq(p->app, p->depth, p->max_sge);
	begin(p);
}

void pool_take_qp(struct pool *p, struct app_qp *qp)
{
	p->qp = qp;
	begin(p);
}

/* --- posted ----------------------------------------------------------------------------- */

static bool has_room(const struct pool *p)
{
	if (p->srq)
		return app_srq_room(p->srq) > 0;
	return p->qp && p->qp->qp->state != ABI_QPS_RESET && p->qp->qp->state != ABI_QPS_ERR &&
	       app_rq_room(p->qp) > 0;
}

static struct pool_buf *free_buf(struct pool *p)
{
	for (unsigned i = 0; i < POOL_BUFS; i++)
		if (!p->buf[i].posted)
			return &p->buf[i];
	return NULL;
}

static uint32_t buf_index(const struct pool *p, const struct pool_buf *buf)
{
	return (uint32_t)(buf - p->buf);
}

static enum flow_mistake mistake(struct chaos_world *w, struct flows *f)
{
	static const enum flow_mistake any[] = {FLOW_LKEY, FLOW_SHORT, FLOW_SHORT, FLOW_SGES};

	if (!f->mistakes || w->winding_up || flows_below(f, MISTAKES))
		return FLOW_GOOD;
	return any[flows_below(f, ARRAY_SIZE(any))];
}

static void post(struct flows *f, struct pool *p, struct pool_buf *buf, enum flow_mistake how)
{
	uint32_t i = buf_index(p, buf), off = i * p->buf_len, cut;
	uint64_t wr_id = WR_ID(p - f->pool, p->epoch, p->posted, i);
	struct abi_sge sge[MAX_SGE + 1];

	memset(p->mr->mem + off, FLOW_FILL, p->buf_len);
	*buf = (struct pool_buf){
		.serial = p->posted++, .len = p->buf_len, .mistake = (uint8_t)how, .posted = true};
	if (how == FLOW_SHORT)
		buf->len = flows_below(f, p->buf_len);
	cut = flows_below(f, buf->len + 1);
	sge[0] = app_sge(p->mr, off, cut);
	sge[1] = app_sge(p->mr, off + cut, buf->len - cut);
	sge[2] = app_sge(p->mr, off, 1);
	if (how == FLOW_LKEY)
		sge[0].lkey ^= 0xFF, sge[1].lkey ^= 0xFF;
	flow_totals.mistake[how]++;
	if (p->srq)
		app_post_srq(p->srq, wr_id, sge, how == FLOW_SGES ? MAX_SGE + 1 : MAX_SGE);
	else
		app_post_recv(p->qp, wr_id, sge, how == FLOW_SGES ? MAX_SGE + 1 : MAX_SGE);
}

void pool_post(struct chaos_world *w, struct flows *f, struct pool *p)
{
	if (p->broken || (p->starve_until > now_of(w) && !w->winding_up))
		return;
	for (unsigned i = 0; i < POSTS; i++) {
		struct pool_buf *buf = has_room(p) ? free_buf(p) : NULL;

		if (!buf || flows_below(f, 100) >= SHARE)
			return;
		post(f, p, buf, mistake(w, f));
	}
}

/* --- found again ------------------------------------------------------------------------ */

struct pool *pool_of(struct flows *f, uint64_t wr_id, struct pool_buf **buf)
{
	uint32_t pool = (uint32_t)(wr_id >> 56), i = wr_id & 0xFF;
	struct pool *p = &f->pool[pool];

	assert_true(pool < f->pools && i < POOL_BUFS);
	*buf = &p->buf[i];
	/* SRQ-02: each at most once. */
	if (!(*buf)->posted || wr_id != WR_ID(pool, p->epoch, (*buf)->serial, i))
		fail_msg("receive 0x%llx of pool %u was not posted, or came twice",
			(unsigned long long)wr_id, pool);
	return p;
}

const uint8_t *pool_mem(const struct pool *p, const struct pool_buf *buf)
{
	return p->mr->mem + (size_t)buf_index(p, buf) * p->buf_len;
}

void pool_done(struct pool *p, struct pool_buf *buf)
{
	if (p->srq) /* nobody completes what nobody took */
		assert_true((int32_t)(atomic_load(&p->srq->srq.head) - buf->serial) > 0);
	buf->posted = false;
	p->done++;
}

/* @return whether @p qp has a receive of @p p. */
static bool holds(const struct pool *p, const struct app_qp *q)
{
	const struct qp *qp = q->qp;

	if (!qp->resp.have_wqe || !p->srq || p->app != q->app)
		return false;
	return qp->type == ABI_QPT_XRC_RECV ? qp->xrc.held == p->srq->srq.srqn
					    : qp->srq == &p->srq->srq;
}

void pool_forget(struct flows *f, const struct app_qp *qp)
{
	for (unsigned i = 0; i < f->pools; i++) {
		struct pool *p = &f->pool[i];
		struct pool_buf *buf;

		if (p->qp == qp)
			pool_take_qp(p, NULL);
		else if (holds(p, qp)) {
			assert_ptr_equal(pool_of(f, qp->qp->resp.wqe.wr_id, &buf), p);
			buf->posted = false;
			p->lost++;
		}
	}
}

/* --- what must hold --------------------------------------------------------------------- */

void pool_before(struct pool *p)
{
	if (!p->srq)
		return;
	p->head = atomic_load(&p->srq->srq.head);
	p->limit = atomic_load(&p->srq->srq.limit);
	p->starved = atomic_load(&p->srq->srq.starved);
}

/* SRQ-04: told once, by the first message that asks while fewer than the limit are left. A message
 * that goes without frames asks as well, and is not refused: it is sent in frames then. */
static void check_limit(struct pool *p)
{
	const struct srq *srq = &p->srq->srq;
	uint32_t head = atomic_load(&srq->head), left = p->posted - head;
	bool asked = head != p->head || atomic_load(&srq->starved) != p->starved;

	if (asked && left < p->limit)
		assert_int_equal(p->limit_events, 1);
	else
		assert_true(p->limit_events <= (left < p->limit));
	if (p->limit_events)
		assert_int_equal(atomic_load(&srq->limit), 0);
	p->limit_events = 0;
}

void pool_check(const struct flows *f, struct pool *p)
{
	const struct srq *srq;
	uint32_t held = 0, away;

	if (!p->srq)
		return;
	srq = &p->srq->srq;
	for (unsigned i = 0; i < f->n; i++)
		held += f->flow[i].qp[B] && holds(p, f->flow[i].qp[B]);
	away = atomic_load(&srq->head) - p->done - p->lost;
	assert_int_equal(p->errors, atomic_load(&srq->broken)); /* SRQ-08: told once */
	assert_int_equal(atomic_load(&p->srq->shared->consumer), atomic_load(&srq->head));
	if (p->broken) {
		assert_in_range(away - held, 0, 1); /* what made no sense */
		p->limit_events = 0;
		return;
	}
	if (away != held)
		fail_msg("%u receives of pool %u are gone, %u of which QPs hold", away,
			(unsigned)(p - f->pool), held);
	assert_true(!p->errors);
	check_limit(p);
}

/* --- what happens ----------------------------------------------------------------------- */

void pool_arm(struct flows *f, struct pool *p)
{
	flow_totals.act[FLOW_LIMIT]++;
	atomic_store(&p->srq->srq.limit, flows_below(f, p->depth + 1));
}

void pool_resize(struct flows *f, struct pool *p)
{
	uint32_t waiting = srq_waiting(&p->srq->srq, p->depth);
	uint32_t depth = 1u << flows_below(f, 7);

	if (depth < waiting) /* SRQ-05 */
		return;
	flow_totals.act[FLOW_RESIZE]++;
	p->depth = depth;
	app_srq_resize(p->srq, depth);
	assert_int_equal(srq_waiting(&p->srq->srq, depth), waiting);
}

/* SRQ-08: an entry that is not there, more than the ring has, a number that goes back. */
void pool_break(struct flows *f, struct pool *p)
{
	const uint32_t lies[] = {
		p->posted + 1, p->posted + p->depth + 1, atomic_load(&p->srq->srq.head) - 1};

	flow_totals.act[FLOW_BREAK]++;
	p->broken = p->ever_broken = true;
	atomic_store(&p->srq->shared->producer, lies[flows_below(f, ARRAY_SIZE(lies))]);
}

void pool_renew(struct flows *f, struct pool *p)
{
	app_srq_withdraw(p->app, p->srq);
	pool_make_srq(f, p);
}
