/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "app.h"
#include "core_command.h"
#include "cq.h"
#include "qp.h"
#include "qp_table.h"
#include "random.h"
#include "seq24.h"
#include "srq.h"
#include "verbs.h"

#define GUARD_BYTE 0xC5
#define MR_PATTERN 0x11

void app_init(struct app *a, struct sim_host *host)
{
	memset(a, 0, sizeof(*a));
	a->host = host;
	a->next_slot = 2; /* 0 and 1 are reserved QPNs */
	a->next_key = 0x31;
}

static void *zeroed(size_t len)
{
	size_t room = (len + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
	void *p = aligned_alloc(CACHE_LINE, room);

	assert_non_null(p);
	memset(p, 0, room);
	return p;
}

static void qp_free(struct app *a, struct app_qp *q)
{
	atomic_store(&a->host->qps.slot[QPN_SLOT(q->qp->qpn)], NULL);
	free(q->qp);
	free(q->sq_shared);
	free(q->rq_shared);
	free(q->sq_ring);
	free(q->rq_ring);
	free(q->sq_wr);
	free(q->rq_wr);
	free(q);
}

void app_fini(struct app *a)
{
	for (unsigned i = 0; i < a->qps; i++)
		qp_free(a, a->qp[i]);
	for (unsigned i = 0; i < a->cqs; i++) {
		free(a->cq[i]->shared);
		free(a->cq[i]);
	}
	for (unsigned i = 0; i < a->mws; i++)
		free(a->mw[i]);
	for (unsigned i = 0; i < a->srqs; i++) {
		app_srq_withdraw(a, a->srq[i]);
		free(a->srq[i]->shared);
		free(a->srq[i]->at.entries);
		free(a->srq[i]->wr);
		free(a->srq[i]);
	}
	for (unsigned i = 0; i < a->mrs; i++) {
		free(a->mr[i]->mem - APP_GUARD);
		free(a->mr[i]);
	}
	memset(a, 0, sizeof(*a));
}

/* --- memory --------------------------------------------------------------------------- */

struct app_mr *app_mr_as(struct app *a, size_t len, uint32_t access, uint32_t key, uint64_t iova)
{
	struct app_mr *m = zeroed(sizeof(*m));
	uint8_t *p = zeroed(len + 2 * (size_t)APP_GUARD);

	assert_true(a->mrs < APP_MRS);
	memset(p, GUARD_BYTE, len + 2 * (size_t)APP_GUARD);
	memset(p + APP_GUARD, MR_PATTERN, len);
	m->mem = p + APP_GUARD;
	m->len = len;
	m->slot = key >> 8;
	m->mr = (struct mr){
		.key = key,
		.pd = APP_PD,
		.access = access,
		.iova = iova,
		.length = len,
		.base = m->mem,
		.session = APP_SESSION,
	};
	a->mr[a->mrs++] = m;
	atomic_store(&a->host->mrs.slot[m->slot], &m->mr);
	return m;
}

struct app_mr *app_mr(struct app *a, size_t len, uint32_t access)
{
	uint32_t slot = a->mrs + 1;

	return app_mr_as(a, len, access, slot << 8 | (a->next_key++ & 0xFF),
		0x7F0000000000ull + ((uint64_t)slot << 36));
}

void app_mr_fill(struct app_mr *mr, uint64_t seed)
{
	struct random r = {.state = seed};

	for (size_t i = 0; i < mr->mr.length; i += sizeof(uint64_t)) {
		uint64_t word = random_next(&r);
		size_t left = mr->mr.length - i;

		memcpy(mr->mem + i, &word, left < sizeof(word) ? left : sizeof(word));
	}
}

void app_mr_dereg(struct app *a, struct app_mr *mr)
{
	atomic_store(&a->host->mrs.slot[mr->slot], NULL);
}

void app_mr_again(struct app *a, struct app_mr *mr)
{
	mr->mr.key = (mr->mr.key & ~0xFFu) | ((mr->mr.key + 1) & 0xFF);
	atomic_store(&a->host->mrs.slot[mr->slot], &mr->mr);
}

/* Slots of windows follow those of app_mr(), app_mr_as() and the tests' own. */
#define MW_SLOT 0x4000u

struct app_mw *app_mw_as(struct app *a, enum mw_type type, uint32_t key)
{
	struct app_mw *w = zeroed(sizeof(*w));

	assert_true(a->mws < APP_MRS);
	mw_init(&w->mw, key, APP_PD, type);
	w->slot = key >> 8;
	a->mw[a->mws++] = w;
	atomic_store(&a->host->mrs.slot[w->slot], &w->mw.entry);
	return w;
}

struct app_mw *app_mw(struct app *a, enum mw_type type)
{
	return app_mw_as(a, type, (MW_SLOT + a->mws) << 8 | (a->next_key++ & 0xFF));
}

uint32_t app_mw_key(const struct app_mw *w)
{
	return atomic_load(&w->mw.key);
}

uint64_t app_va(const struct app_mr *mr, uint64_t off)
{
	return mr->mr.iova + off;
}

struct abi_sge app_sge(const struct app_mr *mr, uint64_t off, uint32_t len)
{
	return (struct abi_sge){.addr = app_va(mr, off), .length = len, .lkey = mr->mr.key};
}

bool app_guards_ok(const struct app *a)
{
	uint8_t guard[APP_GUARD];

	memset(guard, GUARD_BYTE, sizeof(guard));
	for (unsigned i = 0; i < a->mrs; i++)
		if (memcmp(a->mr[i]->mem - APP_GUARD, guard, APP_GUARD) ||
			memcmp(a->mr[i]->mem + a->mr[i]->len, guard, APP_GUARD))
			return false;
	return true;
}

/* --- queues --------------------------------------------------------------------------- */

struct app_cq *app_cq(struct app *a, uint32_t depth)
{
	struct app_cq *q = zeroed(sizeof(*q));

	assert_true(a->cqs < APP_OBJS);
	q->shared = zeroed(sizeof(*q->shared) + sizeof(*q->lane) + depth * sizeof(struct abi_cqe));
	q->lane = (struct abi_cq_lane *)(q->shared + 1);
	q->depth = depth;
	q->cq.arm = &q->shared->arm;
	q->cq.handle = APP_CQ_HANDLE + a->made_cqs++;
	q->cq.channel = 1;
	q->cq.lanes = 1;
	cq_lane_init(&q->cq, 0, q->lane, depth);
	a->cq[a->cqs++] = q;
	return q;
}

void app_cq_destroy(struct app *a, struct app_cq *q)
{
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_CQ, .cq = &q->cq};
	unsigned i = 0;

	assert_int_equal(core_cmd(&a->host->core, &cmd, 0), 0);
	while (a->cq[i] != q)
		i++;
	a->cq[i] = a->cq[--a->cqs];
	free(q->shared);
	free(q);
}

