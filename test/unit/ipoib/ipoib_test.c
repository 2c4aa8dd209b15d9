/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of the kernel and datagrams of the wire: what is translated, what is dropped, what waits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include "arp.h"
#include "bits.h"
#include "link.h"
#include "nd.h"

#define ETH 14u

static struct link l;

static int setup(void **state)
{
	link_init(&l);
	return 0;
}

static int teardown(void **state)
{
	link_fini(&l);
	return 0;
}

/* A request for @p target. */
static uint32_t arp_for(
	uint8_t *p, const struct ipoib_addr *sender, const char *ip, const uint8_t target[4])
{
	static const struct ipoib_addr none;
	struct arp a = {.op = ARP_REQUEST};

	memcpy(a.target_ip, target, 4);
	inet_pton(AF_INET, ip, a.sender_ip);
	ipoib_header_put(p, IPOIB_ARP);
	arp_write_ipoib(p + IPOIB_HLEN, &a, sender, &none);
	return IPOIB_HLEN + ARP_IPOIB_LEN;
}

static uint32_t arp_of(uint8_t *p, const struct ipoib_addr *sender, const char *ip)
{
	return arp_for(p, sender, ip, (uint8_t[]){10, 0, 0, 99});
}

/* A datagram of type @p type with @p len octets of IP, from host 1 to host 0. */
static bool ip_datagram(uint16_t type, uint16_t reserved, uint8_t version, uint32_t len)
{
	uint8_t p[ROOM] = {0};

	put_be16(p, type);
	put_be16(p + 2, reserved);
	p[4] = (uint8_t)(version << 4);
	return host_datagram(&l, 0, &l.host[1].cfg.own, false, p, IPOIB_HLEN + len);
}

/* A frame of the kernel of host 0. */
static bool frame_of(
	uint16_t type, const uint8_t *dst, uint8_t version, uint32_t len, struct ipoib_tx *tx)
{
	static uint8_t frame[ROOM];

	memset(frame, 0, sizeof(frame));
	memcpy(frame, dst, 6);
	put_be16(frame + 12, type);
	frame[ETH] = (uint8_t)(version << 4);
	return ipoib_from_kernel(l.host[0].s, frame, ETH + len, l.now, tx);
}

/* proves IPB-01, IPB-02, IPB-15 */
static void from_wire__header(void **state)
{
	uint8_t mac[6];

	assert_true(ip_datagram(IPOIB_IP4, 0xFFFF, 4, 20));
	assert_int_equal(l.host[0].last_len, ETH + 20);
	assert_memory_equal(l.host[0].last, l.host[0].cfg.mac, 6);
	neigh_mac(mac, &l.host[1].cfg.own);
	assert_memory_equal(l.host[0].last + 6, mac, 6);
	assert_int_equal(get_be16(l.host[0].last + 12), IPOIB_IP4);
	assert_true(ip_datagram(IPOIB_IP6, 0, 6, 40));
	assert_false(ip_datagram(0x0801, 0, 4, 20));
	assert_false(ip_datagram(0x88B5, 0, 4, 20));
	assert_int_equal(host_count(&l, 0, IPOIB_TYPE), 2);
	assert_false(ip_datagram(IPOIB_IP4, 0, 6, 60));
	assert_false(ip_datagram(IPOIB_IP6, 0, 4, 60));
	assert_false(ip_datagram(IPOIB_IP4, 0, 4, 19));
	assert_false(ip_datagram(IPOIB_IP6, 0, 6, 39));
	assert_int_equal(host_count(&l, 0, IPOIB_BAD_IP), 4);
	assert_int_equal(host_count(&l, 0, IPOIB_RX), 2);
}

static void from_wire__too_short_or_too_long(void **state)
{
	struct ipoib_addr from = l.host[1].cfg.own;
	uint8_t p[ROOM] = {8, 0, 0, 0, 0x45};

	for (uint32_t len = 0; len < IPOIB_HLEN; len++)
		assert_false(host_datagram(&l, 0, &from, false, p, len));
	assert_int_equal(host_count(&l, 0, IPOIB_SHORT), 4);
	assert_true(host_datagram(&l, 0, &from, false, p, IPOIB_HLEN + 2044));
	assert_false(host_datagram(&l, 0, &from, false, p, IPOIB_HLEN + 2045));
	assert_int_equal(host_count(&l, 0, IPOIB_LONG), 1);
}

static void from_wire__another_mac(void **state)
{
	static const uint8_t mac[6] = {2, 1, 2, 3, 4, 5};

	ipoib_set_mac(l.host[0].s, mac);
	assert_true(ip_datagram(IPOIB_IP4, 0, 4, 20));
	assert_memory_equal(l.host[0].last, mac, 6);
}

