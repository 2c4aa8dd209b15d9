/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: the consumer's side of the lanes (abi_ring.h), arming. */
#include <stdlib.h>
#include "client.h"

_Static_assert((int)ROCI_WC_SUCCESS == ABI_WC_SUCCESS &&
		       (int)ROCI_WC_LOC_PROT_ERR == ABI_WC_LOC_PROT_ERR &&
		       (int)ROCI_WC_RNR_RETRY_EXC_ERR == ABI_WC_RNR_RETRY_EXC_ERR &&
		       (int)ROCI_WC_GENERAL_ERR == ABI_WC_GENERAL_ERR,
	"enum roci_wc_status");
_Static_assert((int)ROCI_WC_SEND == ABI_WC_SEND && (int)ROCI_WC_RDMA_WRITE == ABI_WC_RDMA_WRITE &&
		       (int)ROCI_WC_RDMA_READ == ABI_WC_RDMA_READ &&
		       (int)ROCI_WC_RECV == ABI_WC_RECV &&
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

static bool reply_fits(const struct abi_create_cq_reply *r)
{
	return r->lanes > 0 && r->depth > 0 && (r->depth & (r->depth - 1)) == 0 &&
	       r->depth <= INT32_MAX / 2 &&
	       r->lane_stride >=
		       sizeof(struct abi_cq_lane) + (uint64_t)r->depth * sizeof(struct abi_cqe) &&
	       r->lane_stride % ABI_ENTRY == 0 && r->lane_off % ABI_ENTRY == 0 &&
	       r->lane_off >= sizeof(struct abi_cq) &&
	       r->lane_off + (uint64_t)r->lanes * r->lane_stride <= r->region_size;
}

static void set_lanes(struct cq *cq, const struct abi_create_cq_reply *r)
{
	for (uint32_t i = 0; i < r->lanes; i++) {
		uint8_t *at = cq->region.base + r->lane_off + (size_t)i * r->lane_stride;
		struct abi_cq_lane *lane = (struct abi_cq_lane *)at;

		cq->lane[i].consumer = &lane->consumer;
		cq->lane[i].ring = (struct abi_cqe *)(lane + 1);
	}
}

static int make_cq(struct context *ctx, const struct abi_create_cq *body, struct cq **out)
{
	struct abi_create_cq_reply r;
	struct cq *cq;
	int fd;
	int err = call(ctx, &(struct call){.type = ABI_CREATE_CQ,
				    .body = body,
				    .body_len = sizeof(*body),
				    .fd = -1,
				    .reply = &r,
				    .reply_len = sizeof(r),
				    .fds = &fd,
				    .nfds = 1});

	if (err)
		return err;
	if (!reply_fits(&r)) {
		struct region nothing;

		region_map(&nothing, fd, 0); /* closes it */
		call_destroy(ctx, ABI_DESTROY_CQ, r.handle);
		return fail_const(EPROTO, "rocid made a completion queue that makes no sense: use "
					  "rocid and libroci of one version");
	}
	cq = calloc(1, sizeof(*cq) + r.lanes * sizeof(cq->lane[0]));
	if (!cq)
		err = fail_const(ENOMEM, "no memory for a completion queue");
	if (!err)
		err = region_map(&cq->region, fd, r.region_size);
	if (err) {
		free(cq);
		call_destroy(ctx, ABI_DESTROY_CQ, r.handle);
		return err;
	}
	cq->handle = r.handle;
	cq->depth = r.depth;
	cq->lanes = r.lanes;
	spin_init(&cq->lock);
	set_lanes(cq, &r);
	*out = cq;
	return 0;
}

static void free_cq(struct cq *cq)
{
	region_unmap(&cq->region);
	map_free(&cq->qps);
	free(cq);
}

struct roci_cq *roci_create_cq(struct roci_context *c, int cqe, void *user_data,
	struct roci_channel *channel, int comp_vector)
{
	struct context *ctx = context_of(c);
	struct channel *ch = (struct channel *)channel;
	struct abi_create_cq body = {
		.depth = (uint32_t)cqe,
		.channel = ch ? ch->handle : ABI_NO_HANDLE,
		.vector = (uint32_t)comp_vector,
	};
	struct cq *cq = NULL;
	bool known;
	int err;

	if (cqe <= 0) /* CQ-02 */
		err = fail(EINVAL,
			"a completion queue needs room for 1 completion at least, "
			"not %d",
			cqe);
	else
		err = make_cq(ctx, &body, &cq);
	if (err) {
		errno = err;
		return NULL;
	}
	cq->pub = (struct roci_cq){
		.context = c, .channel = channel, .user_data = user_data, .cqe = (int)cq->depth};
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
	map_remove(&cq->qps, node);
	spin_unlock(&cq->lock);
}

int cq_attach_qp(struct qp *qp)
{
	struct cq *send = cq_of(qp->pub.send_cq);
	struct cq *recv = cq_of(qp->pub.recv_cq);

	if (!attach(send, &qp->in_send_cq, qp->pub.qp_num))
		return fail_const(ENOMEM, "no memory for a queue pair");
	if (recv != send && !attach(recv, &qp->in_recv_cq, qp->pub.qp_num)) {
		detach(send, &qp->in_send_cq);
		return fail_const(ENOMEM, "no memory for a queue pair");
	}
	return 0;
}

void cq_detach_qp(struct qp *qp)
{
	struct cq *send = cq_of(qp->pub.send_cq);
	struct cq *recv = cq_of(qp->pub.recv_cq);

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

/* --- polling ---------------------------------------------------------------------------- */

static bool ready(const struct cq *cq, const struct lane *lane, uint32_t idx)
{
	struct abi_cqe *e = &lane->ring[idx & (cq->depth - 1)];
	uint32_t mark = atomic_load_explicit((_Atomic uint32_t *)&e->mark, memory_order_acquire);

	return (mark & 1) == abi_phase(idx, cq->depth);
}

static void publish(struct lane *lane)
{
	if (lane->published == lane->head)
		return;
	lane->published = lane->head;
	atomic_store_explicit(lane->consumer, lane->head, memory_order_release);
}

/* Tells the queue that one of its requests is complete, which frees its slot. */
static void account(struct qp *qp, const struct abi_cqe *e)
{
	struct queue *q = e->opcode & ABI_WC_RECV ? &qp->rq : &qp->sq;
	uint32_t polled;

	if (q == &qp->sq && e->status != ABI_WC_SUCCESS) {
		sq_failed(q, e->wr_id);
		return;
	}
	polled = atomic_load_explicit(&q->polled, memory_order_relaxed);
	atomic_store_explicit(&q->polled, polled + 1, memory_order_release);
}

static void to_wc(const struct abi_cqe *e, struct roci_wc *wc)
{
	*wc = (struct roci_wc){
		.wr_id = e->wr_id,
		.status = (enum roci_wc_status)e->status,
		.opcode = (enum roci_wc_opcode)e->opcode,
		.vendor_err = e->vendor_err,
		.byte_len = e->byte_len,
		.imm_data = e->imm,
		.qp_num = e->qpn,
		.src_qp = e->src_qp,
		.wc_flags = e->flags & PUBLIC_FLAGS,
		.pkey_index = e->pkey_index,
		.sl = e->sl,
	};
}

static int poll_lane(struct cq *cq, struct lane *lane, int max, struct roci_wc *wc)
{
	int n = 0;

	while (n < max) { /* CQ-13 */
		const struct abi_cqe *e = &lane->ring[lane->head & (cq->depth - 1)];
		struct qp *qp;

		if (!ready(cq, lane, lane->head)) {
			publish(lane);
			break;
		}
		qp = find_qp(cq, e->qpn);
		if (qp) { /* else its QP was reset or destroyed (QPS-16, CQ-12) */
			to_wc(e, &wc[n++]);
			account(qp, e);
		}
		lane->head++;
		if (lane->head - lane->published >= (cq->depth + 3) / 4)
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

/* rocid is gone and the lanes are empty: what was outstanding is flushed in its place. */
static int poll_dead(struct cq *cq, int max, struct roci_wc *wc)
{
	struct flush f = {.cq = cq, .max = max, .wc = wc};

	map_find(&cq->qps, flush_qp, &f);
	if (f.n == 0)
		return fail_const(-EIO, "rocid is gone: start it again, then open a new session");
	return f.n;
}

/* Each round starts at the lane behind the one that the last round ended with. */
static int poll_lanes(struct cq *cq, int max, struct roci_wc *wc)
{
	int n = 0;

	for (uint32_t i = 0; i < cq->lanes && n < max; i++) {
		struct lane *lane = &cq->lane[cq->next];

		n += poll_lane(cq, lane, max - n, wc + n);
		if (++cq->next == cq->lanes)
			cq->next = 0;
	}
	return n;
}

int roci_poll_cq(struct roci_cq *c, int num_entries, struct roci_wc *wc)
{
	struct cq *cq = cq_of(c);
	int n;

	if (num_entries <= 0) /* CQ-13 */
		return num_entries ? fail_const(-EINVAL, "the number of entries is negative") : 0;
	spin_lock(&cq->lock); /* CQ-13 */
	n = poll_lanes(cq, num_entries, wc);
	if (n == 0) {
		bool look = ++cq->empty % POLLS_PER_LOOK == 0;

		if (context_dead(context_of(c->context), look)) {
			/* Its last completions may have come between the two looks. */
			n = poll_lanes(cq, num_entries, wc);
			if (n == 0)
				n = poll_dead(cq, num_entries, wc);
		}
	}
	spin_unlock(&cq->lock);
	return n;
}

static void forget(struct cq *cq, uint32_t qpn)
{
	for (uint32_t l = 0; l < cq->lanes; l++) {
		struct lane *lane = &cq->lane[l];

		for (uint32_t i = lane->head; i - lane->head < cq->depth && ready(cq, lane, i);
			i++) {
			struct abi_cqe *e = &lane->ring[i & (cq->depth - 1)];

			if (e->qpn == qpn)
				e->qpn = QPN_NONE; /* QPS-16, CQ-12 */
		}
	}
}

void cq_forget_qp(struct qp *qp)
{
	struct cq *send = cq_of(qp->pub.send_cq);
	struct cq *recv = cq_of(qp->pub.recv_cq);

	spin_lock(&send->lock);
	forget(send, qp->pub.qp_num);
	queue_discard(&qp->sq);
	spin_unlock(&send->lock);
	spin_lock(&recv->lock);
	forget(recv, qp->pub.qp_num);
	queue_discard(&qp->rq);
	spin_unlock(&recv->lock);
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
	/* Before the caller polls again: either that sees a new CQE, or its worker sees this. */
	atomic_thread_fence(memory_order_seq_cst);
	return 0;
}