void app_qp_destroy(struct app_qp *q, uint64_t now)
{
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_QP, .qp = q->qp};
	struct app *a = q->app;
	unsigned i = 0;
	int err;

	do { /* as in rounds of a worker that sends nothing */
		err = core_cmd(&a->host->core, &cmd, now);
	} while (err == -EAGAIN);
	assert_int_equal(err, 0);
	while (a->qp[i] != q)
		i++;
	a->qp[i] = a->qp[--a->qps];
	qp_free(a, q);
}

/* Its handle where that is free: several applications of a host count from the same one. */
static uint32_t srqn_choose(const struct app *a)
{
	uint32_t srqn = APP_SRQ_HANDLE + a->srqs;

	while (atomic_load(&a->host->srqs.slot[SRQN_SLOT(srqn)]))
		srqn++;
	return srqn;
}

struct app_srq *app_srq(struct app *a, uint32_t depth, uint32_t max_sge)
{
	struct app_srq *q = zeroed(sizeof(*q));

	assert_true(a->srqs < APP_OBJS);
	q->shared = zeroed(sizeof(*q->shared));
	q->srq.shared = q->shared;
	q->srq.stride = abi_rq_stride(max_sge);
	q->srq.max_sge = max_sge;
	q->srq.srqn = srqn_choose(a);
	q->srq.pd = APP_PD;
	q->srq.handle = APP_SRQ_HANDLE + a->srqs;
	q->srq.session = APP_SESSION;
	q->at.entries = zeroed((size_t)q->srq.stride * depth);
	q->at.depth = depth;
	atomic_store(&q->srq.ring, &q->at);
	q->wrs = depth < 128 ? 512 : 4 * depth; /* it may be resized */
	q->wr = zeroed(sizeof(*q->wr) * q->wrs);
	a->srq[a->srqs++] = q;
	atomic_store(&a->host->srqs.slot[SRQN_SLOT(q->srq.srqn)], &q->srq);
	return q;
}

