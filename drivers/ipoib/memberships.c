/* SPDX-License-Identifier: BSD-3-Clause */
/* The groups that the kernel joined on the netdev (IPB-17: there is no subnet manager that keeps
 * them). Netlink lists them and announces changes. Kernels before Linux 6.15 do not list those of
 * IPv4, so /proc/net is read instead, once per second before 6.14, which does not announce changes
 * either. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <libmnl/libmnl.h>
#include "bits.h"
#include "rib_impl.h"

#define MCADDR_IP4 37 /* RTNLGRP_IPV4_MCADDR, RTNLGRP_IPV6_MCADDR: newer than most headers */
#define MCADDR_IP6 38

struct mnl_socket *rib_memberships_open(void)
{
	static const int group[] = {
		MCADDR_IP4, MCADDR_IP6, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_LINK};
	static const int all = 1;
	struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (nl && mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0) {
		mnl_socket_close(nl);
		return NULL;
	}
	for (unsigned i = 0; nl && i < ARRAY_SIZE(group); i++) /* a kernel may lack some */
		mnl_socket_setsockopt(
			nl, NETLINK_ADD_MEMBERSHIP, (void *)&group[i], sizeof(group[i]));
	if (nl) /* a socket would keep the netdev's namespace alive */
		mnl_socket_setsockopt(nl, NETLINK_LISTEN_ALL_NSID, (void *)&all, sizeof(all));
	return nl;
}

/* If the netdev is a port of a bridge, the host's programs join groups on the bridge. */
static bool is_ours(const struct rib *r, const struct rib_members *m, uint32_t index)
{
	return index == r->ifindex || (m->master && index == m->master);
}

/* "3	rib0      :     1      V3", then a line for each group: "
 * 010000E0 1 0:00000000" */
static void read_ip4(const struct rib *r, struct rib_members *m, FILE *f)
{
	char line[256];
	bool ours = false;
	unsigned index, group;

	while (fgets(line, sizeof(line), f)) {
		uint32_t word;

		if (line[0] != '\t') {
			ours = sscanf(line, "%u", &index) == 1 && is_ours(r, m, index);
			continue;
		}
		if (!ours || sscanf(line, "%x", &group) != 1)
			continue;
		word = group; /* bytes in the order of the network */
		rib_groups_listed(m, (const uint8_t *)&word, sizeof(word));
	}
}

/* "3    rib0            ff020000000000000000000000000001     1 0000000C 0" */
static void read_ip6(const struct rib *r, struct rib_members *m, FILE *f)
{
	char line[256], hex[33];
	unsigned index;

	while (fgets(line, sizeof(line), f)) {
		uint8_t ip[16];
		unsigned n = 0;

		if (sscanf(line, "%u %*s %32s", &index, hex) != 2 || !is_ours(r, m, index))
			continue;
		while (n < sizeof(ip) && sscanf(hex + 2 * n, "%2hhx", &ip[n]) == 1)
			n++;
		if (n == sizeof(ip))
			rib_groups_listed(m, ip, sizeof(ip));
	}
}

/* --- netlink ---------------------------------------------------------------------------------- */

#define DUMPS 3 /* attempts: a list that changes while it is read is read again */

struct listing {
	const struct rib *rib;
	struct rib_members *to;
};

static int take_group(const struct nlmsghdr *h, void *arg)
{
	const struct ifaddrmsg *m = mnl_nlmsg_get_payload(h);
	const struct listing *l = arg;
	const struct nlattr *a;

	if (mnl_nlmsg_get_payload_len(h) < sizeof(*m) || !is_ours(l->rib, l->to, m->ifa_index))
		return MNL_CB_OK;
	mnl_attr_for_each(a, h, sizeof(*m))
	{
		uint16_t len = mnl_attr_get_payload_len(a);

		if (mnl_attr_get_type(a) == IFA_MULTICAST &&
			len == (m->ifa_family == AF_INET ? 4 : 16))
			rib_groups_listed(l->to, mnl_attr_get_payload(a), len);
	}
	return MNL_CB_OK;
}

