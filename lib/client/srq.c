/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: create, modify, query, destroy, post. */
#include <sched.h>
#include <stdlib.h>
#include "client.h"

_Static_assert((int)ROCI_SRQ_MAX_WR == ABI_SRQ_MAX_WR && (int)ROCI_SRQ_LIMIT == ABI_SRQ_LIMIT,
	"enum roci_srq_attr_mask");

static struct srq *srq_of(struct roci_srq *srq)
{
	return (struct srq *)srq;
}

/* --- create and destroy --------------------------------------------------------------- */

static bool reply_fits(
	const struct region *r, const struct abi_create_srq_reply *p, uint32_t max_sge)
{
	return p->max_wr && (p->max_wr & (p->max_wr - 1)) == 0 && p->stride % ABI_ENTRY == 0 &&
	       p->stride >= ABI_RECV_WQE_HDR + max_sge * sizeof(struct abi_sge) &&
	       region_has(r, 0, sizeof(struct abi_queue), ABI_LINE) &&
	       region_has(r, p->ring_off, (uint64_t)p->max_wr * p->stride, ABI_ENTRY);
}

/* Maps the region of @p r.  @return 0 or an errno value. */
static int map_ring(
	const struct srq *srq, struct region *region, int fd, const struct abi_create_srq_reply *r)
{
	int err = region_map(region, fd, r->region_size);

	if (err || reply_fits(region, r, srq->queue.max_sge))
		return err;
	region_unmap(region);
	return fail_const(EPROTO,
		"rocid's reply describes an invalid shared receive queue: use rocid "
		"and libroci of the same version");
}

static void set_ring(
	struct queue *q, const struct region *region, const struct abi_create_srq_reply *r)
{
	q->entries = region->base + r->ring_off;
	q->depth = r->max_wr;
	q->stride = r->stride;
}

static int make_srq(struct context *ctx, struct srq *srq, const struct abi_create_srq *body)
{
	struct abi_create_srq_reply r;
	int fd;
	int err = call_for_fd(ctx, ABI_CREATE_SRQ, body, sizeof(*body), &r, sizeof(r), &fd);

	if (err)
		return err;
	srq->queue.max_sge = body->max_sge ? body->max_sge : 1;
	err = map_ring(srq, &srq->region, fd, &r);
	if (err) {
		call_destroy(ctx, ABI_DESTROY_SRQ, r.handle);
		return err;
	}
	srq->handle = r.handle;
	srq->pub.srq_num = r.srqn;
	spin_init(&srq->queue.lock);
	srq->queue.shared = (struct abi_queue *)srq->region.base;
	set_ring(&srq->queue, &srq->region, &r);
	return 0;
}

static void free_srq(struct srq *srq)
{
	region_unmap(&srq->ring);
	region_unmap(&srq->region);
	pthread_mutex_destroy(&srq->modify_lock);
	free(srq);
}

static int enter(struct context *ctx, struct srq *srq)
{
	bool known;

	pthread_mutex_lock(&ctx->lock);
	known = map_put(&ctx->srqs, &srq->by_handle, srq->handle);
	if (known && srq->cq)
		srq->cq->users++;
	pthread_mutex_unlock(&ctx->lock);
	if (known)
		return 0;
	call_destroy(ctx, ABI_DESTROY_SRQ, srq->handle);
	return fail_const(
		ENOMEM, "out of memory for a shared receive queue: free some memory and try again");
}

static int check_init(const struct roci_pd *pd, const struct roci_srq_init_attr *a)
{
	if (a->xrcd && a->xrcd->context != pd->context)
		return fail_const(
			EINVAL, "the XRC domain of an SRQ must belong to its PD's context");
	if (a->xrcd && a->cq && a->cq->context != pd->context)
		return fail_const(EINVAL, "the CQ of an XRC SRQ must belong to its PD's context");
	return 0;
}

struct roci_srq *roci_create_srq(struct roci_pd *pd, struct roci_srq_init_attr *attr)
{
	struct context *ctx = context_of(pd->context);
	struct roci_srq_init_attr a;
	struct abi_create_srq body;
	struct srq *srq = NULL;
	int err = opts_read(&a, sizeof(a), attr, "roci_srq_init_attr");

	if (!err)
		err = check_init(pd, &a);
	if (!err) {
		srq = calloc(1, sizeof(*srq));
		err = srq ? 0
			  : fail_const(ENOMEM, "out of memory for a shared receive queue: free "
					       "some memory and try again");
	}
	if (!err) {
		body = (struct abi_create_srq){.pd = ((struct pd *)pd)->handle,
			.max_wr = a.max_wr,
			.max_sge = a.max_sge,
			.limit = a.srq_limit,
			.xrcd = a.xrcd ? ((struct xrcd *)a.xrcd)->handle : ABI_NO_HANDLE,
			.cq = a.xrcd && a.cq ? ((struct cq *)a.cq)->handle : ABI_NO_HANDLE};
		srq->cq = a.xrcd ? (struct cq *)a.cq : NULL;
		srq->pub = (struct roci_srq){
			.context = pd->context, .pd = pd, .user_data = a.user_data};
		pthread_mutex_init(&srq->modify_lock, NULL);
		err = make_srq(ctx, srq, &body);
		if (!err)
			err = enter(ctx, srq);
		if (err)
			free_srq(srq);
	}
	if (err) {
		errno = err;
		return NULL;
	}
	a.max_wr = srq->queue.depth;
	a.max_sge = srq->queue.max_sge;
	opts_write(attr, &a, sizeof(a), "roci_srq_init_attr");
	return &srq->pub;
}