struct app_srq *app_xrc_srq(
	struct app *a, uint32_t depth, uint32_t max_sge, uint32_t xrcd, struct app_cq *cq)
{
	struct app_srq *srq = app_srq(a, depth, max_sge);
	uint16_t worker = a->host->core.cfg.worker;

	if (worker) /* receives complete on the lane of the QP's worker */
		cq_lane_init(&cq->cq, worker, cq->lane, cq->depth);
	srq->srq.xrcd = xrcd;
	srq->srq.cq = &cq->cq;
	return srq;
}

void app_srq_resize(struct app_srq *srq, uint32_t depth)
{
	struct srq_ring to = {zeroed((size_t)srq->srq.stride * depth), depth};
	struct srq_move m;

	srq_move_begin(&m, &srq->srq, depth);
	while (srq_move_some(&m, &srq->srq, &to, &srq->at, depth))
		;
	free(srq->at.entries);
	srq->at = to;
}

void app_srq_withdraw(struct app *a, struct app_srq *srq)
{
	atomic_store(&a->host->srqs.slot[SRQN_SLOT(srq->srq.srqn)], NULL);
}

struct app_qp *app_qp(struct app *a, const struct app_qp_spec *spec)
{
	struct app_qp *q = zeroed(sizeof(*q));
	struct qp_config cfg = {
		.qpn = spec->qpn ? spec->qpn : QPN_MAKE(1, 0, a->next_slot),
		.pd = APP_PD,
		.handle = a->next_slot,
		.type = spec->type ? spec->type : ABI_QPT_RC,
		.sq_sig_all = spec->sig_all,
		.session = spec->session ? spec->session : APP_SESSION,
		.send_lane = &spec->send_cq->cq.lane[0],
		.recv_lane = &spec->recv_cq->cq.lane[0],
		.srq = spec->srq ? &spec->srq->srq : NULL,
		.xrcd = spec->xrcd,
		.max_inline = spec->max_inline,
		.window = spec->window,
	};
	bool xrc = cfg.type == ABI_QPT_XRC_SEND || cfg.type == ABI_QPT_XRC_RECV;
	uint32_t rq_depth = spec->srq || xrc ? 0 : spec->rq_depth;

	assert_true(a->qps < APP_OBJS);
	q->app = a;
	q->spec = *spec;
	q->sq_stride = abi_sq_stride(spec->max_sge, spec->max_inline);
	q->rq_stride = abi_rq_stride(spec->max_sge);
	q->sq_shared = zeroed(sizeof(*q->sq_shared));
	q->rq_shared = zeroed(sizeof(*q->rq_shared));
	q->sq_ring = zeroed((size_t)q->sq_stride * spec->sq_depth);
	q->rq_ring = zeroed((size_t)q->rq_stride * rq_depth);
	/* A place in a queue may be posted to again before the CQE of the one before is taken. */
	q->sq_wrs = round_pow2(spec->sq_depth + 1 + spec->send_cq->depth);
	q->rq_wrs = round_pow2(spec->rq_depth + 1 + spec->recv_cq->depth);
	q->sq_wr = zeroed(sizeof(*q->sq_wr) * q->sq_wrs);
	q->rq_wr = zeroed(sizeof(*q->rq_wr) * q->rq_wrs);
	cfg.sq = (struct ring){.entries = q->sq_ring,
		.shared = q->sq_shared,
		.depth = spec->sq_depth,
		.stride = q->sq_stride,
		.max_sge = spec->max_sge};
	cfg.rq = (struct ring){.entries = q->rq_ring,
		.shared = q->rq_shared,
		.depth = rq_depth,
		.stride = q->rq_stride,
		.max_sge = spec->max_sge};
	q->qp = qp_init(zeroed(qp_size(&cfg)), &cfg);
	atomic_store(&a->host->qps.slot[QPN_SLOT(cfg.qpn)], q->qp);
	a->next_slot++;
	a->qp[a->qps++] = q;
	return q;
}

