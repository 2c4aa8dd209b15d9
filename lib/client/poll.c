/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking completions: the consumer side of the lanes (abi_ring.h). */
#include <sched.h>
#include <string.h>
#include "bits.h"
#include "lane.h"
#include "roci_private.h"

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

/* --- owner of a completion --------------------------------------------------------------- */

static struct qp *find_qp(const struct cq *cq, uint32_t qpn)
{
	struct map_node *n = map_get(&cq->qps, qpn);
	struct qp *qp;

	if (!n)
		return NULL;
	qp = map_entry(n, struct qp, in_send_cq);
	return &cq->pub == qp->pub.send_cq ? qp : map_entry(n, struct qp, in_recv_cq);
}

/* @return the owner of completion @p e, usually that of the previous one; NULL: unknown, or an XRC
 * message that used an SRQ. */
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

/* Counts a completed request of the queue, whose slot becomes free. */
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

/* @p qp  the QP of the completion, whose number for the program differs for QP1; NULL: the QP is
 * another program's. */
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

/* Within one call, the published index may lag by less than a quarter of the ring. */
static ALWAYS_INLINE void publish_due(struct lane *lane)
{
	if (lane->head - lane->published >= (lane->from->depth + 3) / 4)
		publish(lane);
}

/* Takes the next completion of a lane, which stays valid until the next call: its slot is published
 * only then, or by publish(). If a QP has moved to another worker, older completions may be in
 * another lane and must be returned first (decision 0040). *held: this lane waits for that. */
static ALWAYS_INLINE const struct abi_cqe *take(
	struct cq *cq, uint32_t i, struct qp **owner, bool *held)
{
	struct lane *lane = &cq->lane[i];

	for (;;) {
		uint32_t depth = lane->from->depth;
		const struct abi_cqe *e = &lane->ring[lane->head & (depth - 1)];
		struct queue *q = NULL;
		struct qp *qp;

		publish_due(lane);
		if (!lane_ready(lane)) {
			publish(lane);
			if (lane_advance(cq, i))
				continue;
			return NULL;
		}
		qp = owner_of(cq, e);
		if (qp)
			q = queue_of(qp, e);
		if (qp && !abi_cqe_is(e->mark, q->number)) {
			*held = true;
			return NULL;
		}
		lane->head++;
		if (qp)
			account(qp, q, e);
		/* XRC-05: it may be of any QP, even another program's. Any other completion without
		 * a QP belongs to one that was reset or destroyed (QPS-16, CQ-12). */
		if (qp || e->srqn) {
			*owner = qp;
			return e;
		}
	}
}

static int poll_lane(struct cq *cq, uint32_t i, int max, struct sink out, bool *held)
{
	const struct abi_cqe *e;
	struct qp *qp;
	int n = 0;

	while (n < max && (e = take(cq, i, &qp, held))) { /* CQ-13 */
		to_wc(e, qp, &out.wc[n]);
		if (out.net)
			to_net(e, &out.net[n]);
		n++;
	}
	/* CQ-01: the program may rely on the room of all completions that it has taken. */
	publish(&cq->lane[i]);
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

/* rocid is gone and the lanes are empty: flushes the outstanding requests on its behalf. */
static int poll_dead(struct cq *cq, int max, struct roci_wc *wc)
{
	struct flush f = {.cq = cq, .max = max, .wc = wc};

	map_find(&cq->qps, flush_qp, &f);
	if (f.n == 0)
		return fail_const(-EIO, "rocid is gone: start it again, then open a new session");
	return f.n;
}

/* Each round starts at the lane after the last one of the previous round. */
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

/* A held lane may be able to continue after the others, and fewer than `max` must mean that the
 * queue is empty. The completion that it waits for was written earlier, so it is there. */
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
 * now would mislead a thread that has armed the queue and is about to sleep. */
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
		return num_entries ? fail_const(-EINVAL, "num_entries must not be negative") : 0;
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
			/* The last completions may have arrived between the two checks. */
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

/* --- in place --------------------------------------------------------------------------- */

static bool take_next(struct cq *cq, struct roci_reader *r)
{
	bool held; /* a lane waits for a completion that is in another one */

	for (uint32_t i = 0; i < cq->lanes; i++) {
		struct qp *qp;
		const struct abi_cqe *e = take(cq, cq->next, &qp, &held);

		if (likely(e)) {
			r->cqe = e;
			r->qp = &qp->pub; /* the first member, so NULL gives NULL */
			return true;
		}
		if (++cq->next == cq->lanes)
			cq->next = 0;
	}
	return false;
}

/* Returns as a completion a request that was outstanding when rocid died. */
static bool take_flushed(struct cq *cq, struct roci_reader *r)
{
	struct roci_wc wc;

	if (poll_dead(cq, 1, &wc) != 1)
		return false;
	r->flushed = (struct abi_cqe){
		.wr_id = wc.wr_id,
		.status = (uint8_t)wc.status,
		.opcode = (uint8_t)wc.opcode,
		.qpn = wc.qp_num,
	};
	r->cqe = &r->flushed;
	r->qp = NULL;
	r->dead = true;
	return true;
}

/* @return 0, or the reason why there is no completion. */
static int take_when_empty(struct cq *cq, struct roci_reader *r)
{
	while (ring_is_due(cq)) {
		spin_unlock(&cq->lock);
		sched_yield();
		spin_lock(&cq->lock);
		if (take_next(cq, r))
			return 0;
	}
	if (cq->ringless)
		return fail_const(ENOMEM,
			"cannot map the new ring of the resized completion queue: "
			"destroy it and its QPs");
	if (!context_dead(context_of(cq->pub.context), ++cq->empty % POLLS_PER_LOOK == 0))
		return ENOENT;
	return take_next(cq, r) || take_flushed(cq, r) ? 0 : EIO;
}

int roci_read_start(struct roci_cq *c, struct roci_reader *r)
{
	struct cq *cq = cq_of(c);
	int err;

	spin_lock(&cq->lock);
	if (likely(take_next(cq, r)))
		return 0;
	err = take_when_empty(cq, r);
	if (err)
		spin_unlock(&cq->lock);
	return err;
}

int roci_read_next(struct roci_cq *c, struct roci_reader *r)
{
	struct cq *cq = cq_of(c);

	if (likely(take_next(cq, r)))
		return 0;
	return r->dead && take_flushed(cq, r) ? 0 : ENOENT;
}

void roci_read_end(struct roci_cq *c, struct roci_reader *r)
{
	struct cq *cq = cq_of(c);

	(void)r;
	publish(&cq->lane[cq->next]);
	spin_unlock(&cq->lock);
}
