/* SPDX-License-Identifier: BSD-3-Clause */
/** @file rp.h  Reaction point: CNPs that arrive (A17.9.3). */
#ifndef RP_H
#define RP_H

#include "qp.h"

/** A CNP for @p qp has arrived, with a good ICRC.
 *  @param address  what is wrong with its source, DROP_NONE for that of the QP's peer
 *  @return the reason why it is ignored, or DROP_NONE. */
enum drop rp_cnp(struct core *c, struct qp *qp, const struct pkt *pkt, enum drop address,
	uint64_t now);

#endif
