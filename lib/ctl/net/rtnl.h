/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/rtnl.h
 * Synchronous rtnetlink queries for links, addresses, routes and neighbours, and the kernel's
 * notifications of their changes (A17.4.1, A17.4.2). Control thread.
 */
#ifndef NET_RTNL_H
#define NET_RTNL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mnl_socket;

struct rtnl {
	struct mnl_socket *ask;
	struct mnl_socket *news; /* subscribed to links, addresses, routes, neighbours */
	uint32_t seq;
	bool torn; /* `ask` is missing, or may hold the rest of an answer */
};

struct rtnl_link {
	uint32_t ifindex;
	uint32_t mtu;
	uint8_t mac[6];
	bool enabled; /* administratively up */
	bool up;      /* and has a carrier */
};

/** A VLAN netdev on top of another one. */
struct rtnl_vlan {
	uint32_t ifindex;
	uint16_t vid; /* 1..4094 */
	uint8_t mac[6];
};

/** @return 0 or a negative errno. */
int rtnl_open(struct rtnl *nl);

void rtnl_close(struct rtnl *nl);

/** @return a descriptor that is readable while news are waiting. */
int rtnl_fd(const struct rtnl *nl);

/** Kinds of news. */
#define RTNL_NEWS_LINKS	 (1u << 0) /* links and addresses, without details: read them again */
#define RTNL_NEWS_ROUTES (1u << 1) /* routes, rules, next hops */
#define RTNL_NEWS_LOST	 (1u << 2) /* anything may have changed */

/** The MAC or state of a neighbour has changed, or the neighbour was removed. */
typedef void (*rtnl_neigh_news)(void *arg, uint32_t ifindex, const uint8_t gid[16]);

/** Processes a bounded number of notifications, so that others get their turn, and calls @p neigh
 * for each neighbour. The rest keeps rtnl_fd() readable.  @return RTNL_NEWS_* bits. */
unsigned rtnl_take_news(struct rtnl *nl, rtnl_neigh_news neigh, void *arg);

/** @return 0, -ENODEV if there is no such netdev, or another negative errno. */
int rtnl_link_get(struct rtnl *nl, const char *name, struct rtnl_link *link);

struct nlmsghdr;

/**
 * Reads a message about a link.
 * @return whether it describes an 802.1Q netdev on top of netdev @p parent that is administratively
 * up; false for a malformed message or another kind of netdev.
 */
bool rtnl_vlan_parse(const struct nlmsghdr *h, uint32_t parent, struct rtnl_vlan *vlan);

/**
 * Lists the VLAN netdevs on top of netdev @p parent that are administratively up, in the kernel's
 * order.
 * @return their number, at most @p max (the rest are left out), or a negative errno.
 */
int rtnl_vlans(struct rtnl *nl, uint32_t parent, struct rtnl_vlan *vlan, unsigned max);

/**
 * Lists the usable addresses of a netdev as GIDs, IPv4 first, in the kernel's order, without IPv6
 * addresses that duplicate address detection has not cleared yet.
 * @return their number, at most @p max, or a negative errno.
 */
int rtnl_addresses(struct rtnl *nl, uint32_t ifindex, uint8_t gid[][16], unsigned max);

enum rtnl_route_type {
	RTNL_ROUTE_UNICAST,
	RTNL_ROUTE_LOCAL, /* an address of this host */
	RTNL_ROUTE_OTHER, /* broadcast, multicast, blackhole... */
};

struct rtnl_route {
	enum rtnl_route_type type;
	uint8_t nexthop[16]; /* as a GID; @p dst itself if it is on the link */
	uint32_t ifindex;    /* of the outgoing netdev */
};

/**
 * Route from @p src to @p dst, GIDs of the same family.
 * @param src      NULL: any. -EINVAL if it is not an address of this host.
 * @param ifindex  outgoing netdev; a destination without a route is then assumed on its link.
 *                 0: the routes decide
 * @return 0, -ENETUNREACH or -EHOSTUNREACH, or another negative errno.
 */
int rtnl_route_get(struct rtnl *nl, const uint8_t *src, const uint8_t dst[16], uint32_t ifindex,
	struct rtnl_route *route);

/** @return 0 and the MAC; -EINPROGRESS while the kernel is querying the link; -EHOSTUNREACH if
 *  nobody answered; -ENOENT if the kernel does not know the neighbour; another negative errno. */
int rtnl_neigh_get(struct rtnl *nl, uint32_t ifindex, const uint8_t nexthop[16], uint8_t mac[6]);

/** Has the kernel probe whether a known neighbour is still reachable (NUD_PROBE).
 *  @param anywhere  the probe was not answered: query the whole link for the present owner of the
 *  address
 *  @return 0; -EALREADY: nothing to probe, or it has answered; another negative errno. */
int rtnl_neigh_probe(struct rtnl *nl, uint32_t ifindex, const uint8_t nexthop[16], bool anywhere);

/** Has the kernel resolve the neighbour, or verify one that it has not heard from for a long time.
 *  @return 0 or a negative errno. */
int rtnl_neigh_use(struct rtnl *nl, uint32_t ifindex, const uint8_t nexthop[16]);

#endif
