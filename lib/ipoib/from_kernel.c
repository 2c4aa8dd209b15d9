/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of the kernel. */
#include "arp.h"
#include "bits.h"
#include "inet.h"
#include "ipoib_impl.h"
#include "nd.h"

static bool is_group(const uint8_t mac[6])
{
	return mac[0] & 1;
}

/* The group of a frame, by its IP destination; that of ARP and of IPv4's broadcasts is everybody's.
 */
static void group_of_frame(
	const struct ipoib *s, uint16_t type, const uint8_t *packet, uint8_t mgid[16])
{
	static const uint8_t everybody[4] = {0xFF, 0xFF, 0xFF, 0xFF};

	if (type == IPOIB_IP6 && packet[24] == 0xFF)
		ipoib_mgid_of_ip6(mgid, s->cfg.pkey, s->cfg.scope, packet + 24);
	else if (type == IPOIB_IP4 && packet[16] >> 4 == 0xE)
		ipoib_mgid_of_ip4(mgid, s->cfg.pkey, s->cfg.scope, packet + 16);
	else
		ipoib_mgid_of_ip4(mgid, s->cfg.pkey, s->cfg.scope, everybody);
}

static struct neigh *destination(
	struct ipoib *s, const uint8_t *mac, uint16_t type, const uint8_t *packet)
{
	uint8_t mgid[16];

	if (!is_group(mac))
		return neigh_of_mac(&s->table, mac);
	group_of_frame(s, type, packet, mgid);
	return dest_group(s, mgid);
}

/* If another link connects the bridge to the wire, the bridge returns frames that came from there;
 * dropping them ends the loop. Our own MAC is compared without its QPN part, because peers may know
 * us by the QPN of an earlier session. */
static bool is_of_the_wire(struct ipoib *s, const uint8_t mac[6])
{
	return !memcmp(mac, s->wire_mac, NEIGH_MAC_GID) || neigh_of_mac(&s->table, mac);
}

/* Uses the frame's source MAC, which the bridge can reach, not the one in the message. */
static void claim_here(struct ipoib *s, const uint8_t mac[6], const uint8_t *ip, unsigned ip_len)
{
	s->count[IPOIB_DISPLACED] += station_claim(&s->stations, mac, ip, ip_len);
}

static void seen_here(struct ipoib *s, const uint8_t mac[6], const uint8_t *ip, unsigned ip_len)
{
	s->count[IPOIB_DISPLACED] += station_seen(&s->stations, mac, ip, ip_len);
}

/* An ARP message; a probe tells the address that its sender looks for duplicates of (RFC 5227
 * 2.1.1). */
static void arp_seen(struct ipoib *s, const uint8_t mac[6], const uint8_t *arp)
{
	bool is_probe = inet_is_zero(arp + ARP_ETH_SENDER_IP, 4);

	seen_here(s, mac, arp + (is_probe ? ARP_ETH_TARGET_IP : ARP_ETH_SENDER_IP), 4);
}

/* A frame that may be of another host on the bridge that the netdev is a port of. */
static bool from_bridge(struct ipoib *s, const uint8_t *frame, uint32_t len, uint16_t type)
{
	const uint8_t *src = frame + ETHER_SRC, *ip = frame + ETHER_HLEN;

	if (!is_own(s, src) && is_of_the_wire(s, src))
		return drop(s, IPOIB_LOOPED);
	if (type == IPOIB_IP4)
		seen_here(s, src, ip + IP4_SRC, 4);
	else if (type == IPOIB_IP6)
		seen_here(s, src, ip + IP6_SRC, 16);
	else if (type == IPOIB_ARP && len >= ETHER_HLEN + ARP_ETH_LEN)
		arp_seen(s, src, ip);
	return true;
}

