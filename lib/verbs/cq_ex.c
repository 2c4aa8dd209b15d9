/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended CQs: completions are read in place, where rocid wrote them. */
#include <arpa/inet.h>
#include "verbs.h"

static struct cq *of(struct ibv_cq_ex *ex)
{
	return (struct cq *)ex;
}

static const struct abi_cqe *cqe_of(struct ibv_cq_ex *ex)
{
	return of(ex)->reader.cqe;
}

static int taken(struct ibv_cq_ex *ex, int err)
{
	const struct abi_cqe *e;

	if (err)
		return err;
	e = cqe_of(ex);
	ex->wr_id = e->wr_id;
	ex->status = (enum ibv_wc_status)e->status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct cq *cq = of(ex);
	int err;

	if (attr->comp_mask)
		return EINVAL;
	err = roci_read_start(cq->roci, &cq->reader);
	if (cq->context->yields) {
		if (err)
			cq_idle(cq);
		else
			cq->empty = 0;
	}
	return taken(ex, err);
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return taken(ex, roci_read_next(of(ex)->roci, &of(ex)->reader));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	roci_read_end(of(ex)->roci, &of(ex)->reader);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return (enum ibv_wc_opcode)cqe_of(ex)->opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return cqe_of(ex)->vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return cqe_of(ex)->byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return cqe_of(ex)->imm;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	const struct roci_qp *qp = of(ex)->reader.qp;

	return qp ? qp->qp_num : cqe_of(ex)->qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return cqe_of(ex)->src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return cqe_of(ex)->flags & (IBV_WC_GRH | IBV_WC_WITH_IMM | IBV_WC_WITH_INV);
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

/* Decision 0107. */
static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return cq_sl(cqe_of(ex)->flags, cqe_of(ex)->sl, cqe_of(ex)->net);
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return cqe_of(ex)->flags & IBV_WC_GRH ? cqe_of(ex)->sl : 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return cqe_of(ex)->timestamp;
}

/* The tag as in the frame: priority and VLAN ID. */
static uint16_t read_cvlan(struct ibv_cq_ex *ex)
{
	const struct abi_cqe *e = cqe_of(ex);

	return (uint16_t)(e->vid | (e->vid ? e->sl << 13 : 0));
}

void cq_ex_set_ops(struct ibv_cq_ex *ex, uint64_t wc_flags)
{
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_CVLAN)
		ex->read_cvlan = read_cvlan;
}
