/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: create, resize, destroy, arm. poll.c polls them. */
#include <stdlib.h>
#include <string.h>
#include "lane.h"

/* --- create and destroy --------------------------------------------------------------- */

static bool reply_fits(const struct abi_create_cq_reply *r, uint32_t lanes)
{
	return r->lanes > 0 && (!lanes || r->lanes == lanes) && r->depth > 0 &&
	       (r->depth & (r->depth - 1)) == 0 && r->depth <= INT32_MAX / 2 &&
	       r->lane_stride >=
		       sizeof(struct abi_cq_lane) + (uint64_t)r->depth * sizeof(struct abi_cqe) &&
	       r->lane_stride % ABI_ENTRY == 0 && r->lane_off % ABI_ENTRY == 0 &&
	       r->lane_off >= sizeof(struct abi_cq) &&
	       r->lane_off + (uint64_t)r->lanes * r->lane_stride <= r->region_size;
}

static void ring_set(struct cq_ring *ring, uint8_t *base, const struct abi_create_cq_reply *r)
{
	ring->first_lane = base + r->lane_off;
	ring->lane_stride = r->lane_stride;
	ring->depth = r->depth;
}

/* Lane @p i continues at the start of @p ring. */
static void lane_enter(struct cq *cq, uint32_t i, struct cq_ring *ring)
{
	struct abi_cq_lane *at = ring_lane(ring, i);

	cq->lane[i] = (struct lane){
		.from = ring, .ring = (struct abi_cqe *)(at + 1), .consumer = &at->consumer};
	ring->lanes++;
}

static void drop_oldest(struct cq *cq)
{
	struct cq_ring *ring = cq->oldest;

	cq->oldest = ring->next;
	region_unmap(&ring->region);
	free(ring);
}

static void free_cq(struct cq *cq)
{
	while (cq->oldest)
		drop_oldest(cq);
	region_unmap(&cq->region);
	map_free(&cq->qps);
	pthread_mutex_destroy(&cq->resize_lock);
	free(cq);
}

static int make_cq(struct context *ctx, const struct abi_create_cq *body, struct cq **out)
{
	struct abi_create_cq_reply r;
	struct cq_ring *ring;
	struct cq *cq;
	int fd;
	int err = call_for_fd(ctx, ABI_CREATE_CQ, body, sizeof(*body), &r, sizeof(r), &fd);

	if (err)
		return err;
	if (!reply_fits(&r, 0)) {
		struct region nothing;

		region_map(&nothing, fd, 0); /* closes it */
		call_destroy(ctx, ABI_DESTROY_CQ, r.handle);
		return fail_const(EPROTO,
			"rocid's reply describes an invalid completion queue: use "
			"rocid and libroci of the same version");
	}
	cq = calloc(1, sizeof(*cq) + r.lanes * sizeof(cq->lane[0]));
	ring = calloc(1, sizeof(*ring));
	if (!cq || !ring)
		err = fail_const(ENOMEM,
			"out of memory for a completion queue: free some memory and try again");
	if (!err)
		err = region_map(&cq->region, fd, r.region_size);
	if (err) {
		free(cq);
		free(ring);
		call_destroy(ctx, ABI_DESTROY_CQ, r.handle);
		return err;
	}
	cq->handle = r.handle;
	cq->lanes = r.lanes;
	spin_init(&cq->lock);
	pthread_mutex_init(&cq->resize_lock, NULL);
	ring_set(ring, cq->region.base, &r);
	cq->oldest = cq->newest = ring;
	for (uint32_t i = 0; i < r.lanes; i++)
		lane_enter(cq, i, ring);
	*out = cq;
	return 0;
}

struct roci_cq *roci_create_cq(struct roci_context *c, int cqe, void *user_data,
	struct roci_channel *channel, int comp_vector)
{
	return roci_create_cq_flags(c, cqe, user_data, channel, comp_vector, 0);
}

struct roci_cq *roci_create_cq_flags(struct roci_context *c, int cqe, void *user_data,
	struct roci_channel *channel, int comp_vector, unsigned int flags)
{
	struct context *ctx = context_of(c);
	struct channel *ch = (struct channel *)channel;
	struct abi_create_cq body = {
		.depth = (uint32_t)cqe,
		.channel = ch ? ch->handle : ABI_NO_HANDLE,
		.vector = (uint32_t)comp_vector,
		.flags = flags,
	};
	struct cq *cq = NULL;
	bool known;
	int err;

