/* SPDX-License-Identifier: BSD-3-Clause */
/** @file mw_wqe.h  Memory windows (obj/mw.h) as work requests and packets change them. */
#ifndef MW_WQE_H
#define MW_WQE_H

#include "mw.h"

struct core;
struct qp;
struct send_wqe;

/** Advances @p w, a WQE at the cursor whose status is not 0.
 *  @return true when it is executed and the next WQE may be handled; false when it still waits. */
bool mw_wqe_work(struct core *c, struct qp *qp, struct send_wqe *w);

/** @return whether the WQE at the cursor, which exists, was begun and waits for a grace period. */
bool mw_wqe_waits(const struct qp *qp);

/** The QP now belongs to another worker, with grace periods of its own. */
void mw_wqe_moved(struct qp *qp);

/** Invalidates @p key for @p qp, by request of the peer or of this side. */
enum mw_result mw_qp_invalidate(struct core *c, struct qp *qp, uint32_t key);

#endif