/* The QP takes datagrams to any GID of its port: the link is that of one of them. */
static void from_wire__off_link(void **state)
{
	const struct ipoib_addr honest = l.host[1].cfg.own;
	struct ipoib_addr from = honest;
	uint8_t p[ROOM];
	uint32_t len = arp_of(p, &from, "10.0.0.2");

	l.vid = 5;
	assert_false(host_datagram(&l, 0, &from, false, p, len));
	assert_false(host_datagram(&l, 0, &from, true, p, len));
	l.vid = 0;
	memcpy(from.gid, (uint8_t[16]){0x20, 1, 0xD, 0xB8, [15] = 2},
		16); /* of a router's far side */
	assert_false(host_datagram(&l, 0, &from, false, p, arp_of(p, &from, "10.0.0.2")));
	assert_false(host_datagram(&l, 0, &from, true, p, len));
	l.host[0].cfg.own.gid[15] = 99; /* to another GID of the port */
	assert_false(host_datagram(&l, 0, &honest, false, p, len));
	l.host[0].cfg.own.gid[15] = 1;
	assert_int_equal(host_count(&l, 0, IPOIB_OFF_LINK), 5);
	assert_int_equal(ipoib_neighs(l.host[0].s), 0);
	assert_true(host_datagram(&l, 0, &honest, false, p, arp_of(p, &honest, "10.0.0.2")));
}

/* A group's sender gets its own datagrams back. */
static void from_wire__own(void **state)
{
	uint8_t p[] = {8, 0, 0, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

	assert_false(host_datagram(&l, 0, &l.host[0].cfg.own, true, p, sizeof(p)));
	assert_int_equal(host_count(&l, 0, IPOIB_OWN), 1);
}

static void from_wire__groups_of_ethernet(void **state)
{
	static const struct {
		uint16_t type;
		uint8_t version;
		const char *ip;
		uint8_t mac[6];
	} row[] = {{IPOIB_IP4, 4, "239.129.2.3", {1, 0, 0x5E, 1, 2, 3}},
		{IPOIB_IP4, 4, "10.0.0.255", {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}},
		{IPOIB_IP6, 6, "ff02::1:ff01:203", {0x33, 0x33, 0xFF, 1, 2, 3}}};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		uint8_t p[64] = {0};

		put_be16(p, row[i].type);
		p[4] = (uint8_t)(row[i].version << 4);
		assert_int_equal(inet_pton(row[i].version == 4 ? AF_INET : AF_INET6, row[i].ip,
					 p + 4 + (row[i].version == 4 ? 16 : 24)),
			1);
		assert_true(host_datagram(&l, 0, &l.host[1].cfg.own, true, p, sizeof(p)));
		assert_memory_equal(l.host[0].last, row[i].mac, 6);
	}
}

/* --- ARP and ND of others --------------------------------------------------------------------- */

static void arp__forged(void **state)
{
	struct ipoib_addr one = l.host[1].cfg.own, two = l.host[2].cfg.own, odd = one;
	uint8_t p[ROOM];
	uint32_t len = arp_of(p, &two, "10.0.0.3");

	assert_false(host_datagram(&l, 0, &one, true, p, len));
	assert_int_equal(host_count(&l, 0, IPOIB_FORGED), 1);
	arp_of(p, &l.host[0].cfg.own, "10.0.0.1"); /* in our own name */
	assert_false(host_datagram(&l, 0, &one, true, p, len));
	for (unsigned i = 0; i < 3; i++) {
		odd.qpn = i == 2 ? 0xFFFFFF : i;
		arp_of(p, &odd, "10.0.0.2");
		assert_false(host_datagram(&l, 0, &one, true, p, len));
	}
	assert_int_equal(host_count(&l, 0, IPOIB_FORGED), 5);
	assert_int_equal(ipoib_neighs(l.host[0].s), 0);
	arp_of(p, &one, "10.0.0.2");
	assert_true(host_datagram(&l, 0, &one, true, p, len));
	assert_int_equal(ipoib_neighs(l.host[0].s), 1);
	p[IPOIB_HLEN + 1] = 1; /* of Ethernet: IPB-04 */
	assert_false(host_datagram(&l, 0, &one, true, p, len));
	assert_false(host_datagram(&l, 0, &one, true, p, len - 1));
	assert_int_equal(host_count(&l, 0, IPOIB_BAD_ARP), 2);
}

/* proves IPB-06: who looks for a duplicate of its address has none yet, and is answered */
static void arp__probe_is_answered(void **state)
{
	struct ipoib_addr one = l.host[1].cfg.own;
	struct ipoib_ask ask;
	struct ipoib_tx tx;
	uint8_t p[ROOM];

	assert_true(host_datagram(&l, 0, &one, true, p, arp_of(p, &one, "0.0.0.0")));
	assert_false(frame_of(IPOIB_IP4, l.host[0].last + 6, 4, 20, &tx)); /* waits */
	assert_int_equal(host_count(&l, 0, IPOIB_NO_NEIGH), 0);
	assert_true(ipoib_ask(l.host[0].s, &ask));
	assert_memory_equal(ask.gid, one.gid, 16);
}

