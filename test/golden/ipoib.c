/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams of IP over InfiniBand: what lib/ipoib makes of them where a QP has received them, and
 * whether the netdev of the peer sends the same. ARP and neighbour discovery are translated here a
 * second time, without lib/ipoib's own code for it. */
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "frame.h"
#include "golden.h"
#include "ipoib.h"
#include "opcode.h"

#define MAC_AT	  6u
#define FRAME_PAY 14u
#define ARP_LEN	  28u /* of Ethernet */
#define ICMP_AT	  40u /* in an IPv6 packet without other headers */
#define REDIRECT  137u
#define ROOM	  (IPOIB_HLEN + IPOIB_MTU_MAX + IPOIB_TAIL)

/* Fields of ARP with addresses of 20 octets (RFC 4391 9.2). */
enum {
	SENDER = 8,
	SENDER_IP = 28,
	TARGET = 32,
	TARGET_IP = 52
};

/* A link-layer address option (RFC 4861 4.6.1; RFC 4391 9.3). */
struct option {
	uint8_t octets[24];
	uint32_t len;
};

bool is_ipoib(const struct pkt *p)
{
	return p->qkey == IPOIB_QKEY && p->op->deth;
}

static bool is_arp(const struct pkt *p)
{
	uint16_t type = get_be16(p->payload);

	return type == IPOIB_ARP || type == IPOIB_RARP;
}

static bool is_nd(const struct pkt *p)
{
	const uint8_t *ip = p->payload + IPOIB_HLEN;

	return get_be16(p->payload) == IPOIB_IP6 && ip[6] == 58 && ip[ICMP_AT] >= 133 &&
	       ip[ICMP_AT] <= REDIRECT;
}

/* Whether the 20 octets are the same address: the first is reserved. */
static bool same_address(const uint8_t *a, const uint8_t *b)
{
	return !memcmp(a + 1, b + 1, IPOIB_LLADDR_LEN - 1);
}

static void address_octets(uint8_t to[IPOIB_LLADDR_LEN], const struct ipoib_addr *a)
{
	put_be32(to, a->qpn); /* reserved octet 0 */
	memcpy(to + 4, a->gid, 16);
}

/* ARP of Ethernet: @p p, whose sender has the MAC @p mac and whose target may be at @p own. */
static uint32_t arp_of_ethernet(
	uint8_t *to, const uint8_t *p, const uint8_t *mac, const struct ipoib_config *own)
{
	uint8_t address[IPOIB_LLADDR_LEN];

	memset(to, 0, ARP_LEN);
	to[1] = 1;
	memcpy(to + 2, p + 2, 2);
	to[4] = 6;
	to[5] = 4;
	memcpy(to + 6, p + 6, 2);
	memcpy(to + 8, mac, 6);
	memcpy(to + 14, p + SENDER_IP, 4);
	if (own)
		address_octets(address, &own->own);
	if (own && same_address(p + TARGET, address))
		memcpy(to + 18, own->mac, 6);
	else if (same_address(p + TARGET, p + SENDER))
		memcpy(to + 18, mac, 6);
	memcpy(to + 24, p + TARGET_IP, 4);
	return ARP_LEN;
}

