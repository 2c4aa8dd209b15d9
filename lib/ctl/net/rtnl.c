/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <libmnl/libmnl.h>
#include "bits.h"
#include "net/rtnl.h"
#include "path.h"

#define BUF_SIZE    32768     /* a dump comes in pieces of at most this size */
#define NEWS_BUFFER (1 << 20) /* room for some thousand messages */
#define NEWS_MAX    64u	      /* taken at once: a flood must not block the control thread */
#define LIST_TRIES  5u	      /* if a list changes during the kernel's dump */

/* An address as rtnetlink writes it. */
struct inet {
	uint8_t family;
	uint8_t len;
	const uint8_t *bytes;
};

static struct inet inet_of_gid(const uint8_t gid[16])
{
	if (gid_is_ip4(gid))
		return (struct inet){AF_INET, 4, gid + 12};
	return (struct inet){AF_INET6, 16, gid};
}

static void gid_of_inet(uint8_t gid[16], const struct nlattr *a)
{
	const void *bytes = mnl_attr_get_payload(a);

	memset(gid, 0, 16);
	if (mnl_attr_get_payload_len(a) == 4) {
		memset(gid + 10, 0xFF, 2);
		memcpy(gid + 12, bytes, 4);
	} else if (mnl_attr_get_payload_len(a) == 16) {
		memcpy(gid, bytes, 16);
	}
}

static const enum rtnetlink_groups groups[] = {
	RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_NEIGH, RTNLGRP_IPV4_ROUTE,
	RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE,
	RTNLGRP_NEXTHOP, /* since Linux 5.3: may be refused */
};

static int subscribe(struct mnl_socket *news)
{
	int size = NEWS_BUFFER;

	for (unsigned i = 0; i < ARRAY_SIZE(groups); i++) {
		int group = groups[i];

		if (mnl_socket_setsockopt(news, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) &&
			group != RTNLGRP_NEXTHOP)
			return -1;
	}
	/* If the buffer overflows, news are lost and everything is read again. */
	setsockopt(mnl_socket_get_fd(news), SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	return 0;
}

/* After a dump that was interrupted or overran the buffer, the kernel accepts no other one until
 * the rest has been read: closing the socket ends both. */
static int open_ask(struct rtnl *nl)
{
	int strict = 1;

	if (nl->ask)
		mnl_socket_close(nl->ask);
	nl->torn = true;
	nl->ask = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (!nl->ask || mnl_socket_bind(nl->ask, 0, MNL_SOCKET_AUTOPID))
		return errno ? -errno : -EIO;
	/* With this, a dump for one netdev holds only its addresses. Kernels before 4.20 send all,
	 * and the answer is filtered anyway. */
	mnl_socket_setsockopt(nl->ask, NETLINK_GET_STRICT_CHK, &strict, sizeof(strict));
	nl->torn = false;
	return 0;
}

int rtnl_open(struct rtnl *nl)
{
	memset(nl, 0, sizeof(*nl));
	nl->news = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!nl->news || mnl_socket_bind(nl->news, 0, MNL_SOCKET_AUTOPID) || subscribe(nl->news) ||
		open_ask(nl)) {
		int err = errno ? -errno : -EIO;

		rtnl_close(nl);
		return err;
	}
	return 0;
}

void rtnl_close(struct rtnl *nl)
{
	if (nl->ask)
		mnl_socket_close(nl->ask);
	if (nl->news)
		mnl_socket_close(nl->news);
	memset(nl, 0, sizeof(*nl));
}

int rtnl_fd(const struct rtnl *nl)
{
	return mnl_socket_get_fd(nl->news);
}

struct news {
	unsigned what;
	rtnl_neigh_news neigh;
	void *arg;
};

