/* SPDX-License-Identifier: BSD-3-Clause */
/** @file rp.h  Reaction point: CNPs that arrive (A17.9.3), and Fast CNPs of switches. */
#ifndef RP_H
#define RP_H

#include "cc.h"
#include "qp.h"

/** A CNP for @p qp has arrived, with a good ICRC.
 *  @param address  what is wrong with its source, DROP_NONE for that of the QP's peer
 *  @return the reason why it is ignored, or DROP_NONE. */
enum drop rp_cnp(
	struct core *c, struct qp *qp, const struct pkt *pkt, enum drop address, uint64_t now);

/** The same for the Fast CNP @p pkt, whose source is one of the port's switches and whose option
 *  names the peer of @p qp. */
enum drop rp_fast_cnp(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

/** @p qp starts anew. */
void rp_reset(struct qp *qp);

#endif
