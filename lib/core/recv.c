/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive WQEs: taken, filled and completed for the responder; flushed and thrown away with the
 * QP.
 */
#include "recv.h"
#include "responder.h"

bool recv_wqe_take(struct qp *qp)
{
	struct ring *rq = &qp->rq;
	struct recv_wqe *w = &qp->resp.wqe;
	union {
		struct abi_recv_wqe wqe;
		uint8_t bytes[512];
	} copy CACHE_ALIGNED;
	/* wqe.sge is only as long as the smallest entry has room for. */
	const struct abi_sge *sge = (const void *)(copy.bytes + ABI_RECV_WQE_HDR);
	uint32_t n;

	_Static_assert(ABI_RECV_WQE_HDR + SGE_MAX * sizeof(struct abi_sge) <= sizeof(copy),
		"a receive WQE fits its copy");
	if (!rq->depth || !ring_ready(rq))
		return false;
	uaccess_wqe(&copy, ring_slot(rq), rq->stride);
	rq->next++;
	atomic_store_explicit(&rq->shared->consumer, rq->next, memory_order_release);
	n = ABI_WQE_COUNT(copy.wqe.ctl);
	w->wr_id = copy.wqe.wr_id;
	w->length = 0;
	w->invalid = n > rq->max_sge;
	w->num_sge = w->invalid ? 0 : n;
	for (uint32_t i = 0; i < w->num_sge; i++) {
		w->sge[i] = sge[i];
		w->length += w->sge[i].length; /* 64 bits: sixteen may exceed 4 GiB */
	}
	if (w->length > MSG_LEN_MAX)
		w->length = MSG_LEN_MAX;
	qp->resp.have_wqe = true;
	qp->resp.recv_off = 0;
	return true;
}

void recv_complete(
	struct core *c, struct qp *qp, uint8_t status, const struct pkt *pkt, uint64_t now)
{
	struct abi_cqe cqe = {
		/* CQ-08: these count in errors too */
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
		if (pkt->se)
			cqe.flags |= ABI_WC_SOLICITED; /* RSP-51 */
	}
	qp->resp.have_wqe = false;
	if (status != ABI_WC_SUCCESS && status != ABI_WC_WR_FLUSH_ERR)
		c->count.resp_cqe_error++;
	qp_complete(c, qp, &cqe, now);
}

uint8_t recv_place(struct core *c, struct qp *qp, const struct pkt *pkt)
{
	const struct recv_wqe *w = &qp->resp.wqe;
	const uint8_t *data = pkt->payload;
	uint64_t off = qp->resp.recv_off;
	uint32_t len = pkt->payload_len;

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
		if (mr_resolve(c->cfg.mrs, sge->lkey, qp->pd, ABI_ACCESS_LOCAL_WRITE,
			    sge->addr + off, part, &ptr) != MR_OK)
			return ABI_WC_LOC_PROT_ERR;
		if (!uaccess_place(&c->ua, ptr, data, part)) {
			c->count.access_faults++;
			return ABI_WC_LOC_PROT_ERR;
		}
		data += part;
		len -= part;
		off = 0;
	}
	return 0;
}

bool responder_flush_one(struct core *c, struct qp *qp, uint64_t now)
{
	if (!qp->resp.have_wqe && !recv_wqe_take(qp))
		return false;
	recv_complete(c, qp, ABI_WC_WR_FLUSH_ERR, NULL, now);
	return true;
}

uint32_t responder_discard(struct qp *qp, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && recv_wqe_take(qp))
		n++;
	qp->resp.have_wqe = false;
	return n;
}
