/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts on a link: peers that restart (IPB-16), loss, an address that two have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "arp.h"
#include "bits.h"
#include "link.h"
#include "nd.h"

#define S 1000000000ull

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

/* proves IPB-06: the reply goes to the QPN of the request's address */
static void arp__both_ways(void **state)
{
	host_arp(&l, 0, 1);
	assert_true(l.host[0].knows[1] && l.host[1].knows[0]);
	assert_false(l.host[2].knows[1]);
	assert_true(l.host[2].knows[0]); /* it heard the request */
	host_ip(&l, 0, 1);
	host_ip(&l, 1, 0);
	assert_int_equal(l.host[1].got, 1);
	assert_int_equal(l.host[0].got, 1);
	assert_int_equal(l.host[2].got, 0);
	assert_int_equal(host_count(&l, 0, IPOIB_OWN), 1); /* its own request */
}

/* proves IPB-16: nobody tells that the peer restarted; it is asked, and the kernel's MAC stays */
static void restart__is_found_within_5_s(void **state)
{
	uint8_t mac[6];
	uint64_t since;

	host_arp(&l, 0, 1);
	memcpy(mac, l.host[0].mac[1], 6);
	host_ip(&l, 0, 1);
	host_restart(&l, 1, 777);
	since = l.now;
	while (l.host[1].got < 2 && l.now - since < 5 * S) {
		link_run(&l, S / 10);
		host_ip(&l, 0, 1);
	}
	assert_int_equal(l.host[1].got, 2);
	assert_true(l.now - since <= 3 * S);
	assert_memory_equal(mac, l.host[0].mac[1], 6);
	assert_int_equal(host_count(&l, 0, IPOIB_RESTARTED), 1);
	assert_int_equal(ipoib_neighs(l.host[0].s), 2); /* the peer, and everybody */
}

/* proves IPB-16: while it is away it is asked as long as packets are sent, and not longer */
static void restart__peer_is_away(void **state)
{
	uint64_t probes;

	host_arp(&l, 0, 1);
	host_ip(&l, 0, 1);
	l.host[1].silent = true;
	for (unsigned i = 0; i < 100; i++) {
		link_run(&l, S / 10);
		host_ip(&l, 0, 1);
	}
	probes = host_count(&l, 0, IPOIB_PROBES_SENT);
	assert_in_range(probes, 4, 10);
	link_run(&l, 10 * S);
	assert_in_range(host_count(&l, 0, IPOIB_PROBES_SENT), probes, probes + IPOIB_PROBES);
	probes = host_count(&l, 0, IPOIB_PROBES_SENT);
	link_run(&l, 100 * S);
	assert_int_equal(host_count(&l, 0, IPOIB_PROBES_SENT), probes);
	host_restart(&l, 1, 778);
	for (unsigned i = 0; i < 20; i++) {
		link_run(&l, S / 10);
		host_ip(&l, 0, 1);
	}
	assert_true(l.host[1].got > 5);
}

/* A peer that answers is not asked: what it sends is enough. */
static void probe__not_of_a_peer_that_is_heard(void **state)
{
	host_arp(&l, 0, 1);
	for (unsigned i = 0; i < 300; i++) {
		host_ip(&l, 0, 1);
		link_run(&l, S / 10);
		host_ip(&l, 1, 0);
	}
	assert_int_equal(host_count(&l, 0, IPOIB_PROBES_SENT), 0);
	assert_int_equal(l.host[1].got, 300);
}

/* Host 1 is silent, and is asked again. @return the type of the probe, whose packet is in @p room
 */
static uint16_t next_probe(uint8_t *room)
{
	struct ipoib_tx tx;

	l.now = ipoib_deadline(l.host[0].s);
	assert_true(ipoib_next(l.host[0].s, room, l.now, &tx));
	assert_int_equal(tx.qpn, 0xFFFFFF);
	memmove(room, tx.at, tx.len);
	return get_be16(room);
}

/* The address of this host may be another host's by now, or of a network that the peer does not
 * have here. */
