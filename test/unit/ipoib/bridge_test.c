/* SPDX-License-Identifier: BSD-3-Clause */
/* The netdev of host 0 is a port of a bridge: frames of other MACs, and datagrams for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "arp.h"
#include "bits.h"
#include "inet.h"
#include "link.h"
#include "nd.h"
#include "stations.h"

static const uint8_t everybody[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
static const uint8_t one[6] = {2, 0xAA, 1}, two[6] = {2, 0xAA, 2};
static const uint8_t ip4[4] = {10, 0, 0, 50}, ip6[16] = {0xFD, 8, [15] = 50};

static struct link l;

static int setup(void **state)
{
	link_init(&l);
	host_arp(&l, 1, 0); /* knows host 0, and is known */
	link_run(&l, 1);
	return 0;
}

static int teardown(void **state)
{
	link_fini(&l);
	return 0;
}

/* A frame of the kernel of host 0. @return what left of it, in @p frame; NULL: nothing yet */
static const uint8_t *sends(uint8_t *frame, uint32_t len, struct ipoib_tx *tx)
{
	struct ipoib_ask ask;

	if (!ipoib_from_kernel(l.host[0].s, frame, len, l.now, tx)) {
		if (!ipoib_ask(l.host[0].s, &ask))
			return NULL;
		ipoib_resolved(l.host[0].s, ask.dest, ask.serial, true, l.now);
		assert_true(ipoib_next(l.host[0].s, frame, l.now, tx));
	}
	return tx->at;
}

static void ether(uint8_t *frame, const uint8_t *dst, const uint8_t *src, uint16_t type)
{
	memcpy(frame, dst, 6);
	memcpy(frame + ETHER_SRC, src, 6);
	put_be16(frame + ETHER_TYPE, type);
}

/* @p mac asks for host 1, or says that it is at @p ip. */
static const uint8_t *arp_from(uint8_t *frame, const uint8_t *mac, const uint8_t ip[4], uint16_t op)
{
	struct arp a = {.op = op, .target_ip = {10, 0, 0, 2}};
	struct ipoib_tx tx;

	memcpy(a.sender_ip, ip, 4);
	ether(frame, op == ARP_REQUEST ? everybody : l.host[0].mac[1], mac, IPOIB_ARP);
	arp_write_eth(frame + ETHER_HLEN, &a, mac, mac);
	return sends(frame, ETHER_HLEN + ARP_ETH_LEN, &tx);
}

static bool ip_from(const uint8_t *mac, const uint8_t ip[4])
{
	uint8_t frame[ROOM] = {[ETHER_HLEN] = 0x45};
	struct ipoib_tx tx;

	memcpy(frame + ETHER_HLEN + IP4_SRC, ip, 4);
	ether(frame, l.host[0].mac[1], mac, IPOIB_IP4);
	return sends(frame, ETHER_HLEN + IP4_HLEN, &tx);
}

/* Host 1 sends IPv4 to @p ip. @return the MAC that it is passed to */
static const uint8_t *ip_to(const uint8_t ip[4])
{
	uint8_t p[IPOIB_HLEN + IP4_HLEN] = {8, 0, 0, 0, 0x45};

	memcpy(p + IPOIB_HLEN + IP4_DST, ip, 4);
	assert_true(host_datagram(&l, 0, &l.host[1].cfg.own, false, p, sizeof(p)));
	return l.host[0].last;
}

static const uint8_t *ip6_to(const uint8_t ip[16])
{
	uint8_t p[IPOIB_HLEN + IP6_HLEN] = {0x86, 0xDD, 0, 0, 0x60};

	memcpy(p + IPOIB_HLEN + IP6_DST, ip, 16);
	assert_true(host_datagram(&l, 0, &l.host[1].cfg.own, false, p, sizeof(p)));
	return l.host[0].last;
}

/* @p mac solicits @p target. */
static const uint8_t *solicit_from(
	uint8_t *frame, const uint8_t *mac, const uint8_t *source, const uint8_t *target)
{
	static const uint8_t group[6] = {0x33, 0x33, 0xFF};
	uint8_t p[ROOM];
	struct ipoib_tx tx;
	uint32_t len;

	nd_solicit(p, source, target, &l.host[0].cfg.own);
	len = nd_write(frame + ETHER_HLEN, ROOM - ETHER_HLEN, p, ND_ETH_UNITS, mac);
	ether(frame, group, mac, IPOIB_IP6);
	return sends(frame, ETHER_HLEN + len, &tx);
}