/* --- states --------------------------------------------------------------------------- */

struct abi_qp_attr app_attr(uint32_t dest_qpn, uint32_t sq_psn, uint32_t rq_psn)
{
	return (struct abi_qp_attr){
		.access_flags = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE |
				ABI_ACCESS_REMOTE_READ | ABI_ACCESS_REMOTE_ATOMIC |
				ABI_ACCESS_FLUSH_GLOBAL,
		.path_mtu = 1024,
		.rq_psn = rq_psn,
		.sq_psn = sq_psn,
		.dest_qpn = dest_qpn,
		.port = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
	};
}

int app_modify(struct app_qp *q, uint32_t mask, const struct abi_qp_attr *attr,
	const struct path_spec *path, uint64_t now)
{
	return verbs_modify(&q->app->host->core, q->qp, mask, attr, path, now);
}

int app_to_init(struct app_qp *q, const struct abi_qp_attr *attr, uint64_t now)
{
	return verbs_to_init(&q->app->host->core, q->qp, attr, now);
}

int app_to_rtr(struct app_qp *q, const struct abi_qp_attr *attr, const struct path_spec *path,
	uint64_t now)
{
	return verbs_to_rtr(&q->app->host->core, q->qp, attr, path, now);
}

int app_to_rts(struct app_qp *q, const struct abi_qp_attr *attr, uint64_t now)
{
	return verbs_to_rts(&q->app->host->core, q->qp, attr, now);
}

int app_to_state(struct app_qp *q, unsigned state, uint64_t now)
{
	struct abi_qp_attr a = {.qp_state = (uint8_t)state};
	int rc = app_modify(q, ABI_QP_STATE, &a, NULL, now);

	if (!rc && state == ABI_QPS_RESET) { /* they are gone, without a completion */
		q->sq_done = q->sq_posted;
		if (!q->spec.srq)
			q->rq_done = q->rq_posted;
	}
	return rc;
}

/* --- posting -------------------------------------------------------------------------- */

uint32_t app_sq_room(const struct app_qp *q)
{
	uint32_t used =
		q->sq_posted - atomic_load_explicit(&q->sq_shared->consumer, memory_order_acquire);

	return q->spec.sq_depth - used;
}

uint32_t app_rq_room(const struct app_qp *q)
{
	uint32_t used =
		q->rq_posted - atomic_load_explicit(&q->rq_shared->consumer, memory_order_acquire);

	return q->spec.rq_depth - used;
}

uint32_t app_srq_room(const struct app_srq *srq)
{
	return srq->at.depth -
	       (srq->posted - atomic_load_explicit(&srq->shared->consumer, memory_order_acquire));
}

void app_post_raw(struct app_qp *q, const void *wqe, size_t len)
{
	uint32_t idx = q->sq_posted & (q->spec.sq_depth - 1);
	uint8_t *slot = q->sq_ring + (size_t)idx * q->sq_stride;
	uint32_t ctl;

	memcpy(&ctl, wqe, sizeof(ctl));
	if (len > q->sq_stride) /* a count that lies */
		len = q->sq_stride;
	memcpy(slot + 4, (const uint8_t *)wqe + 4, len - 4);
	q->rung |= verbs_publish(slot, ctl, q->sq_posted++, q->spec.sq_depth, q->sq_shared);
}

void app_post_recv_raw(struct app_qp *q, const void *wqe, size_t len)
{
	uint32_t idx = q->rq_posted & (q->spec.rq_depth - 1);
	uint8_t *slot = q->rq_ring + (size_t)idx * q->rq_stride;
	uint32_t ctl;

	memcpy(&ctl, wqe, sizeof(ctl));
	if (len > q->rq_stride)
		len = q->rq_stride;
	memcpy(slot + 4, (const uint8_t *)wqe + 4, len - 4);
	q->rung |= verbs_publish(slot, ctl, q->rq_posted++, q->spec.rq_depth, q->rq_shared);
}