static void neighbour_news(const struct nlmsghdr *h, struct news *news)
{
	const struct ndmsg *nd = mnl_nlmsg_get_payload(h);
	const struct nlattr *a;
	uint8_t gid[16];

	if (nd->ndm_family != AF_INET && nd->ndm_family != AF_INET6)
		return; /* a bridge's entry */
	mnl_attr_for_each(a, h, sizeof(*nd))
	{
		if (mnl_attr_get_type(a) != NDA_DST)
			continue;
		gid_of_inet(gid, a);
		news->neigh(news->arg, (uint32_t)nd->ndm_ifindex, gid);
	}
}

static int news_cb(const struct nlmsghdr *h, void *arg)
{
	struct news *news = arg;

	switch (h->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
	case RTM_NEWADDR:
	case RTM_DELADDR:
		news->what |= RTNL_NEWS_LINKS;
		break;
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		neighbour_news(h, news);
		break;
	default:
		news->what |= RTNL_NEWS_ROUTES;
	}
	return MNL_CB_OK;
}

unsigned rtnl_take_news(struct rtnl *nl, rtnl_neigh_news neigh, void *arg)
{
	struct news news = {.neigh = neigh, .arg = arg};
	char buf[BUF_SIZE];

	for (unsigned i = 0; i < NEWS_MAX; i++) {
		ssize_t n = mnl_socket_recvfrom(nl->news, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != ENOBUFS && errno != ENOSPC)
			return news.what;
		if (n < 0 || mnl_cb_run(buf, (size_t)n, 0, 0, news_cb, &news) < 0)
			news.what |= RTNL_NEWS_LOST; /* the socket overran, or a message was cut */
	}
	return news.what;
}

/* Passes the kernel's answers to request nl->seq to @p cb.  @return 0 or a negative errno; sets
 * nl->torn if it could not read all of them. */
static int take_answers(struct rtnl *nl, mnl_cb_t cb, void *arg)
{
	char buf[BUF_SIZE];
	int more = MNL_CB_OK;

	while (more > MNL_CB_STOP) {
		ssize_t n = mnl_socket_recvfrom(nl->ask, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n >= 0)
			more = mnl_cb_run(
				buf, (size_t)n, nl->seq, mnl_socket_get_portid(nl->ask), cb, arg);
		if (n < 0 || more < 0) {
			/* Only a refusal by the kernel ends the answer. */
			nl->torn =
				n < 0 || ((const struct nlmsghdr *)buf)->nlmsg_type != NLMSG_ERROR;
			return -errno;
		}
	}
	return 0;
}

/* Sends @p req and passes the answers to @p cb.  @return 0 or a negative errno; -EINTR: the objects
 * of a dump changed meanwhile. */
static int ask(struct rtnl *nl, struct nlmsghdr *req, mnl_cb_t cb, void *arg)
{
	int err = nl->torn ? open_ask(nl) : 0;

	if (err)
		return err;
	req->nlmsg_seq = ++nl->seq;
	if (mnl_socket_sendto(nl->ask, req, req->nlmsg_len) < 0)
		return -errno;
	return take_answers(nl, cb, arg);
}

/* The same for a list that already has @p count elements. Repeats a dump during which the list
 * changed. */
static int ask_for_list(
	struct rtnl *nl, struct nlmsghdr *req, mnl_cb_t cb, void *list, unsigned *count)
{
	unsigned before = *count;
	int err = -EINTR;

	for (unsigned tries = 0; tries < LIST_TRIES && err == -EINTR; tries++) {
		*count = before;
		err = ask(nl, req, cb, list);
	}
	return err;
}

static struct nlmsghdr *request(char *buf, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *req = mnl_nlmsg_put_header(buf);

	req->nlmsg_type = type;
	req->nlmsg_flags = NLM_F_REQUEST | flags;
	return req;
}

static int link_cb(const struct nlmsghdr *h, void *arg)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(h);
	struct rtnl_link *link = arg;
	const struct nlattr *a;

	if (h->nlmsg_type != RTM_NEWLINK)
		return MNL_CB_OK;
	link->ifindex = (uint32_t)ifi->ifi_index;
	link->enabled = ifi->ifi_flags & IFF_UP;
	link->up = link->enabled && (ifi->ifi_flags & IFF_RUNNING);
	mnl_attr_for_each(a, h, sizeof(*ifi))
	{
		if (mnl_attr_get_type(a) == IFLA_MTU)
			link->mtu = mnl_attr_get_u32(a);
		else if (mnl_attr_get_type(a) == IFLA_ADDRESS && mnl_attr_get_payload_len(a) == 6)
			memcpy(link->mac, mnl_attr_get_payload(a), 6);
	}
	return MNL_CB_OK;
}

