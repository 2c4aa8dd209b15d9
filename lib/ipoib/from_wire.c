/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams that were received. */
#include "arp.h"
#include "bits.h"
#include "inet.h"
#include "ipoib_impl.h"
#include "nd.h"

/** A datagram that is being taken. */
struct arrival {
	struct ipoib_addr from;
	uint8_t to[16]; /* GID of this netdev's QP, or of a group */
	bool group;	/* that */
	uint64_t now;
	uint8_t *packet;
	uint32_t len;	/* of the packet */
	uint8_t mac[6]; /* of the sender, for the kernel */
};

/* The addresses of the IP header or GRH (IPB-15, A17.4.5.2). Stored as 64-bit halves, because
 * narrower stores would stall the loads of the comparisons that follow. */
static void read_area(struct arrival *a, const struct ipoib_rx *rx)
{
	a->from.qpn = rx->src_qp;
	if (rx->ip4) {
		put_be64(a->from.gid, 0);
		put_be64(a->from.gid + 8, 0xFFFFull << 32 | get_be32(rx->area + 32));
		put_be64(a->to, 0);
		put_be64(a->to + 8, 0xFFFFull << 32 | get_be32(rx->area + 36));
		a->group = rx->area[36] >> 4 == 0xE;
	} else {
		memcpy(a->from.gid, rx->area + 8, 16);
		memcpy(a->to, rx->area + 24, 16);
		a->group = a->to[0] == 0xFF;
	}
}

static bool is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xFE && (gid[1] & 0xC0) == 0x80;
}

/* The link is that of the netdev's GID: its VLAN, and if the GID is link-local, no router.
 * The QP itself takes datagrams to any GID of its port. */
static bool is_on_link(const struct ipoib *s, const struct arrival *a, const struct ipoib_rx *rx)
{
	const uint8_t *own = s->cfg.own.gid;

	return rx->vid == s->cfg.vid && (a->group || !memcmp(a->to, own, 16)) &&
	       (!is_link_local(own) || is_link_local(a->from.gid));
}

/* The kernel's answer goes to the MAC of @p n. */
static void heard_of(struct ipoib *s, struct arrival *a, struct neigh *n)
{
	neigh_touch(&s->table, n, a->now);
	heard(n, a->now);
	memcpy(a->mac, n->mac, 6);
}

/* The entry of a peer that has @p ip, or is about to. A peer that claimed it with another QPN
 * before has restarted: the kernel keeps the MAC that it knows (IPB-16), and also the one under
 * which the new QPN has claimed other addresses since. */
static struct neigh *entry_with(
	struct ipoib *s, const struct ipoib_addr *said, const uint8_t *ip, unsigned ip_len)
{
	struct neigh *n = neigh_of_ip(&s->table, said->gid, ip, ip_len);

	if (!n)
		return dest_peer(s, said);
	if (n->addr.qpn != said->qpn) {
		s->count[IPOIB_RESTARTED]++;
		neigh_rebind(n, said->qpn);
	}
	return n;
}

/* The sender claims @p ip in an ARP or ND message. */
static void claim(struct ipoib *s, struct arrival *a, const struct ipoib_addr *said,
	const uint8_t *ip, unsigned ip_len)
{
	struct neigh *n = entry_with(s, said, ip, ip_len);

	/* The address may have moved to the peer. Until it is used here again, this side does not
	 * announce it, and further claims do not count as duplicates. */
	s->count[IPOIB_DUPLICATE] += station_doubt(&s->stations, ip, ip_len);
	neigh_claim(n, ip, ip_len);
	heard_of(s, a, n);
}

/* A message about another port than its datagram's is forged. Replies go to the QPN in the message
 * (IPB-06); datagrams may come from another one. Only this netdev may claim its own address; no
 * other QP of its port may. */
static bool may_claim(struct ipoib *s, const struct arrival *a, const struct ipoib_addr *said)
{
	if (memcmp(said->gid, a->from.gid, 16) != 0 || said->qpn < QPN_FIRST ||
		said->qpn == QPN_MULTICAST)
		return drop(s, IPOIB_FORGED);
	if (ipoib_addr_same(said, &s->cfg.own))
		return drop(s, IPOIB_OWN);
	return true;
}

