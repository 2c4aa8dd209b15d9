/* SPDX-License-Identifier: BSD-3-Clause */
/** @file uc.h  UC responder: request packets -> memory and completions; never an answer. */
#ifndef UC_H
#define UC_H

#include "qp.h"

/** Takes a packet of a UC QP whose ICRC, address and QP state are good.
 *  @return 0 or the reason for the drop. */
enum drop uc_rx(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

#endif
