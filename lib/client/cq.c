/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: the consumer side of the lanes (abi_ring.h), arming. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "client.h"

_Static_assert((int)ROCI_WC_SUCCESS == ABI_WC_SUCCESS &&
		       (int)ROCI_WC_LOC_PROT_ERR == ABI_WC_LOC_PROT_ERR &&
		       (int)ROCI_WC_RNR_RETRY_EXC_ERR == ABI_WC_RNR_RETRY_EXC_ERR &&
		       (int)ROCI_WC_GENERAL_ERR == ABI_WC_GENERAL_ERR,
	"enum roci_wc_status");
_Static_assert((int)ROCI_WC_SEND == ABI_WC_SEND && (int)ROCI_WC_RDMA_WRITE == ABI_WC_RDMA_WRITE &&
		       (int)ROCI_WC_RDMA_READ == ABI_WC_RDMA_READ &&
		       (int)ROCI_WC_COMP_SWAP == ABI_WC_COMP_SWAP &&
		       (int)ROCI_WC_FETCH_ADD == ABI_WC_FETCH_ADD &&
		       (int)ROCI_WC_RECV == ABI_WC_RECV && (int)ROCI_WC_BIND_MW == ABI_WC_BIND_MW &&
		       (int)ROCI_WC_LOCAL_INV == ABI_WC_LOCAL_INV &&
		       (int)ROCI_WC_FLUSH == ABI_WC_FLUSH &&
		       (int)ROCI_WC_ATOMIC_WRITE == ABI_WC_ATOMIC_WRITE &&
		       (int)ROCI_WC_RECV_RDMA_WITH_IMM == ABI_WC_RECV_RDMA_WITH_IMM,
	"enum roci_wc_opcode");
_Static_assert((int)ROCI_WC_GRH == ABI_WC_GRH && (int)ROCI_WC_WITH_IMM == ABI_WC_WITH_IMM &&
		       (int)ROCI_WC_WITH_INV == ABI_WC_WITH_INV,
	"enum roci_wc_flags");
#define PUBLIC_FLAGS (ABI_WC_GRH | ABI_WC_WITH_IMM | ABI_WC_WITH_INV)

static struct cq *cq_of(struct roci_cq *cq)
{
	return (struct cq *)cq;
}

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

static struct abi_cq_lane *ring_lane(const struct cq_ring *ring, uint32_t i)
{
	return (struct abi_cq_lane *)(ring->first_lane + (size_t)i * ring->lane_stride);
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
		err = fail_const(ENOMEM, "no memory for a completion queue");
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
		errno = fail_const(ENOMEM, "no memory for a completion queue");
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
	if (c->channel)
		((struct channel *)c->channel)->users--;
	events_wait(ctx, &cq->events);
	pthread_mutex_unlock(&ctx->lock);
	free_cq(cq);
	return 0;
}

static void publish(struct lane *lane)
{
	if (lane->published == lane->head)
		return;
	lane->published = lane->head;
	atomic_store_explicit(lane->consumer, lane->head, memory_order_release);
}

/* --- resize ----------------------------------------------------------------------------- */

static bool ready(struct abi_cqe *ring, uint32_t depth, uint32_t idx)
{
	struct abi_cqe *e = &ring[idx & (depth - 1)];
	uint32_t mark = atomic_load_explicit((_Atomic uint32_t *)&e->mark, memory_order_acquire);

	return (mark & 1) == abi_phase(idx, depth);
}

static bool lane_ready(const struct lane *lane)
{
	return ready(lane->ring, lane->from->depth, lane->head);
}

/* CQ-11: an empty lane continues in the ring that replaced its own. rocid stopped writing to the
 * old one before it announced the new one. */
static bool lane_advance(struct cq *cq, uint32_t i)
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

/* Asks rocid for a new ring and maps it.  @return an errno value; *lost: rocid has switched to a
 * ring that we could not map. */
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

/* Number of completions that wait from @p idx on: entries after one that is not ready are not ready
 * either. */
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

/* The same for a lane; its oldest completions may be in rings that rocid has left. */
static uint32_t lane_waiting(const struct cq *cq, uint32_t i)
{
	const struct lane *lane = &cq->lane[i];
	uint32_t n = ring_waiting(lane->ring, lane->from->depth, lane->head);

	for (const struct cq_ring *r = lane->from->next; r; r = r->next)
		n += ring_waiting((struct abi_cqe *)(ring_lane(r, i) + 1), r->depth, 0);
	return n;
}