/* Hosts of the bridge have the address that peers know us by, and what comes for them finds them.
 */
static void arp__names_us(void **state)
{
	struct ipoib_addr sender, target;
	uint8_t frame[ROOM];
	const uint8_t *p;
	struct arp a;

	assert_memory_equal(ip_to(ip4), l.host[0].cfg.mac, 6);
	p = arp_from(frame, one, ip4, ARP_REQUEST);
	assert_true(arp_read_ipoib(&a, p + IPOIB_HLEN, ARP_IPOIB_LEN, &sender, &target));
	assert_true(ipoib_addr_same(&sender, &l.host[0].cfg.own));
	assert_true(ipoib_addr_same(&target, &l.host[0].cfg.own)); /* it said its own MAC */
	assert_memory_equal(a.sender_ip, ip4, 4);
	assert_memory_equal(ip_to(ip4), one, 6);
	assert_memory_equal(ip_to(l.host[0].ip), l.host[0].cfg.mac, 6);
	arp_from(frame, two, ip4, 2); /* it moves */
	assert_memory_equal(ip_to(ip4), two, 6);
	assert_int_equal(ipoib_bridged(l.host[0].s), 1);
}

/* Host 1 says by ARP where it is. */
static void arp_to(const uint8_t ip[4], uint16_t op)
{
	struct arp a = {.op = op, .sender_ip = {10, 0, 0, 2}};
	uint8_t p[IPOIB_HLEN + ARP_IPOIB_LEN];

	memcpy(a.target_ip, ip, 4);
	ipoib_header_put(p, IPOIB_ARP);
	arp_write_ipoib(p + IPOIB_HLEN, &a, &l.host[1].cfg.own, &l.host[0].cfg.own);
	assert_true(host_datagram(&l, 0, &l.host[1].cfg.own, false, p, sizeof(p)));
}

static void arp__is_answered_to_whom_it_names(void **state)
{
	uint8_t frame[ROOM], s[6], t[6];
	struct arp a;

	arp_to((uint8_t[4]){0}, 2); /* without a bridge its kernel must see that it is for itself */
	assert_memory_equal(l.host[0].last, l.host[0].cfg.mac, 6);
	arp_from(frame, one, ip4, ARP_REQUEST);
	arp_to(ip4, 2);
	assert_memory_equal(l.host[0].last, one, 6);
	assert_true(arp_read_eth(&a, l.host[0].last + ETHER_HLEN, ARP_ETH_LEN, s, t));
	assert_memory_equal(t, one, 6);
	arp_to(ip4, ARP_REQUEST); /* whether it is still there */
	assert_memory_equal(l.host[0].last, one, 6);
	arp_to(l.host[0].ip, 2);
	assert_memory_equal(l.host[0].last, l.host[0].cfg.mac, 6);
	arp_to((uint8_t[4]){0}, 2); /* whoever looked for a duplicate of its address */
	assert_memory_equal(l.host[0].last, everybody, 6);
}

/* The IP addresses of a RARP request mean nothing (RFC 903). */
static void rarp__claims_nothing(void **state)
{
	uint8_t frame[ROOM];
	struct arp a = {.op = ARP_RARP_REQUEST, .sender_ip = {10, 0, 0, 50}};
	struct ipoib_addr sender, target;
	struct ipoib_tx tx;

	ether(frame, everybody, one, IPOIB_RARP);
	arp_write_eth(frame + ETHER_HLEN, &a, one, one);
	assert_non_null(sends(frame, ETHER_HLEN + ARP_ETH_LEN, &tx));
	assert_int_equal(get_be16(tx.at), IPOIB_RARP);
	assert_true(arp_read_ipoib(&a, tx.at + IPOIB_HLEN, ARP_IPOIB_LEN, &sender, &target));
	assert_true(ipoib_addr_same(&target, &l.host[0].cfg.own));
	assert_memory_equal(ip_to(ip4), l.host[0].cfg.mac, 6);
	assert_int_equal(ipoib_bridged(l.host[0].s), 0);
}

