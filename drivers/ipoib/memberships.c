/* SPDX-License-Identifier: BSD-3-Clause */
/* The groups that the kernel joined on the netdev (IPB-17: no subnet manager keeps them). Netlink
 * says when they change, on kernels that tell (Linux 6.14); /proc/net says what they are, on all.
 */
#include <stdio.h>
#include <string.h>
#include <linux/rtnetlink.h>
#include <libmnl/libmnl.h>
#include "bits.h"
#include "rib_impl.h"

#define MCADDR_IP4 37 /* RTNLGRP_IPV4_MCADDR, RTNLGRP_IPV6_MCADDR: newer than most headers */
#define MCADDR_IP6 38

struct mnl_socket *rib_memberships_open(void)
{
	static const int group[] = {
		MCADDR_IP4, MCADDR_IP6, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR};
	struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (nl && mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0) {
		mnl_socket_close(nl);
		return NULL;
	}
	for (unsigned i = 0; nl && i < ARRAY_SIZE(group); i++) /* a kernel may lack some */
		mnl_socket_setsockopt(
			nl, NETLINK_ADD_MEMBERSHIP, (void *)&group[i], sizeof(group[i]));
	return nl;
}

static void add(const struct rib *r, struct rib_groups *to, const uint8_t *ip, unsigned len)
{
	uint8_t mgid[16];

	if (len == 4)
		ipoib_mgid_of_ip4(mgid, r->cfg.pkey, IPOIB_SCOPE, ip);
	else
		ipoib_mgid_of_ip6(mgid, r->cfg.pkey, IPOIB_SCOPE, ip);
	for (uint32_t i = 0; i < to->n; i++)
		if (!memcmp(to->mgid[i], mgid, sizeof(mgid)))
			return;
	if (to->n < RIB_GROUPS)
		memcpy(to->mgid[to->n++], mgid, sizeof(mgid));
}

/* "3	rib0      :     1      V3", then a line for each group: "
 * 010000E0 1 0:00000000" */
static void read_ip4(const struct rib *r, struct rib_groups *to, FILE *f)
{
	char line[256];
	bool ours = false;
	unsigned index, group;

	while (fgets(line, sizeof(line), f)) {
		uint32_t word;

		if (line[0] != '\t') {
			ours = sscanf(line, "%u", &index) == 1 && index == r->ifindex;
			continue;
		}
		if (!ours || sscanf(line, "%x", &group) != 1)
			continue;
		word = group; /* bytes in the order of the network */
		add(r, to, (const uint8_t *)&word, sizeof(word));
	}
}

/* "3    rib0            ff020000000000000000000000000001     1 0000000C 0" */
static void read_ip6(const struct rib *r, struct rib_groups *to, FILE *f)
{
	char line[256], hex[33];
	unsigned index;

	while (fgets(line, sizeof(line), f)) {
		uint8_t ip[16];
		unsigned n = 0;

		if (sscanf(line, "%u %*s %32s", &index, hex) != 2 || index != r->ifindex)
			continue;
		while (n < sizeof(ip) && sscanf(hex + 2 * n, "%2hhx", &ip[n]) == 1)
			n++;
		if (n == sizeof(ip))
			add(r, to, ip, sizeof(ip));
	}
}

void rib_memberships_read(const struct rib *r, struct rib_groups *to)
{
	static const struct {
		const char *path;
		void (*read)(const struct rib *, struct rib_groups *, FILE *);
	} file[] = {{"/proc/thread-self/net/igmp", read_ip4},
		{"/proc/thread-self/net/igmp6", read_ip6}};

	to->n = 0;
	for (unsigned i = 0; i < ARRAY_SIZE(file); i++) {
		FILE *f = fopen(file[i].path, "re");

		if (!f)
			continue;
		file[i].read(r, to, f);
		fclose(f);
	}
}
