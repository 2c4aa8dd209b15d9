/* SPDX-License-Identifier: BSD-3-Clause */
/** @file complete.h  The completion of a work request. */
#ifndef COMPLETE_H
#define COMPLETE_H

#include "bits.h"
#include "core.h"
#include "cq.h"
#include "qp.h"

/** A CQE of @p qp did not fit into @p lane, for the first time if @p first: CQ_ERR and
 *  QP_FATAL (CQ-01). */
void qp_overflown(struct core *c, struct qp *qp, struct cq_lane *lane, bool first, uint64_t now);

/** trace.h. By value: taking the address of a CQE would force it into memory, and cq_push() would
 *  copy it.
 */
void trace_cqe(const struct core *c, const struct qp *qp, uint64_t wr_id, uint8_t status,
	uint8_t opcode, uint32_t byte_len, uint64_t now);

/** Puts a CQE on the lane that its opcode selects. */
static inline void qp_complete(
	struct core *c, struct qp *qp, const struct abi_cqe *cqe, uint64_t now)
{
	bool recv = cqe->opcode & ABI_WC_RECV;
	struct cq_lane *lane = recv ? qp->recv_lane : qp->send_lane;
	uint32_t *number = recv ? &qp->resp.cqes : &qp->comp.cqes;
	bool first = !lane->overflow;

	if (unlikely(qp->traced))
		trace_cqe(c, qp, cqe->wr_id, cqe->status, cqe->opcode, cqe->byte_len, now);
	if (unlikely(!cq_push(lane, cqe, *number))) {
		qp_overflown(c, qp, lane, first, now);
		return;
	}
	++*number;
	if (list_empty(&lane->touched))
		list_push(&c->touched, &lane->touched);
}

#endif