	if (cqe <= 0) /* CQ-02 */
		err = fail(EINVAL,
			"a completion queue needs room for at least 1 completion, "
			"not %d",
			cqe);
	else
		err = make_cq(ctx, &body, &cq);
	if (err) {
		errno = err;
		return NULL;
	}
	cq->pub = (struct roci_cq){.context = c,
		.channel = channel,
		.user_data = user_data,
		.cqe = (int)cq->newest->depth};
	pthread_mutex_lock(&ctx->lock);
	known = map_put(&ctx->cqs, &cq->by_handle, cq->handle);
	if (known && ch)
		ch->users++;
	pthread_mutex_unlock(&ctx->lock);
	if (!known) {
		call_destroy(ctx, ABI_DESTROY_CQ, cq->handle);
		free_cq(cq);
		errno = fail_const(ENOMEM,
			"out of memory for a completion queue: free some memory and try again");
		return NULL;
	}
	return &cq->pub;
}

int roci_destroy_cq(struct roci_cq *c)
{
	struct cq *cq = cq_of(c);
	struct context *ctx = context_of(c->context);
	uint32_t users;
	int err;

	pthread_mutex_lock(&ctx->lock);
	users = cq->users;
	pthread_mutex_unlock(&ctx->lock);
	if (users) /* CQ-12 */
		return fail_const(EBUSY, "QPs still use the completion queue: destroy them first");
	err = call_destroy(ctx, ABI_DESTROY_CQ, cq->handle);
	if (err)
		return err;
	pthread_mutex_lock(&ctx->lock);
	map_remove(&ctx->cqs, &cq->by_handle);
	if (c->channel) {
		cq_forget_left(cq);
		((struct channel *)c->channel)->users--;
	}
	events_wait(ctx, &cq->events);
	pthread_mutex_unlock(&ctx->lock);
	free_cq(cq);
	return 0;
}

/* --- resize ----------------------------------------------------------------------------- */

/* CQ-11: an empty lane continues in the ring that replaced its own. rocid stops writing to the old
 * ring before it announces the new one. */
bool lane_advance(struct cq *cq, uint32_t i)
{
	struct cq_ring *ring = cq->lane[i].from;

	if (!ring->next)
		return false;
	ring->lanes--;
	lane_enter(cq, i, ring->next);
	while (!cq->oldest->lanes && cq->oldest != cq->newest)
		drop_oldest(cq);
	return true;
}

/* Requests a new ring from rocid and maps it.  @return an errno value; *lost: rocid has switched to
 * a ring that we could not map. */
static int ask_for_ring(struct cq *cq, uint32_t depth, struct cq_ring *ring, bool *lost)
{
	struct abi_resize_cq body = {.handle = cq->handle, .depth = depth};
	struct abi_create_cq_reply r;
	int fd;
	int err = call_for_fd(context_of(cq->pub.context), ABI_RESIZE_CQ, &body, sizeof(body), &r,
		sizeof(r), &fd);

	*lost = false;
	if (err)
		return err;
	if (reply_fits(&r, cq->lanes))
		err = region_map(&ring->region, fd, r.region_size);
	else {
		region_map(&ring->region, fd, 0); /* closes it */
		err = fail_const(EPROTO, "rocid's reply describes an invalid completion queue: use "
					 "rocid and libroci of the same version");
	}
	*lost = err;
	if (!err)
		ring_set(ring, ring->region.base, &r);
	return err;
}

/* Number of completions waiting from @p idx on: after an entry that is not ready, no entry is. */
static uint32_t ring_waiting(struct abi_cqe *ring, uint32_t depth, uint32_t idx)
{
	uint32_t n = 0, end = depth;

	while (n < end) {
		uint32_t middle = n + (end - n) / 2;

		if (ready(ring, depth, idx + middle))
			n = middle + 1;
		else
			end = middle;
	}
	return n;
}

/* The same for a lane; its oldest completions may be in rings that rocid no longer uses. */
static uint32_t lane_waiting(const struct cq *cq, uint32_t i)
{
	const struct lane *lane = &cq->lane[i];
	uint32_t n = ring_waiting(lane->ring, lane->from->depth, lane->head);

	for (const struct cq_ring *r = lane->from->next; r; r = r->next)
		n += ring_waiting((struct abi_cqe *)(ring_lane(r, i) + 1), r->depth, 0);
	return n;
}

