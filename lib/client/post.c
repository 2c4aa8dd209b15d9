/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting work requests: the producer side of the send and receive rings (abi_ring.h). */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "bits.h"
#include "client.h"
#include "roci_private.h"

#define MESSAGE_MAX (1ull << 31) /* REQ-07 */
#define ATOMIC_LEN  8u

_Static_assert(sizeof(struct roci_sge) == sizeof(struct abi_sge) &&
		       offsetof(struct roci_sge, length) == offsetof(struct abi_sge, length) &&
		       offsetof(struct roci_sge, lkey) == offsetof(struct abi_sge, lkey),
	"struct roci_sge is copied without conversion");

enum op_flags {
	OP_IMM = 1 << 0,
	OP_RDMA = 1 << 1,
	OP_INLINE = 1 << 2, /* the data may be inline */
	OP_RC = 1 << 3,	    /* the services that support it */
	OP_UC = 1 << 4,
	OP_ATOMIC = 1 << 5,
	OP_INV = 1 << 6,
	OP_WORD = 1 << 7, /* the payload is 8 bytes */
	OP_BARE = 1 << 8, /* no payload */
	OP_UD = 1 << 9,
};

/* For a new opcode: add it here and to enum roci_wr_opcode, and its operands to put_send(). */
static const uint16_t ops[] = {
	[ROCI_WR_RDMA_WRITE] = OP_RC | OP_UC | OP_RDMA | OP_INLINE,
	[ROCI_WR_RDMA_WRITE_WITH_IMM] = OP_RC | OP_UC | OP_RDMA | OP_INLINE | OP_IMM,
	[ROCI_WR_SEND] = OP_RC | OP_UC | OP_UD | OP_INLINE,
	[ROCI_WR_SEND_WITH_IMM] = OP_RC | OP_UC | OP_UD | OP_INLINE | OP_IMM,
	[ROCI_WR_RDMA_READ] = OP_RC | OP_RDMA,
	[ROCI_WR_ATOMIC_CMP_AND_SWP] = OP_RC | OP_ATOMIC,
	[ROCI_WR_ATOMIC_FETCH_AND_ADD] = OP_RC | OP_ATOMIC,
	[ROCI_WR_LOCAL_INV] = OP_RC | OP_UC | OP_BARE | OP_INV,
	[ROCI_WR_BIND_MW] = OP_RC | OP_UC | OP_BARE,
	[ROCI_WR_SEND_WITH_INV] = OP_RC | OP_INLINE | OP_INV,
	[ROCI_WR_FLUSH] = OP_RC | OP_BARE,
	[ROCI_WR_ATOMIC_WRITE] = OP_RC | OP_RDMA | OP_INLINE | OP_WORD,
};
_Static_assert((int)ROCI_WR_RDMA_WRITE == ABI_WR_RDMA_WRITE &&
		       (int)ROCI_WR_RDMA_WRITE_WITH_IMM == ABI_WR_RDMA_WRITE_WITH_IMM &&
		       (int)ROCI_WR_SEND == ABI_WR_SEND &&
		       (int)ROCI_WR_SEND_WITH_IMM == ABI_WR_SEND_WITH_IMM &&
		       (int)ROCI_WR_RDMA_READ == ABI_WR_RDMA_READ &&
		       (int)ROCI_WR_ATOMIC_CMP_AND_SWP == ABI_WR_ATOMIC_CMP_AND_SWP &&
		       (int)ROCI_WR_ATOMIC_FETCH_AND_ADD == ABI_WR_ATOMIC_FETCH_AND_ADD &&
		       (int)ROCI_WR_LOCAL_INV == ABI_WR_LOCAL_INV &&
		       (int)ROCI_WR_BIND_MW == ABI_WR_BIND_MW &&
		       (int)ROCI_WR_SEND_WITH_INV == ABI_WR_SEND_WITH_INV &&
		       (int)ROCI_WR_FLUSH == ABI_WR_FLUSH &&
		       (int)ROCI_WR_ATOMIC_WRITE == ABI_WR_ATOMIC_WRITE,
	"enum roci_wr_opcode");