/* Packets tell where they come from, but from no MAC of a group, and they take no address away. */
static void ip__sources(void **state)
{
	static const uint8_t group[6] = {3};
	uint8_t frame[ROOM];

	ip_from(l.host[0].cfg.mac, ip4);
	assert_null(station_mac((struct station_table *)ipoib_stations(l.host[0].s), ip4, 4));
	ip_from(group, ip4);
	assert_memory_equal(ip_to(ip4), l.host[0].cfg.mac, 6);
	ip_from(one, ip4);
	assert_memory_equal(ip_to(ip4), one, 6);
	ip_from(l.host[0].cfg.mac, ip4); /* it moved to the host */
	assert_memory_equal(ip_to(ip4), l.host[0].cfg.mac, 6);
	arp_from(frame, two, ip4, ARP_REQUEST);
	ip_from(one, ip4);
	assert_memory_equal(ip_to(ip4), two, 6);
}

/* The addresses that the netdev's own host claimed are kept too: no packet takes them away. */
static void ip__of_the_host(void **state)
{
	uint8_t frame[ROOM];

	arp_from(frame, l.host[0].cfg.mac, l.host[0].ip, ARP_REQUEST);
	ip_from(one, l.host[0].ip);
	ip_from(one, ip4);
	assert_memory_equal(ip_to(l.host[0].ip), l.host[0].cfg.mac, 6);
}

static void nd__solicitations(void **state)
{
	static const uint8_t other[16] = {0xFD, 8, [15] = 2}, none[16],
			     fresh[16] = {0xFD, 8, [15] = 77};
	uint8_t frame[ROOM], p[ROOM];
	const uint8_t *out;
	struct nd nd;
	struct ipoib_tx tx;
	struct ipoib_addr said;
	uint32_t len;

	out = solicit_from(frame, one, ip6, other) + IPOIB_HLEN;
	assert_true(nd_read(&nd, out, 40 + 24 + 24, IPOIB_ND_UNITS));
	ipoib_addr_get(&said, nd.source);
	assert_true(ipoib_addr_same(&said, &l.host[0].cfg.own));
	assert_memory_equal(ip6_to(ip6), one, 6);
	/* A host that looks for duplicates will be there, unless another is. */
	solicit_from(frame, two, none, fresh);
	assert_memory_equal(ip6_to(fresh), two, 6);
	solicit_from(frame, two, none, ip6);
	assert_memory_equal(ip6_to(ip6), one, 6);
	/* An answer is about its target, not its source. */
	nd_solicit(p, ip6, other, &l.host[0].cfg.own);
	len = nd_write(frame + ETHER_HLEN, ROOM, p, ND_ETH_UNITS, two);
	frame[ETHER_HLEN + 40] = ND_NEIGHBOUR_ADVERT;
	inet_put(frame + ETHER_HLEN + 42, 0);
	inet_put(frame + ETHER_HLEN + 42,
		(uint16_t)~inet_fold(inet_add(inet_pseudo(frame + ETHER_HLEN, len - 40, 58),
			frame + ETHER_HLEN + 40, len - 40)));
	ether(frame, everybody, two, IPOIB_IP6);
	assert_non_null(sends(frame, ETHER_HLEN + len, &tx));
	assert_memory_equal(ip6_to(other), two, 6);
	assert_memory_equal(ip6_to(ip6), one, 6);
}

/* A claim of a peer: the address may have moved there, but packets that still come are passed on.
 */
static void duplicate__of_a_bridged_host(void **state)
{
	uint8_t frame[ROOM];

	arp_from(frame, one, ip4, ARP_REQUEST);
	memcpy(l.host[1].ip, ip4, 4);
	host_arp(&l, 1, 2);
	assert_int_equal(host_count(&l, 0, IPOIB_DUPLICATE), 1);
	host_arp(&l, 1, 2);
	assert_int_equal(host_count(&l, 0, IPOIB_DUPLICATE), 1);
	assert_memory_equal(ip_to(ip4), one, 6);
	arp_from(frame, one, ip4, ARP_REQUEST);
	host_arp(&l, 1, 2);
	assert_int_equal(host_count(&l, 0, IPOIB_DUPLICATE), 2);
}

/* Frames that came from the wire come back over another link: they end here. */
static void loop__ends(void **state)
{
	struct ipoib_addr before = l.host[0].cfg.own;
	uint8_t frame[ROOM], mac[6];

	assert_null(arp_from(frame, l.host[0].mac[1], l.host[1].ip, ARP_REQUEST));
	assert_false(ip_from(l.host[0].mac[1], l.host[1].ip));
	neigh_mac(mac, &l.host[0].cfg.own); /* as peers see what we send */
	assert_false(ip_from(mac, ip4));
	before.qpn = 4711; /* or saw, in an earlier session */
	neigh_mac(mac, &before);
	assert_false(ip_from(mac, ip4));
	assert_int_equal(host_count(&l, 0, IPOIB_LOOPED), 4);
	assert_int_equal(ipoib_bridged(l.host[0].s), 0);
}

