/* SPDX-License-Identifier: BSD-3-Clause */
/** @file np.h  Notification point: packets that met congestion -> CNPs (A17.9.3). */
#ifndef NP_H
#define NP_H

#include <stdbool.h>
#include <stdint.h>
#include "headers.h"
#include "pkt.h"

struct core;
struct qp;
struct txd;

/** @return whether a switch has marked @p pkt "congestion experienced". */
static inline bool np_is_marked(const struct pkt *pkt)
{
	return (pkt->tclass & ECN_MASK) == ECN_CE;
}

/** The valid packet @p pkt for @p qp has met congestion: owes its source a CNP, unless one was owed
 *  within the interval. */
void np_marked(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

/** Builds the CNPs that are owed and whose egress is open, in a quarter of @p n packets at most.
 *  @return their number. */
unsigned np_tx(struct core *c, struct txd *out, unsigned n);

/** @p qp leaves this core: it owes no CNPs. The interval after one that was sent continues. */
void np_forget(struct core *c, struct qp *qp);

/** @p qp starts from scratch: it owes no CNPs, and answers the next mark. */
void np_restart(struct core *c, struct qp *qp);

#endif