#define FLAGS_KNOWN (ROCI_SEND_FENCE | ROCI_SEND_SIGNALED | ROCI_SEND_SOLICITED | ROCI_SEND_INLINE)

static void *entry(const struct queue *q, uint32_t idx)
{
	return q->entries + (size_t)(idx & (q->depth - 1)) * q->stride;
}

/* Hands an entry to rocid by writing its mark last. */
static void hand_over(struct queue *q, uint32_t *ctl, uint32_t value)
{
	value |= abi_phase(q->producer, q->depth);
	atomic_store_explicit((_Atomic uint32_t *)ctl, value, memory_order_release);
	q->producer++;
}

/* --- room in the send queue ------------------------------------------------------------- */

/*
 * Moves the tail past complete requests. A signaled request is complete when its completion was
 * polled, and so are all requests before it. An unsignaled one has no completion, so rocid's
 * consumer index decides, but only while no signaled request precedes it. So the tail never passes
 * rocid's consumer index, although that may lag.
 */
static void sq_reclaim(struct queue *q)
{
	uint32_t polled = atomic_load_explicit(&q->polled, memory_order_acquire);
	uint32_t consumer = atomic_load_explicit(&q->shared->consumer, memory_order_acquire);

	while (q->tail != q->producer) {
		const struct abi_wqe *w = entry(q, q->tail);
		bool signaled = w->ctl & ABI_WQE_SIGNALED;

		if (q->counted != polled)
			q->counted += signaled;
		else if (signaled || (int32_t)(consumer - q->tail) <= 0)
			break;
		q->tail++;
	}
}

static bool sq_full(struct queue *q)
{
	if (q->producer - q->tail >= q->depth)
		sq_reclaim(q);
	return q->producer - q->tail >= q->depth;
}

void sq_failed(struct queue *q, uint32_t index)
{
	spin_lock(&q->lock);
	/* Otherwise the consumer index has moved the tail past it. */
	if (index - q->tail < q->producer - q->tail) {
		q->tail = index + 1;
		/* Completions are polled in order, so all successes so far preceded it. */
		q->counted = atomic_load_explicit(&q->polled, memory_order_relaxed);
	}
	spin_unlock(&q->lock);
}

/* --- sending ---------------------------------------------------------------------------- */

/* Checks requests without payload that have operands of their own. */
static int check_bare(const struct roci_send_wr *wr)
{
	const unsigned types = ROCI_FLUSH_GLOBAL | ROCI_FLUSH_PERSISTENT;
	const struct roci_mw_bind_info *info = &wr->bind_mw.bind_info;

	if (wr->num_sge)
		return fail(EINVAL, "opcode %u has no SGEs: num_sge must be 0", wr->opcode);
	if (wr->opcode == ROCI_WR_FLUSH &&
		(!wr->wr.flush.type || wr->wr.flush.type & ~types ||
			wr->wr.flush.level > ROCI_FLUSH_MR || wr->wr.flush.length > MESSAGE_MAX))
		return fail_const(EINVAL,
			"a FLUSH needs a type (ROCI_FLUSH_GLOBAL), a level (ROCI_FLUSH_RANGE or "
			"ROCI_FLUSH_MR) and at most 2^31 bytes");
	if (wr->opcode != ROCI_WR_BIND_MW)
		return 0;
	if (!wr->bind_mw.mw || (info->length && !info->mr))
		return fail_const(EINVAL, "a bind needs a window and an MR to bind it to");
	if ((wr->bind_mw.rkey ^ wr->bind_mw.mw->rkey) & ~0xFFu)
		return fail(EINVAL,
			"rkey 0x%x is not the window's, 0x%x: only the low 8 bits may differ "
			"(roci_inc_rkey())",
			wr->bind_mw.rkey, wr->bind_mw.mw->rkey);
	return 0;
}

