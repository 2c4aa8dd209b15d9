/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file stations.h
 * IP addresses of the kernel's side of a netdev, and the MACs that they are at: its own, and
 * those of other hosts when it is a port of a bridge. Peers know all of them by one link-layer
 * address, so the MAC of a packet that comes from them is found by its IP address (MAC address
 * translation, as wireless repeaters have it).
 *
 * An address that ARP or ND has claimed stays where it is until ARP or ND claims it elsewhere; one
 * that is known from packets or from duplicate address detection only may be taken by any: a
 * program without privileges can send from another's IPv6 address. Of STATION_MAX addresses the one
 * that was longest without use leaves first, those that were never claimed before all others; so it
 * is among the STATION_PER_MAC of one MAC. One thread.
 */
#ifndef IPOIB_STATIONS_H
#define IPOIB_STATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hash.h"
#include "list.h"

#define STATION_MAX	1024u
#define STATION_BUCKETS 1024u
#define STATION_PER_MAC 32u

/** An IP address; without padding, so that it can be hashed and compared as bytes. */
struct station_ip {
	uint32_t len; /* 4 or 16 */
	uint8_t ip[16];
};

struct station {
	struct station_ip at;
	uint8_t mac[6];
	bool used;	  /* an entry, not a free place */
	bool claimed;	  /* by ARP or ND */
	bool doubted;	  /* a peer has claimed it since then */
	uint64_t touched; /* station_table.clock, then */
	struct list by_ip, by_mac;
	struct list age; /* station_table.free, .seen or .claimed, the oldest first */
};

struct station_table {
	struct hash_seed seed;
	uint8_t own[6];	 /* MAC of the netdev */
	uint32_t others; /* addresses at other MACs */
	uint64_t clock;
	struct list ip[STATION_BUCKETS], mac[STATION_BUCKETS];
	struct list free, seen, claimed;
	struct station entry[STATION_MAX];
};

void station_init(struct station_table *t, const struct hash_seed *seed, const uint8_t own[6]);

/** The netdev has a new MAC; its addresses move to it. */
void station_set_own(struct station_table *t, const uint8_t own[6]);

/** @p mac claims @p ip by ARP or ND; multicast and null addresses and MACs are ignored.
 *  @return whether another address was evicted. */
bool station_claim(
	struct station_table *t, const uint8_t mac[6], const uint8_t *ip, unsigned ip_len);

/** @p mac sends from @p ip, or probes for duplicates of it.
 *  @return whether another address was evicted. */
bool station_seen(
	struct station_table *t, const uint8_t mac[6], const uint8_t *ip, unsigned ip_len);

/** @return the MAC of @p ip, or NULL. */
const uint8_t *station_mac(struct station_table *t, const uint8_t *ip, unsigned ip_len);

/** @return whether ARP or ND has claimed @p ip here. */
bool station_is_claimed(struct station_table *t, const uint8_t *ip, unsigned ip_len);

/** @return whether any address is at @p mac. */
bool station_has_mac(struct station_table *t, const uint8_t mac[6]);

/** A peer claims @p ip. @return whether it is claimed here too, and no peer has done so since then.
 */
bool station_doubt(struct station_table *t, const uint8_t *ip, unsigned ip_len);

#endif