int roci_destroy_srq(struct roci_srq *s)
{
	struct srq *srq = srq_of(s);
	struct context *ctx = context_of(s->context);
	uint32_t users;
	int err;

	pthread_mutex_lock(&ctx->lock);
	users = srq->users;
	pthread_mutex_unlock(&ctx->lock);
	if (users) /* SRQ-09 */
		return fail(EBUSY, "%u QPs still use the shared receive queue: destroy them first",
			users);
	err = call_destroy(ctx, ABI_DESTROY_SRQ, srq->handle);
	if (err)
		return err;
	if (srq->cq)
		cq_forget_srq(srq->cq, s->srq_num);
	pthread_mutex_lock(&ctx->lock);
	map_remove(&ctx->srqs, &srq->by_handle);
	if (srq->cq)
		srq->cq->users--;
	events_wait(ctx, &srq->events);
	pthread_mutex_unlock(&ctx->lock);
	free_srq(srq);
	return 0;
}

/* --- attributes ------------------------------------------------------------------------- */

/* While it is set, no entry may be written, because rocid copies the entries. */
static void set_moving(struct srq *srq, bool moving)
{
	spin_lock(&srq->queue.lock);
	srq->moving = moving;
	spin_unlock(&srq->queue.lock);
}

static int resize(struct srq *srq, const struct abi_modify_srq *body)
{
	struct context *ctx = context_of(srq->pub.context);
	struct abi_create_srq_reply r;
	struct region ring = {0};
	int fd, err;

	set_moving(srq, true);
	err = call_for_fd(ctx, ABI_MODIFY_SRQ, body, sizeof(*body), &r, sizeof(r), &fd);
	if (err) {
		set_moving(srq, false);
		return err;
	}
	err = map_ring(srq, &ring, fd, &r);
	spin_lock(&srq->queue.lock);
	if (err) {
		srq->ringless = true; /* rocid no longer uses the old one */
	} else {
		set_ring(&srq->queue, &ring, &r);
		region_unmap(&srq->ring);
		srq->ring = ring;
	}
	srq->moving = false;
	spin_unlock(&srq->queue.lock);
	return err;
}

int roci_modify_srq(struct roci_srq *s, const struct roci_srq_attr *attr, int mask)
{
	struct srq *srq = srq_of(s);
	struct abi_modify_srq body = {.handle = srq->handle, .mask = (uint32_t)mask};
	struct roci_srq_attr a;
	int err = opts_read(&a, sizeof(a), attr, "roci_srq_attr");

	if (err)
		return err;
	body.max_wr = a.max_wr;
	body.limit = a.srq_limit;
	pthread_mutex_lock(&srq->modify_lock);
	if (mask & ROCI_SRQ_MAX_WR)
		err = resize(srq, &body);
	else
		err = call_plain(
			context_of(s->context), ABI_MODIFY_SRQ, &body, sizeof(body), NULL, 0);
	pthread_mutex_unlock(&srq->modify_lock);
	return err;
}

int roci_query_srq(struct roci_srq *s, struct roci_srq_attr *attr)
{
	struct srq *srq = srq_of(s);
	struct abi_handle body = {.handle = srq->handle};
	struct abi_srq_attr r;
	struct roci_srq_attr a;
	int err = call_plain(
		context_of(s->context), ABI_QUERY_SRQ, &body, sizeof(body), &r, sizeof(r));

	if (err)
		return err;
	a = (struct roci_srq_attr){
		.max_wr = r.max_wr, .max_sge = srq->queue.max_sge, .srq_limit = r.limit};
	return opts_write(attr, &a, sizeof(a), "roci_srq_attr");
}

/* --- posting ---------------------------------------------------------------------------- */

static bool full(struct queue *q)
{
	if (q->producer - q->tail >= q->depth)
		q->tail = atomic_load_explicit(&q->shared->consumer, memory_order_acquire);
	return q->producer - q->tail >= q->depth;
}

static int check_recv(const struct srq *srq, const struct roci_recv_wr *wr)
{
	if (wr->num_sge < 0 || (unsigned)wr->num_sge > srq->queue.max_sge)
		return fail(EINVAL, "num_sge is %d, but the SRQ was created for %u: raise max_sge",
			wr->num_sge, srq->queue.max_sge);
	return 0;
}

/* Takes the lock, but waits while the ring is being replaced. */
static void lock_ring(struct srq *srq)
{
	spin_lock(&srq->queue.lock);
	while (srq->moving) {
		spin_unlock(&srq->queue.lock);
		sched_yield();
		spin_lock(&srq->queue.lock);
	}
}

int roci_post_srq_recv(
	struct roci_srq *s, const struct roci_recv_wr *wr, const struct roci_recv_wr **bad_wr)
{
	struct srq *srq = srq_of(s);
	struct queue *q = &srq->queue;
	int err = 0;

	if (atomic_load_explicit(&context_of(s->context)->dead, memory_order_relaxed))
		err = fail_const(EIO, "rocid is gone: start it again, then open a new session");
	lock_ring(srq);
	if (!err && srq->ringless)
		err = fail_const(ENOMEM, "cannot map the new ring of the resized shared receive "
					 "queue: destroy it and its QPs");
	for (; !err && wr; wr = wr->next) {
		err = check_recv(srq, wr);
		if (!err && full(q))
			err = fail_const(ENOMEM,
				"the shared receive queue is full: post again when "
				"messages have arrived");
		if (err)
			break;
		recv_put(q, wr);
	}
	/* No doorbell: workers check the ring when a message arrives. */
	atomic_store_explicit(&q->shared->producer, q->producer, memory_order_release);
	spin_unlock(&q->lock);
	if (err && bad_wr)
		*bad_wr = wr;
	return err;
}