/* Checks requests with operands of their own or with a payload of fixed length. */
static NOINLINE int check_operands(const struct roci_send_wr *wr, unsigned op, uint64_t length)
{
	if (op & OP_ATOMIC && (wr->num_sge != 1 || length != ATOMIC_LEN))
		return fail(EINVAL,
			"an atomic needs one SGE of 8 bytes for the original word, but num_sge is "
			"%d, with %llu bytes in all",
			wr->num_sge, (unsigned long long)length);
	if (op & OP_WORD && length != ATOMIC_LEN) /* FLU-08 */
		return fail(EINVAL, "an ATOMIC WRITE writes 8 bytes, but this one has %llu",
			(unsigned long long)length);
	return op & OP_BARE ? check_bare(wr) : 0;
}

/* The flag in ops[] for the service of @p qp. */
static unsigned service_of(const struct qp *qp)
{
	if (qp->datagram)
		return OP_UD; /* UD-01 */
	return qp->pub.qp_type == ROCI_QPT_UC ? OP_UC : OP_RC;
}

static int check_send(const struct qp *qp, const struct roci_send_wr *wr, uint64_t *length)
{
	unsigned op = (unsigned)wr->opcode;

	*length = 0;
	if (op >= sizeof(ops) / sizeof(ops[0]) || !(ops[op] & service_of(qp))) /* REQ-17, UC-01 */
		return fail(EINVAL, "%s queue pair does not support opcode %u",
			qp->datagram			 ? "a UD"
			: qp->pub.qp_type == ROCI_QPT_UC ? "a UC"
							 : "an RC",
			op);
	if (wr->send_flags & ~(unsigned)FLAGS_KNOWN)
		return fail(EINVAL, "send_flags %#x has bits that libroci does not support",
			wr->send_flags);
	if (wr->num_sge < 0 || (unsigned)wr->num_sge > qp->sq.max_sge) /* REQ-17 */
		return fail(EINVAL,
			"num_sge is %d, but the QP was created for %u: raise max_send_sge",
			wr->num_sge, qp->sq.max_sge);
	for (int i = 0; i < wr->num_sge; i++)
		*length += wr->sg_list[i].length;
	if (*length > MESSAGE_MAX) /* REQ-07 */
		return fail(EINVAL, "the message has %llu bytes, but the maximum is 2^31",
			(unsigned long long)*length);
	if (unlikely(ops[op] & (OP_ATOMIC | OP_WORD | OP_BARE))) {
		int err = check_operands(wr, ops[op], *length);

		if (err)
			return err;
	}
	if (!(wr->send_flags & ROCI_SEND_INLINE))
		return 0;
	if (!(ops[op] & OP_INLINE))
		return fail(EINVAL, "opcode %u cannot be inline", op);
	if (*length > qp->max_inline) /* REQ-16 */
		return fail(EINVAL,
			"%llu inline bytes, but the QP was created for %u: raise max_inline_data "
			"or drop ROCI_SEND_INLINE",
			(unsigned long long)*length, qp->max_inline);
	return 0;
}

/* Checks further requirements of a datagram. */
static int check_datagram(const struct qp *qp, const struct roci_send_wr *wr)
{
	if (!wr->wr.ud.ah || wr->wr.ud.ah->pd != qp->pub.pd)
		return fail_const(EINVAL, "a datagram needs an address handle of its QP's PD: "
					  "set wr.ud.ah to one from roci_create_ah()");
	return 0;
}