int rtnl_link_get(struct rtnl *nl, const char *name, struct rtnl_link *link)
{
	char buf[512];
	struct nlmsghdr *req = request(buf, RTM_GETLINK, NLM_F_ACK);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(req, sizeof(*ifi));

	memset(link, 0, sizeof(*link));
	ifi->ifi_family = AF_UNSPEC;
	mnl_attr_put_strz(req, IFLA_IFNAME, name);
	return ask(nl, req, link_cb, link);
}

struct vlan_list {
	uint32_t parent;
	struct rtnl_vlan *vlan;
	unsigned count, max;
};

static int vlan_cb(const struct nlmsghdr *h, void *arg)
{
	struct vlan_list *list = arg;

	if (list->count < list->max && rtnl_vlan_parse(h, list->parent, &list->vlan[list->count]))
		list->count++;
	return MNL_CB_OK;
}

int rtnl_vlans(struct rtnl *nl, uint32_t parent, struct rtnl_vlan *vlan, unsigned max)
{
	struct vlan_list list = {.parent = parent, .vlan = vlan, .max = max};
	char buf[256];
	struct nlmsghdr *req = request(buf, RTM_GETLINK, NLM_F_DUMP);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(req, sizeof(*ifi));
	int err;

	ifi->ifi_family = AF_UNSPEC;
	/* Counters would be most of a dump, and are not used. */
	mnl_attr_put_u32(req, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	err = ask_for_list(nl, req, vlan_cb, &list, &list.count);
	return err ? err : (int)list.count;
}

struct address_list {
	uint32_t ifindex;
	uint8_t (*gid)[16];
	unsigned count, max;
};

static int address_cb(const struct nlmsghdr *h, void *arg)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(h);
	struct address_list *list = arg;
	const struct nlattr *a, *address = NULL, *local = NULL;
	uint32_t flags = ifa->ifa_flags;

	if (h->nlmsg_type != RTM_NEWADDR || ifa->ifa_index != list->ifindex)
		return MNL_CB_OK;
	mnl_attr_for_each(a, h, sizeof(*ifa))
	{
		if (mnl_attr_get_type(a) == IFA_ADDRESS)
			address = a;
		else if (mnl_attr_get_type(a) == IFA_LOCAL) /* differs on point-to-point links */
			local = a;
		else if (mnl_attr_get_type(a) == IFA_FLAGS)
			flags = mnl_attr_get_u32(a);
	}
	if (local)
		address = local;
	if (!address || list->count == list->max || (flags & IFA_F_DADFAILED) ||
		((flags & IFA_F_TENTATIVE) && !(flags & IFA_F_OPTIMISTIC)))
		return MNL_CB_OK;
	gid_of_inet(list->gid[list->count++], address);
	return MNL_CB_OK;
}

int rtnl_addresses(struct rtnl *nl, uint32_t ifindex, uint8_t gid[][16], unsigned max)
{
	static const uint8_t families[] = {AF_INET, AF_INET6};
	struct address_list list = {.ifindex = ifindex, .gid = gid, .max = max};

	for (unsigned i = 0; i < 2; i++) {
		char buf[256];
		struct nlmsghdr *req = request(buf, RTM_GETADDR, NLM_F_DUMP);
		struct ifaddrmsg *ifa = mnl_nlmsg_put_extra_header(req, sizeof(*ifa));
		int err;

		ifa->ifa_family = families[i];
		ifa->ifa_index = ifindex;
		err = ask_for_list(nl, req, address_cb, &list, &list.count);
		/* A host without IPv6 has no IPv6 addresses. */
		if (err && !(err == -EOPNOTSUPP && families[i] == AF_INET6))
			return err;
	}
	return (int)list.count;
}

