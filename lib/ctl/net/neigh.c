/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include "net/neigh.h"
#include "net/netport.h"
#include "net/rtnl.h"
#include "refuse.h"
#include "text/sentence.h"

#define ROUND 64 /* lookups per poll: some 20 us each, during which applications wait */

void neigh_queue_init(struct neigh_queue *nq, struct rtnl *nl)
{
	nq->nl = nl;
	for (unsigned i = 0; i < NEIGH_PAUSES; i++)
		list_init(&nq->pending[i]);
}

/* Looks once, and has the kernel query the link if needed.  @return as neigh_resolve(), without a
 * sentence. */
static int look(struct rtnl *nl, struct neigh_query *q)
{
	int err = rtnl_neigh_get(nl, q->ifindex, q->nexthop, q->mac);

	/* A usable entry may be stale; the kernel then verifies it in the background. */
	if (err == -EINPROGRESS)
		return err;
	q->last_err = rtnl_neigh_use(nl, q->ifindex, q->nexthop);
	return err == -EHOSTUNREACH || err == -ENOENT ? -EINPROGRESS : err;
}

/* The name of the neighbour's netdev. */
static const char *netdev_of(const struct neigh_query *q, char name[IF_NAMESIZE])
{
	return if_indextoname(q->ifindex, name) ? name : q->port->netdev;
}

static int sentence_of(const struct neigh_query *q, int err, char why[ABI_SENTENCE_MAX])
{
	char gid[GID_TEXT], hop[GID_TEXT], via[GID_TEXT + 8] = "";
	char name[IF_NAMESIZE];
	const char *netdev = netdev_of(q, name);

	gid_text(q->dgid, gid);
	gid_text(q->nexthop, hop);
	if (memcmp(q->dgid, q->nexthop, 16))
		snprintf(via, sizeof(via), " via %s", hop);
	if (err == -EPERM)
		return refuse(why, err,
			"the kernel does not let rocid resolve the neighbour %s: give rocid "
			"CAP_NET_ADMIN, or list the neighbour in its configuration",
			hop);
	return refuse(why, err,
		"no answer from %s%s on %s: check that it is up and on the same network (try "
		"`ping -I %s %s`), or list its MAC as a neighbour",
		gid, via, netdev, netdev, hop);
}

/* Finds the route that the kernel's own packets would take from the port. */
static int ask_route(
	struct rtnl *nl, const struct neigh_query *q, const uint8_t *sgid, struct rtnl_route *route)
{
	int err = rtnl_route_get(nl, sgid, q->dgid, 0, route);

	if (sgid && err == -EINVAL) { /* a link-local GID made from the MAC may not be an address */
		sgid = NULL;
		err = rtnl_route_get(nl, sgid, q->dgid, 0, route);
	}
	/* Another netdev may have the better route, but this port can send only through its own. */
	if (!err && route->type == RTNL_ROUTE_UNICAST && route->ifindex != q->ifindex)
		err = rtnl_route_get(nl, sgid, q->dgid, q->ifindex, route);
	return err;
}

static int refuse_link_local(
	const struct neigh_query *q, const uint8_t *sgid, char why[ABI_SENTENCE_MAX])
{
	char own[GID_TEXT], gid[GID_TEXT], hop[GID_TEXT];

	return refuse(why, -EHOSTUNREACH,
		"GID %s is link-local, but the route to %s is through router %s: use a GID that "
		"routers forward (sgid_index)",
		gid_text(sgid, own), gid_text(q->dgid, gid), gid_text(q->nexthop, hop));
}

