/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file neigh.h
 * Destinations of a netdev: peers, found by link-layer address and by the MAC that the kernel
 * knows them by, and multicast groups. A peer is in the table because it has sent an ARP or ND
 * message. If there are NEIGH_PEERS, the least recently used one is evicted, and first of all
 * those to which nothing was ever sent. The same holds for the NEIGH_PER_GID of one GID, of which
 * one host can claim any number. Groups have places of their own, because the kernel sends to any
 * number of them: no group displaces a peer, and no peer a group. One thread.
 */
#ifndef IPOIB_NEIGH_H
#define IPOIB_NEIGH_H

#include <stddef.h>
#include "encap.h"
#include "hash.h"
#include "list.h"

#define NEIGH_MAX     1000u
#define NEIGH_GROUPS  256u /* of them, for multicast groups */
#define NEIGH_PEERS   (NEIGH_MAX - NEIGH_GROUPS)
#define NEIGH_BUCKETS 1024u
#define NEIGH_PER_GID 16u
#define NEIGH_IPS     4u
#define NEIGH_MAC_GID 3u /* octets of a MAC that depend on the GID only */

/** States of RFC 4861 7.3.2. */
enum neigh_state {
	NEIGH_INCOMPLETE, /**< no address handle yet: packets wait */
	NEIGH_REACHABLE,  /**< heard recently, or a group */
	NEIGH_STALE,	  /**< not heard recently, and nothing sent since */
	NEIGH_PROBE,	  /**< not heard recently, but packets are sent: it is probed (IPB-16) */
};

struct neigh {
	struct ipoib_addr addr; /* a group: its MGID, and QPN 0xFFFFFF */
	uint8_t mac[6];		/* as the kernel knows it */
	uint8_t state;		/* enum neigh_state */
	bool used;		/* an entry, not a free place */
	bool group;
	bool asked;	    /* an address handle is being made */
	bool sent;	    /* packets were sent to it: it has, or had, a handle */
	uint8_t nip4, nip6; /* addresses that it claimed, the latest first */
	uint8_t ip4[NEIGH_IPS][4];
	uint8_t ip6[NEIGH_IPS][16];
	uint8_t asked4, asked6; /* probes so far, by family */
	uint8_t probes;		/* without an answer */
	uint8_t waiting;	/* packets */
	uint32_t serial;	/* of the entry: slots are reused */
	uint64_t heard;		/* when it was last heard */
	uint64_t touched;	/* when it was last used; 0: not yet */
	uint64_t due;		/* PROBE: when to ask; INCOMPLETE: not before this */
	struct list by_gid, by_mac;
	struct list age;     /* neigh_table.fresh, .sent or .groups, the oldest first */
	struct list job;     /* ipoib.asks or .ready or .probing */
	struct list packets; /* that wait */
};

struct neigh_table {
	struct hash_seed seed;
	struct list gid[NEIGH_BUCKETS], mac[NEIGH_BUCKETS];
	struct list free, fresh, sent;	 /* of peers */
	struct list free_groups, groups; /* of groups */
	uint32_t n, serial;
	struct neigh entry[NEIGH_MAX];
};

void neigh_init(struct neigh_table *t, const struct hash_seed *seed);

/** @return the peer or group, or NULL. */
struct neigh *neigh_of_addr(struct neigh_table *t, const struct ipoib_addr *a);

/** @return the next entry with the address of @p n, or NULL: a peer that restarted may have
 * several, each with the MAC by which the kernel knows some of its IP addresses. */
struct neigh *neigh_another(struct neigh_table *t, const struct neigh *n);

struct neigh *neigh_of_mac(struct neigh_table *t, const uint8_t mac[6]);

/** @p n claims @p ip; the latest NEIGH_IPS of each family are kept. */
void neigh_claim(struct neigh *n, const uint8_t *ip, unsigned ip_len);

/** @return a peer with this GID, and any QPN, that claimed @p ip, or NULL. */
struct neigh *neigh_of_ip(
	struct neigh_table *t, const uint8_t gid[16], const uint8_t *ip, unsigned ip_len);

/** Makes an entry in state INCOMPLETE. There must be room: neigh_oldest(), neigh_remove().
 *  @param mac  one that no other entry has; NULL: the entry is a group */
struct neigh *neigh_add(struct neigh_table *t, const struct ipoib_addr *a, const uint8_t mac[6]);

/** @return the entry to evict for another peer or @p group, NULL while there is room. */
struct neigh *neigh_oldest(struct neigh_table *t, bool group);

/** @return the group that was longest without use, or NULL. */
struct neigh *neigh_idlest_group(const struct neigh_table *t);

/** @return the peer to give up for another with this GID, NULL while there are less than
 *  NEIGH_PER_GID. */
struct neigh *neigh_surplus(struct neigh_table *t, const uint8_t gid[16]);

void neigh_remove(struct neigh_table *t, struct neigh *n);

/** The peer has another QPN now (IPB-16); its MAC stays. */
void neigh_rebind(struct neigh *n, uint32_t qpn);

/** @p n is used at @p now. */
void neigh_touch(struct neigh_table *t, struct neigh *n, uint64_t now);

/** The MAC of an address, unless another address has it: locally administered, and always the same.
 * All QPNs of a GID share the first NEIGH_MAC_GID octets. */
void neigh_mac(uint8_t mac[6], const struct ipoib_addr *a);

/** The link-local IPv6 address that RFC 4291, appendix A, derives from that MAC. No host has it:
 * rocid sends its own solicitations from it. */
void neigh_made_up(uint8_t ip[16], const struct ipoib_addr *a);

#endif
