/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/gids.h
 * The GID table of one port (A17.4.1, GID-01..06): this is the master copy, and workers get
 * complete new copies. An index keeps its address while a QP uses it, and an address that returns
 * gets its former index. Control thread.
 *
 * Order: RoCEv2 entries from index 0, in the order in which addresses appear. If RoCEv1 is on, the
 * RoCEv1 form of entry i is entry GID_ROCEV1_FIRST + i (GID-02).
 */
#ifndef NET_GIDS_H
#define NET_GIDS_H

#include <stdbool.h>
#include <stdint.h>
#include "path.h"

#define GID_ROCEV1_FIRST (GID_MAX / 2)

struct gids {
	struct gid_table table;
	uint32_t users[GID_MAX]; /* address vectors that use the entry */
	bool kernel[GID_MAX];	 /* follows a netdev's addresses */
	bool rocev1;
	bool changed; /* since gids_publish() */
};

/** The GID table entry that an address vector holds (GID-03). */
struct gid_hold {
	struct gids *gids; /* NULL: nothing held */
	uint32_t index;
};

/** An address of a netdev. */
struct gid_address {
	uint8_t gid[16];
	uint16_t vid; /* of a VLAN netdev; 0: the port's own netdev */
	uint32_t ifindex;
	uint8_t mac[6];
};

void gids_init(struct gids *g, bool rocev1);

/**
 * Adds an address, or makes its entry valid again. A static entry does not change if the kernel has
 * the same address.
 * @param kernel  whether gids_sync() may remove it
 * @return 0, or -ENOSPC when no index is free.
 */
int gids_add(struct gids *g, const struct gid_address *a, bool kernel);

/**
 * Makes the kernel's part of the table hold exactly the @p n addresses @p a. Other entries become
 * invalid; new addresses take them only if no QP uses them and no fresh index is left (GID-03).
 * @return the number of addresses for which no index is free.
 */
unsigned gids_sync(struct gids *g, const struct gid_address *a, unsigned n);

/** Sets the index and MAC of the port's own netdev in its entries, including static and invalid
 * ones. */
void gids_set_netdev(struct gids *g, uint32_t ifindex, const uint8_t mac[6]);

/**
 * Checks that entry @p index may send to @p dgid (GID-05, GID-06).
 * @return it, or NULL with a sentence that names the index to use instead.
 */
const struct gid_entry *gids_select(
	const struct gids *g, uint32_t index, const uint8_t dgid[16], char why[]);

/** Publishes a copy of the table in *@p where if it has changed.
 *  @return the former copy, to be freed after a grace period; NULL: nothing has changed, or memory
 *  is short, in which case the next call tries again. */
const struct gid_table *gids_publish(struct gids *g, struct port *where);

/** Releases the entry that @p h holds, if any, and makes it hold entry @p index of @p gids; with
 *  NULL it holds none. */
void gid_hold_set(struct gid_hold *h, struct gids *gids, uint32_t index);

/** Writes the link-local GID of @p mac, fe80::/64 and EUI-64 (RFC 4291). */
void gid_of_mac(uint8_t gid[16], const uint8_t mac[6]);

/** @return whether @p gid is such a link-local GID; @p mac receives the MAC that it was made from.
 */
bool gid_to_mac(const uint8_t gid[16], uint8_t mac[6]);

/** @return the enum abi_gid_type of an entry's enum net_type. */
uint32_t gid_abi_type(uint8_t net);

#endif
