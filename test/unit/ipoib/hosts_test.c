/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts on a link: peers that restart (IPB-16), loss, an address that two have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "link.h"

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
	/* Host 1 may have lost it: not its own, nor asked from, until its kernel speaks again. */
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
		cmocka_unit_test_setup_teardown(restart__announced, setup, teardown),
		cmocka_unit_test_setup_teardown(loss__of_one_in_three, setup, teardown),
		cmocka_unit_test_setup_teardown(duplicate__address, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