static void probe__names_no_address_of_ours(void **state)
{
	static uint8_t room[IPOIB_PACKET_MAX];
	struct ipoib_addr sender, target;
	struct arp a;

	host_arp(&l, 0, 1);
	memcpy(l.host[2].ip, l.host[0].ip, 4); /* claims it */
	host_arp(&l, 2, 0);
	link_run(&l, 1);
	assert_int_equal(host_count(&l, 0, IPOIB_DUPLICATE), 1);
	l.host[1].silent = true;
	l.now += S;
	host_ip(&l, 0, 1);
	assert_int_equal(next_probe(room), IPOIB_ARP);
	assert_true(arp_read_ipoib(&a, room + IPOIB_HLEN, ARP_IPOIB_LEN, &sender, &target));
	assert_int_equal(a.op, ARP_REQUEST);
	assert_int_equal(get_be32(a.sender_ip), 0);
	assert_memory_equal(a.target_ip, l.host[1].ip, 4);
	assert_true(ipoib_addr_same(&sender, &l.host[0].cfg.own));
}

/* Hosts 0 and 1 solicit each other: both have an IPv6 address. */
static void solicit_each_other(const uint8_t ip6[HOSTS][16])
{
	uint8_t p[ROOM], frame[ROOM];
	uint32_t len;

	ipoib_header_put(p, IPOIB_IP6);
	len = nd_solicit(p + IPOIB_HLEN, ip6[1], ip6[0], &l.host[1].cfg.own);
	assert_true(host_datagram(&l, 0, &l.host[1].cfg.own, true, p, IPOIB_HLEN + len));
	len = nd_solicit(p, ip6[0], ip6[1], &l.host[0].cfg.own);
	len = nd_write(frame + 14, ROOM - 14, p, ND_ETH_UNITS, l.host[0].cfg.mac);
	memset(frame, 0x33, 6);
	put_be16(frame + 12, IPOIB_IP6);
	host_frame(&l, 0, frame, 14 + len);
	link_run(&l, 1);
}

/* A peer that has lost its IPv4 address is found by the other. */
static void probe__by_both_families(void **state)
{
	static const uint8_t ip6[HOSTS][16] = {
		{0x20, 1, 0xD, 0xB8, [15] = 1}, {0x20, 1, 0xD, 0xB8, [15] = 2}};
	static uint8_t room[IPOIB_PACKET_MAX];
	uint8_t source[16];
	struct nd nd;

	host_arp(&l, 0, 1);
	solicit_each_other(ip6);
	l.host[1].silent = true;
	l.now += S;
	host_ip(&l, 0, 1);
	assert_int_equal(next_probe(room), IPOIB_IP6);
	assert_true(nd_read(&nd, room + IPOIB_HLEN, 40 + 24 + 8 * IPOIB_ND_UNITS, IPOIB_ND_UNITS));
	assert_memory_equal(nd.target, ip6[1], 16);
	neigh_made_up(source, &l.host[0].cfg.own);
	assert_memory_equal(room + IPOIB_HLEN + 8, source, 16);
	l.now += IPOIB_PROBE_NS;
	assert_int_equal(next_probe(room), IPOIB_ARP);
}

/* The kernel of host @p i looks for duplicates of @p ip (RFC 5227 2.1.1); host 0 hears it. */
static void looks_for_duplicates(unsigned i, const uint8_t ip[4])
{
	static const struct ipoib_addr unknown;
	const struct ipoib_addr *own = &l.host[i].cfg.own;
	struct arp a = {.op = ARP_REQUEST};
	uint8_t p[IPOIB_HLEN + ARP_IPOIB_LEN];

	memcpy(a.target_ip, ip, 4);
	ipoib_header_put(p, IPOIB_ARP);
	arp_write_ipoib(p + IPOIB_HLEN, &a, own, &unknown);
	assert_true(host_datagram(&l, 0, own, true, p, sizeof(p)));
}