/* proves IPB-06: an address may name another QP than the one that sent it */
static void arp__qpn_of_the_address(void **state)
{
	struct ipoib_addr said = l.host[1].cfg.own;
	uint8_t p[ROOM], mac[6];
	struct ipoib_tx tx;
	uint32_t len;

	said.qpn = 0x4242;
	len = arp_of(p, &said, "10.0.0.2");
	assert_true(host_datagram(&l, 0, &l.host[1].cfg.own, true, p, len));
	memcpy(mac, l.host[0].last + 6, 6);
	assert_false(frame_of(IPOIB_IP4, mac, 4, 20, &tx)); /* waits for a handle */
	link_run(&l, 1);
	assert_true(frame_of(IPOIB_IP4, mac, 4, 20, &tx));
	assert_int_equal(tx.qpn, 0x4242);
}

/* An ARP or RARP message of host 1, whose IP addresses are both @p ip, as the kernel of host 0 gets
 * it. @return the MAC of its target */
static const uint8_t *about(
	uint16_t type, uint16_t op, uint8_t ip, const struct ipoib_addr *target, struct arp *a)
{
	static uint8_t sender[6], mac[6];
	const struct ipoib_addr *one = &l.host[1].cfg.own;
	uint8_t p[IPOIB_HLEN + ARP_IPOIB_LEN];

	*a = (struct arp){.op = op, .sender_ip = {10, 0, 0, ip}, .target_ip = {10, 0, 0, ip}};
	ipoib_header_put(p, type);
	arp_write_ipoib(p + IPOIB_HLEN, a, one, target);
	assert_true(host_datagram(&l, 0, one, true, p, sizeof(p)));
	assert_true(arp_read_eth(a, l.host[0].last + ETH, ARP_ETH_LEN, sender, mac));
	assert_memory_equal(sender, l.host[0].last + 6, 6);
	return mac;
}

/* proves IPB-04: the target is the sender, this host, a known peer or nobody */
static void arp__target(void **state)
{
	static const uint8_t unknown[6];
	struct ipoib_addr stranger = {.qpn = 9, .gid = {0xFE, 0x80, [15] = 99}}, none = {.qpn = 0};
	struct arp a;

	assert_memory_equal(about(IPOIB_ARP, 2, 2, &l.host[1].cfg.own, &a), /* announces itself */
		l.host[0].last + 6, 6);
	assert_memory_equal(about(IPOIB_ARP, 2, 2, &l.host[0].cfg.own, &a), l.host[0].cfg.mac, 6);
	assert_memory_equal(about(IPOIB_ARP, 2, 2, &l.host[2].cfg.own, &a), unknown, 6);
	host_arp(&l, 2, 0);
	assert_memory_equal(about(IPOIB_ARP, 2, 2, &l.host[2].cfg.own, &a), l.host[0].mac[2], 6);
	assert_memory_equal(about(IPOIB_ARP, 2, 2, &stranger, &a), unknown, 6);
	assert_memory_equal(about(IPOIB_ARP, 1, 2, &none, &a), unknown, 6);
}

/* The broadcast group is in the table too, but has no MAC. */
static void arp__target_is_a_group(void **state)
{
	static const uint8_t unknown[6];
	struct ipoib_addr group = {.qpn = 0xFFFFFF};
	struct arp a;

	host_arp(&l, 0, 1);
	for (uint32_t i = 0; i < NEIGH_MAX; i++)
		if (host_neigh(&l, 0, i)->group) {
			memcpy(group.gid, host_neigh(&l, 0, i)->addr.gid, 16);
			memset(host_neigh(&l, 0, i)->mac, 0xEE, 6);
		}
	assert_int_equal(group.gid[0], 0xFF);
	assert_memory_equal(about(IPOIB_ARP, 2, 2, &group, &a), unknown, 6);
}

/* proves IPB-02: a request of RARP asks for the address of its sender, and claims none */
static void rarp__request(void **state)
{
	struct ipoib_addr peer = l.host[1].cfg.own;
	uint8_t mac[6];
	struct arp a;

	memcpy(mac, about(IPOIB_RARP, ARP_RARP_REQUEST, 7, &peer, &a), 6);
	assert_memory_equal(mac, l.host[0].last + 6, 6);
	assert_int_equal(get_be16(l.host[0].last + 12), IPOIB_RARP);
	assert_int_equal(a.op, ARP_RARP_REQUEST);
	for (uint32_t i = 0; i < NEIGH_MAX; i++)
		assert_int_equal(host_neigh(&l, 0, i)->nip4, 0);
	assert_int_equal(ipoib_neighs(l.host[0].s), 1); /* the answer has somewhere to go */
	peer.qpn = 0x777; /* it restarts with the same undefined address: nothing to learn from */
	l.host[1].cfg.own = peer;
	about(IPOIB_RARP, ARP_RARP_REQUEST, 7, &peer, &a);
	assert_int_equal(host_count(&l, 0, IPOIB_RESTARTED), 0);
	/* A reply says where its sender is, and is for whom it names. */
	assert_memory_equal(about(IPOIB_RARP, 4, 7, &l.host[0].cfg.own, &a), l.host[0].cfg.mac, 6);
}

static void claim(const struct ipoib_addr *from, const char *ip, uint8_t mac[6])
{
	uint8_t p[ROOM];

	assert_true(host_datagram(&l, 0, from, true, p, arp_of(p, from, ip)));
	memcpy(mac, l.host[0].last + 6, 6);
}

