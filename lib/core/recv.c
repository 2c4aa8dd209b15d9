/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive WQEs: taken, filled and completed for the responder; flushed and discarded with the QP.
 */
#include "complete.h"
#include "core_memory.h"
#include "cq.h"
#include "mr.h"
#include "opcode.h"
#include "qp_impl.h"
#include "recv.h"
#include "responder.h"
#include "srq.h"
#include "uaccess.h"
#include "wqe.h"

/* A private copy of an entry. */
union entry {
	struct abi_recv_wqe wqe;
	uint8_t bytes[SRQ_ENTRY_MAX];
} __attribute__((aligned(16))); /* for uaccess_wqe() */
_Static_assert(ABI_RECV_WQE_HDR + SGE_MAX * sizeof(struct abi_sge) <= sizeof(union entry),
	"a receive WQE fits its copy");

static ALWAYS_INLINE void wqe_read(
	struct qp *qp, const union entry *copy, uint32_t max_sge, uint32_t pd)
{
	struct recv_wqe *w = &qp->resp.wqe;
	/* wqe.sge is declared only as long as the smallest entry. */
	const struct abi_sge *sge = (const void *)(copy->bytes + ABI_RECV_WQE_HDR);
	uint32_t n = ABI_WQE_COUNT(copy->wqe.ctl);

	w->wr_id = copy->wqe.wr_id;
	w->length = 0;
	w->pd = pd;
	w->invalid = n > max_sge;
	w->num_sge = w->invalid ? 0 : n;
	for (uint32_t i = 0; i < w->num_sge; i++) {
		w->sge[i] = sge[i];
		w->length += w->sge[i].length; /* 64 bits: the sum of sixteen may exceed 4 GiB */
	}
	if (w->length > MSG_LEN_MAX)
		w->length = MSG_LEN_MAX;
	qp->resp.have_wqe = true;
	qp->resp.recv_off = 0;
}

/* From the QP's own receive queue. */
static ALWAYS_INLINE bool rq_take(struct qp *qp)
{
	struct ring *rq = &qp->rq;
	union entry copy;

	if (!ring_ready(rq))
		return false;
	uaccess_wqe(&copy, ring_slot(rq), rq->stride);
	rq->next++;
	atomic_store_explicit(&rq->shared->consumer, rq->next, memory_order_release);
	wqe_read(qp, &copy, rq->max_sge, qp->pd);
	return true;
}

/* SRQ-02: one per message, whichever QP and worker receives it. */
static NOINLINE bool shared_take(struct core *c, struct qp *qp, struct srq *srq)
{
	union entry copy;
	enum srq_taken taken = srq_take(srq, &copy);

	if (taken == SRQ_BROKEN) {
		if (srq_break(srq))
			srq_event(c, srq, ABI_EVENT_SRQ_ERR); /* SRQ-08, EVT-04 */
		return false;
	}
	if (srq_limit_reached(srq)) /* by what is left, or by a take that failed (SRQ-04) */
		srq_event(c, srq, ABI_EVENT_SRQ_LIMIT_REACHED);
	if (taken == SRQ_EMPTY)
		return false;
	qp->rq.next++; /* for the trace and for queries */
	wqe_read(qp, &copy, srq->max_sge, srq->pd);
	return true;
}

/* XRC-04: the SRQ that a request names, if it belongs to the QP's domain. */
static struct srq *srq_of_domain(const struct core *c, const struct qp *qp, uint32_t srqn)
{
	struct srq *srq = srq_find(c->cfg.srqs, srqn);

	return srq && srq->xrcd && srq->xrcd == qp->xrc.xrcd ? srq : NULL;
}

void recv_name(const struct core *c, struct qp *qp, uint32_t srqn)
{
	const struct srq *srq;

	qp->xrc.named = srqn;
	if (!qp->xrc.follows)
		return;
	srq = srq_of_domain(c, qp, srqn);
	qp->pd = srq ? srq->pd : 0;
}

static struct srq *srq_of(const struct core *c, const struct qp *qp)
{
	if (qp->srq || qp->type != ABI_QPT_XRC_RECV)
		return qp->srq;
	return srq_of_domain(c, qp, qp->xrc.named);
}