/* Translates into the frame's own place: it grows by 18 octets less than it had of Ethernet. */
static bool arp_out(struct ipoib *s, uint8_t *frame, uint32_t len, struct ipoib_tx *tx)
{
	struct ipoib_addr target = {0};
	uint8_t sender[6], mac[6];
	const struct neigh *n;
	struct arp a;

	if (!arp_read_eth(&a, frame + ETHER_HLEN, len - ETHER_HLEN, sender, mac))
		return drop(s, IPOIB_BAD_ARP);
	n = neigh_of_mac(&s->table, mac);
	if (n)
		target = n->addr;
	else if (!memcmp(mac, sender, 6)) /* it announces itself */
		target = s->cfg.own;
	if (a.op != ARP_RARP_REQUEST)
		claim_here(s, frame + ETHER_SRC, a.sender_ip, 4);
	arp_write_ipoib(tx->at + IPOIB_HLEN, &a, &s->cfg.own, &target);
	tx->len = IPOIB_HLEN + ARP_IPOIB_LEN;
	return true;
}

static bool nd_out(struct ipoib *s, uint8_t *ip6, uint32_t len, struct ipoib_tx *tx)
{
	const uint8_t *src = ip6 - ETHER_HLEN + ETHER_SRC;
	uint8_t addr[IPOIB_LLADDR_LEN];
	uint32_t n;
	struct nd nd;

	if (len > IPOIB_MTU_MAX)
		return drop(s, IPOIB_LONG);
	if (!nd_read(&nd, ip6, len, ND_ETH_UNITS))
		return drop(s, IPOIB_BAD_ND);
	if (nd.type == ND_NEIGHBOUR_ADVERT)
		claim_here(s, src, nd.target, 16);
	else if (nd.type == ND_NEIGHBOUR_SOLICIT && inet_is_zero(ip6 + IP6_SRC, 16))
		seen_here(s, src, nd.target, 16); /* it looks for duplicates */
	else if (nd.type == ND_NEIGHBOUR_SOLICIT && nd.source)
		claim_here(s, src, ip6 + IP6_SRC, 16);
	ipoib_addr_put(addr, &s->cfg.own);
	n = nd_write(s->copy, sizeof(s->copy), ip6, IPOIB_ND_UNITS, addr);
	memcpy(ip6, s->copy, n);
	tx->len = IPOIB_HLEN + n;
	return true;
}

static bool is_arp(uint16_t type)
{
	return type == IPOIB_ARP || type == IPOIB_RARP;
}

/* Replaces the link-layer addresses in a message: a peer's kernel would believe those of Ethernet.
 */
static bool translate(
	struct ipoib *s, uint8_t *frame, uint32_t len, uint16_t type, struct ipoib_tx *tx)
{
	uint8_t *packet = frame + ETHER_HLEN;

	if (is_arp(type))
		return arp_out(s, frame, len, tx);
	if (type != IPOIB_IP6)
		return true;
	len -= ETHER_HLEN;
	if (nd_is(packet, len))
		return nd_out(s, packet, len, tx);
	if (nd_after_headers(packet, len))
		return drop(s, IPOIB_BAD_ND);
	return true;
}

bool ipoib_from_kernel(
	struct ipoib *s, uint8_t *frame, uint32_t len, uint64_t now, struct ipoib_tx *tx)
{
	uint8_t *packet = frame + ETHER_HLEN;
	struct neigh *n;
	uint8_t dst[6];
	uint16_t type;

	if (len < ETHER_HLEN)
		return drop(s, IPOIB_SHORT);
	type = get_be16(frame + ETHER_TYPE);
	if (!ipoib_type_known(type))
		return drop(s, IPOIB_TYPE);
	if (!is_arp(type) && !inet_is_ip(packet, len - ETHER_HLEN, type == IPOIB_IP4))
		return drop(s, IPOIB_BAD_IP);
	if ((!is_own(s, frame + ETHER_SRC) || s->stations.others) &&
		!from_bridge(s, frame, len, type))
		return false;
	memcpy(dst, frame, 6);
	n = destination(s, dst, type, packet);
	if (!n)
		return probe_look_for(s, frame, type, now, tx);
	*tx = (struct ipoib_tx){.at = packet - IPOIB_HLEN, .len = len - ETHER_HLEN + IPOIB_HLEN};
	if (!translate(s, frame, len, type, tx))
		return false;
	ipoib_header_put(tx->at, type);
	return dest_send(s, n, now, tx);
}
