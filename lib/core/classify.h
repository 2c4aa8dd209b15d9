/* SPDX-License-Identifier: BSD-3-Clause */
/** @file classify.h  Handling of single received packets, for callers that look at each
 *  (inject.c). */
#ifndef CLASSIFY_H
#define CLASSIFY_H

#include "bits.h"
#include "core.h"
#include "headers.h"
#include "qp.h"

/** Counts a packet that was received. */
static inline void count_received(struct core *c, const struct pkt *pkt)
{
	struct core_port_counters *count = &c->count.port[pkt->port];

	count->rx_packets++;
	count->rx_bytes += pkt->icrc_off + (uint64_t)ICRC_LEN;
}

/** Counts a run of @p n packets, of @p bytes together, of which @p pkt is one. */
static inline void count_run(struct core *c, const struct pkt *pkt, unsigned n, uint64_t bytes)
{
	struct core_port_counters *count = &c->count.port[pkt->port];

	count->rx_packets += n;
	count->rx_bytes += bytes;
}

/** VAL-10: this architected counter saturates; drop[DROP_PKEY] keeps counting. */
static inline void count_bad_pkey(struct core *c, unsigned port)
{
	if (c->count.bad_pkey[port] < BAD_PKEY_MAX)
		c->count.bad_pkey[port]++;
}

/** Notes the queue on which the peer's packets arrive. Only valid packets count, so that no other
 *  host can influence which worker has the QP. */
static inline void observe_queue(struct qp *qp, uint8_t queue)
{
	if (likely(queue >= PKT_LOCAL))
		return;
	qp->queue_run = queue == qp->queue ? qp->queue_run + 1 : 1;
	qp->queue = queue;
}

/** Receives @p pkt for @p qp, which this core owns, and records the step in its trace.
 *  @return as core_rx(). */
uint16_t classify_step(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

/** @return the fault in the addresses (MAC, source or destination) of @p pkt, which is not from the
 *  peer of the QP that it names. */
enum drop classify_addresses(const struct core *c, const struct pkt *pkt);

/** @return why @p pkt, a datagram to @p qp from another QP of this core, is dropped before the QP
 * handles it, by the checks of core_rx() except the ICRC. */
enum drop classify_local(const struct core *c, const struct qp *qp, const struct pkt *pkt);

/** Receives @p pkt, which has a multicast group's address, for one member of that group, which this
 *  core owns (MC-04). @p why: DROP_NONE, or the defect that an injected fault has given it for this
 *  member.
 *  @return the reason for the drop. */
enum drop classify_member(
	struct core *c, struct qp *qp, const struct pkt *pkt, enum drop why, uint64_t now);

/** @return the QP with number @p qpn, or NULL. */
struct qp *qp_lookup(const struct core *c, uint32_t qpn);

#endif
