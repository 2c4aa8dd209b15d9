/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/netport.h
 * A port of the daemon as the control thread sees it: its netdev or its static tables, and
 * struct port, the part that workers may read. Control thread.
 */
#ifndef NET_NETPORT_H
#define NET_NETPORT_H

#include <stdbool.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "net/gids.h"
#include "net/rtnl.h"

struct congestion;
struct ctl_neigh;
struct ctl_port;
struct gid_table;
struct port;
struct switch_list;

struct netport {
	uint32_t index;	  /* in the dataplane; applications use index + 1 */
	char netdev[16];  /* empty: static only */
	uint32_t ifindex; /* 0: the netdev does not exist now */
	uint8_t mac[6];
	bool link;     /* the netdev is up; always true without a netdev */
	bool set_down; /* by an administrator, or because its device is missing */
	bool up;       /* as reported to programs: link and not set_down */
	bool news;     /* a port event was raised since sysfs/ last looked */
	bool stale;    /* the kernel did not answer every query: read it again */
	uint32_t eth_mtu;
	uint32_t eth_mtu_limit; /* 0: none */
	uint32_t speed_mbps;
	uint64_t link_downed; /* how often it went down */
	struct gids gids;
	struct rtnl_vlan vlan[PORT_VLAN_MAX]; /* VLAN netdevs on top of the port's, up */
	uint32_t nvlans;
	bool join_refused; /* verbs/group.c: a join was refused, and the owner notified, since
			      the last news of the netdev */
	struct priority_map priority;
	struct congestion *congestion;
	const struct cc_config *withdrawn; /* to be freed after a grace period */
	struct switch_list *switches;	   /* withdrawn, to be freed after a grace period */
	struct ctl_neigh *neighs;	   /* static */
	uint32_t nneighs;
	struct port *shared; /* what workers read */
};

/** The findings of netport_refresh(). */
#define NETPORT_GIDS_CHANGED (1u << 0)
#define NETPORT_WENT_UP	     (1u << 1)
#define NETPORT_WENT_DOWN    (1u << 2)
#define NETPORT_MTU_CHANGED  (1u << 3) /* the largest path MTU has changed */
#define NETPORT_MAC_CHANGED  (1u << 4)
#define NETPORT_REPLACED     (1u << 5) /* another netdev now has the name */
#define NETPORT_GONE	     (1u << 6) /* no netdev has the name any more */
#define NETPORT_VLANS	     (1u << 7) /* vlan[] has changed */

/** Applies @p map to address vectors from now on; those that exist keep their priority. */
void netport_set_priority(struct netport *p, const struct priority_map *map);

/**
 * Sets up @p p and publishes its first table in *@p shared.
 * @return 0 or a negative errno with a sentence.
 */
int netport_init(struct netport *p, uint32_t index, const struct ctl_port *cfg, bool rocev1,
	struct rtnl *nl, struct port *shared, char why[ABI_SENTENCE_MAX]);

/**
 * Gives workers an empty table in place of @p p's, no switches and no congestion control.
 * @return the former table, to be freed after a grace period, or NULL.
 */
const struct gid_table *netport_withdraw(struct netport *p);

/** Frees what @p p itself owns. */
void netport_destroy(struct netport *p);

/**
 * Reads the netdev again. If the kernel does not answer a query, the old values stay and @p p
 * becomes stale.
 * @param old  receives the former table, to be freed after a grace period, or NULL
 * @return NETPORT_* bits.
 */
unsigned netport_refresh(struct netport *p, struct rtnl *nl, const struct gid_table **old);

/** Publishes MAC and MTU to the workers if they have changed.  @return NETPORT_* bits. */
unsigned netport_share(struct netport *p);

/** @return the largest path MTU of @p p (GID-09), 0: none fits. */
uint32_t netport_mtu(const struct netport *p);

/** Disables or enables @p p.  @return NETPORT_WENT_UP, NETPORT_WENT_DOWN, or 0 for neither. */
unsigned netport_set_down(struct netport *p, bool down);

/** @return 0 and the MAC when @p gid is in the static neighbour table, else -ENOENT. */
int netport_static_neigh(const struct netport *p, const uint8_t gid[16], uint8_t mac[6]);

#endif