static void put_bind(struct abi_wqe *w, const struct app_send *s)
{
	w->bind.mw = s->mw;
	w->bind.mr_lkey = s->lkey;
	w->bind.new_rkey = s->rkey;
	w->bind.access = s->access;
	w->bind.addr = s->remote_addr;
	w->bind.length = s->bind_len;
}

void app_post_send(struct app_qp *q, const struct app_send *s)
{
	union {
		struct abi_wqe wqe;
		uint8_t bytes[1024];
	} e;
	bool inl = s->flags & ABI_WQE_INLINE;
	uint32_t body = inl ? s->inline_len : s->num_sge * (uint32_t)sizeof(struct abi_sge);

	memset(&e, 0, sizeof(e));
	e.wqe.ctl = ABI_WQE_CTL(s->opcode, inl ? s->inline_len : s->num_sge, s->flags);
	e.wqe.imm = s->imm;
	e.wqe.wr_id = s->wr_id;
	e.wqe.remote_addr = s->remote_addr;
	e.wqe.rkey = s->rkey;
	e.wqe.srqn = s->srqn;
	if (s->opcode == ABI_WR_ATOMIC_CMP_AND_SWP || s->opcode == ABI_WR_ATOMIC_FETCH_AND_ADD) {
		e.wqe.atomic.compare_add = s->compare_add;
		e.wqe.atomic.swap = s->swap;
		e.wqe.atomic.sge = s->sge[0];
		body = sizeof(e.wqe.atomic);
	} else if (s->opcode == ABI_WR_FLUSH) {
		e.wqe.flush.length = s->flush_len;
		body = sizeof(e.wqe.flush);
	} else if (s->opcode == ABI_WR_BIND_MW) {
		put_bind(&e.wqe, s);
		body = sizeof(e.wqe.bind);
	} else if (body) {
		memcpy(e.bytes + ABI_WQE_HDR, inl ? s->inline_data : s->sge, body);
	}
	q->sq_wr[q->sq_posted & (q->sq_wrs - 1)] =
		(struct app_wr){s->wr_id, q->spec.sig_all || (s->flags & ABI_WQE_SIGNALED)};
	app_post_raw(q, &e, ABI_WQE_HDR + body);
}

void app_post_recv(struct app_qp *q, uint64_t wr_id, const struct abi_sge *sge, unsigned n)
{
	union {
		struct abi_recv_wqe wqe;
		uint8_t bytes[512];
	} e;

	memset(&e, 0, sizeof(e));
	e.wqe.ctl = ABI_WQE_CTL(0, n, 0);
	e.wqe.wr_id = wr_id;
	if (n)
		memcpy(e.bytes + ABI_RECV_WQE_HDR, sge, n * sizeof(*sge));
	q->rq_wr[q->rq_posted & (q->rq_wrs - 1)] = (struct app_wr){wr_id, true};
	app_post_recv_raw(q, &e, ABI_RECV_WQE_HDR + n * sizeof(*sge));
}

void app_post_srq(struct app_srq *srq, uint64_t wr_id, const struct abi_sge *sge, unsigned n)
{
	uint32_t idx = srq->posted & (srq->at.depth - 1);
	uint8_t *slot = srq->at.entries + (size_t)idx * srq->srq.stride;
	struct app_wr *w = &srq->wr[srq->posted & (srq->wrs - 1)];

	*w = (struct app_wr){wr_id, true};
	((struct abi_recv_wqe *)slot)->wr_id = wr_id;
	if (n) /* a count may lie */
		memcpy(slot + ABI_RECV_WQE_HDR, sge,
			(n < srq->srq.max_sge ? n : srq->srq.max_sge) * sizeof(*sge));
	/* there is no bell */
	verbs_publish(slot, ABI_WQE_CTL(0, n, 0), srq->posted++, srq->at.depth, srq->shared);
}

void app_ring(struct app *a, uint64_t now)
{
	for (unsigned i = 0; i < a->qps; i++) {
		if (!a->qp[i]->rung)
			continue;
		a->qp[i]->rung = false;
		core_doorbell(&a->host->core, a->qp[i]->qp, now);
	}
}