/* @return the number of waiting completions. */
static uint32_t begin_resize(struct cq *cq)
{
	uint32_t waiting = 0;

	spin_lock(&cq->lock);
	for (uint32_t i = 0; i < cq->lanes; i++) {
		publish(&cq->lane[i]); /* rocid also counts the completions in its ring */
		waiting += lane_waiting(cq, i);
	}
	cq->resizing = true;
	spin_unlock(&cq->lock);
	return waiting;
}

static void end_resize(struct cq *cq, struct cq_ring *ring, bool lost)
{
	spin_lock(&cq->lock);
	if (ring) {
		cq->newest->next = ring;
		cq->newest = ring;
		cq->resizes++;
		cq->pub.cqe = (int)ring->depth;
		for (uint32_t i = 0; i < cq->lanes; i++) /* or unpolled rings would accumulate */
			if (!lane_ready(&cq->lane[i]))
				lane_advance(cq, i);
	}
	cq->ringless |= lost;
	cq->resizing = false;
	spin_unlock(&cq->lock);
}

int roci_resize_cq(struct roci_cq *c, int cqe)
{
	struct cq *cq = cq_of(c);
	struct cq_ring *ring;
	bool lost = false;
	uint32_t waiting;
	int err;

	if (cqe <= 0)
		return fail(EINVAL,
			"a completion queue needs room for at least 1 completion, not %d", cqe);
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return fail_const(ENOMEM,
			"out of memory for a completion queue: free some memory and try again");
	pthread_mutex_lock(&cq->resize_lock);
	waiting = begin_resize(cq);
	if ((uint32_t)cqe < waiting) /* CQ-11 */
		err = fail(EINVAL,
			"%u completions are waiting in the CQ, more than the new size of %d: poll "
			"them "
			"first",
			waiting, cqe);
	else
		err = ask_for_ring(cq, (uint32_t)cqe, ring, &lost);
	end_resize(cq, err ? NULL : ring, lost);
	pthread_mutex_unlock(&cq->resize_lock);
	if (err)
		free(ring);
	return err;
}

/* --- QPs of a CQ ------------------------------------------------------------------------ */

static bool attach(struct cq *cq, struct map_node *node, uint32_t qpn)
{
	bool ok;

	spin_lock(&cq->lock);
	ok = map_put(&cq->qps, node, qpn);
	spin_unlock(&cq->lock);
	return ok;
}

static void detach(struct cq *cq, struct map_node *node)
{
	spin_lock(&cq->lock);
	cq->last = NULL;
	map_remove(&cq->qps, node);
	spin_unlock(&cq->lock);
}

int cq_attach_qp(struct qp *qp)
{
	struct cq *send = cq_of(qp->pub.send_cq);
	struct cq *recv = cq_of(qp->pub.recv_cq);

	if (!send)
		return 0; /* XRC_RECV */
	if (!attach(send, &qp->in_send_cq, qp->number))
		return fail_const(
			ENOMEM, "out of memory for a queue pair: free some memory and try again");
	if (recv != send && !attach(recv, &qp->in_recv_cq, qp->number)) {
		detach(send, &qp->in_send_cq);
		return fail_const(
			ENOMEM, "out of memory for a queue pair: free some memory and try again");
	}
	return 0;
}

void cq_detach_qp(struct qp *qp)
{
	struct cq *send = cq_of(qp->pub.send_cq);
	struct cq *recv = cq_of(qp->pub.recv_cq);

	if (!send)
		return;
	detach(send, &qp->in_send_cq);
	if (recv != send)
		detach(recv, &qp->in_recv_cq);
}

/* --- discarding ------------------------------------------------------------------------- */

/* Identifies the completions to discard. */
struct gone {
	uint32_t qpn;  /* of a QP that is not an XRC QP, or QPN_NONE */
	uint32_t srqn; /* of an XRC SRQ, or 0 */
};

static void forget_from(
	struct abi_cqe *ring, uint32_t depth, uint32_t head, const struct gone *gone)
{
	for (uint32_t i = head; i - head < depth && ready(ring, depth, i); i++) {
		struct abi_cqe *e = &ring[i & (depth - 1)];

		if (gone->srqn ? e->srqn != gone->srqn : e->srqn || e->qpn != gone->qpn)
			continue;
		e->qpn = QPN_NONE; /* QPS-16, CQ-12 */
		e->srqn = 0;
	}
}

