/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/rtnl.h
 * Questions to the kernel's network control plane over rtnetlink, which it answers at once:
 * links, addresses, routes, neighbours (A17.4.1, A17.4.2). Control thread.
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
	bool torn; /* `ask` is not there, or may hold the rest of an answer */
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

/** @return the descriptor that becomes readable when there is something to take. */
int rtnl_fd(const struct rtnl *nl);

/** What news are about. */
#define RTNL_NEWS_LINKS	 (1u << 0) /* links and addresses: who cares reads them again */
#define RTNL_NEWS_ROUTES (1u << 1) /* routes, rules, next hops */
#define RTNL_NEWS_LOST	 (1u << 2) /* anything may have changed */

/** A neighbour's MAC or state changed, or it went. */
typedef void (*rtnl_neigh_news)(void *arg, uint32_t ifindex, const uint8_t gid[16]);

/** Takes the news, but only so many at once that others have their turn, and calls @p neigh for
 * each neighbour. The rest keeps rtnl_fd() readable.  @return RTNL_NEWS_* bits. */
unsigned rtnl_take_news(struct rtnl *nl, rtnl_neigh_news neigh, void *arg);

/** @return 0, -ENODEV when there is no such netdev, or another negative errno. */
int rtnl_link_get(struct rtnl *nl, const char *name, struct rtnl_link *link);

struct nlmsghdr;

/**
 * Reads a message about a link.
 * @return whether it tells of an 802.1Q netdev on top of netdev @p parent that is
 * administratively up; what is malformed or of another kind does not.
 */
bool rtnl_vlan_parse(const struct nlmsghdr *h, uint32_t parent, struct rtnl_vlan *vlan);

/**
 * Lists the VLAN netdevs on top of netdev @p parent that are administratively up, in the kernel's
 * order.
 * @return their number, at most @p max: further ones are left out; or a negative errno.
 */
int rtnl_vlans(struct rtnl *nl, uint32_t parent, struct rtnl_vlan *vlan, unsigned max);

/**
 * Lists the usable addresses of a netdev as GIDs, IPv4 first, in the kernel's order; IPv6
 * addresses whose duplicate detection is not over are left out.
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
	uint8_t nexthop[16]; /* as GID; @p dst itself when it is on the link */
	uint32_t ifindex;    /* of the netdev that it leaves by */
};

/**
 * Route from @p src to @p dst, GIDs of the same family.
 * @param src      NULL: any. One that is no address of this host gives -EINVAL.
 * @param ifindex  netdev to leave by; what no route leads to is then taken to be on its link.
 *                 0: whichever the routes say
 * @return 0, -ENETUNREACH or -EHOSTUNREACH, or another negative errno.
 */
int rtnl_route_get(struct rtnl *nl, const uint8_t *src, const uint8_t dst[16], uint32_t ifindex,
	struct rtnl_route *route);

/** @return 0 and the MAC; -EINPROGRESS while the kernel is asking or may ask; -EHOSTUNREACH
 *  when it asked in vain; -ENOENT when it knows no such neighbour; another negative errno. */
int rtnl_neigh_get(struct rtnl *nl, uint32_t ifindex, const uint8_t nexthop[16], uint8_t mac[6]);

/** Has the kernel ask the neighbour that it knows whether it is still there (NUD_PROBE).
 *  @param anywhere  it was asked in vain: ask everybody on the link who has its address now
 *  @return 0; -EALREADY: there is nothing to ask, or it has answered; another negative errno. */
int rtnl_neigh_probe(struct rtnl *nl, uint32_t ifindex, const uint8_t nexthop[16], bool anywhere);

/** Has the kernel look for the neighbour, or check one that it has not heard from for long.
 *  @return 0 or a negative errno. */
int rtnl_neigh_use(struct rtnl *nl, uint32_t ifindex, const uint8_t nexthop[16]);

#endif