/* Host 0 sends to host 1 for so long. @return how often it asked for a peer. */
static uint64_t asks_within(uint64_t ns)
{
	uint64_t before = host_count(&l, 0, IPOIB_PROBES_SENT);

	for (uint64_t end = l.now + ns; l.now < end;) {
		host_ip(&l, 0, 1);
		link_run(&l, S / 10);
	}
	return host_count(&l, 0, IPOIB_PROBES_SENT) - before;
}

/* proves IPB-16: a peer that restarted looks for duplicates before it claims its address */
static void restart__looks_for_duplicates(void **state)
{
	host_arp(&l, 0, 1);
	host_ip(&l, 0, 1);
	host_restart(&l, 1, 777);
	looks_for_duplicates(1, l.host[1].ip);
	assert_int_equal(host_count(&l, 0, IPOIB_RESTARTED), 1);
	assert_true(host_ip(&l, 0, 1));
	assert_int_equal(l.host[1].got, 2);
	assert_int_equal(ipoib_neighs(l.host[0].s), 2); /* the peer, and everybody */
}

/* A host that looks for duplicates takes a probe for a search of another host, and gives the
 * address up, whether it had the address before or not. */
static void probe__not_while_a_peer_looks_for_duplicates(void **state)
{
	static const uint8_t nobody[6] = {2, 9};

	host_arp(&l, 0, 1);
	host_ip(&l, 0, 1);
	l.host[1].silent = true;
	for (unsigned i = 1; i <= 2; i++) {
		looks_for_duplicates(i, l.host[1].ip);
		assert_int_equal(asks_within(IPOIB_PROBED_NS - S / 10), 0);
		assert_in_range(asks_within(2 * S), 1, IPOIB_PROBES);
	}
	looks_for_duplicates(2, l.host[3].ip);
	memcpy(l.host[0].mac[3], nobody, sizeof(nobody));
	assert_false(host_ip(&l, 0, 3));
	link_run(&l, S / 10);
	looks_for_duplicates(1, l.host[1].ip);
	assert_int_equal(asks_within(2 * S), 0);
}

/* Questions of other rocid hold none back: only the host that asks gets the answer. */
static void probe__whatever_others_ask(void **state)
{
	host_arp(&l, 0, 1);
	host_arp(&l, 2, 1);
	l.host[1].silent = true;
	for (unsigned i = 0; i < 40; i++) {
		host_ip(&l, 2, 1);
		assert_in_range(asks_within(S / 10), 0, 1);
	}
	assert_in_range(host_count(&l, 0, IPOIB_PROBES_SENT), 2, 4);
	assert_in_range(host_count(&l, 2, IPOIB_PROBES_SENT), 2, 4);
}

/* A probe of a peer's rocid claims nothing: its source is no address to ask for later. The kernel
 * can answer it. */
static void probe__of_others_is_no_claim(void **state)
{
	static const uint8_t target[16] = {0xFD, 8, [15] = 1};
	const struct ipoib_addr *one = &l.host[1].cfg.own;
	uint8_t p[ROOM], source[16];
	uint32_t len;

	neigh_made_up(source, one);
	ipoib_header_put(p, IPOIB_IP6);
	len = IPOIB_HLEN + nd_solicit(p + IPOIB_HLEN, source, target, one);
	assert_true(host_datagram(&l, 0, one, true, p, len));
	assert_int_equal(ipoib_neighs(l.host[0].s), 1);
	for (uint32_t i = 0; i < NEIGH_MAX; i++)
		assert_int_equal(host_neigh(&l, 0, i)->nip6, 0);
	source[15] ^= 1; /* another address */
	nd_solicit(p + IPOIB_HLEN, source, target, one);
	assert_true(host_datagram(&l, 0, one, true, p, len));
	memcpy(l.host[0].mac[1], l.host[0].last + 6, 6);
	host_ip(&l, 0, 1);
	assert_int_equal(l.host[1].got, 1);
	assert_int_equal(ipoib_neighs(l.host[0].s), 1);
}