/* The MAC under which packets of a peer come. */
static const uint8_t *mac_of(const struct ipoib_addr *peer)
{
	uint8_t p[IPOIB_HLEN + IP4_HLEN] = {8, 0, 0, 0, 0x45};

	assert_true(host_datagram(&l, 0, peer, false, p, sizeof(p)));
	return l.host[0].last + ETHER_SRC;
}

/* A peer may choose its GID for a MAC: those of a host here and of the netdev stay with them, for
 * packets and for claims. */
static void mac__of_a_host_is_no_peers(void **state)
{
	uint8_t mac[6], next[6], last[6];

	neigh_mac(mac, &l.host[2].cfg.own);
	memcpy(next, mac, 6);
	put_be32(next + 2, get_be32(mac + 2) + 1);
	memcpy(last, mac, 6);
	put_be32(last + 2, get_be32(mac + 2) + 2);
	assert_memory_equal(mac_of(&l.host[2].cfg.own), mac, 6);
	ip_from(mac, ip4);
	assert_memory_equal(mac_of(&l.host[2].cfg.own), next, 6);
	ipoib_set_mac(l.host[0].s, next);
	assert_memory_equal(mac_of(&l.host[2].cfg.own), last, 6);
	host_arp(&l, 2, 0);
	assert_memory_equal(mac_of(&l.host[2].cfg.own), last, 6);
	ip_from(mac, ip4);
	assert_int_equal(host_count(&l, 0, IPOIB_LOOPED), 0);
	assert_memory_equal(ip_to(ip4), mac, 6);
}

/* Not even before its kernel has claimed an address at it. */
static void mac__of_the_netdev_is_no_peers(void **state)
{
	uint8_t mac[6];

	host_restart(&l, 0, l.host[0].cfg.own.qpn);
	neigh_mac(mac, &l.host[2].cfg.own);
	ipoib_set_mac(l.host[0].s, mac);
	assert_memory_not_equal(mac_of(&l.host[2].cfg.own), mac, 6);
}

/* A QPN of an earlier session whose MAC is that of the present one. */
static void mac__of_ours_is_no_peers(void **state)
{
	struct ipoib_addr same = l.host[0].cfg.own;
	uint8_t mac[6], own[6];

	same.qpn = 0x9F35F;
	neigh_mac(own, &l.host[0].cfg.own);
	neigh_mac(mac, &same);
	assert_memory_equal(mac, own, 6);
	assert_memory_not_equal(mac_of(&same), own, 6);
}

/* A peer that restarted keeps its MAC, and the QPN that it had may be another's by now. */
static void mac__of_a_peer_is_no_others(void **state)
{
	struct ipoib_addr before = l.host[1].cfg.own;
	uint8_t mac[6];

	memcpy(mac, mac_of(&before), 6);
	host_restart(&l, 1, 778);
	host_arp(&l, 1, 0);
	assert_memory_equal(mac_of(&l.host[1].cfg.own), mac, 6);
	assert_memory_not_equal(mac_of(&before), mac, 6);
}

static void resolve(void)
{
	struct ipoib_ask ask;

	while (ipoib_ask(l.host[0].s, &ask))
		ipoib_resolved(l.host[0].s, ask.dest, ask.serial, true, l.now);
}

/* Host 1 was heard, is silent, and is solicited from this address. */
static void asked_from(const uint8_t source[16])
{
	static uint8_t room[IPOIB_PACKET_MAX];
	struct ipoib_tx tx = {.at = room};

	ip_to(ip4);
	l.now += IPOIB_REACHABLE_NS;
	ip_from(one, ip4);
	do {
		uint64_t due = ipoib_deadline(l.host[0].s);

		assert_true(due != UINT64_MAX);
		l.now = due > l.now ? due : l.now;
		if (!ipoib_next(l.host[0].s, room, l.now, &tx))
			resolve();
	} while (get_be16(tx.at) != IPOIB_IP6);
	assert_memory_equal(tx.at + IPOIB_HLEN + IP6_SRC, source, 16);
	memset(room, 0, sizeof(room));
}