/* --- completions ---------------------------------------------------------------------- */

static struct app_qp *qp_of(struct app *a, uint32_t qpn)
{
	for (unsigned i = 0; i < a->qps; i++)
		if (a->qp[i]->qp->qpn == qpn)
			return a->qp[i];
	fail_msg("CQE of QPN 0x%x, which does not exist", qpn);
	return NULL;
}

/* CQ-10, REQ-12..14: the next in post order, leaving out only what was unsignaled and went well. */
static void check_send(struct app_qp *q, const struct abi_cqe *cqe)
{
	for (;;) {
		const struct app_wr *w = &q->sq_wr[q->sq_done & (q->sq_wrs - 1)];

		if (q->sq_done == q->sq_posted)
			fail_msg("send CQE 0x%llx was not posted, or came twice",
				(unsigned long long)cqe->wr_id);
		q->sq_done++;
		if (w->wr_id == cqe->wr_id) {
			assert_true(w->signaled || cqe->status != ABI_WC_SUCCESS);
			return;
		}
		if (w->signaled)
			fail_msg("send CQE 0x%llx before 0x%llx", (unsigned long long)cqe->wr_id,
				(unsigned long long)w->wr_id);
	}
}

/* SRQ-02: each once, and those of one QP in post order. */
static void check_shared(struct app_qp *q, const struct abi_cqe *cqe)
{
	struct app_srq *srq = q->spec.srq;
	uint32_t oldest = srq->posted < srq->wrs ? 0 : srq->posted - srq->wrs;

	for (uint32_t i = q->rq_done > oldest ? q->rq_done : oldest; i != srq->posted; i++) {
		struct app_wr *w = &srq->wr[i & (srq->wrs - 1)];

		if (!w->signaled || w->wr_id != cqe->wr_id)
			continue;
		w->signaled = false;
		q->rq_done = i + 1;
		return;
	}
	fail_msg("receive CQE 0x%llx was not posted to the SRQ, came twice or out of order",
		(unsigned long long)cqe->wr_id);
}

static void check_recv(struct app_qp *q, const struct abi_cqe *cqe)
{
	const struct app_wr *w = &q->rq_wr[q->rq_done & (q->rq_wrs - 1)];

	if (q->rq_done == q->rq_posted)
		fail_msg("receive CQE 0x%llx was not posted, or came twice",
			(unsigned long long)cqe->wr_id);
	q->rq_done++;
	assert_int_equal(w->wr_id, cqe->wr_id);
}

bool app_poll(struct app *a, struct app_cq *cq, struct abi_cqe *cqe)
{
	struct app_qp *q;

	if (!verbs_take(cq->lane, cq->depth, &cq->taken, cqe))
		return false;
	q = qp_of(a, cqe->qpn);
	if (q->free_ids)
		return true;
	if (cqe->opcode & ABI_WC_RECV && q->spec.srq)
		check_shared(q, cqe);
	else if (cqe->opcode & ABI_WC_RECV)
		check_recv(q, cqe);
	else
		check_send(q, cqe);
	return true;
}

void app_arm(struct app_cq *cq, bool solicited)
{
	uint32_t old = atomic_load(&cq->shared->arm);
	uint32_t want = (solicited ? ABI_CQ_ARM_SOLICITED : ABI_CQ_ARM_ANY) |
			(old & ABI_CQ_ARM_MASK); /* CQ-05: the stronger stays */

	atomic_store(&cq->shared->arm, ((old & ~ABI_CQ_ARM_MASK) + ABI_CQ_ARM_STEP) | want);
	atomic_thread_fence(memory_order_seq_cst);
}

void app_events(struct app *a)
{
	struct core_event e[16];
	unsigned n;

	while ((n = core_events(&a->host->core, e, ARRAY_SIZE(e))))
		for (unsigned i = 0; i < n; i++)
			a->event[a->events++ % APP_EVENTS] = e[i];
}

unsigned app_event_count(const struct app *a, uint32_t type)
{
	unsigned n = 0;

	for (unsigned i = 0; i < a->events && i < APP_EVENTS; i++)
		n += a->event[i].type == type;
	return n;
}