static NOINLINE bool no_rq_take(struct core *c, struct qp *qp)
{
	struct srq *srq = srq_of(c, qp);

	qp->xrc.held = qp->xrc.named;
	return srq && shared_take(c, qp, srq);
}

bool recv_wqe_take_rc(struct core *c, struct qp *qp)
{
	return likely(qp->rq.depth) ? rq_take(qp) : no_rq_take(c, qp);
}

NOINLINE bool recv_wqe_take(struct core *c, struct qp *qp)
{
	return qp->rq.depth ? rq_take(qp) : no_rq_take(c, qp);
}

enum cause recv_wqe_hopeless(const struct core *c, const struct qp *qp)
{
	const struct srq *srq = srq_of(c, qp);

	if (!srq)
		return qp->type == ABI_QPT_XRC_RECV ? CAUSE_XRC_SRQ : CAUSE_NONE;
	return atomic_load_explicit(&srq->broken, memory_order_relaxed) ? CAUSE_SRQ_BROKEN
									: CAUSE_NONE;
}

void recv_starved(struct core *c, const struct qp *qp)
{
	struct srq *srq = srq_of(c, qp);

	c->count.out_of_buffer++;
	if (srq)
		atomic_fetch_add_explicit(&srq->starved, 1, memory_order_relaxed);
}

enum drop recv_wqe_missed(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	enum cause why = recv_wqe_hopeless(c, qp);

	recv_starved(c, qp);
	if (unlikely(why != CAUSE_NONE)) {
		cause_request(c, qp, pkt, why);
		qp_event(c, qp, ABI_EVENT_QP_FATAL);
		qp_error(c, qp, now);
	}
	return DROP_NO_RECV_WQE;
}

bool recv_srq_gone(const struct core *c, const struct qp *qp)
{
	return qp->resp.have_wqe && !srq_of_domain(c, qp, qp->xrc.held);
}

uint32_t recv_max_sge(const struct core *c, const struct qp *qp)
{
	const struct srq *srq =
		qp->type == ABI_QPT_XRC_RECV ? srq_of_domain(c, qp, qp->xrc.held) : qp->srq;

	return srq ? srq->max_sge : qp->rq.max_sge;
}

/* XRC-05: completes in the SRQ's CQ, on this worker's lane. The SRQ, and its CQ with it, may have
 * been destroyed.
 */
static NOINLINE void xrc_complete(struct core *c, struct qp *qp, struct abi_cqe *cqe, uint64_t now)
{
	const struct srq *srq = srq_of_domain(c, qp, qp->xrc.held);

	if (!srq)
		return;
	cqe->srqn = srq->srqn;
	qp->recv_lane = &srq->cq->lane[c->cfg.worker];
	qp_complete(c, qp, cqe, now);
	qp->recv_lane = NULL; /* no QP holds a lane of a CQ that may be destroyed */
}

static ALWAYS_INLINE void complete(
	struct core *c, struct qp *qp, uint8_t status, const struct pkt *pkt, uint64_t now)
{
	struct abi_cqe cqe = {
		/* CQ-08: valid in errors too */
		.wr_id = qp->resp.wqe.wr_id,
		.qpn = qp->qpn,
		.src_qp = qp->attr.dest_qpn,
		.status = status,
		.opcode = ABI_WC_RECV,
	};

	if (pkt) {
		cqe.byte_len = qp->resp.recv_off;
		if (pkt->op->kind == KIND_WRITE) {
			cqe.opcode = ABI_WC_RECV_RDMA_WITH_IMM;
			cqe.byte_len = qp->resp.write_len; /* CQ-09 */
		}
		if (pkt->op->immdt) {
			cqe.flags |= ABI_WC_WITH_IMM;
			cqe.imm = pkt->imm;
		}
		if (unlikely(pkt->op->ieth)) { /* INV-02 */
			cqe.flags |= ABI_WC_WITH_INV;
			cqe.imm = pkt->rkey;
		}
		if (pkt->se)
			cqe.flags |= ABI_WC_SOLICITED; /* RSP-51 */
	}
	qp->resp.have_wqe = false;
	if (unlikely(status != ABI_WC_SUCCESS)) {
		c->count.resp_cqe_error++;
		c->count.resp_cqe_flush_error += status == ABI_WC_WR_FLUSH_ERR;
	}
	if (unlikely(qp->type == ABI_QPT_XRC_RECV))
		xrc_complete(c, qp, &cqe, now);
	else
		qp_complete(c, qp, &cqe, now);
}