/* proves IPB-16: a peer with IPv6 alone is asked, whether or not this side has an address of it,
 * and whatever others claim; from an address that nobody can take away */
static void probe__source(void **state)
{
	static const uint8_t host[16] = {0xFD, 8, [15] = 1}, peer[16] = {0xFD, 8, [15] = 2};
	uint8_t frame[ROOM], p[ROOM], made_up[16];
	uint32_t len;

	neigh_made_up(made_up, &l.host[0].cfg.own);
	ipoib_header_put(p, IPOIB_IP6);
	len = IPOIB_HLEN + nd_solicit(p + IPOIB_HLEN, peer, ip6, &l.host[1].cfg.own);
	assert_true(host_datagram(&l, 0, &l.host[1].cfg.own, true, p, len));
	asked_from(made_up);
	solicit_from(frame, one, ip6, peer);
	asked_from(made_up);
	solicit_from(frame, l.host[0].cfg.mac, host, peer);
	asked_from(made_up);
	nd_solicit(p + IPOIB_HLEN, host, peer, &l.host[1].cfg.own); /* it moved */
	assert_true(host_datagram(&l, 0, &l.host[1].cfg.own, true, p, len));
	assert_int_equal(host_count(&l, 0, IPOIB_DUPLICATE), 1);
	asked_from(made_up);
}

/* Hosts of the bridge know MACs of peers from before, and are silent about it. */
static void look_for__packets_to_nobody(void **state)
{
	static const uint8_t nobody[6] = {2, 9}, all[4] = {255, 255, 255, 255},
			     peer[16] = {0xFD, 8, [15] = 9};
	uint8_t frame[ROOM] = {[ETHER_HLEN] = 0x45}, again[ROOM];
	struct ipoib_addr sender, target;
	struct ipoib_tx tx;
	struct arp a;
	struct nd nd;

	ether(frame, nobody, one, IPOIB_IP4);
	memcpy(frame + ETHER_HLEN + IP4_SRC, ip4, 4);
	memcpy(frame + ETHER_HLEN + IP4_DST, all, 4);
	memcpy(again, frame, sizeof(again));
	assert_null(sends(again, ETHER_HLEN + IP4_HLEN, &tx));
	arp_from(again, one, ip4, ARP_REQUEST);
	memcpy(frame + ETHER_HLEN + IP4_DST, ip4, 4); /* it is on this side */
	memcpy(again, frame, sizeof(again));
	assert_null(sends(again, ETHER_HLEN + IP4_HLEN, &tx));
	memcpy(frame + ETHER_HLEN + IP4_DST, (uint8_t[]){10, 0, 0, 9}, 4);
	memcpy(again, frame, sizeof(again));
	assert_non_null(sends(again, ETHER_HLEN + IP4_HLEN, &tx));
	assert_int_equal(tx.len, IPOIB_HLEN + ARP_IPOIB_LEN);
	assert_true(arp_read_ipoib(&a, tx.at + IPOIB_HLEN, ARP_IPOIB_LEN, &sender, &target));
	assert_memory_equal(a.target_ip, ((uint8_t[]){10, 0, 0, 9}), 4);
	assert_int_equal(get_be32(a.sender_ip), 0);
	memcpy(again, frame, sizeof(again));
	assert_null(sends(again, ETHER_HLEN + IP4_HLEN, &tx)); /* not so soon again */
	assert_false(ipoib_next(l.host[0].s, again, l.now, &tx));
	l.now += IPOIB_LOOK_NS;
	assert_true(ipoib_next(l.host[0].s, again, l.now, &tx));
	l.now += IPOIB_LOOK_NS;
	memset(frame, 0, sizeof(frame));
	ether(frame, nobody, one, IPOIB_IP6);
	frame[ETHER_HLEN] = 0x60;
	memcpy(frame + ETHER_HLEN + IP6_SRC, ip6, 16);
	memcpy(frame + ETHER_HLEN + IP6_DST, peer, 16);
	assert_non_null(sends(frame, ETHER_HLEN + IP6_HLEN, &tx));
	assert_true(nd_read(&nd, tx.at + IPOIB_HLEN, tx.len - IPOIB_HLEN, IPOIB_ND_UNITS));
	assert_memory_equal(nd.target, peer, 16);
	assert_int_equal(host_count(&l, 0, IPOIB_NO_NEIGH), 5);
	assert_int_equal(host_count(&l, 0, IPOIB_PROBES_SENT), 3);
}