/* The peer may be a bridge, and the host that claimed an address last be gone. */
static void probe__of_each_address(void **state)
{
	static uint8_t room[IPOIB_PACKET_MAX];
	struct ipoib_addr sender, target;
	struct arp a;

	host_arp(&l, 1, 0);
	l.host[1].ip[3] = 22;
	host_arp(&l, 1, 0);
	host_arp(&l, 0, 2); /* everybody's group has a handle */
	l.host[1].silent = true;
	l.now += S;
	host_ip(&l, 0, 1);
	for (uint8_t i = 0; i < IPOIB_PROBES; i++) {
		assert_int_equal(next_probe(room), IPOIB_ARP);
		assert_true(arp_read_ipoib(&a, room + IPOIB_HLEN, ARP_IPOIB_LEN, &sender, &target));
		assert_int_equal(a.target_ip[3], i % 2 ? 2 : 22);
	}
}

/* A peer that says its new address itself is known at once. */
static void restart__announced(void **state)
{
	host_arp(&l, 0, 1);
	host_ip(&l, 0, 1);
	host_restart(&l, 1, 779);
	host_arp(&l, 1, 2);
	assert_true(host_ip(&l, 0, 1));
	assert_int_equal(l.host[1].got, 2);
	assert_int_equal(host_count(&l, 0, IPOIB_PROBES_SENT), 0);
}

static void loss__of_one_in_three(void **state)
{
	l.lose = 3;
	for (unsigned i = 0; i < 20 && !l.host[0].knows[1]; i++)
		host_arp(&l, 0, 1);
	assert_true(l.host[0].knows[1]);
	host_restart(&l, 1, 780);
	for (unsigned i = 0; i < 100 && l.host[1].got < 10; i++) {
		host_ip(&l, 0, 1);
		link_run(&l, S / 10);
	}
	assert_int_equal(l.host[1].got, 10);
}

/* The kernels decide whose it is; both claims are passed on, under two MACs. */
static void duplicate__address(void **state)
{
	uint8_t mac[6];

	memcpy(l.host[2].ip, l.host[1].ip, 4);
	host_arp(&l, 1, 0);
	memcpy(mac, l.host[0].mac[1], 6);
	host_arp(&l, 2, 0);
	assert_memory_not_equal(l.host[0].mac[1], mac, 6);
	assert_int_equal(host_count(&l, 1, IPOIB_DUPLICATE), 1);
	assert_int_equal(host_count(&l, 0, IPOIB_DUPLICATE), 0);
	assert_int_equal(host_count(&l, 0, IPOIB_RESTARTED), 0);
	/* Host 1 may have lost it: it is not its own until its kernel speaks again. */
	host_arp(&l, 2, 0);
	assert_int_equal(host_count(&l, 1, IPOIB_DUPLICATE), 1);
	host_arp(&l, 1, 0);
	host_arp(&l, 2, 0);
	assert_int_equal(host_count(&l, 1, IPOIB_DUPLICATE), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(arp__both_ways, setup, teardown),
		cmocka_unit_test_setup_teardown(restart__is_found_within_5_s, setup, teardown),
		cmocka_unit_test_setup_teardown(restart__peer_is_away, setup, teardown),
		cmocka_unit_test_setup_teardown(
			probe__not_of_a_peer_that_is_heard, setup, teardown),
		cmocka_unit_test_setup_teardown(probe__names_no_address_of_ours, setup, teardown),
		cmocka_unit_test_setup_teardown(probe__by_both_families, setup, teardown),
		cmocka_unit_test_setup_teardown(probe__of_each_address, setup, teardown),
		cmocka_unit_test_setup_teardown(probe__of_others_is_no_claim, setup, teardown),
		cmocka_unit_test_setup_teardown(restart__looks_for_duplicates, setup, teardown),
		cmocka_unit_test_setup_teardown(
			probe__not_while_a_peer_looks_for_duplicates, setup, teardown),
		cmocka_unit_test_setup_teardown(probe__whatever_others_ask, setup, teardown),
		cmocka_unit_test_setup_teardown(restart__announced, setup, teardown),
		cmocka_unit_test_setup_teardown(loss__of_one_in_three, setup, teardown),
		cmocka_unit_test_setup_teardown(duplicate__address, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