static void put_inline(struct abi_wqe *w, const struct roci_send_wr *wr)
{
	uint8_t *to = (uint8_t *)w + ABI_WQE_HDR;

	for (int i = 0; i < wr->num_sge; i++) {
		/* REQ-15: addresses of the program itself; lkeys are ignored. */
		if (wr->sg_list[i].length)
			memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr,
				wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
}

/* The operands precede the SGE, in the place of the usual first one. */
static void put_atomic(struct abi_wqe *w, const struct roci_send_wr *wr)
{
	w->remote_addr = wr->wr.atomic.remote_addr;
	w->rkey = wr->wr.atomic.rkey;
	w->atomic.compare_add = wr->wr.atomic.compare_add;
	w->atomic.swap = wr->wr.atomic.swap;
	memcpy(&w->atomic.sge, wr->sg_list, sizeof(w->atomic.sge));
}

static void put_flush(struct abi_wqe *w, const struct roci_send_wr *wr)
{
	w->feth = wr->wr.flush.type | (uint32_t)wr->wr.flush.level << 4; /* FLU-01 */
	w->remote_addr = wr->wr.flush.remote_addr;
	w->rkey = wr->wr.flush.rkey;
	w->flush.length = wr->wr.flush.length;
}

static void put_bind(struct abi_wqe *w, const struct roci_send_wr *wr)
{
	const struct roci_mw_bind_info *info = &wr->bind_mw.bind_info;

	w->bind.mw = wr->bind_mw.mw->rkey;
	w->bind.new_rkey = wr->bind_mw.rkey;
	w->bind.mr_lkey = info->mr ? info->mr->lkey : 0;
	w->bind.access = info->mw_access_flags;
	w->bind.addr = info->addr;
	w->bind.length = info->length;
}

static NOINLINE void put_operands(struct abi_wqe *w, const struct roci_send_wr *wr)
{
	switch (wr->opcode) {
	case ROCI_WR_FLUSH:
		put_flush(w, wr);
		break;
	case ROCI_WR_BIND_MW:
		put_bind(w, wr);
		break;
	case ROCI_WR_LOCAL_INV:
		break; /* the key is in place already */
	default:
		put_atomic(w, wr);
		break;
	}
}

static void put_datagram(struct abi_wqe *w, const struct roci_send_wr *wr)
{
	w->ud.ah = ((const struct ah *)wr->wr.ud.ah)->handle;
	w->ud.remote_qpn = wr->wr.ud.remote_qpn;
	w->ud.remote_qkey = wr->wr.ud.remote_qkey;
	w->ud.pkey_index = wr->wr.ud.pkey_index;
}

static uint32_t wqe_flags(const struct qp *qp, unsigned send_flags)
{
	/* Branch-free: moves each bit. REQ-14 */
	return (qp->sq_sig_all ? ABI_WQE_SIGNALED : 0) |
	       (send_flags & ROCI_SEND_SIGNALED ? ABI_WQE_SIGNALED : 0) |
	       (send_flags & ROCI_SEND_SOLICITED ? ABI_WQE_SOLICITED : 0) |
	       (send_flags & ROCI_SEND_FENCE ? ABI_WQE_FENCE : 0) |
	       (send_flags & ROCI_SEND_INLINE ? ABI_WQE_INLINE : 0);
}

/* Usually one: not worth a call. */
static void put_sges(uint8_t *to, const struct roci_sge *sge, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		memcpy(to + i * sizeof(sge[i]), &sge[i], sizeof(sge[i]));
}

static void put_send(struct qp *qp, const struct roci_send_wr *wr, uint64_t length)
{
	struct queue *q = &qp->sq;
	struct abi_wqe *w = entry(q, q->producer);
	bool inl = wr->send_flags & ROCI_SEND_INLINE;
	uint32_t count = inl ? (uint32_t)length : (uint32_t)wr->num_sge;
	unsigned op = ops[wr->opcode];

	w->wr_id = wr->wr_id;
	if (op & (OP_IMM | OP_INV)) /* both have the immediate data or key in the same place */
		w->imm = wr->imm_data;
	if (qp->datagram)
		put_datagram(w, wr);
	if (op & OP_RDMA) {
		w->remote_addr = wr->wr.rdma.remote_addr;
		w->rkey = wr->wr.rdma.rkey;
	}
	if (unlikely(op & (OP_ATOMIC | OP_BARE)))
		put_operands(w, wr);
	else if (inl)
		put_inline(w, wr);
	else
		put_sges((uint8_t *)w + ABI_WQE_HDR, wr->sg_list, count);
	if (qp->pub.qp_type == ROCI_QPT_XRC_SEND)
		w->srqn = wr->qp_type.xrc.remote_srqn;
	hand_over(q, &w->ctl, ABI_WQE_CTL(wr->opcode, count, wqe_flags(qp, wr->send_flags)));
}

static struct abi_doorbell *doorbell_of(const struct context *ctx, uint32_t worker)
{
	return (struct abi_doorbell *)(ctx->region.base + ctx->doorbell_off +
				       (size_t)worker * ctx->doorbell_stride);
}

/* The QP's current worker, which may have changed (abi_queue.bell). */
static uint32_t worker_of(const struct context *ctx, const struct qp *qp)
{
	uint32_t bell = atomic_load_explicit(&qp->sq.shared->bell, memory_order_relaxed);

	return bell && bell <= ctx->workers ? bell - 1 : qp->worker;
}

/* Rings the bell, and wakes the worker if it sleeps. As with the mark and need_doorbell, either the
 * worker sees the bell in its final check, or we see that it sleeps. */
static void ring(const struct qp *qp)
{
	static const uint64_t one = 1;
	const struct context *ctx = context_of(qp->pub.context);
	uint32_t worker = worker_of(ctx, qp);
	struct abi_doorbell *db = doorbell_of(ctx, worker);
	long n;

	abi_doorbell_ring(db, qp->slot);
	if (ctx->wake[worker] < 0)
		return;
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&db->asleep, memory_order_relaxed))
		return;
	/* not write(), a cancellation point: the caller holds a lock */
	n = syscall(SYS_write, ctx->wake[worker], &one, sizeof(one));
	(void)n; /* cannot overflow: it counts to 2^64 */
}