/* It is known by so many addresses that the first is forgotten. */
static void claim_many(const struct ipoib_addr *from)
{
	uint8_t mac[6];

	for (unsigned i = 0; i < NEIGH_IPS; i++)
		claim(from, (const char *[]){"10.0.1.1", "10.0.1.2", "10.0.1.3", "10.0.1.4"}[i],
			mac);
}

/* @return the QPN that a packet to the MAC goes to. */
static uint32_t qpn_behind(const uint8_t mac[6])
{
	struct ipoib_tx tx = {.qpn = 0};

	if (frame_of(IPOIB_IP4, mac, 4, 20, &tx))
		return tx.qpn;
	link_run(&l, 1); /* the handle is made */
	return frame_of(IPOIB_IP4, mac, 4, 20, &tx) ? tx.qpn : 0;
}

/* proves IPB-16: the peer has several addresses, and claims the one first that it claimed least
 * lately before it restarted. Each MAC that the kernel learned leads to the new QP. */
static void restart__of_a_peer_with_several_addresses(void **state)
{
	struct ipoib_addr peer = l.host[1].cfg.own;
	uint8_t before[6], first[6], second[6];

	claim(&peer, "10.0.0.2", first);
	claim_many(&peer);
	claim(&peer, "10.0.0.3", before);
	assert_memory_equal(first, before, 6);
	assert_int_equal(qpn_behind(before), peer.qpn);
	peer.qpn = 0x4321;
	claim(&peer, "10.0.0.2", first);
	claim(&peer, "10.0.0.3", second);
	assert_memory_equal(second, before, 6);
	assert_int_equal(qpn_behind(first), 0x4321);
	assert_int_equal(qpn_behind(second), 0x4321);
	claim(&peer, "10.0.0.2", before);
	assert_memory_equal(before, first, 6);
	assert_int_equal(host_count(&l, 0, IPOIB_RESTARTED), 1);
}

/* The target of an announcement is its sender, also of a peer that has two MACs. */
static void restart__announced_by_replies(void **state)
{
	struct ipoib_addr *peer = &l.host[1].cfg.own;
	uint8_t mac[2][6];
	struct arp a;

	claim(peer, "10.0.0.2", mac[0]);
	claim_many(peer);
	claim(peer, "10.0.0.3", mac[0]);
	peer->qpn = 0x4321;
	claim(peer, "10.0.0.2", mac[0]);
	claim(peer, "10.0.0.3", mac[1]);
	assert_memory_not_equal(mac[0], mac[1], 6);
	for (unsigned i = 0; i < 2; i++)
		assert_memory_equal(about(IPOIB_ARP, 2, (uint8_t)(2 + i), peer, &a), mac[i], 6);
}

/* The order in which it claims its addresses does not matter: it keeps its MAC. */
static void restart__keeps_the_mac_of_each_address(void **state)
{
	struct ipoib_addr peer = l.host[1].cfg.own;
	uint8_t before[6], after[6];

	claim(&peer, "10.0.0.2", before);
	claim(&peer, "10.0.0.3", before);
	peer.qpn = 0x4321;
	claim(&peer, "10.0.0.2", after);
	assert_memory_equal(after, before, 6);
	claim(&peer, "10.0.0.3", after);
	assert_memory_equal(after, before, 6);
	assert_int_equal(qpn_behind(before), 0x4321);
}

/* A packet of the peer counts for each of its entries: none is asked for. */
static void restart__all_entries_of_a_peer_are_heard(void **state)
{
	struct ipoib_addr peer = l.host[1].cfg.own;
	uint8_t p[ROOM] = {8, 0, 0, 0, 0x45}, one[6], two[6];

	claim(&peer, "10.0.0.2", one);
	claim_many(&peer);
	claim(&peer, "10.0.0.3", one);
	peer.qpn = 0x4321;
	claim(&peer, "10.0.0.2", two);
	claim(&peer, "10.0.0.3", one);
	assert_memory_not_equal(one, two, 6);
	host_arp(&l, 0, 2); /* probes name an address of our own */
	for (unsigned i = 0; i < 100; i++) {
		assert_true(host_datagram(&l, 0, &peer, false, p, IPOIB_HLEN + 20));
		assert_int_equal(qpn_behind(one), 0x4321);
		assert_int_equal(qpn_behind(two), 0x4321);
		link_run(&l, IPOIB_REACHABLE_NS / 2);
	}
	assert_int_equal(host_count(&l, 0, IPOIB_PROBES_SENT), 0);
}

/* proves IPB-06: another QP of this port does not speak for this netdev, by ARP or by ND */
static void own__address_of_another_qp(void **state)
{
	struct ipoib_addr own = l.host[0].cfg.own, other = own;
	uint8_t p[ROOM], target[16] = {0xFE, 0x80, [15] = 9};
	uint32_t len;

	other.qpn = 0x999;
	assert_false(host_datagram(&l, 0, &other, true, p, arp_of(p, &own, "10.0.0.9")));
	assert_int_equal(host_count(&l, 0, IPOIB_OWN), 1);
	ipoib_header_put(p, IPOIB_IP6);
	len = IPOIB_HLEN + nd_solicit(p + IPOIB_HLEN, own.gid, target, &own);
	assert_false(host_datagram(&l, 0, &other, true, p, len));
	assert_int_equal(host_count(&l, 0, IPOIB_OWN), 2);
	assert_int_equal(ipoib_neighs(l.host[0].s), 0);
	assert_true(host_datagram(&l, 0, &other, true, p, arp_of(p, &other, "10.0.0.9")));
}