static int route_cb(const struct nlmsghdr *h, void *arg)
{
	const struct rtmsg *rt = mnl_nlmsg_get_payload(h);
	struct rtnl_route *route = arg;
	const struct nlattr *a;

	if (h->nlmsg_type != RTM_NEWROUTE)
		return MNL_CB_OK;
	route->type = rt->rtm_type == RTN_UNICAST ? RTNL_ROUTE_UNICAST
		      : rt->rtm_type == RTN_LOCAL ? RTNL_ROUTE_LOCAL
						  : RTNL_ROUTE_OTHER;
	mnl_attr_for_each(a, h, sizeof(*rt))
	{
		if (mnl_attr_get_type(a) == RTA_GATEWAY)
			gid_of_inet(route->nexthop, a);
		else if (mnl_attr_get_type(a) == RTA_OIF)
			route->ifindex = mnl_attr_get_u32(a);
		else if (mnl_attr_get_type(a) == RTA_VIA && mnl_attr_get_payload_len(a) == 18)
			/* an IPv6 next hop of an IPv4 route (RFC 5549) */
			memcpy(route->nexthop, (const uint8_t *)mnl_attr_get_payload(a) + 2, 16);
	}
	return MNL_CB_OK;
}

int rtnl_route_get(struct rtnl *nl, const uint8_t *src, const uint8_t dst[16], uint32_t ifindex,
	struct rtnl_route *route)
{
	struct inet d = inet_of_gid(dst);
	char buf[512];
	struct nlmsghdr *req = request(buf, RTM_GETROUTE, NLM_F_ACK);
	struct rtmsg *rt = mnl_nlmsg_put_extra_header(req, sizeof(*rt));

	memset(route, 0, sizeof(*route));
	memcpy(route->nexthop, dst, 16);
	rt->rtm_family = d.family;
	rt->rtm_dst_len = (uint8_t)(8 * d.len);
	mnl_attr_put(req, RTA_DST, d.len, d.bytes);
	if (src) {
		struct inet s = inet_of_gid(src);

		rt->rtm_src_len = (uint8_t)(8 * s.len);
		mnl_attr_put(req, RTA_SRC, s.len, s.bytes);
	}
	if (ifindex)
		mnl_attr_put_u32(req, RTA_OIF, ifindex);
	return ask(nl, req, route_cb, route);
}

struct neigh_answer {
	uint16_t state;
	bool have_mac;
	uint8_t mac[6];
};

static int neigh_cb(const struct nlmsghdr *h, void *arg)
{
	const struct ndmsg *nd = mnl_nlmsg_get_payload(h);
	struct neigh_answer *answer = arg;
	const struct nlattr *a;

	if (h->nlmsg_type != RTM_NEWNEIGH)
		return MNL_CB_OK;
	answer->state = nd->ndm_state;
	mnl_attr_for_each(a, h, sizeof(*nd))
	{
		if (mnl_attr_get_type(a) != NDA_LLADDR || mnl_attr_get_payload_len(a) != 6)
			continue;
		memcpy(answer->mac, mnl_attr_get_payload(a), 6);
		answer->have_mac = true;
	}
	return MNL_CB_OK;
}

static int neigh_look(
	struct rtnl *nl, uint32_t ifindex, const uint8_t nexthop[16], struct neigh_answer *answer)
{
	struct inet d = inet_of_gid(nexthop);
	char buf[256];
	struct nlmsghdr *req = request(buf, RTM_GETNEIGH, NLM_F_ACK);
	struct ndmsg *nd = mnl_nlmsg_put_extra_header(req, sizeof(*nd));

	memset(answer, 0, sizeof(*answer));
	nd->ndm_family = d.family;
	nd->ndm_ifindex = (int)ifindex;
	mnl_attr_put(req, NDA_DST, d.len, d.bytes);
	return ask(nl, req, neigh_cb, answer);
}