/* Called after the last entry of a post call: one fence for all entries, then the bell if rocid has
 * stopped polling the ring. Either it sees the entries when it looks again after requesting the
 * bell, or we see the request. */
static void ring_bell(struct qp *qp, struct queue *q)
{
	atomic_store_explicit(&q->shared->producer, q->producer, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&q->shared->need_doorbell, memory_order_relaxed))
		ring(qp);
}

static int may_post(const struct qp *qp, uint32_t first)
{
	struct context *ctx = context_of(qp->pub.context);
	uint32_t state = atomic_load_explicit(&qp->state, memory_order_relaxed);

	if (atomic_load_explicit(&ctx->dead, memory_order_relaxed))
		return fail_const(EIO, "rocid is gone: start it again, then open a new session");
	if (state < first)
		return fail(EINVAL, "the QP is in %s: move it to %s first",
			roci_qp_state_str((enum roci_qp_state)state),
			roci_qp_state_str((enum roci_qp_state)first));
	return 0;
}

/* Fast path for SENDs, WRITEs and READs of one SGE, which most requests are. Makes all checks at
 * once, and writes the entry without examining the opcode again.
 * @return false if @p wr is of another kind or invalid, or there may be no room: take the slow
 * path. */
static ALWAYS_INLINE bool post_plain(struct qp *qp, const struct roci_send_wr *wr)
{
	const unsigned flags = ROCI_SEND_SIGNALED | ROCI_SEND_SOLICITED;
	struct queue *q = &qp->sq;
	unsigned op = (unsigned)wr->opcode;
	struct abi_wqe *w;

	if (op > ROCI_WR_RDMA_READ || !(qp->plain >> op & 1))
		return false;
	if (((unsigned)wr->num_sge ^ 1) | (wr->send_flags & ~flags))
		return false;
	if (wr->sg_list->length > MESSAGE_MAX || q->producer - q->tail >= q->depth)
		return false;
	w = entry(q, q->producer);
	w->wr_id = wr->wr_id;
	if (op != ROCI_WR_SEND) {
		w->remote_addr = wr->wr.rdma.remote_addr;
		w->rkey = wr->wr.rdma.rkey;
	}
	put_sges((uint8_t *)w + ABI_WQE_HDR, wr->sg_list, 1);
	hand_over(q, &w->ctl, ABI_WQE_CTL(op, 1, wqe_flags(qp, wr->send_flags & flags)));
	return true;
}

