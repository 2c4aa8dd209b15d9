/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if_arp.h>
#include <netinet/icmp6.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "bits.h"
#include "headers.h"
#include "net/announce.h"

#define ND_HOPS 255 /* RFC 4861: proves that no router forwarded it */

/* ARP for Ethernet and IPv4. */
struct arp_packet {
	uint16_t hardware, protocol;
	uint8_t hardware_len, protocol_len;
	uint16_t operation;
	uint8_t from_mac[6], from_ip[4];
	uint8_t to_mac[6], to_ip[4];
};
_Static_assert(sizeof(struct arp_packet) == 28, "arp_packet");

int announce_open(void)
{
	return socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static void announce_ip4(int fd, const struct gid_entry *e)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ARP),
		.sll_ifindex = (int)e->ifindex,
		.sll_halen = 6,
		.sll_addr = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
	};
	struct arp_packet arp = {
		.hardware = htons(ARPHRD_ETHER),
		.protocol = htons(ETH_P_IP),
		.hardware_len = 6,
		.protocol_len = 4,
		.operation = htons(ARPOP_REQUEST),
	};

	memcpy(arp.from_mac, e->mac, 6);
	memcpy(arp.from_ip, e->gid + 12, 4);
	memcpy(arp.to_ip, e->gid + 12, 4);
	(void)!sendto(fd, &arp, sizeof(arp), 0, (struct sockaddr *)&to, sizeof(to));
}

struct advertisement {
	struct nd_neighbor_advert na;
	struct nd_opt_hdr option;
	uint8_t mac[6];
};
_Static_assert(sizeof(struct advertisement) == 32, "advertisement");

static void announce_ip6(const struct gid_entry *e)
{
	struct sockaddr_in6 from = {.sin6_family = AF_INET6, .sin6_scope_id = e->ifindex};
	struct sockaddr_in6 all_nodes = {.sin6_family = AF_INET6, .sin6_scope_id = e->ifindex};
	struct advertisement a = {
		.na = {.nd_na_type = ND_NEIGHBOR_ADVERT,
			.nd_na_flags_reserved = ND_NA_FLAG_OVERRIDE},
		.option = {ND_OPT_TARGET_LINKADDR, 1},
	};
	const int hops = ND_HOPS, netdev = (int)e->ifindex;
	int fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMPV6);

	if (fd < 0)
		return;
	memcpy(&from.sin6_addr, e->gid, 16);
	memcpy(&a.na.nd_na_target, e->gid, 16);
	memcpy(a.mac, e->mac, 6);
	inet_pton(AF_INET6, "ff02::1", &all_nodes.sin6_addr);
	/* bind() refuses the link-local GID made from the MAC if that is not an address of the
	 * netdev. */
	if (!setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof(hops)) &&
		!setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &netdev, sizeof(netdev)) &&
		!bind(fd, (struct sockaddr *)&from, sizeof(from)))
		(void)!sendto(
			fd, &a, sizeof(a), 0, (struct sockaddr *)&all_nodes, sizeof(all_nodes));
	close(fd);
}

void announce_changes(int fd, const struct gids *g, const struct gid_table *before)
{
	for (uint32_t i = 0; i < g->table.count; i++) {
		const struct gid_entry *e = &g->table.entry[i], *was = &before->entry[i];

		if (!e->valid || !g->kernel[i] || e->net == NET_ROCEV1)
			continue;
		if (was->valid && !memcmp(was->gid, e->gid, 16) && !memcmp(was->mac, e->mac, 6))
			continue;
		if (e->net == NET_IPV4)
			announce_ip4(fd, e);
		else
			announce_ip6(e);
	}
}
