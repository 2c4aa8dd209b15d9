/* SPDX-License-Identifier: BSD-3-Clause */
/** @file uc.h  UC responder: request packets -> memory and completions; never a response. */
#ifndef UC_H
#define UC_H

#include <stdint.h>
#include "drop.h"

struct core;
struct pkt;
struct qp;

/** Handles a packet for a UC QP after the checks of ICRC, addresses and QP state.
 *  @return 0 or the reason for the drop. */
enum drop uc_rx(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

#endif
