/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/netport.h
 * A port of the daemon as the control thread sees it: its netdev or its static tables, and
 * what workers may see of it, struct port. Control thread.
 */
#ifndef NET_NETPORT_H
#define NET_NETPORT_H

#include <stdbool.h>
#include <stdint.h>
#include "ctl.h"
#include "net/congestion.h"
#include "net/gids.h"
#include "net/rtnl.h"

struct netport {
	uint32_t index;	  /* of the dataplane; applications say index + 1 */
	char netdev[16];  /* empty: static only */
	uint32_t ifindex; /* 0: no such netdev now */
	uint8_t mac[6];
	bool link;     /* the netdev says that it is up; without one always */
	bool set_down; /* by an administrator, or for want of its device */
	bool up;       /* what programs are told: link and not set_down */
	bool stale;    /* the kernel did not tell all of it: it shall be read again */
	uint32_t eth_mtu;
	uint32_t eth_mtu_limit; /* 0: none */
	uint32_t speed_mbps;
	uint64_t link_downed; /* how often it went down */
	struct gids gids;
	struct rtnl_vlan vlan[PORT_VLAN_MAX]; /* VLAN netdevs on top of the port's, up */
	uint32_t nvlans;
	bool join_refused; /* verbs/group.c: since the last news of the netdev, and its owner was
			      told */
	struct priority_map priority;
	struct congestion congestion;
	struct ctl_neigh *neighs; /* static */
	uint32_t nneighs;
	struct port *shared; /* what workers read */
};

/** What netport_refresh() found. */
#define NETPORT_GIDS_CHANGED (1u << 0)
#define NETPORT_WENT_UP	     (1u << 1)
#define NETPORT_WENT_DOWN    (1u << 2)
#define NETPORT_MTU_CHANGED  (1u << 3) /* the largest path MTU, that is */
#define NETPORT_MAC_CHANGED  (1u << 4)
#define NETPORT_REPLACED     (1u << 5) /* there is another netdev under the name */
#define NETPORT_GONE	     (1u << 6) /* there is none any more */
#define NETPORT_VLANS	     (1u << 7) /* vlan[] is another list */

/**
 * Sets up @p p and publishes its first table in *@p shared.
 * @return 0 or a negative errno with a sentence.
 */
int netport_init(struct netport *p, uint32_t index, const struct ctl_port *cfg, bool rocev1,
	struct rtnl *nl, struct port *shared, char why[ABI_SENTENCE_MAX]);

/**
 * Leaves workers with an empty table instead of @p p's.
 * @return the former one, to be freed after a grace period, or NULL.
 */
const struct gid_table *netport_withdraw(struct netport *p);

/** Frees what @p p itself owns. */
void netport_destroy(struct netport *p);

/**
 * Reads the netdev again. What the kernel does not tell now stays as it was, and @p p is stale.
 * @param old  receives the former table, to be freed after a grace period, or NULL
 * @return NETPORT_* bits.
 */
unsigned netport_refresh(struct netport *p, struct rtnl *nl, const struct gid_table **old);

/** Sets @p p down, or no longer.  @return NETPORT_WENT_UP or NETPORT_WENT_DOWN, 0: neither. */
unsigned netport_set_down(struct netport *p, bool down);

/** @return 0 and the MAC when @p gid is in the static neighbour table, else -ENOENT. */
int netport_static_neigh(const struct netport *p, const uint8_t gid[16], uint8_t mac[6]);

#endif
