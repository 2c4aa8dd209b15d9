/* SPDX-License-Identifier: BSD-3-Clause */
/** @file multicast.h  Datagrams to multicast groups: a copy for each member (MC-04). */
#ifndef MULTICAST_H
#define MULTICAST_H

#include <stdint.h>

struct core;
struct core_groups;
struct mcast_group;
struct pkt;

void multicast_init(struct core_groups *g);

/** @return the group that @p pkt goes to, or NULL: no QP of this daemon is in it. */
const struct mcast_group *multicast_group(const struct core *c, const struct pkt *pkt);

/** Receives @p pkt, after the checks of its addresses and ICRC, for the members that this core
 *  owns.
 *  @return the verdict: VERDICT_SPREAD, VERDICT_HELD and a place, both, or DROP_NONE. */
uint16_t multicast_rx(struct core *c, const struct pkt *pkt, uint64_t now);

#endif
