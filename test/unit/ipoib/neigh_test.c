/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of neighbours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include "bits.h"
#include "neigh.h"

static struct neigh_table t;

static int setup(void **state)
{
	struct hash_seed seed = {{0}};

	for (unsigned i = 0; i <= HASH_WORDS; i++)
		seed.factor[i] = 0x9E3779B97F4A7C15ull * (i + 1);
	neigh_init(&t, &seed);
	return 0;
}

static struct ipoib_addr addr(uint32_t gid, uint32_t qpn)
{
	struct ipoib_addr a = {.qpn = qpn, .gid = {0xFE, 0x80}};

	put_be32(a.gid + 12, gid);
	return a;
}

static struct neigh *add(const struct ipoib_addr *a)
{
	uint8_t mac[6];

	neigh_mac(mac, a);
	return neigh_add(&t, a, mac);
}

static void neigh_mac__is_stable_and_local(void **state)
{
	struct ipoib_addr a = addr(1, 2), b = addr(1, 3), c = addr(2, 2);
	uint8_t one[6], again[6], other[6], another[6];

	neigh_mac(one, &a);
	neigh_mac(again, &a);
	neigh_mac(other, &b);
	assert_memory_equal(one, again, 6);
	assert_memory_not_equal(one, other, 6);
	assert_int_equal(one[0] & 3, 2);
	neigh_mac(another, &c);
	assert_memory_equal(one, other, NEIGH_MAC_GID); /* of one port */
	assert_memory_not_equal(one, another, NEIGH_MAC_GID);
}

static void neigh_add__is_found(void **state)
{
	struct ipoib_addr a = addr(1, 2), b = addr(1, 3);
	struct neigh *n = add(&a), *m = add(&b);

	assert_ptr_equal(neigh_of_addr(&t, &a), n);
	assert_ptr_equal(neigh_of_addr(&t, &b), m);
	assert_ptr_equal(neigh_of_mac(&t, n->mac), n);
	assert_int_equal(n->state, NEIGH_INCOMPLETE);
	neigh_remove(&t, n);
	assert_null(neigh_of_addr(&t, &a));
	assert_null(neigh_of_mac(&t, n->mac));
	assert_int_equal(t.n, 1);
}

/* proves IPB-16: by the address that it claimed; the MAC stays */
static void neigh_rebind__keeps_the_mac(void **state)
{
	static const uint8_t ip[4] = {10, 0, 0, 1}, other[4] = {10, 0, 0, 2};
	struct ipoib_addr a = addr(1, 2), b = addr(1, 9);
	struct neigh *n = add(&a);
	uint8_t mac[6];

	assert_null(neigh_of_ip(&t, a.gid, ip, 4));
	neigh_claim(n, ip, 4);
	memcpy(mac, n->mac, 6);
	assert_ptr_equal(neigh_of_ip(&t, a.gid, ip, 4), n);
	assert_null(neigh_of_ip(&t, a.gid, other, 4));
	assert_null(neigh_of_ip(&t, addr(2, 2).gid, ip, 4));
	neigh_rebind(n, 9);
	assert_null(neigh_of_addr(&t, &a));
	assert_ptr_equal(neigh_of_addr(&t, &b), n);
	assert_ptr_equal(neigh_of_mac(&t, mac), n);
}

/* Its latest addresses are known, of both families. */
static void neigh_claim__several(void **state)
{
	struct ipoib_addr a = addr(1, 2);
	struct neigh *n = add(&a);
	uint8_t ip[16] = {0};

	for (uint8_t i = 0; i < NEIGH_IPS; i++) {
		ip[0] = i;
		neigh_claim(n, ip, 4);
		neigh_claim(n, ip, 16);
	}
	ip[0] = 0;
	neigh_claim(n, ip, 4); /* again: the latest now */
	ip[0] = 99;
	neigh_claim(n, ip, 4);
	neigh_claim(n, ip, 16);
	assert_int_equal(n->ip4[0][0], 99);
	assert_int_equal(n->nip4, NEIGH_IPS);
	for (uint8_t i = 0; i < NEIGH_IPS; i++) {
		ip[0] = i;
		assert_int_equal(neigh_of_ip(&t, a.gid, ip, 4) == n, i != 1);
		assert_int_equal(neigh_of_ip(&t, a.gid, ip, 16) == n, i != 0);
	}
}

/* No more than NEIGH_PEERS; those that nothing was sent to leave first, then the oldest. */
static void neigh_oldest__unused_first(void **state)
{
	struct neigh *first = NULL, *second = NULL, *used = NULL;

	for (uint32_t i = 0; i < NEIGH_PEERS; i++) {
		struct ipoib_addr a = addr(i, 5);
		struct neigh *n;

		assert_null(neigh_oldest(&t, false));
		n = add(&a);
		first = i == 0 ? n : first;
		second = i == 1 ? n : second;
		used = i == 2 ? n : used;
	}
	assert_ptr_equal(neigh_oldest(&t, false), first);
	neigh_touch(&t, first, 1);
	assert_ptr_equal(neigh_oldest(&t, false), second);
	second->sent = true;
	neigh_touch(&t, second, 1);
	assert_ptr_equal(neigh_oldest(&t, false), used);
	for (uint32_t i = 0; i < NEIGH_PEERS; i++)
		if (&t.entry[i] != second)
			neigh_touch(&t, &t.entry[i], 1);
	assert_ptr_not_equal(neigh_oldest(&t, false), second); /* though the others are younger */
	for (uint32_t i = 0; i < NEIGH_PEERS; i++)
		if (&t.entry[i] != second) {
			t.entry[i].sent = true;
			neigh_touch(&t, &t.entry[i], 1);
		}
	assert_ptr_equal(neigh_oldest(&t, false), second);
}

/* Groups have places of their own, and leave for one another only, the oldest first. */
static void neigh_oldest__of_groups(void **state)
{
	struct ipoib_addr peer = addr(1, 5);
	struct neigh *n = add(&peer), *first = NULL, *second = NULL;

	for (uint32_t i = 0; i < NEIGH_GROUPS; i++) {
		struct ipoib_addr a = addr(i, 0xFFFFFF);
		struct neigh *g;

		assert_null(neigh_oldest(&t, true));
		g = neigh_add(&t, &a, NULL);
		first = i == 0 ? g : first;
		second = i == 1 ? g : second;
	}
	assert_ptr_equal(neigh_oldest(&t, true), first);
	assert_null(neigh_oldest(&t, false));
	first->sent = true;
	neigh_touch(&t, first, 7);
	assert_int_equal(first->touched, 7);
	assert_ptr_equal(neigh_oldest(&t, true), second);
	neigh_remove(&t, second);
	assert_null(neigh_oldest(&t, true));
	assert_ptr_equal(neigh_of_addr(&t, &peer), n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(neigh_mac__is_stable_and_local, setup),
		cmocka_unit_test_setup(neigh_add__is_found, setup),
		cmocka_unit_test_setup(neigh_rebind__keeps_the_mac, setup),
		cmocka_unit_test_setup(neigh_claim__several, setup),
		cmocka_unit_test_setup(neigh_oldest__unused_first, setup),
		cmocka_unit_test_setup(neigh_oldest__of_groups, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
