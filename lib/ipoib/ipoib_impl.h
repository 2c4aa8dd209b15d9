/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ipoib_impl.h
 * The state of a netdev (ipoib.h) and what its files share: dest.c has the destinations, probe.c
 * the questions that rocid itself asks, from_kernel.c and from_wire.c the two directions.
 */
#ifndef IPOIB_IMPL_H
#define IPOIB_IMPL_H

#include <string.h>
#include "ipoib.h"
#include "seek.h"
#include "stations.h"

#define QPN_MULTICAST 0xFFFFFFu
#define QPN_FIRST     2u /* 0 and 1 are management's */

/** A packet that waits for an address handle. */
struct packet {
	struct list node; /* neigh.packets, or ipoib.spare */
	struct list age;  /* ipoib.waiting */
	struct neigh *to;
	uint32_t len;
	uint8_t data[IPOIB_PACKET_MAX];
};

#define PROBED_MAX 16u

/** An address that a peer looks for duplicates of (RFC 5227): not asked for by ARP before `until`.
 */
struct probed {
	uint8_t ip[4];
	uint64_t until;
};

struct ipoib {
	struct ipoib_config cfg;
	uint8_t wire_mac[6];	/* by which peers know us */
	uint8_t made_up[16];	/* neigh_made_up() of this netdev */
	struct seek looked_for; /* peers, on the wire */
	struct seek searched;	/* hosts of this side */
	struct probed probed[PROBED_MAX];
	uint32_t nprobed;  /* so far */
	struct list asks;  /* neighs that need a handle */
	struct list ready; /* that got one, with packets */
	struct list probing;
	uint64_t count[IPOIB_COUNTS];
	struct list waiting; /* packets, the oldest first */
	struct list spare;
	struct packet packet[IPOIB_WAIT_ALL];
	struct neigh_table table;
	struct station_table stations;
	uint8_t copy[IPOIB_PACKET_MAX + IPOIB_TAIL]; /* of an ND message */
};

/** Counts a drop. @return false, for the caller to return. */
static inline bool drop(struct ipoib *s, enum ipoib_count why)
{
	s->count[why]++;
	return false;
}

static inline bool is_own(const struct ipoib *s, const uint8_t mac[6])
{
	return !memcmp(mac, s->cfg.mac, 6);
}

static inline void set_state(struct neigh *n, enum neigh_state state)
{
	list_del(&n->job);
	n->state = (uint8_t)state;
	n->probes = 0;
}

/** A datagram of @p n has arrived. */
static inline void heard(struct neigh *n, uint64_t now)
{
	n->heard = now;
	if (n->state == NEIGH_STALE || n->state == NEIGH_PROBE)
		set_state(n, NEIGH_REACHABLE);
}

/* dest.c */

/** Chooses the MAC by which the kernel knows @p a: the one from neigh_mac(), or the next free one
 *  if another peer has that. */
void dest_choose_mac(struct ipoib *s, uint8_t mac[6], const struct ipoib_addr *a);

/** @return the entry of peer @p a, new if it has none; another entry may be evicted for it. */
struct neigh *dest_peer(struct ipoib *s, const struct ipoib_addr *a);

/** @return the group, likewise. */
struct neigh *dest_group(struct ipoib *s, const uint8_t mgid[16]);

/** Copies to @p room the next waiting packet whose destination has got a handle. */
bool dest_next_waiting(struct ipoib *s, uint8_t *room, uint64_t now, struct ipoib_tx *tx);

/** @return when the first group will have been unused for IPOIB_GROUP_NS. */
uint64_t dest_group_deadline(const struct ipoib *s);

/** Forgets the groups that have been unused for that long. */
void dest_forget_groups(struct ipoib *s, uint64_t now);

/** Sends @p tx, whose packet is complete, to @p n. @return false: it was dropped or waits. */
bool dest_send(struct ipoib *s, struct neigh *n, uint64_t now, struct ipoib_tx *tx);

/* probe.c */

/** A frame of the kernel went to a MAC that no peer has: looks for its IP address instead, if
 * possible.
 *  @return whether to send @p tx. */
bool probe_look_for(
	struct ipoib *s, uint8_t *frame, uint16_t type, uint64_t now, struct ipoib_tx *tx);

/** A peer looks for duplicates of @p ip: our ARP does not query @p ip for IPOIB_PROBED_NS. */
void probe_not(struct ipoib *s, const uint8_t ip[4], uint64_t now);

/** A packet of a peer with this GID is for an IP address of this side that is not known:
 * ipoib_search() will ask for it. */
void probe_search(struct ipoib *s, const uint8_t gid[16], const uint8_t *ip, unsigned ip_len);

#endif