int roci_post_send(
	struct roci_qp *p, const struct roci_send_wr *wr, const struct roci_send_wr **bad_wr)
{
	struct qp *qp = (struct qp *)p;
	struct queue *q = &qp->sq;
	uint32_t before;
	int err;

	spin_lock(&q->lock);
	before = q->producer;
	err = may_post(qp, ROCI_QPS_RTS); /* REQ-20, QPS-17; SQD, SQE and ERR are greater */
	for (; !err && wr; wr = wr->next) {
		uint64_t length;

		if (likely(post_plain(qp, wr)))
			continue;
		err = check_send(qp, wr, &length);
		if (!err && qp->datagram)
			err = check_datagram(qp, wr);
		if (!err && sq_full(q)) /* REQ-19 */
			err = fail_const(ENOMEM, "the send queue is full: poll its completions");
		if (err)
			break;
		put_send(qp, wr, length);
	}
	if (q->producer != before)
		ring_bell(qp, q);
	spin_unlock(&q->lock);
	if (err && bad_wr) /* REQ-17: the requests before it stay posted */
		*bad_wr = wr;
	return err;
}

/* --- entry by entry ---------------------------------------------------------------------- */

void roci_build_init(struct roci_qp *p, struct roci_builder *b)
{
	const struct qp *qp = (const struct qp *)p;

	*b = (struct roci_builder){
		.entries = qp->sq.entries,
		.mask = qp->sq.depth - 1,
		.stride = qp->sq.stride,
		.max_sge = qp->sq.max_sge,
		.max_inline = qp->max_inline,
	};
}

int roci_build_begin(struct roci_qp *p, struct roci_builder *b)
{
	struct qp *qp = (struct qp *)p;
	struct queue *q = &qp->sq;

	spin_lock(&q->lock);
	b->next = q->producer;
	b->err = may_post(qp, ROCI_QPS_RTS);
	b->limit = likely(!b->err) ? q->tail + q->depth : b->next;
	return b->err;
}

int roci_build_room(struct roci_qp *p, struct roci_builder *b)
{
	struct queue *q = &((struct qp *)p)->sq;

	sq_reclaim(q);
	b->limit = q->tail + q->depth;
	if (b->next == b->limit) /* REQ-19 */
		return fail_const(ENOMEM, "the send queue is full: poll its completions");
	return 0;
}

/* Each entry still has the mark of the previous lap: flipping it hands the entry over. */
int roci_build_commit(struct roci_qp *p, struct roci_builder *b)
{
	struct qp *qp = (struct qp *)p;
	struct queue *q = &qp->sq;

	for (uint32_t i = q->producer; i != b->next; i++) {
		uint32_t *ctl = &((struct abi_wqe *)entry(q, i))->ctl;

		atomic_store_explicit(
			(_Atomic uint32_t *)ctl, *ctl ^ ABI_WQE_PHASE, memory_order_release);
	}
	q->producer = b->next;
	ring_bell(qp, q);
	spin_unlock(&q->lock);
	return 0;
}

void roci_build_abort(struct roci_qp *p)
{
	spin_unlock(&((struct qp *)p)->sq.lock);
}

/* --- receiving -------------------------------------------------------------------------- */