void recv_complete_rc(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	complete(c, qp, ABI_WC_SUCCESS, pkt, now);
}

NOINLINE void recv_complete(
	struct core *c, struct qp *qp, uint8_t status, const struct pkt *pkt, uint64_t now)
{
	complete(c, qp, status, pkt, now);
}

/* The fault has withdrawn the region whose page was gone (decision 0003). Without frames, it may
 * be the region of the source; then the error is not this QP's. */
static NOINLINE void place_fault(struct core *c, struct qp *qp, uint32_t lkey)
{
	c->count.access_faults++;
	if (!mr_find(c->cfg.mrs, lkey))
		cause_plain(qp, CAUSE_RECV_FAULT, 0);
}

void recv_fault(struct core *c, struct qp *qp, uint64_t wr_id, uint32_t lkey)
{
	qp->resp.wqe.wr_id = wr_id;
	qp->resp.have_wqe = true;
	place_fault(c, qp, lkey);
}

static ALWAYS_INLINE uint8_t place(
	struct core *c, struct qp *qp, uint64_t off, const uint8_t *data, uint32_t len)
{
	const struct recv_wqe *w = &qp->resp.wqe;

	for (uint32_t i = 0; len && i < w->num_sge; i++) {
		const struct abi_sge *sge = &w->sge[i];
		uint32_t part;
		uint8_t *ptr;

		if (off >= sge->length) {
			off -= sge->length;
			continue;
		}
		part = sge->length - (uint32_t)off;
		if (part > len)
			part = len;
		if (mr_resolve(c->cfg.mrs, sge->lkey, w->pd, ABI_ACCESS_LOCAL_WRITE,
			    sge->addr + off, part, &ptr) != MR_OK) {
			cause_recv_key(c, qp, sge->lkey, sge->addr + off, part);
			return ABI_WC_LOC_PROT_ERR;
		}
		if (!uaccess_place(core_memory(c), ptr, data, part)) {
			place_fault(c, qp, sge->lkey);
			return ABI_WC_LOC_PROT_ERR;
		}
		data += part;
		len -= part;
		off = 0;
	}
	return 0;
}

uint8_t recv_place(struct core *c, struct qp *qp, const struct pkt *pkt)
{
	return place(c, qp, qp->resp.recv_off, pkt->payload, pkt->payload_len);
}

uint8_t recv_place_at(
	struct core *c, struct qp *qp, uint64_t off, const uint8_t *data, uint32_t len)
{
	return place(c, qp, off, data, len);
}

bool recv_whole(struct core *c, struct qp *qp, const uint8_t *data, uint32_t len, bool solicited,
	uint64_t now)
{
	const struct pkt pkt = {.op = opcode_row(OP_SEND_ONLY), .se = solicited};
	struct qp_resp *r = &qp->resp;

	if (!r->have_wqe && !(likely(qp->rq.depth) ? rq_take(qp) : no_rq_take(c, qp)))
		return false;
	if (r->wqe.invalid || len > r->wqe.length || place(c, qp, 0, data, len)) /* RSP-20 */
		return false;
	r->recv_off = len;
	complete(c, qp, ABI_WC_SUCCESS, &pkt, now);
	return true;
}

/* SRQ-07, EVT-04: the QP has taken its last WQE. Further WQEs of the SRQ go to other QPs. */
static void last_wqe_reached(struct core *c, struct qp *qp)
{
	if ((!qp->srq && qp->type != ABI_QPT_XRC_RECV) || qp->resp.last_wqe)
		return;
	qp->resp.last_wqe = true;
	qp_event(c, qp, ABI_EVENT_QP_LAST_WQE);
}

bool responder_flush_one(struct core *c, struct qp *qp, uint64_t now)
{
	if (!qp->resp.have_wqe && !(qp->rq.depth && rq_take(qp))) {
		last_wqe_reached(c, qp);
		return false;
	}
	recv_complete(c, qp, ABI_WC_WR_FLUSH_ERR, NULL, now);
	return true;
}

uint32_t responder_discard(struct qp *qp, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && qp->rq.depth && rq_take(qp))
		n++;
	qp->resp.have_wqe = false;
	return n;
}