/* proves IPB-05: ND of a forged address, and of a wrong option */
static void nd__forged_and_malformed(void **state)
{
	struct ipoib_addr one = l.host[1].cfg.own;
	uint8_t p[ROOM], target[16] = {0xFE, 0x80, [15] = 9};
	uint32_t len;

	ipoib_header_put(p, IPOIB_IP6);
	len = IPOIB_HLEN + nd_solicit(p + IPOIB_HLEN, one.gid, target, &l.host[2].cfg.own);
	assert_false(host_datagram(&l, 0, &one, true, p, len));
	assert_int_equal(host_count(&l, 0, IPOIB_FORGED), 1);
	nd_solicit(p + IPOIB_HLEN, one.gid, target, &one);
	assert_true(host_datagram(&l, 0, &one, true, p, len));
	assert_int_equal(l.host[0].last_len, ETH + 40 + 24 + 8);
	assert_memory_equal(l.host[0].last + ETH + 66, l.host[0].last + 6, 6);
	p[IPOIB_HLEN + 65] = 1;
	assert_false(host_datagram(&l, 0, &one, true, p, len));
	assert_int_equal(host_count(&l, 0, IPOIB_BAD_ND), 1);
	assert_int_equal(ipoib_neighs(l.host[0].s), 1);
}

/* A kernel takes neighbour discovery also after extension headers: untranslated, it could name the
 * MAC of any peer. Other packets with such headers pass. */
static void nd__after_extension_headers(void **state)
{
	static const struct {
		uint8_t type, head[24];
		uint32_t len;
		bool hides;
	} row[] = {
		{0, {58, 0}, 8, true}, {60, {58, 1}, 16, true}, {43, {58, 0}, 8, true},
		{44, {58}, 8, true},	       /* all of it, or its first fragment */
		{44, {58, 0, 0, 8}, 8, false}, /* a later fragment */
		{51, {58, 1}, 12, true}, {0, {60, 0, 0, 0, 0, 0, 0, 0, 58, 0}, 16, true},
		{0, {17, 0}, 8, false}, {0, {58, 0}, 7, false}, /* cut */
		{60, {58, 5}, 24, false},			/* longer than the packet */
	};
	unsigned bad = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		uint8_t p[ROOM] = {[IPOIB_HLEN] = 0x60}, frame[ROOM] = {0x33, 0x33};
		uint32_t len = IPOIB_HLEN + 40 + row[i].len;
		struct ipoib_tx tx;

		ipoib_header_put(p, IPOIB_IP6);
		p[IPOIB_HLEN + 6] = row[i].type;
		memcpy(p + IPOIB_HLEN + 40, row[i].head, row[i].len);
		if (row[i].len % 4 == 0)
			p[len++] = ND_NEIGHBOUR_ADVERT;
		bad += row[i].hides;
		assert_int_equal(
			host_datagram(&l, 0, &l.host[1].cfg.own, false, p, len), !row[i].hides);
		assert_int_equal(host_count(&l, 0, IPOIB_BAD_ND), bad);
		put_be16(frame + 12, IPOIB_IP6); /* and of this side */
		memcpy(frame + ETH, p + IPOIB_HLEN, len - IPOIB_HLEN);
		ipoib_from_kernel(l.host[0].s, frame, ETH + len - IPOIB_HLEN, l.now, &tx);
		bad += row[i].hides;
		assert_int_equal(host_count(&l, 0, IPOIB_BAD_ND), bad);
	}
}

/* No more than NEIGH_MAX entries, however many claim to be there. */
static void flood__of_claims_is_bounded(void **state)
{
	uint8_t p[ROOM];

	host_arp(&l, 0, 1);
	host_ip(&l, 0, 1);
	for (uint32_t i = 0; i < 5 * NEIGH_MAX; i++) {
		struct ipoib_addr a = {.gid = {0xFE, 0x80, 1}, .qpn = 2 + i};

		put_be32(a.gid + 12, i);
		host_datagram(&l, 0, &a, true, p, arp_of(p, &a, "10.0.0.77"));
		assert_true(ipoib_neighs(l.host[0].s) <= NEIGH_MAX);
	}
	assert_int_equal(host_count(&l, 0, IPOIB_EVICTED), 5 * NEIGH_MAX + 1 - NEIGH_PEERS);
	assert_true(host_ip(&l, 0, 1)); /* packets were sent to it: it stays */
	assert_int_equal(host_count(&l, 0, IPOIB_NO_NEIGH), 0);
}

/* The kernel answers each forged request. That makes none of their senders known: those that have a
 * handle stay. */