static int check_recv(const struct queue *q, const struct roci_recv_wr *wr)
{
	uint32_t polled = atomic_load_explicit(&q->polled, memory_order_acquire);

	if (wr->num_sge < 0 || (unsigned)wr->num_sge > q->max_sge)
		return fail(EINVAL,
			"num_sge is %d, but the QP was created for %u: raise max_recv_sge",
			wr->num_sge, q->max_sge);
	if (q->producer - polled >= q->depth)
		return fail_const(ENOMEM, "the receive queue is full: poll its completions");
	return 0;
}

void recv_put(struct queue *q, const struct roci_recv_wr *wr)
{
	struct abi_recv_wqe *w = entry(q, q->producer);

	w->wr_id = wr->wr_id;
	put_sges((uint8_t *)w + ABI_RECV_WQE_HDR, wr->sg_list, (uint32_t)wr->num_sge);
	hand_over(q, &w->ctl, ABI_WQE_CTL(0, wr->num_sge, 0));
}

int roci_post_recv(
	struct roci_qp *p, const struct roci_recv_wr *wr, const struct roci_recv_wr **bad_wr)
{
	struct qp *qp = (struct qp *)p;
	struct queue *q = &qp->rq;
	uint32_t before;
	int err;

	spin_lock(&q->lock);
	before = q->producer;
	err = p->srq || p->qp_type == ROCI_QPT_XRC_SEND || p->qp_type == ROCI_QPT_XRC_RECV
		      ? fail_const(EINVAL, /* SRQ-01 */
				"the QP takes its receives from an SRQ: use roci_post_srq_recv()")
		      : may_post(qp, ROCI_QPS_INIT); /* QPS-17 */
	for (; !err && wr; wr = wr->next) {
		err = check_recv(q, wr);
		if (err)
			break;
		recv_put(q, wr);
	}
	if (q->producer != before)
		ring_bell(qp, q);
	spin_unlock(&q->lock);
	if (err && bad_wr)
		*bad_wr = wr;
	return err;
}

/* --- flush after rocid's death --------------------------------------------------------- */

static struct roci_wc flushed(const struct qp *qp, uint64_t wr_id, enum roci_wc_opcode opcode)
{
	return (struct roci_wc){
		.wr_id = wr_id,
		.status = ROCI_WC_WR_FLUSH_ERR,
		.opcode = opcode,
		.qp_num = qp->pub.qp_num,
	};
}

int sq_flush(struct qp *qp, int max, struct roci_wc *wc)
{
	struct queue *q = &qp->sq;
	uint32_t consumer = atomic_load_explicit(&q->shared->consumer, memory_order_acquire);
	int n = 0;

	spin_lock(&q->lock);
	sq_reclaim(q);
	/* rocid advances the index after writing the completions, all of which have been polled. */
	if ((int32_t)(consumer - q->tail) > 0)
		q->tail = consumer;
	while (n < max && (int32_t)(q->producer - q->tail) > 0) {
		const struct abi_wqe *w = entry(q, q->tail++);

		wc[n++] = flushed(qp, w->wr_id, ROCI_WC_SEND);
	}
	spin_unlock(&q->lock);
	return n;
}

int rq_flush(struct qp *qp, int max, struct roci_wc *wc)
{
	struct queue *q = &qp->rq;
	uint32_t polled = atomic_load_explicit(&q->polled, memory_order_relaxed);
	int n = 0;

	spin_lock(&q->lock);
	for (; n < max && polled != q->producer; polled++) {
		const struct abi_recv_wqe *w = entry(q, polled);

		wc[n++] = flushed(qp, w->wr_id, ROCI_WC_RECV);
	}
	atomic_store_explicit(&q->polled, polled, memory_order_release);
	spin_unlock(&q->lock);
	return n;
}

void queue_discard(struct queue *q)
{
	spin_lock(&q->lock);
	q->tail = q->producer;
	q->counted = q->producer;
	atomic_store_explicit(&q->polled, q->producer, memory_order_release);
	spin_unlock(&q->lock);
}