static void forget(struct cq *cq, const struct gone *gone)
{
	for (uint32_t l = 0; l < cq->lanes; l++) {
		const struct lane *lane = &cq->lane[l];
		const struct cq_ring *r = lane->from;

		forget_from(lane->ring, r->depth, lane->head, gone);
		while ((r = r->next))
			forget_from((struct abi_cqe *)(ring_lane(r, l) + 1), r->depth, 0, gone);
	}
}

/* Waits for a ring that another thread is about to add, so that no completion survives in it. */
static void forget_queue(struct cq *cq, const struct gone *gone, struct queue *q)
{
	pthread_mutex_lock(&cq->resize_lock);
	spin_lock(&cq->lock);
	forget(cq, gone);
	if (q) {
		queue_discard(q);
		q->number = 0;
	}
	spin_unlock(&cq->lock);
	pthread_mutex_unlock(&cq->resize_lock);
}

void cq_forget_qp(struct qp *qp)
{
	const struct gone gone = {.qpn = qp->number};

	if (!qp->pub.send_cq)
		return; /* XRC_RECV */
	forget_queue(cq_of(qp->pub.send_cq), &gone, &qp->sq);
	forget_queue(cq_of(qp->pub.recv_cq), &gone, &qp->rq);
}

void cq_forget_srq(struct cq *cq, uint32_t srqn)
{
	const struct gone gone = {.qpn = QPN_NONE, .srqn = srqn};

	forget_queue(cq, &gone, NULL);
}

/* --- arming ----------------------------------------------------------------------------- */

/* @return the number of waiting completions: 0, 1, or 2 for more. */
static uint32_t count_few(const struct cq *cq)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < cq->lanes && n < 2; i++) {
		const struct lane *lane = &cq->lane[i];

		if (lane->from->next)
			n += lane_waiting(cq, i);
		else if (lane_ready(lane))
			n += 1 + ready(lane->ring, lane->from->depth, lane->head + 1);
	}
	return n;
}

static uint32_t count_taken(const struct cq *cq)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < cq->lanes; i++)
		n += cq->lane[i].head;
	return n;
}

bool cq_has_completions(struct cq *cq)
{
	bool any;

	if (!spin_trylock(&cq->lock)) /* held, perhaps by this thread: roci_read_start() */
		return true;
	any = count_few(cq);
	spin_unlock(&cq->lock);
	return any;
}

void cq_forget_left(struct cq *cq)
{
	if (atomic_exchange(&cq->left, false))
		atomic_fetch_sub(&((struct channel *)cq->pub.channel)->left, 1);
}

void cq_give_event(struct cq *cq)
{
	cq_forget_left(cq);
	cq->events.given++;
	if (!spin_trylock(&cq->lock))
		return;
	cq->announced = count_taken(cq) + (count_few(cq) > 0);
	spin_unlock(&cq->lock);
}

/* @return whether there are completions that no event announced. The one that the last event
 * announced may still be there, because programs arm before they take it. */
static bool has_unannounced(struct cq *cq)
{
	bool any;

	if (!spin_trylock(&cq->lock))
		return true;
	any = count_few(cq) > (cq->announced == count_taken(cq) + 1);
	spin_unlock(&cq->lock);
	return any;
}

/* Earlier completions do not count for the worker (CQ-04). But adapters raise an event if some are
 * left, and programs that arm and then take only a few (perftest) depend on that. */
static void mark_left(struct cq *cq)
{
	if (!cq->pub.channel || !has_unannounced(cq))
		return;
	if (!atomic_exchange(&cq->left, true))
		atomic_fetch_add(&((struct channel *)cq->pub.channel)->left, 1);
}

int roci_req_notify_cq(struct roci_cq *c, int solicited_only)
{
	struct abi_cq *shared = (struct abi_cq *)cq_of(c)->region.base;
	uint32_t want = solicited_only ? ABI_CQ_ARM_SOLICITED : ABI_CQ_ARM_ANY;
	uint32_t old = atomic_load_explicit(&shared->arm, memory_order_relaxed);
	uint32_t arm;

	do {
		arm = old & ABI_CQ_ARM_MASK;
		if (arm < want) /* CQ-05: the stronger request wins */
			arm = want;
		arm |= (old & ~ABI_CQ_ARM_MASK) + ABI_CQ_ARM_STEP;
	} while (!atomic_compare_exchange_weak(&shared->arm, &old, arm));
	/* Before the caller polls again: either that poll sees a new CQE, or the worker that writes
	 * it sees this request. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!solicited_only)
		mark_left(cq_of(c));
	return 0;
}