/* The MAC of an IP address of this side; that of the netdev if none is known. */
static const uint8_t *local_mac(
	struct ipoib *s, const struct arrival *a, const uint8_t *ip, unsigned ip_len)
{
	const uint8_t *mac;

	if (!s->stations.others)
		return s->cfg.mac;
	mac = station_mac(&s->stations, ip, ip_len);
	if (mac)
		return mac;
	probe_search(s, a->from.gid, ip, ip_len);
	return s->cfg.mac;
}

/* The MAC of an ARP message's target, as the kernel knows it: of an address of this side, of the
 * sender, which announces its address by a reply to itself (RFC 826; RFC 5227 3) or asks for it by
 * RARP, or of a known peer. @return none, of zeroes, for others */
static const uint8_t *target_mac(struct ipoib *s, const struct arrival *a, const struct arp *arp,
	const struct ipoib_addr *sender, const struct ipoib_addr *target)
{
	static const uint8_t unknown[6];
	const struct neigh *n;

	if (ipoib_addr_same(target, &s->cfg.own))
		return local_mac(s, a, arp->target_ip, 4);
	if (ipoib_addr_same(target, sender))
		return a->mac;
	n = target->qpn == QPN_MULTICAST ? NULL : neigh_of_addr(&s->table, target);
	return n ? n->mac : unknown;
}

/* A probe (RFC 5227 2.1.1) claims nothing but is answered; so are a request of RARP, and a question
 * of the peer's rocid, whose target is its own (arp_probe()). */
static void arp_heard(struct ipoib *s, struct arrival *a, const struct arp *arp,
	const struct ipoib_addr *sender, bool to_itself)
{
	bool nameless = inet_is_zero(arp->sender_ip, 4);

	if (arp->op == ARP_RARP_REQUEST || (nameless && (to_itself || arp->op != ARP_REQUEST))) {
		heard_of(s, a, dest_peer(s, sender));
	} else if (nameless) {
		probe_not(s, arp->target_ip, a->now);
		heard_of(s, a, entry_with(s, sender, arp->target_ip, 4));
	} else {
		claim(s, a, sender, arp->sender_ip, 4);
	}
}

static bool arp_in(struct ipoib *s, struct arrival *a, uint32_t *len)
{
	struct ipoib_addr sender, target;
	struct arp arp;

	if (!arp_read_ipoib(&arp, a->packet, a->len, &sender, &target))
		return drop(s, IPOIB_BAD_ARP);
	if (!may_claim(s, a, &sender))
		return false;
	arp_heard(s, a, &arp, &sender, ipoib_addr_same(&target, &sender));
	arp_write_eth(a->packet, &arp, a->mac, target_mac(s, a, &arp, &sender, &target));
	*len = ARP_ETH_LEN;
	return true;
}

/* Handles a claim, unless it comes from the address that no host has (neigh_made_up()): then it is
 * a probe by rocid, which claims nothing but is answered, like one by ARP. */
static void nd_claim(
	struct ipoib *s, struct arrival *a, const struct ipoib_addr *said, const uint8_t ip[16])
{
	uint8_t made_up[16];

	neigh_made_up(made_up, said);
	if (!memcmp(ip, made_up, 16))
		heard_of(s, a, dest_peer(s, said));
	else
		claim(s, a, said, ip, 16);
}

static bool nd_in(struct ipoib *s, struct arrival *a, uint32_t *len)
{
	struct ipoib_addr said;
	const uint8_t *lladdr;
	uint8_t *ip6 = a->packet;
	struct nd nd;

	if (!nd_read(&nd, ip6, a->len, IPOIB_ND_UNITS))
		return drop(s, IPOIB_BAD_ND);
	lladdr = nd.type == ND_NEIGHBOUR_ADVERT ? nd.dest : nd.source;
	if (lladdr) {
		ipoib_addr_get(&said, lladdr);
		if (!may_claim(s, a, &said))
			return false;
		if (nd.type == ND_NEIGHBOUR_ADVERT)
			nd_claim(s, a, &said, nd.target);
		else if (!inet_is_zero(ip6 + IP6_SRC, 16))
			nd_claim(s, a, &said, ip6 + IP6_SRC);
	}
	*len = nd_write(s->copy, sizeof(s->copy), ip6, ND_ETH_UNITS, a->mac);
	if (!*len)
		return drop(s, IPOIB_LONG);
	memcpy(ip6, s->copy, *len);
	return true;
}