static int take_address(const struct nlmsghdr *h, void *arg)
{
	const struct ifaddrmsg *m = mnl_nlmsg_get_payload(h);
	const struct listing *l = arg;
	const struct nlattr *a;

	if (mnl_nlmsg_get_payload_len(h) < sizeof(*m) || !is_ours(l->rib, l->to, m->ifa_index))
		return MNL_CB_OK;
	mnl_attr_for_each(a, h, sizeof(*m))
	{
		uint16_t type = mnl_attr_get_type(a);

		if ((type == IFA_ADDRESS || type == IFA_LOCAL) && mnl_attr_get_payload_len(a) == 16)
			rib_groups_own(l->to, mnl_attr_get_payload(a));
	}
	return MNL_CB_OK;
}

static int receive_all(struct mnl_socket *nl, mnl_cb_t take, void *arg)
{
	char buffer[16384];
	int more;

	do {
		ssize_t n = mnl_socket_recvfrom(nl, buffer, sizeof(buffer));

		more = n < 0 ? -1 : mnl_cb_run(buffer, (size_t)n, 0, 0, take, arg);
	} while (more > 0);
	return more;
}

bool rib_ask_kernel(
	uint16_t type, uint16_t flags, const void *head, size_t len, mnl_cb_t take, void *arg)
{
	struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	char buffer[128] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *h = mnl_nlmsg_put_header(buffer);
	bool ok;

	h->nlmsg_type = type;
	h->nlmsg_flags = NLM_F_REQUEST | flags;
	memcpy(mnl_nlmsg_put_extra_header(h, len), head, len);
	ok = nl && mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) >= 0 &&
	     mnl_socket_sendto(nl, h, h->nlmsg_len) >= 0 && receive_all(nl, take, arg) >= 0;
	if (nl)
		mnl_socket_close(nl);
	return ok;
}

/* @return whether the kernel listed the groups of @p family. */
static bool list(struct listing *l, unsigned char family)
{
	const struct ifaddrmsg m = {.ifa_family = family};

	return rib_ask_kernel(RTM_GETMULTICAST, NLM_F_DUMP, &m, sizeof(m), take_group, l);
}

static bool list_addresses(struct listing *l)
{
	const struct ifaddrmsg m = {.ifa_family = AF_INET6};

	for (unsigned i = 0; i < DUMPS; i++) {
		l->to->nown = 0;
		if (rib_ask_kernel(RTM_GETADDR, NLM_F_DUMP, &m, sizeof(m), take_address, l))
			return true;
	}
	return false;
}

bool rib_memberships_read(struct rib *r, struct rib_members *m, uint64_t now)
{
	static const struct {
		unsigned char family;
		const char *path;
		void (*read)(const struct rib *, struct rib_members *, FILE *);
	} from[] = {{AF_INET, "/proc/thread-self/net/igmp", read_ip4},
		{AF_INET6, "/proc/thread-self/net/igmp6", read_ip6}};
	struct listing l = {.rib = r, .to = m};

	m->reads++;
	m->now.n = m->now.over = 0;
	m->pkey = r->cfg.pkey;
	m->master = rib_master(r);
	if (!list_addresses(&l))
		return false;
	for (unsigned i = 0; i < ARRAY_SIZE(from); i++) {
		uint32_t over = m->now.over;
		unsigned tries = 0;
		FILE *f;

		for (; tries < DUMPS && !list(&l, from[i].family); tries++)
			m->now.over = over;
		if (tries < DUMPS)
			continue;
		f = fopen(from[i].path, "re");
		if (!f && errno != ENOENT)
			return false;
		if (!f) /* a kernel without IPv6 */
			continue;
		from[i].read(r, m, f);
		fclose(f);
	}
	rib_hosts_groups(r, m, now);
	return true;
}