/* @p mac sends to a peer that nobody has heard. @return the IP address that is asked for, if any */
static uint32_t looks_for(const uint8_t *mac, uint32_t dst)
{
	static const uint8_t nobody[6] = {2, 9};
	uint8_t frame[ROOM] = {[ETHER_HLEN] = 0x45};
	struct ipoib_tx tx;

	ether(frame, nobody, mac, IPOIB_IP4);
	put_be32(frame + ETHER_HLEN + IP4_DST, dst);
	return sends(frame, ETHER_HLEN + IP4_HLEN, &tx)
		       ? get_be32(tx.at + IPOIB_HLEN + ARP_IPOIB_LEN - 4)
		       : 0;
}

/* One that floods the link with packets to nobody delays others by one turn, and packets alone do
 * not make an address one of this side. */
static void look_for__in_turns(void **state)
{
	uint8_t room[IPOIB_PACKET_MAX];
	struct ipoib_tx tx;

	ip_from(two, (uint8_t[]){10, 0, 0, 9}); /* anybody can */
	assert_int_equal(looks_for(one, 0x0A010001), 0x0A010001);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(looks_for(one, 0x0A020000 + i), 0);
	assert_int_equal(looks_for(two, 0x0A000009), 0);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(looks_for(one, 0x0A030000 + i), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_false(ipoib_next(l.host[0].s, room, l.now, &tx));
		l.now = ipoib_deadline(l.host[0].s);
		assert_true(ipoib_next(l.host[0].s, room, l.now, &tx));
		assert_int_equal(get_be32(tx.at + IPOIB_HLEN + ARP_IPOIB_LEN - 4) == 0x0A000009, i);
	}
	assert_int_equal(host_count(&l, 0, IPOIB_PROBES_SENT), 3);
}

/* A program without privileges sends from @p ip6 to a peer that is not known, and the peer answers.
 * @return the source of the solicitation */
static const uint8_t *looked_for_from(uint8_t *frame)
{
	static const uint8_t nobody[6] = {2, 9}, peer[16] = {0xFD, 8, [15] = 9};
	struct ipoib_tx tx;

	l.now += IPOIB_LOOK_NS;
	memset(frame, 0, ROOM);
	ether(frame, nobody, two, IPOIB_IP6);
	frame[ETHER_HLEN] = 0x60;
	memcpy(frame + ETHER_HLEN + IP6_SRC, ip6, 16);
	memcpy(frame + ETHER_HLEN + IP6_DST, peer, 16);
	assert_non_null(sends(frame, ETHER_HLEN + IP6_HLEN, &tx));
	assert_int_equal(get_be16(tx.at), IPOIB_IP6);
	return tx.at + IPOIB_HLEN + IP6_SRC;
}

/* Peers take the source of a solicitation to be at our link-layer address (RFC 4861 7.2.3). */
static void look_for__claims_nothing(void **state)
{
	static const uint8_t host[16] = {0xFD, 8, [15] = 1}, peer[16] = {0xFD, 8, [15] = 2};
	uint8_t frame[ROOM], room[IPOIB_SEARCH_MAX], made_up[16];
	struct ipoib_frame f;

	neigh_made_up(made_up, &l.host[0].cfg.own);
	assert_memory_equal(looked_for_from(frame), made_up, 16);
	ip6_to(made_up); /* the answer */
	assert_false(ipoib_search(l.host[0].s, room, l.now, &f));
	solicit_from(frame, one, host, peer);
	assert_memory_equal(looked_for_from(frame), made_up, 16);
}

/* A frame that answers a search. @return whether anything left for the wire */
static bool answers(const uint8_t *mac, uint16_t type, const uint8_t *packet, uint32_t len)
{
	uint8_t frame[ROOM], to[6];
	struct ipoib_tx tx;

	neigh_mac(to, &l.host[0].cfg.own);
	ether(frame, to, mac, type);
	memcpy(frame + ETHER_HLEN, packet, len);
	return sends(frame, ETHER_HLEN + len, &tx);
}