/* The destination MAC of a datagram to our QP. The answer to a probe for duplicates (RFC 5227)
 * does not name the host that asked: it may be any on this side, if there are others than the
 * netdev's own. */
static const uint8_t *destination_here(struct ipoib *s, const struct arrival *a, uint16_t type)
{
	static const uint8_t everybody[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
	const uint8_t *packet = a->packet;

	if (type == IPOIB_IP6)
		return local_mac(s, a, packet + IP6_DST, 16);
	if (type == IPOIB_IP4)
		return local_mac(s, a, packet + IP4_DST, 4);
	packet += ARP_ETH_TARGET_IP;
	if (inet_is_zero(packet, 4) && s->stations.others)
		return everybody;
	return local_mac(s, a, packet, 4);
}

/* Groups' MACs are those of Ethernet: RFC 1112 6.4, RFC 2464 7. */
static void ethernet(struct ipoib *s, const struct arrival *a, uint16_t type)
{
	uint8_t *eth = a->packet - ETHER_HLEN;

	if (!a->group) {
		memcpy(eth, destination_here(s, a, type), 6);
	} else if (type == IPOIB_IP6 && a->packet[24] == 0xFF) {
		eth[0] = eth[1] = 0x33;
		memcpy(eth + 2, a->packet + 36, 4);
	} else if (type == IPOIB_IP4 && a->packet[16] >> 4 == 0xE) {
		put_be32(eth, 0x01005E00);
		memcpy(eth + 3, a->packet + 17, 3);
		eth[3] &= 0x7F;
	} else {
		memset(eth, 0xFF, 6);
	}
	memcpy(eth + 6, a->mac, 6);
	put_be16(eth + ETHER_TYPE, type);
}

/* The MAC of the sender: that of its entry, which may be one of a QPN before, or its own. */
static void name_sender(struct ipoib *s, struct arrival *a)
{
	struct neigh *n = neigh_of_addr(&s->table, &a->from);

	if (!n) {
		dest_choose_mac(s, a->mac, &a->from);
		return;
	}
	memcpy(a->mac, n->mac, 6);
	for (; n; n = neigh_another(&s->table, n))
		heard(n, a->now);
}

static bool translate(struct ipoib *s, struct arrival *a, uint16_t type, uint32_t *len)
{
	*len = a->len;
	if (type == IPOIB_ARP || type == IPOIB_RARP)
		return arp_in(s, a, len);
	if (!inet_is_ip(a->packet, a->len, type == IPOIB_IP4))
		return drop(s, IPOIB_BAD_IP);
	if (type == IPOIB_IP6 && nd_is(a->packet, a->len))
		return nd_in(s, a, len);
	if (type == IPOIB_IP6 && nd_after_headers(a->packet, a->len))
		return drop(s, IPOIB_BAD_ND);
	return true;
}

bool ipoib_from_wire(
	struct ipoib *s, const struct ipoib_rx *rx, uint64_t now, struct ipoib_frame *frame)
{
	struct arrival a = {.now = now, .packet = rx->area + IPOIB_GRH_AREA + IPOIB_HLEN};
	uint16_t type;
	uint32_t len;

	if (rx->len < IPOIB_GRH_AREA + IPOIB_HLEN)
		return drop(s, IPOIB_SHORT);
	a.len = rx->len - IPOIB_GRH_AREA - IPOIB_HLEN;
	read_area(&a, rx);
	if (!is_on_link(s, &a, rx))
		return drop(s, IPOIB_OFF_LINK);
	type = get_be16(rx->area + IPOIB_GRH_AREA); /* reserved bits are ignored: IPB-01 */
	if (!ipoib_type_known(type))
		return drop(s, IPOIB_TYPE);
	if (a.len > s->cfg.mtu)
		return drop(s, IPOIB_LONG);
	if (ipoib_addr_same(&a.from, &s->cfg.own))
		return drop(s, IPOIB_OWN);
	name_sender(s, &a);
	if (!translate(s, &a, type, &len))
		return false;
	ethernet(s, &a, type);
	*frame = (struct ipoib_frame){.at = a.packet - ETHER_HLEN, .len = ETHER_HLEN + len};
	s->count[IPOIB_RX]++;
	return true;
}
