/* SPDX-License-Identifier: BSD-3-Clause */
/** @file ud.h  Datagrams: QPs of type UD, and QP1, the general services interface (GSI). */
#ifndef UD_H
#define UD_H

#include "qp.h"

/** Q_Key of QP1 (IBA 10.2.5). */
#define QKEY_GSI 0x80010000u
/** A Q_Key in a work request with this bit stands for the QP's own (UD-03). */
#define QKEY_OWN 0x80000000u

/** @return the Q_Key that packets for @p qp must have, and that it sends as its own. */
static inline uint32_t ud_qkey(const struct qp *qp)
{
	return qp->type == ABI_QPT_GSI ? QKEY_GSI : qp->attr.qkey;
}

/* --- ud.c: receiving ------------------------------------------------------------------ */

/** Takes a datagram for @p qp whose ICRC, QP state and, but for QP1, P_Key are good.
 *  @return 0 or the reason for the drop. */
enum drop ud_rx(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

/* --- ud_tx.c: sending ----------------------------------------------------------------- */

/** Bytes behind a private WQE for the way that its datagram takes. */
#define UD_WQE_PATH ((sizeof(struct path) + 15) & ~(size_t)15)

/** Finds the way of the datagram @p w, whose entry @p e was copied, and keeps a copy of it: what
 *  becomes of the address handle then does not matter (UD-16). */
void ud_address(struct core *c, const struct qp *qp, struct send_wqe *w, const struct abi_wqe *e);

/** @return by which egress the next datagram of @p qp leaves; EGRESS_NONE: it is not fetched yet,
 * so ud_build() will see, or none is sent for it. */
unsigned ud_egress(const struct core *c, const struct qp *qp);

/** Builds the packet of @p w.  @return false when a key fails, or its egress is closed. */
bool ud_build(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t);

/** CORE_CMD_SNAPSHOT_QPS.  @return 0, or -EAGAIN: more steps are needed. */
int ud_snapshot(struct core *c, struct core_cmd *cmd);

#endif