/* @return number of waiting completions. */
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
		for (uint32_t i = 0; i < cq->lanes; i++) /* or unpolled rings would pile up */
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
		return fail_const(ENOMEM, "no memory for a completion queue");
	pthread_mutex_lock(&cq->resize_lock);
	waiting = begin_resize(cq);
	if ((uint32_t)cqe < waiting) /* CQ-11 */
		err = fail(EINVAL,
			"%u completions wait in the CQ, more than the new size of %d: poll them "
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
		return fail_const(ENOMEM, "no memory for a queue pair");
	if (recv != send && !attach(recv, &qp->in_recv_cq, qp->number)) {
		detach(send, &qp->in_send_cq);
		return fail_const(ENOMEM, "no memory for a queue pair");
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

static struct qp *find_qp(const struct cq *cq, uint32_t qpn)
{
	struct map_node *n = map_get(&cq->qps, qpn);
	struct qp *qp;

	if (!n)
		return NULL;
	qp = map_entry(n, struct qp, in_send_cq);
	return &cq->pub == qp->pub.send_cq ? qp : map_entry(n, struct qp, in_recv_cq);
}

/* Whose completion @p e is. Mostly of the QP that had the one before.  @return NULL: nobody's, or
 * by way of an SRQ of XRC. */
static struct qp *owner_of(struct cq *cq, const struct abi_cqe *e)
{
	if (unlikely(e->srqn))
		return NULL;
	if (unlikely(!cq->last || e->qpn != cq->last_qpn)) {
		cq->last_qpn = e->qpn;
		cq->last = find_qp(cq, e->qpn);
	}
	return cq->last;
}

/* --- polling ---------------------------------------------------------------------------- */

static struct queue *queue_of(struct qp *qp, const struct abi_cqe *e)
{
	return e->opcode & ABI_WC_RECV ? &qp->rq : &qp->sq;
}

/* Counts a completed request of the queue, which frees its slot. */
static void account(struct qp *qp, struct queue *q, const struct abi_cqe *e)
{
	uint32_t polled;

	q->number++;
	if (q == &qp->rq && qp->pub.srq)
		return; /* its slot became free when the message took it */
	if (q == &qp->sq && e->status != ABI_WC_SUCCESS) {
		sq_failed(q, e->imm);
		return;
	}
	polled = atomic_load_explicit(&q->polled, memory_order_relaxed);
	atomic_store_explicit(&q->polled, polled + 1, memory_order_release);
}

/* @p qp: for the program's number of it, which differs for QP1; NULL: another program's. */
static void to_wc(const struct abi_cqe *e, const struct qp *qp, struct roci_wc *wc)
{
	*wc = (struct roci_wc){
		.wr_id = e->wr_id,
		.status = (enum roci_wc_status)e->status,
		.opcode = (enum roci_wc_opcode)e->opcode,
		.vendor_err = e->vendor_err,
		.byte_len = e->byte_len,
		.imm_data = e->imm,
		.qp_num = qp ? qp->pub.qp_num : e->qpn,
		.src_qp = e->src_qp,
		.wc_flags = e->flags & PUBLIC_FLAGS,
		.pkey_index = e->pkey_index,
		.sl = e->sl,
	};
}

static void to_net(const struct abi_cqe *e, struct roci_wc_net *net)
{
	*net = (struct roci_wc_net){
		.type = e->net == ABI_NET_ROCEV1 ? ROCI_GID_TYPE_ROCE_V1 : ROCI_GID_TYPE_ROCE_V2,
		.is_ipv4 = e->net == ABI_NET_IPV4,
		.vlan_id = e->vid,
		.srq_num = e->srqn, /* XRC-05 */
	};
	memcpy(net->smac, e->smac, sizeof(net->smac));
}

/* Destination of completions. */
struct sink {
	struct roci_wc *wc;
	struct roci_wc_net *net; /* NULL: not needed */
};

static struct sink behind(struct sink s, int n)
{
	return (struct sink){s.wc + n, s.net ? s.net + n : NULL};
}

/* A QP that has moved to another worker may have older completions in another lane, which must be
 * returned first (decision 0040). *held: a lane waits for that. */
static int poll_lane(struct cq *cq, uint32_t i, int max, struct sink out, bool *held)
{
	struct lane *lane = &cq->lane[i];
	int n = 0;

	while (n < max) { /* CQ-13 */
		uint32_t depth = lane->from->depth;
		const struct abi_cqe *e = &lane->ring[lane->head & (depth - 1)];
		struct queue *q = NULL;
		struct qp *qp;

		if (!lane_ready(lane)) {
			publish(lane);
			if (lane_advance(cq, i))
				continue;
			break;
		}
		qp = owner_of(cq, e);
		if (qp)
			q = queue_of(qp, e);
		if (qp && !abi_cqe_is(e->mark, q->number)) {
			*held = true;
			break;
		}
		/* XRC-05: for any QP, perhaps another program's. Otherwise a completion without a
		 * QP belongs to one that was reset or destroyed (QPS-16, CQ-12). */
		if (qp || e->srqn) {
			to_wc(e, qp, &out.wc[n]);
			if (out.net)
				to_net(e, &out.net[n]);
			n++;
		}
		if (qp)
			account(qp, q, e);
		lane->head++;
		if (lane->head - lane->published >= (depth + 3) / 4)
			publish(lane);
	}
	return n;
}

struct flush {
	struct cq *cq;
	int max;
	int n;
	struct roci_wc *wc;
};

static bool flush_qp(struct map_node *node, void *arg)
{
	struct flush *f = arg;
	struct qp *qp = find_qp(f->cq, node->key);

	if (qp->pub.send_cq == &f->cq->pub)
		f->n += sq_flush(qp, f->max - f->n, f->wc + f->n);
	if (qp->pub.recv_cq == &f->cq->pub)
		f->n += rq_flush(qp, f->max - f->n, f->wc + f->n);
	return f->n == f->max;
}

/* rocid is gone and the lanes are empty: flushes the outstanding requests in its place. */
static int poll_dead(struct cq *cq, int max, struct roci_wc *wc)
{
	struct flush f = {.cq = cq, .max = max, .wc = wc};

	map_find(&cq->qps, flush_qp, &f);
	if (f.n == 0)
		return fail_const(-EIO, "rocid is gone: start it again, then open a new session");
	return f.n;
}

/* Each round starts at the lane after the one where the last round ended. */
static int poll_round(struct cq *cq, int max, struct sink out, bool *held)
{
	int n = 0;

	for (uint32_t i = 0; i < cq->lanes && n < max; i++) {
		n += poll_lane(cq, cq->next, max - n, behind(out, n), held);
		if (++cq->next == cq->lanes)
			cq->next = 0;
	}
	return n;
}

/* A lane that was held may continue after the others: fewer than `max` must mean that the queue is
 * empty. The completion that it waits for is there, because it was written earlier. */
static int poll_lanes(struct cq *cq, int max, struct sink out)
{
	int n = 0;
	int got;
	bool held;

	do {
		held = false;
		got = poll_round(cq, max - n, behind(out, n), &held);
		n += got;
	} while (held && got && n < max);
	return n;
}

/* Workers may already write to a ring that the resizing thread has not received yet. Returning 0
 * then would mislead a thread that has armed the queue and is about to sleep. */
static bool ring_is_due(const struct cq *cq)
{
	const struct abi_cq *shared = (const struct abi_cq *)cq->region.base;

	return cq->resizing &&
	       atomic_load_explicit(&shared->resizes, memory_order_acquire) != cq->resizes;
}

static int poll_cq(struct roci_cq *c, int num_entries, struct sink out)
{
	struct cq *cq = cq_of(c);
	int n;

	if (num_entries <= 0) /* CQ-13 */
		return num_entries ? fail_const(-EINVAL, "the number of entries is negative") : 0;
	spin_lock(&cq->lock); /* CQ-13 */
	n = poll_lanes(cq, num_entries, out);
	while (n == 0 && ring_is_due(cq)) {
		spin_unlock(&cq->lock);
		sched_yield();
		spin_lock(&cq->lock);
		n = poll_lanes(cq, num_entries, out);
	}
	if (n == 0 && cq->ringless) {
		n = fail_const(-ENOMEM, "cannot map the new ring of the resized completion queue: "
					"destroy it and its QPs");
	} else if (n == 0) {
		bool look = ++cq->empty % POLLS_PER_LOOK == 0;

		if (context_dead(context_of(c->context), look)) {
			/* Its last completions may have arrived between the two checks. */
			n = poll_lanes(cq, num_entries, out);
			if (n == 0)
				n = poll_dead(cq, num_entries, out.wc);
		}
	}
	spin_unlock(&cq->lock);
	return n;
}

int roci_poll_cq(struct roci_cq *c, int num_entries, struct roci_wc *wc)
{
	return poll_cq(c, num_entries, (struct sink){wc, NULL});
}

int roci_poll_cq_net(
	struct roci_cq *c, int num_entries, struct roci_wc *wc, struct roci_wc_net *net)
{
	if (net && num_entries > 0) /* flushed requests have no network details */
		memset(net, 0, (size_t)num_entries * sizeof(*net));
	return poll_cq(c, num_entries, (struct sink){wc, net});
}

/* Whose completions to discard. */
struct gone {
	uint32_t qpn;  /* of a QP that is not XRC, or QPN_NONE */
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

/* Waits for a ring that another thread is about to add: its completions must not stay either. */
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

int roci_req_notify_cq(struct roci_cq *c, int solicited_only)
{
	struct abi_cq *shared = (struct abi_cq *)cq_of(c)->region.base;
	uint32_t want = solicited_only ? ABI_CQ_ARM_SOLICITED : ABI_CQ_ARM_ANY;
	uint32_t old = atomic_load_explicit(&shared->arm, memory_order_relaxed);
	uint32_t arm;

	do {
		arm = old & ABI_CQ_ARM_MASK;
		if (arm < want) /* CQ-05: the stronger one stays */
			arm = want;
		arm |= (old & ~ABI_CQ_ARM_MASK) + ABI_CQ_ARM_STEP;
	} while (!atomic_compare_exchange_weak(&shared->arm, &old, arm));
	/* Before the caller polls again: either that poll sees a new CQE, or its worker sees
	 * this. */
	atomic_thread_fence(memory_order_seq_cst);
	return 0;
}