static void flood__of_requests_leaves_known_peers(void **state)
{
	uint8_t p[ROOM];

	for (unsigned k = 1; k < HOSTS; k++) {
		host_arp(&l, 0, k);
		link_run(&l, 1);
		host_ip(&l, 0, k);
		link_run(&l, 1);
	}
	l.host[0].deaf = true;
	for (uint32_t i = 0; i < 2 * NEIGH_MAX; i++) {
		struct ipoib_addr a = {.gid = {0xFE, 0x80, 1}, .qpn = 2 + i};

		put_be32(a.gid + 12, i);
		host_datagram(&l, 0, &a, true, p, arp_for(p, &a, "10.0.0.77", l.host[0].ip));
		link_run(&l, 1);
	}
	for (unsigned k = 1; k < HOSTS; k++)
		assert_true(host_ip(&l, 0, k));
	assert_int_equal(host_count(&l, 0, IPOIB_NO_NEIGH), 0);
}

/* One host may claim any number of QPNs: it takes places of its own only. */
static void flood__of_qpns_of_one_gid(void **state)
{
	struct ipoib_addr a = l.host[2].cfg.own;
	uint8_t p[ROOM];

	host_arp(&l, 0, 2);
	host_ip(&l, 0, 2);
	link_run(&l, 1);
	for (uint32_t i = 0; i < NEIGH_MAX; i++) {
		char ip[16];

		a.qpn = 1000 + i; /* with one IP address it would be a peer that restarts */
		snprintf(ip, sizeof(ip), "10.7.%u.%u", i / 256, i % 256);
		host_datagram(&l, 0, &a, true, p, arp_of(p, &a, ip));
	}
	assert_true(ipoib_neighs(l.host[0].s) <= NEIGH_PER_GID + 1); /* and everybody's group */
	assert_true(host_ip(&l, 0, 2));
	assert_int_equal(host_count(&l, 0, IPOIB_NO_NEIGH), 0);
}

/* A packet of the kernel to the i-th of many IPv6 groups. */
static void to_group(uint32_t i)
{
	uint8_t frame[ETH + 40 + IPOIB_TAIL] = {0x33, 0x33, [12] = 0x86, 0xDD, 0x60};
	struct ipoib_tx tx;

	memcpy(frame + 6, l.host[0].cfg.mac, 6);
	frame[ETH + 24] = 0xFF;
	frame[ETH + 25] = 2;
	put_be32(frame + ETH + 36, i);
	ipoib_from_kernel(l.host[0].s, frame, ETH + 40, l.now, &tx);
	link_run(&l, 1);
}

/* Packets to any number of groups: known peers stay, idle ones too, and new ones enter. */
static void flood__of_groups_leaves_peers(void **state)
{
	host_arp(&l, 0, 1);
	host_ip(&l, 0, 1);
	link_run(&l, 1);
	host_arp(&l, 2, 0); /* nothing was sent to it but the answer */
	for (uint32_t i = 0; i < 2 * NEIGH_MAX; i++) {
		to_group(i);
		assert_true(ipoib_neighs(l.host[0].s) <= NEIGH_GROUPS + 2);
	}
	l.host[0].knows[2] = true;
	assert_true(host_ip(&l, 0, 1));
	assert_true(host_ip(&l, 0, 2));
	assert_int_equal(host_count(&l, 0, IPOIB_NO_NEIGH), 0);
}

/* A group leaves a minute after the last packet to it. */
static void group__leaves_after_a_minute(void **state)
{
	to_group(1);
	to_group(2);
	assert_int_equal(ipoib_neighs(l.host[0].s), 2);
	link_run(&l, IPOIB_GROUP_NS / 2);
	to_group(2);
	assert_int_equal(l.asked, 2);
	link_run(&l, IPOIB_GROUP_NS / 2);
	assert_int_equal(ipoib_neighs(l.host[0].s), 1);
	to_group(2);
	assert_int_equal(l.asked, 2);
	link_run(&l, IPOIB_GROUP_NS + 1);
	assert_int_equal(ipoib_neighs(l.host[0].s), 0);
	assert_int_equal(ipoib_deadline(l.host[0].s), UINT64_MAX);
	assert_int_equal(host_count(&l, 0, IPOIB_EVICTED), 0);
}

/* --- frames of the kernel --------------------------------------------------------------------- */

