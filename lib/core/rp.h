/* SPDX-License-Identifier: BSD-3-Clause */
/** @file rp.h  Reaction point: CNPs that arrive (A17.9.3), and Fast CNPs of switches. */
#ifndef RP_H
#define RP_H

#include <stdbool.h>
#include <stdint.h>
#include "drop.h"

struct core;
struct path;
struct pkt;
struct qp;

/** A CNP for @p qp has arrived, with a good ICRC.
 *  @param address  what is wrong with its source, DROP_NONE for that of the QP's peer
 *  @return the reason why it is ignored, or DROP_NONE. */
enum drop rp_cnp(
	struct core *c, struct qp *qp, const struct pkt *pkt, enum drop address, uint64_t now);

/** The same for the Fast CNP @p pkt, whose source is one of the port's switches and whose option
 *  names the peer of @p qp.
 *  @param detour  the QP is to leave the congested path */
enum drop rp_fast_cnp(
	struct core *c, struct qp *qp, const struct pkt *pkt, bool detour, uint64_t now);

/** @p qp goes to RTR: it starts from scratch. */
void rp_restart(struct core *c, struct qp *qp);

/** @p qp is now this core's. Like a QP that has just begun, it counts as having sent lately. */
void rp_take(struct core *c, struct qp *qp);

/** Prepares the record in @p c of which QPs have sent lately. */
void rp_init(struct core *c, uint64_t now);

/** Before a core_tx() call at @p now, which is core.lately_until or later: calls of more than 10 ms
 * ago no longer count as recent. */
void rp_round(struct core *c, uint64_t now);

/** A datagram of @p qp leaves along @p path. */
void rp_sent_to(const struct core *c, struct qp *qp, const struct path *path);

#endif
