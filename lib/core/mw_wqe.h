/* SPDX-License-Identifier: BSD-3-Clause */
/** @file mw_wqe.h  Memory windows (obj/mw.h) as work requests and packets change them. */
#ifndef MW_WQE_H
#define MW_WQE_H

#include "mw.h"
#include "qp.h"

/** Goes on with @p w, a WQE at the cursor whose status is not 0.
 *  @return true when it is executed, and what is behind it may go; false when that waits. */
bool mw_wqe_work(struct core *c, struct qp *qp, struct send_wqe *w);

/** @return whether the WQE at the cursor, which exists, was begun and waits for a grace period. */
bool mw_wqe_waits(const struct qp *qp);

/** The QP has another worker from here on, with grace periods of its own. */
void mw_wqe_moved(struct qp *qp);

/** Invalidates @p key, because the peer or this side says so, for @p qp. */
enum mw_result mw_qp_invalidate(struct core *c, struct qp *qp, uint32_t key);

#endif