/* A host that has not been heard since the session began is asked for, once in a while. */
static void search__by_arp(void **state)
{
	static const uint8_t none[6], ip[4] = {10, 0, 0, 60}, another[4] = {10, 0, 0, 61};
	uint8_t room[IPOIB_SEARCH_MAX], s[6], t[6], wire[6];
	struct ipoib_frame f;
	struct arp a;

	ip_to(ip);
	assert_false(ipoib_search(l.host[0].s, room, l.now, &f)); /* there is no bridge */
	ip_from(one, ip4);
	assert_memory_equal(ip_to(ip), l.host[0].cfg.mac, 6);
	assert_true(ipoib_search(l.host[0].s, room, l.now, &f));
	neigh_mac(wire, &l.host[0].cfg.own);
	assert_memory_equal(f.at, everybody, 6);
	assert_memory_equal(f.at + ETHER_SRC, wire, 6);
	assert_int_equal(get_be16(f.at + ETHER_TYPE), IPOIB_ARP);
	assert_int_equal(f.len, ETHER_HLEN + ARP_ETH_LEN);
	assert_true(arp_read_eth(&a, f.at + ETHER_HLEN, ARP_ETH_LEN, s, t));
	assert_memory_equal(s, wire, 6);
	assert_memory_equal(a.target_ip, ip, 4);
	assert_memory_equal(a.sender_ip, none, 4);
	assert_int_equal(a.op, ARP_REQUEST);
	ip_to(another);
	assert_false(ipoib_search(l.host[0].s, room, l.now, &f));
	l.now += IPOIB_LOOK_NS;
	assert_true(ipoib_search(l.host[0].s, room, l.now, &f));
	assert_false(ipoib_search(l.host[0].s, room, l.now + IPOIB_LOOK_NS, &f));
	a = (struct arp){.op = 2, .sender_ip = {10, 0, 0, 60}};
	arp_write_eth(room, &a, two, wire);
	assert_false(answers(two, IPOIB_ARP, room, ARP_ETH_LEN));
	assert_memory_equal(ip_to(ip), two, 6);
	assert_int_equal(host_count(&l, 0, IPOIB_NO_NEIGH), 0);
}

/* A host that looks for duplicates of its address (RFC 5227 2.1.1) would take a search for that
 * for another's probe, and give it up. */
static void search__not_for_what_is_probed_here(void **state)
{
	uint8_t frame[ROOM] = {0}, room[IPOIB_SEARCH_MAX];
	struct arp a = {.op = ARP_REQUEST, .target_ip = {10, 0, 0, 60}};
	struct ipoib_frame f;
	struct ipoib_tx tx;

	ether(frame, everybody, one, IPOIB_ARP);
	arp_write_eth(frame + ETHER_HLEN, &a, one, everybody);
	sends(frame, ETHER_HLEN + ARP_ETH_LEN, &tx);
	assert_memory_equal(ip_to(a.target_ip), one, 6);
	assert_false(ipoib_search(l.host[0].s, room, l.now, &f));
	arp_from(frame, two, a.target_ip, ARP_REQUEST);
	assert_memory_equal(ip_to(a.target_ip), two, 6);
	arp_write_eth(frame + ETHER_HLEN, &a, one, everybody);
	ether(frame, everybody, one, IPOIB_ARP);
	sends(frame, ETHER_HLEN + ARP_ETH_LEN, &tx); /* it takes none away */
	assert_memory_equal(ip_to(a.target_ip), two, 6);
}

/* A peer that sends to addresses that nobody has delays the search for others by one turn. */
static void search__in_turns(void **state)
{
	uint8_t room[IPOIB_SEARCH_MAX], p[IPOIB_HLEN + IP4_HLEN] = {8, 0, 0, 0, 0x45};
	struct ipoib_frame f;

	ip_from(one, ip4);
	for (uint32_t i = 0; i < 2000; i++) {
		put_be32(p + IPOIB_HLEN + IP4_DST, i == 1000 ? 0x0A00003C : 0x0A090000 + i);
		assert_true(host_datagram(
			&l, 0, &l.host[i == 1000 ? 2 : 1].cfg.own, false, p, sizeof(p)));
	}
	for (unsigned i = 0; i < 2; i++) {
		assert_true(ipoib_search(l.host[0].s, room, l.now, &f));
		assert_int_equal(get_be32(f.at + ETHER_HLEN + ARP_ETH_TARGET_IP) == 0x0A00003C, i);
		l.now += IPOIB_LOOK_NS;
	}
	assert_false(ipoib_search(l.host[0].s, room, l.now, &f));
}

