/* SPDX-License-Identifier: BSD-3-Clause */
/** @file classify.h  One received packet at a time, for who looks at each (inject.c). */
#ifndef CLASSIFY_H
#define CLASSIFY_H

#include "core.h"

/** Counts a packet that was received. */
static inline void count_received(struct core *c, const struct pkt *pkt)
{
	struct core_port_counters *count = &c->count.port[pkt->port];

	count->rx_packets++;
	count->rx_bytes += pkt->icrc_off + (uint64_t)ICRC_LEN;
}

/** Receives @p pkt, noted in the trace of @p qp, which it is for and which is this core's.
 *  @return as core_rx(). */
uint16_t classify_step(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

/** Receives @p pkt, which has a multicast group's address, for one member of that group, which is
 *  this core's (MC-04). @p why: DROP_NONE, or what a fault has made wrong with it for this member.
 *  @return the reason for the drop. */
enum drop classify_member(
	struct core *c, struct qp *qp, const struct pkt *pkt, enum drop why, uint64_t now);

#endif
