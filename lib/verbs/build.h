/* SPDX-License-Identifier: BSD-3-Clause */
/** @file build.h  Entries of a send ring, as rocid reads them. */
#ifndef BUILD_H
#define BUILD_H

#include "abi_ring.h"
#include "verbs.h"

/** @return the entry of index @p idx. */
static inline struct abi_wqe *build_entry(const struct roci_builder *b, uint32_t idx)
{
	return (struct abi_wqe *)(b->entries + (size_t)(idx & b->mask) * b->stride);
}

/** @return the control word of the entry with index @p idx that rocid cannot see yet: its mark is
 *  that of the last lap. The inline flag is the caller's. */
static inline uint32_t build_ctl(
	const struct qp *qp, uint32_t idx, unsigned op, uint32_t count, unsigned flags)
{
	uint32_t ctl = ABI_WQE_CTL(op, count, 0) | qp->ctl;

	_Static_assert((int)IBV_SEND_SIGNALED == ABI_WQE_SIGNALED &&
			       (int)IBV_SEND_SOLICITED == ABI_WQE_SOLICITED &&
			       IBV_SEND_FENCE << 3 == ABI_WQE_FENCE,
		"bits are moved together");
	ctl |= flags & (IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
	ctl |= (flags & IBV_SEND_FENCE) << 3;
	return ctl | (abi_phase(idx, qp->builder.mask + 1) ^ 1);
}

#endif