static void search__by_nd(void **state)
{
	static const uint8_t ip[16] = {0xFD, 8, [12] = 1, 0x60, 0x61, 0x62},
			     group[6] = {0x33, 0x33, 0xFF, 0x60, 0x61, 0x62};
	uint8_t room[IPOIB_SEARCH_MAX], wire[6], p[IP6_HLEN] = {0x60};
	struct ipoib_frame f;
	struct nd nd;

	ip_from(one, ip4);
	ip6_to(ip);
	assert_true(ipoib_search(l.host[0].s, room, l.now, &f));
	neigh_mac(wire, &l.host[0].cfg.own);
	assert_memory_equal(f.at, group, 6);
	assert_memory_equal(f.at + ETHER_SRC, wire, 6);
	assert_int_equal(get_be16(f.at + ETHER_TYPE), IPOIB_IP6);
	assert_int_equal(f.len, ETHER_HLEN + 40 + 24 + 8);
	assert_true(nd_read(&nd, f.at + ETHER_HLEN, f.len - ETHER_HLEN, ND_ETH_UNITS));
	assert_memory_equal(nd.target, ip, 16);
	assert_memory_equal(nd.source, wire, 6);
	memcpy(p + IP6_DST, f.at + ETHER_HLEN + IP6_SRC, 16);
	assert_int_equal(get_be16(p + IP6_DST), 0xFE80); /* not unspecified */
	memcpy(p + IP6_SRC, ip, 16);
	assert_false(answers(two, IPOIB_IP6, p, sizeof(p)));
	assert_memory_equal(ip6_to(ip), two, 6);
	assert_int_equal(host_count(&l, 0, IPOIB_PROBES_SENT), 0);
}

static void flood__is_counted(void **state)
{
	uint8_t frame[ROOM], ip[4] = {10, 1};

	for (unsigned i = 0; i < STATION_PER_MAC + 5; i++) {
		ip[3] = (uint8_t)i;
		arp_from(frame, one, ip, ARP_REQUEST);
	}
	assert_int_equal(host_count(&l, 0, IPOIB_DISPLACED), 5);
	for (unsigned i = 0; i < 3; i++) {
		ip[2]++;
		ip_from(one, ip);
	}
	assert_int_equal(host_count(&l, 0, IPOIB_DISPLACED), 8);
	assert_int_equal(ipoib_bridged(l.host[0].s), STATION_PER_MAC);
}

/* Frames that were sent before we heard of the netdev's new MAC were its own. */
static void another_mac__is_not_bridged(void **state)
{
	uint8_t frame[ROOM];

	arp_from(frame, one, l.host[0].ip, ARP_REQUEST);
	assert_int_equal(ipoib_bridged(l.host[0].s), 1);
	ipoib_set_mac(l.host[0].s, one);
	assert_int_equal(ipoib_bridged(l.host[0].s), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(arp__names_us, setup, teardown),
		cmocka_unit_test_setup_teardown(arp__is_answered_to_whom_it_names, setup, teardown),
		cmocka_unit_test_setup_teardown(rarp__claims_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(ip__sources, setup, teardown),
		cmocka_unit_test_setup_teardown(ip__of_the_host, setup, teardown),
		cmocka_unit_test_setup_teardown(nd__solicitations, setup, teardown),
		cmocka_unit_test_setup_teardown(duplicate__of_a_bridged_host, setup, teardown),
		cmocka_unit_test_setup_teardown(loop__ends, setup, teardown),
		cmocka_unit_test_setup_teardown(mac__of_a_host_is_no_peers, setup, teardown),
		cmocka_unit_test_setup_teardown(mac__of_the_netdev_is_no_peers, setup, teardown),
		cmocka_unit_test_setup_teardown(mac__of_ours_is_no_peers, setup, teardown),
		cmocka_unit_test_setup_teardown(mac__of_a_peer_is_no_others, setup, teardown),
		cmocka_unit_test_setup_teardown(probe__source, setup, teardown),
		cmocka_unit_test_setup_teardown(look_for__packets_to_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(look_for__in_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(look_for__claims_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(search__by_arp, setup, teardown),
		cmocka_unit_test_setup_teardown(
			search__not_for_what_is_probed_here, setup, teardown),
		cmocka_unit_test_setup_teardown(search__in_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(search__by_nd, setup, teardown),
		cmocka_unit_test_setup_teardown(flood__is_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(another_mac__is_not_bridged, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