static void from_kernel__refuses(void **state)
{
	static const uint8_t all[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, nobody[6] = {2, 9};
	uint8_t frame[ROOM] = {0};
	struct ipoib_tx tx;

	assert_false(ipoib_from_kernel(l.host[0].s, frame, 13, l.now, &tx));
	assert_int_equal(host_count(&l, 0, IPOIB_SHORT), 1);
	assert_false(frame_of(0x88CC, all, 4, 20, &tx));
	assert_int_equal(host_count(&l, 0, IPOIB_TYPE), 1);
	assert_false(frame_of(IPOIB_IP4, nobody, 4, 20, &tx));
	assert_int_equal(host_count(&l, 0, IPOIB_NO_NEIGH), 1);
	assert_false(frame_of(IPOIB_IP4, all, 6, 60, &tx));
	assert_false(frame_of(IPOIB_IP6, all, 6, 39, &tx));
	assert_int_equal(host_count(&l, 0, IPOIB_BAD_IP), 2);
	assert_false(frame_of(IPOIB_ARP, all, 0, 28, &tx));
	assert_int_equal(host_count(&l, 0, IPOIB_BAD_ARP), 1);
	assert_false(frame_of(IPOIB_IP4, all, 4, 2045, &tx));
	assert_int_equal(host_count(&l, 0, IPOIB_LONG), 1);
}

/* proves IPB-07, IPB-08, IPB-09: by the IP destination */
static void from_kernel__groups(void **state)
{
	static const uint8_t all[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
	uint8_t mgid[16];
	struct ipoib_tx tx;

	frame_of(IPOIB_IP4, all, 4, 20, &tx);
	link_run(&l, 1);
	assert_true(frame_of(IPOIB_IP4, all, 4, 20, &tx));
	assert_int_equal(tx.qpn, 0xFFFFFF);
	assert_int_equal(tx.len, IPOIB_HLEN + 20);
	assert_int_equal(get_be32(tx.at), IPOIB_IP4 << 16);
	inet_pton(AF_INET6, "ff12:401b:8001::ffff:ffff", mgid);
	assert_memory_equal(host_neigh(&l, 0, tx.dest)->addr.gid, mgid, 16);
}

/* --- packets that wait ------------------------------------------------------------------------ */

/* Each has its limit; the first packets stay, in their order. */
static void unresolved__waits_within_limits(void **state)
{
	struct ipoib_ask ask;

	host_arp(&l, 1, 0); /* host 0 knows host 1, and has no handle to it yet */
	l.host[0].knows[1] = true;
	host_restart(&l, 0, 100);
	host_arp(&l, 1, 0);
	assert_false(ipoib_ask(l.host[0].s, &ask));
	for (unsigned i = 0; i < IPOIB_WAIT_EACH + 5; i++) {
		static const uint8_t all[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
		struct ipoib_tx tx;

		assert_false(frame_of(IPOIB_IP4, all, 4, 20 + i, &tx));
	}
	assert_int_equal(host_count(&l, 0, IPOIB_QUEUE_FULL), 5);
	assert_true(ipoib_ask(l.host[0].s, &ask));
	assert_false(ipoib_ask(l.host[0].s, &ask)); /* once */
}

/* From @p first on, each claims to be there, is looked for, and a packet to it waits. */
static void strangers(uint32_t first, uint32_t n)
{
	struct ipoib_tx tx;
	uint8_t p[ROOM];

	for (uint32_t i = first; i < first + n; i++) {
		struct ipoib_addr a = {.gid = {0xFE, 0x80, 1}, .qpn = 2 + i};

		put_be32(a.gid + 12, i);
		assert_true(host_datagram(&l, 0, &a, true, p, arp_of(p, &a, "10.0.0.77")));
		assert_false(frame_of(IPOIB_IP4, l.host[0].last + 6, 4, 20, &tx));
	}
}

static unsigned asks(struct ipoib_ask *last)
{
	unsigned n = 0;

	while (ipoib_ask(l.host[0].s, last))
		n++;
	return n;
}

/* Packets to peers that nobody finds may take all the room: other peers are looked for
 * nevertheless, and have it of the oldest.
 */
static void unresolved__room_for_nobody(void **state)
{
	static const uint8_t all[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
	struct ipoib_tx tx;
	struct ipoib_ask ask;
	uint8_t p[ROOM];

	strangers(0, IPOIB_WAIT_ALL);
	assert_int_equal(asks(&ask), IPOIB_WAIT_ALL);
	assert_false(frame_of(IPOIB_IP4, all, 4, 20, &tx));
	assert_int_equal(host_count(&l, 0, IPOIB_QUEUE_FULL), 1);
	assert_int_equal(asks(&ask), 1);
	assert_true(ipoib_resolved(l.host[0].s, ask.dest, ask.serial, true, l.now));
	assert_true(ipoib_next(l.host[0].s, p, l.now, &tx));
	assert_int_equal(host_count(&l, 0, IPOIB_TX_GROUP), 1);
	strangers(1000, 1);
	assert_int_equal(host_count(&l, 0, IPOIB_QUEUE_FULL), 1);
}

/* The oldest may be one that is about to be sent. */
static void unresolved__oldest_was_ready(void **state)
{
	struct ipoib_tx tx;
	struct ipoib_ask ask;
	uint8_t p[ROOM];

	strangers(0, 1);
	assert_int_equal(asks(&ask), 1);
	assert_true(ipoib_resolved(l.host[0].s, ask.dest, ask.serial, true, l.now));
	strangers(1, IPOIB_WAIT_ALL);
	assert_false(ipoib_next(l.host[0].s, p, l.now, &tx));
	strangers(1000, 1);
	assert_int_equal(host_count(&l, 0, IPOIB_QUEUE_FULL), 2);
	assert_false(ipoib_next(l.host[0].s, p, l.now, &tx));
}

/* A GID that nobody answers for is not asked for again before IPOIB_RETRY_NS. */
static void unresolved__fails(void **state)
{
	static const uint8_t all[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
	struct ipoib_tx tx;

	l.host[0].deaf = true;
	assert_false(frame_of(IPOIB_IP4, all, 4, 20, &tx));
	link_run(&l, 1);
	assert_int_equal(l.asked, 1);
	assert_int_equal(host_count(&l, 0, IPOIB_UNRESOLVED), 1);
	assert_false(frame_of(IPOIB_IP4, all, 4, 20, &tx));
	link_run(&l, IPOIB_RETRY_NS);
	assert_int_equal(l.asked, 1);
	assert_int_equal(host_count(&l, 0, IPOIB_UNRESOLVED), 2);
	l.host[0].deaf = false;
	assert_false(frame_of(IPOIB_IP4, all, 4, 20, &tx));
	link_run(&l, 1);
	assert_int_equal(l.asked, 2);
	assert_int_equal(host_count(&l, 0, IPOIB_TX_GROUP), 1);
}

/* All that wait are sent, though the peer, silent since it was asked for, is asked again. */
static void resolved__late(void **state)
{
	struct ipoib_addr one = l.host[1].cfg.own;
	struct ipoib_ask ask;
	struct ipoib_tx tx;
	uint8_t p[ROOM];

	assert_true(host_datagram(&l, 0, &one, true, p, arp_of(p, &one, "10.0.0.2")));
	for (unsigned i = 0; i < 3; i++)
		assert_false(frame_of(IPOIB_IP4, l.host[0].last + 6, 4, 20, &tx));
	assert_true(ipoib_ask(l.host[0].s, &ask));
	l.now += IPOIB_REACHABLE_NS;
	assert_true(ipoib_resolved(l.host[0].s, ask.dest, ask.serial, true, l.now));
	for (unsigned i = 0; i < 3; i++)
		assert_true(ipoib_next(l.host[0].s, p, l.now, &tx));
	assert_int_equal(host_count(&l, 0, IPOIB_TX), 3);
}

/* An answer for an entry that left the table is not used. */
static void resolved__of_a_former_entry(void **state)
{
	static const uint8_t all[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
	struct ipoib_ask ask;
	struct ipoib_tx tx;

	frame_of(IPOIB_IP4, all, 4, 20, &tx);
	assert_true(ipoib_ask(l.host[0].s, &ask));
	assert_false(ipoib_resolved(l.host[0].s, ask.dest, ask.serial + 1, true, l.now));
	assert_true(ipoib_resolved(l.host[0].s, ask.dest, ask.serial, true, l.now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(from_wire__header, setup, teardown),
		cmocka_unit_test_setup_teardown(from_wire__too_short_or_too_long, setup, teardown),
		cmocka_unit_test_setup_teardown(from_wire__off_link, setup, teardown),
		cmocka_unit_test_setup_teardown(from_wire__own, setup, teardown),
		cmocka_unit_test_setup_teardown(from_wire__another_mac, setup, teardown),
		cmocka_unit_test_setup_teardown(from_wire__groups_of_ethernet, setup, teardown),
		cmocka_unit_test_setup_teardown(arp__forged, setup, teardown),
		cmocka_unit_test_setup_teardown(arp__probe_is_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(arp__qpn_of_the_address, setup, teardown),
		cmocka_unit_test_setup_teardown(arp__target, setup, teardown),
		cmocka_unit_test_setup_teardown(arp__target_is_a_group, setup, teardown),
		cmocka_unit_test_setup_teardown(rarp__request, setup, teardown),
		cmocka_unit_test_setup_teardown(own__address_of_another_qp, setup, teardown),
		cmocka_unit_test_setup_teardown(
			restart__of_a_peer_with_several_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(restart__announced_by_replies, setup, teardown),
		cmocka_unit_test_setup_teardown(
			restart__keeps_the_mac_of_each_address, setup, teardown),
		cmocka_unit_test_setup_teardown(
			restart__all_entries_of_a_peer_are_heard, setup, teardown),
		cmocka_unit_test_setup_teardown(nd__forged_and_malformed, setup, teardown),
		cmocka_unit_test_setup_teardown(nd__after_extension_headers, setup, teardown),
		cmocka_unit_test_setup_teardown(flood__of_claims_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(
			flood__of_requests_leaves_known_peers, setup, teardown),
		cmocka_unit_test_setup_teardown(flood__of_qpns_of_one_gid, setup, teardown),
		cmocka_unit_test_setup_teardown(flood__of_groups_leaves_peers, setup, teardown),
		cmocka_unit_test_setup_teardown(group__leaves_after_a_minute, setup, teardown),
		cmocka_unit_test_setup_teardown(from_kernel__refuses, setup, teardown),
		cmocka_unit_test_setup_teardown(from_kernel__groups, setup, teardown),
		cmocka_unit_test_setup_teardown(unresolved__waits_within_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(unresolved__room_for_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(unresolved__oldest_was_ready, setup, teardown),
		cmocka_unit_test_setup_teardown(unresolved__fails, setup, teardown),
		cmocka_unit_test_setup_teardown(resolved__late, setup, teardown),
		cmocka_unit_test_setup_teardown(resolved__of_a_former_entry, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