static int find_route(struct neigh_queue *nq, struct neigh_query *q, const uint8_t *sgid,
	char why[ABI_SENTENCE_MAX])
{
	struct rtnl_route route;
	char gid[GID_TEXT], name[IF_NAMESIZE];
	int err;

	gid_text(q->dgid, gid);
	memcpy(q->nexthop, q->dgid, 16);
	q->ifindex = q->port->ifindex ? q->netdev : 0;
	if (!q->ifindex)
		return refuse(why, -ENETUNREACH,
			"network device %s no longer exists: create it again", q->port->netdev);
	if (gid_is_link_local(q->dgid)) /* always on the link */
		return 0;
	err = ask_route(nq->nl, q, sgid, &route);
	if (err)
		return refuse(why, err == -ENETUNREACH ? err : -EHOSTUNREACH,
			"no route to %s through %s (%s): see `ip route get %s`", gid,
			netdev_of(q, name), strerror(-err), gid);
	if (route.type == RTNL_ROUTE_LOCAL)
		return refuse(why, -EHOSTUNREACH,
			"%s is an address of this host but not of port %u: use the port that has "
			"it",
			gid, q->port->index + 1);
	if (route.type != RTNL_ROUTE_UNICAST || route.ifindex != q->ifindex)
		return refuse(why, -EHOSTUNREACH,
			"%s cannot be reached through %s: use a GID of the port that has a route "
			"to it",
			gid, netdev_of(q, name));
	memcpy(q->nexthop, route.nexthop, 16);
	/* RFC 4291 2.5.6: routers do not forward packets with a link-local source. */
	if (sgid && gid_is_link_local(sgid) && memcmp(q->nexthop, q->dgid, 16))
		return refuse_link_local(q, sgid, why);
	return 0;
}

/* Schedules the next lookup of @p q after pause @p i. An answer on a LAN arrives within the first
 * pause. */
static void wait_for(struct neigh_queue *nq, struct neigh_query *q, unsigned i, uint64_t now_ms)
{
	q->pause = i;
	q->next_ms = now_ms + (1u << i);
	list_push(&nq->pending[i], &q->node);
}

int neigh_resolve(struct neigh_queue *nq, struct neigh_query *q, const uint8_t *sgid,
	uint64_t now_ms, char why[ABI_SENTENCE_MAX])
{
	char gid[GID_TEXT];
	int err;

	list_init(&q->node);
	if (!netport_static_neigh(q->port, q->dgid, q->mac))
		return 0;
	if (!q->port->netdev[0])
		return refuse(why, -EHOSTUNREACH,
			"%s is not in the neighbour table of port %u: add it to rocid's "
			"configuration, or give the destination MAC",
			gid_text(q->dgid, gid), q->port->index + 1);
	err = find_route(nq, q, sgid, why);
	if (err)
		return err;
	err = look(nq->nl, q);
	if (!err)
		return 0;
	if (err != -EINPROGRESS || q->last_err == -EPERM)
		return sentence_of(q, q->last_err == -EPERM ? -EPERM : err, why);
	q->deadline_ms = now_ms + NEIGH_TIMEOUT_MS;
	wait_for(nq, q, 0, now_ms);
	return -EINPROGRESS;
}

void neigh_cancel(struct neigh_query *q)
{
	list_del(&q->node);
}

/* @p q is not on any list. */
static void poll_one(struct neigh_queue *nq, struct neigh_query *q, uint64_t now_ms)
{
	char why[ABI_SENTENCE_MAX] = "";
	int err = look(nq->nl, q);

	if (err == -EINPROGRESS && now_ms < q->deadline_ms) {
		wait_for(nq, q, q->pause + (q->pause < NEIGH_PAUSES - 1), now_ms);
		return;
	}
	if (err)
		sentence_of(q, err == -EINPROGRESS ? -ETIMEDOUT : err, why);
	q->done(q, err == -EINPROGRESS ? -ETIMEDOUT : err, why);
}

/* Looks up the due queries of @p list.  @return how many more lookups are allowed. */
static unsigned poll_list(struct neigh_queue *nq, struct list *list, unsigned left, uint64_t now_ms)
{
	/* One at a time: done() may cancel any other. */
	while (left && !list_empty(list)) {
		struct neigh_query *q = container_of(list->next, struct neigh_query, node);

		if (q->next_ms > now_ms)
			break;
		list_del(&q->node);
		poll_one(nq, q, now_ms);
		left--;
	}
	return left;
}

int neigh_poll(struct neigh_queue *nq, uint64_t now_ms)
{
	unsigned left = ROUND;
	int wait = -1;

	for (unsigned i = 0; i < NEIGH_PAUSES; i++)
		left = poll_list(nq, &nq->pending[(nq->first + i) % NEIGH_PAUSES], left, now_ms);
	nq->first++; /* an endless stream of new queries must not starve the others */
	for (unsigned i = 0; i < NEIGH_PAUSES; i++) {
		const struct list *first = nq->pending[i].next;
		uint64_t next, in;

		if (first == &nq->pending[i])
			continue;
		next = container_of(first, struct neigh_query, node)->next_ms;
		in = next > now_ms ? next - now_ms : 0;
		if (wait < 0 || in < (uint64_t)wait)
			wait = (int)in;
	}
	return wait;
}
