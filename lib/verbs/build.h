/* SPDX-License-Identifier: BSD-3-Clause */
/** @file build.h  Send ring entries as rocid reads them. */
#ifndef BUILD_H
#define BUILD_H

#include "abi_ring.h"
#include "verbs.h"

/** @return the entry with index @p idx. */
static inline struct abi_wqe *build_entry(const struct roci_builder *b, uint32_t idx)
{
	return (struct abi_wqe *)(b->entries + (size_t)(idx & b->mask) * b->stride);
}

/** @return the control word of the entry with index @p idx. It carries the mark of the previous
 *  lap, so that rocid does not see it yet. The caller adds the inline flag. */
static inline uint32_t build_ctl(
	const struct qp *qp, uint32_t idx, unsigned op, uint32_t count, unsigned flags)
{
	uint32_t ctl = ABI_WQE_CTL(op, count, 0) | qp->ctl;

	_Static_assert((int)IBV_SEND_SIGNALED == ABI_WQE_SIGNALED &&
			       (int)IBV_SEND_SOLICITED == ABI_WQE_SOLICITED &&
			       IBV_SEND_FENCE << 3 == ABI_WQE_FENCE,
		"bits are shifted together");
	ctl |= flags & (IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
	ctl |= (flags & IBV_SEND_FENCE) << 3;
	return ctl | (abi_phase(idx, qp->builder.mask + 1) ^ 1);
}

#endif