int rtnl_neigh_get(struct rtnl *nl, uint32_t ifindex, const uint8_t nexthop[16], uint8_t mac[6])
{
	static const uint16_t usable =
		NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE;
	static const uint8_t zero[6];
	struct neigh_answer answer;
	int err = neigh_look(nl, ifindex, nexthop, &answer);

	if (err)
		return err;
	/* ETH-12: never a zero MAC; a netdev without ARP (loopback, tun) has those. */
	if ((answer.state & usable) && answer.have_mac && memcmp(answer.mac, zero, 6)) {
		memcpy(mac, answer.mac, 6);
		return 0;
	}
	if (answer.state & NUD_FAILED)
		return -EHOSTUNREACH;
	return answer.state & NUD_INCOMPLETE ? -EINPROGRESS : -ENOENT;
}

/* Sends a datagram to the discard port of @p d, so that the kernel resolves it. */
static int send_datagram(uint32_t ifindex, const struct inet *d)
{
	struct sockaddr_in6 to6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_scope_id = ifindex};
	struct sockaddr_in to4 = {.sin_family = AF_INET, .sin_port = htons(9)};
	const void *to = d->family == AF_INET ? (const void *)&to4 : &to6;
	socklen_t len = d->family == AF_INET ? sizeof(to4) : sizeof(to6);
	int fd = socket(d->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char netdev[IF_NAMESIZE];
	int err = 0;

	if (fd < 0)
		return -errno;
	memcpy(&to4.sin_addr, d->bytes, sizeof(to4.sin_addr));
	if (d->family == AF_INET6)
		memcpy(&to6.sin6_addr, d->bytes, sizeof(to6.sin6_addr));
	if (!if_indextoname(ifindex, netdev) ||
		setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, netdev, (socklen_t)strlen(netdev)) ||
		sendto(fd, "", 0, 0, to, len) < 0)
		err = -errno;
	close(fd);
	return err;
}

static int neigh_change(struct rtnl *nl, uint32_t ifindex, const struct inet *d, uint16_t how,
	uint16_t state, uint8_t flags)
{
	char buf[256];
	struct nlmsghdr *req = request(buf, RTM_NEWNEIGH, NLM_F_ACK | how);
	struct ndmsg *nd = mnl_nlmsg_put_extra_header(req, sizeof(*nd));

	nd->ndm_family = d->family;
	nd->ndm_ifindex = (int)ifindex;
	nd->ndm_state = state;
	nd->ndm_flags = flags;
	mnl_attr_put(req, NDA_DST, d->len, d->bytes);
	return ask(nl, req, NULL, NULL);
}

int rtnl_neigh_probe(struct rtnl *nl, uint32_t ifindex, const uint8_t nexthop[16], bool anywhere)
{
	struct inet d = inet_of_gid(nexthop);
	struct neigh_answer answer;
	int err = neigh_look(nl, ifindex, nexthop, &answer);

	if (err)
		return err;
	if (!anywhere)
		return answer.state & (NUD_REACHABLE | NUD_STALE | NUD_DELAY)
			       ? neigh_change(nl, ifindex, &d, NLM_F_REPLACE, NUD_PROBE, 0)
			       : -EALREADY;
	if (!(answer.state & NUD_PROBE))
		return -EALREADY;
	/* For a new entry, the kernel queries the whole link. */
	err = neigh_change(nl, ifindex, &d, NLM_F_REPLACE, NUD_NONE, 0);
	return err ? err : neigh_change(nl, ifindex, &d, NLM_F_CREATE, NUD_NONE, NTF_USE);
}

int rtnl_neigh_use(struct rtnl *nl, uint32_t ifindex, const uint8_t nexthop[16])
{
	struct inet d = inet_of_gid(nexthop);
	int err = neigh_change(nl, ifindex, &d, NLM_F_CREATE, NUD_NONE, NTF_USE);

	/* Without CAP_NET_ADMIN, traffic makes the kernel resolve it. */
	return err == -EPERM || err == -EACCES ? send_datagram(ifindex, &d) : err;
}
