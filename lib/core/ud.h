/* SPDX-License-Identifier: BSD-3-Clause */
/** @file ud.h  Datagrams: QPs of type UD, and QP1, the general services interface (GSI). */
#ifndef UD_H
#define UD_H

#include <stdbool.h>
#include <stdint.h>
#include "drop.h"

struct abi_wqe;
struct core;
struct core_cmd;
struct pkt;
struct qp;
struct send_wqe;
struct txd;

/** Q_Key of QP1 (IBA 10.2.5). */
#define QKEY_GSI 0x80010000u
/** A Q_Key with this bit in a work request stands for the QP's own (UD-03). */
#define QKEY_OWN 0x80000000u

/* --- ud.c: receiving ------------------------------------------------------------------ */

/** Receives a datagram for @p qp after the checks of ICRC, QP state and, except for QP1, P_Key.
 *  @return 0 or the reason for the drop. */
enum drop ud_rx(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

/** Delivers to @p qp a datagram without a frame: @p pkt is what ud_rx() would get, but its payload
 * is in the pieces of @p t.  @return false if it does not succeed at once: then ud_rx() finds the
 * reason. */
bool ud_deliver(
	struct core *c, struct qp *qp, const struct pkt *pkt, const struct txd *t, uint64_t now);

/* --- ud_tx.c: sending ----------------------------------------------------------------- */

/** Resolves the path of datagram @p w, whose entry @p e was copied, and keeps a copy of it: later
 *  changes to the address handle do not matter (UD-16). */
void ud_address(struct core *c, const struct qp *qp, struct send_wqe *w, const struct abi_wqe *e);

/** @return the egress of the next datagram of @p qp; EGRESS_NONE: it is not fetched yet, which
 * ud_build() will find out, or nothing is sent for it. */
unsigned ud_egress(const struct core *c, const struct qp *qp);

/** Builds the packet of @p w.  @return false when a key fails, or its egress is closed. */
bool ud_build(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t);

/** The same for a packet that is not sent: direct_ud.c. */
bool ud_draft(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t);

/** Mark of the frame with PSN @p psn: qp.local_sent, qp.local_arrived. */
static inline uint32_t ud_mark(uint32_t psn)
{
	return 1u << 31 | psn;
}

/** CORE_CMD_SNAPSHOT_QPS.  @return 0, or -EAGAIN: more steps are needed. */
int ud_snapshot(struct core *c, struct core_cmd *cmd);

#endif