static uint16_t icmp_sum(const uint8_t *ip, uint32_t len)
{
	uint32_t sum = len - ICMP_AT + 58;

	for (uint32_t i = 8; i < len; i++)
		sum += i & 1 ? ip[i] : (uint32_t)ip[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Neighbour discovery with another link-layer address option; a redirect's target is left out. */
static uint32_t nd_with(uint8_t *to, const uint8_t *from, const struct option *option)
{
	static const uint8_t fixed[] = {8, 16, 24, 24, 40};
	uint32_t at = ICMP_AT + fixed[from[ICMP_AT] - 133], n = at;
	uint32_t end = ICMP_AT + get_be16(from + 4);

	memcpy(to, from, at);
	for (; at < end; at += from[at + 1] * 8u) {
		bool is_address = from[at] == 1 || from[at] == 2;
		uint32_t len = is_address ? option->len : from[at + 1] * 8u;

		if (from[at] == 2 && from[ICMP_AT] == REDIRECT)
			continue;
		memcpy(to + n, is_address ? option->octets : from + at, len);
		to[n] = from[at];
		n += len;
	}
	put_be16(to + 4, (uint16_t)(n - ICMP_AT));
	put_be16(to + ICMP_AT + 2, 0);
	put_be16(to + ICMP_AT + 2, icmp_sum(to, n));
	return n;
}

static struct option ethernet_option(const uint8_t *mac)
{
	struct option o = {.octets = {0, 1}, .len = 8};

	memcpy(o.octets + 2, mac, 6);
	return o;
}

static struct option ipoib_option(const struct ipoib_addr *a)
{
	struct option o = {.octets = {0, 3}, .len = 24};

	address_octets(o.octets + 4, a);
	return o;
}

/* The packet that the kernel must get, from the MAC of its frame. @return its length */
static uint32_t packet_for_kernel(
	uint8_t *to, const struct pkt *p, const uint8_t *mac, const struct ipoib_config *own)
{
	const uint8_t *packet = p->payload + IPOIB_HLEN;
	struct option o = ethernet_option(mac);

	if (is_arp(p))
		return arp_of_ethernet(to, packet, mac, own);
	if (is_nd(p))
		return nd_with(to, packet, &o);
	memcpy(to, packet, p->payload_len - IPOIB_HLEN);
	return p->payload_len - IPOIB_HLEN;
}

/* The packet that the netdev of the sender must make of it: as it came, reserved octets 0 and
 * without a target that it does not know. */
static uint32_t packet_of_peer(uint8_t *to, const struct pkt *p, const struct ipoib_addr *peer)
{
	const uint8_t *packet = p->payload + IPOIB_HLEN;
	struct option o = ipoib_option(peer);
	uint32_t len = p->payload_len - IPOIB_HLEN;

	if (is_nd(p))
		return nd_with(to, packet, &o);
	if (is_arp(p))
		len = TARGET_IP + 4; /* others are padding */
	memcpy(to, packet, len);
	if (!is_arp(p))
		return len;
	to[SENDER] = to[TARGET] = 0;
	if (!same_address(packet + TARGET, packet + SENDER))
		memset(to + TARGET, 0, IPOIB_LLADDR_LEN);
	return len;
}

/* The address that the sender says that it has; that of its datagram if it says none. */
static struct ipoib_addr peer_of(const struct pkt *p)
{
	const uint8_t *packet = p->payload + IPOIB_HLEN, *at = NULL;
	struct ipoib_addr a = {.qpn = p->src_qp};
	uint8_t to[16];

	frame_gids(p, a.gid, to);
	if (is_arp(p))
		at = packet + SENDER;
	for (uint32_t i = ICMP_AT + 8; is_nd(p) && i + 24 <= p->payload_len - IPOIB_HLEN; i += 8)
		if ((packet[i] == 1 || packet[i] == 2) && packet[i + 1] == 3 &&
			!memcmp(packet + i + 8, a.gid, 16))
			at = packet + i + 4;
	if (at)
		a.qpn = get_be24(at + 1);
	return a;
}

/* The netdev of the peer, whose kernel has that packet in Ethernet. */
static bool peer_sends(const struct pkt *p, const struct ipoib_config *like)
{
	static uint8_t frame[ROOM + FRAME_PAY], want[ROOM], room[IPOIB_PACKET_MAX];
	struct ipoib_config cfg = *like;
	struct ipoib_ask ask;
	struct ipoib_tx tx;
	struct ipoib *s;
	uint32_t len, n;
	bool sent;

	cfg.own = peer_of(p);
	cfg.mac[5] = 9;
	s = ipoib_init(malloc(ipoib_size()), &cfg);
	memset(frame, 0xFF, 6);
	memcpy(frame + MAC_AT, cfg.mac, 6);
	memcpy(frame + 12, p->payload, 2);
	len = packet_for_kernel(frame + FRAME_PAY, p, cfg.mac, NULL);
	n = packet_of_peer(want, p, &cfg.own);
	sent = ipoib_from_kernel(s, frame, FRAME_PAY + len, 1, &tx);
	while (ipoib_ask(s, &ask)) /* of the group */
		ipoib_resolved(s, ask.dest, ask.serial, true, 1);
	sent = sent || ipoib_next(s, room, 1, &tx);
	sent = sent && tx.len == IPOIB_HLEN + n && !memcmp(tx.at, p->payload, 2) &&
	       !get_be16(tx.at + 2) && !memcmp(tx.at + IPOIB_HLEN, want, n);
	free(s);
	return sent;
}

static bool same_packet(
	const struct pkt *p, const struct ipoib_frame *f, const struct ipoib_config *own)
{
	static uint8_t want[ROOM];
	uint32_t len = packet_for_kernel(want, p, f->at + MAC_AT, own);

	return f->len == FRAME_PAY + len && !memcmp(f->at + FRAME_PAY, want, len) &&
	       !memcmp(f->at + 12, p->payload, 2);
}

/* The GID that it was sent to, or any for a group. */
static void own_gid(const struct pkt *p, uint8_t gid[16])
{
	uint8_t from[16];

	frame_gids(p, from, gid);
	if (gid[0] == 0xFF)
		memcpy(gid, from, 16);
}

bool ipoib_takes(struct golden *g, const struct pkt *p, const uint8_t *area)
{
	struct ipoib_config cfg = {.own.qpn = p->dest_qp,
		.pkey = p->pkey,
		.vid = p->vid,
		.scope = IPOIB_SCOPE,
		.mtu = IPOIB_MTU_MAX,
		.mac = {2, 0, 0, 0, 0, 1}};
	struct ipoib_rx rx = {.len = IPOIB_GRH_AREA + p->payload_len,
		.src_qp = p->src_qp,
		.vid = p->vid,
		.ip4 = p->net == NET_IPV4};
	uint8_t *copy = malloc(rx.len + 1);
	struct ipoib_frame f;
	struct ipoib *s;
	bool taken;

	own_gid(p, cfg.own.gid);
	s = ipoib_init(malloc(ipoib_size()), &cfg);
	memcpy(copy, area, rx.len);
	rx.area = copy;
	taken = ipoib_from_wire(s, &rx, 1, &f);
	if (taken && (!same_packet(p, &f, &cfg) || !(f.at[MAC_AT] & 2) || f.at[MAC_AT] & 1))
		item_fail(g, "the kernel's frame is another");
	if (taken && !peer_sends(p, &cfg))
		item_fail(g, "the netdev of the sender does not send it");
	free(copy);
	free(s);
	return taken;
}
