/* SPDX-License-Identifier: BSD-3-Clause */
/* IP addresses of the netdev's side, and their MACs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "stations.h"

static const uint8_t own[6] = {2, 0, 0, 0, 0, 1}, one[6] = {2, 1}, two[6] = {2, 2};
static const uint8_t ip4[4] = {10, 0, 0, 1};
static struct station_table t;

static int setup(void **state)
{
	struct hash_seed seed;

	for (unsigned k = 0; k <= HASH_WORDS; k++)
		seed.factor[k] = 0x9E3779B97F4A7C15ull * (k + 1);
	station_init(&t, &seed, own);
	return 0;
}

/* The n-th address of a network. */
static const uint8_t *nth(uint32_t n)
{
	static uint8_t ip[4];

	put_be32(ip, 0x0A010000 + n);
	return ip;
}

static bool is_at(const uint8_t *ip, unsigned len, const uint8_t mac[6])
{
	const uint8_t *at = station_mac(&t, ip, len);

	return mac ? at && !memcmp(at, mac, 6) : !at;
}

static void station_mac__by_family(void **state)
{
	static const uint8_t mapped[16] = {[10] = 0xFF, 0xFF, 10, 0, 0, 1},
			     padded[16] = {10, 0, 0, 1};

	assert_true(is_at(ip4, 4, NULL) && !station_is_claimed(&t, ip4, 4));
	station_seen(&t, one, ip4, 4);
	assert_true(is_at(ip4, 4, one) && !station_is_claimed(&t, ip4, 4));
	station_claim(&t, one, ip4, 4);
	assert_true(station_is_claimed(&t, ip4, 4));
	assert_true(is_at(ip4, 4, one));
	assert_true(is_at(mapped, 16, NULL) && is_at(padded, 16, NULL));
	station_claim(&t, two, mapped, 16);
	assert_true(is_at(mapped, 16, two) && is_at(ip4, 4, one));
}

/* It follows ARP and ND; packets may be of anybody. */
static void station_claim__moves(void **state)
{
	station_claim(&t, one, ip4, 4);
	station_seen(&t, two, ip4, 4);
	assert_true(is_at(ip4, 4, one));
	station_claim(&t, two, ip4, 4);
	assert_true(is_at(ip4, 4, two));
	station_seen(&t, one, nth(1), 4);
	station_seen(&t, two, nth(1), 4);
	assert_true(is_at(nth(1), 4, two));
	station_claim(&t, one, nth(1), 4);
	station_seen(&t, two, nth(1), 4);
	assert_true(is_at(nth(1), 4, one));
	assert_int_equal(t.others, 2);
	station_claim(&t, own, ip4, 4);
	assert_int_equal(t.others, 1);
}

static void station_claim__of_groups_and_nobody(void **state)
{
	static const uint8_t none[16], group[6] = {1, 2, 3}, ip6_group[16] = {0xFF, 2},
				       ip4_group[4] = {224, 0, 0, 1}, all[4] = {255, 255, 255, 255};

	station_claim(&t, group, ip4, 4);
	station_claim(&t, none, ip4, 4);
	station_seen(&t, group, ip4, 4);
	assert_true(is_at(ip4, 4, NULL));
	station_claim(&t, one, none, 4);
	station_claim(&t, one, none, 16);
	station_claim(&t, one, ip6_group, 16);
	station_seen(&t, one, ip4_group, 4);
	station_seen(&t, one, all, 4);
	assert_int_equal(t.others, 0);
}

/* One host may claim any number: it takes places of its own only, and what it only sends from goes
 * first. */
static void flood__of_one_mac(void **state)
{
	station_claim(&t, two, nth(5000), 4);
	station_claim(&t, one, nth(1), 4);
	for (uint32_t i = 2; i <= STATION_PER_MAC; i++)
		assert_false(station_seen(&t, one, nth(i), 4));
	assert_false(station_seen(&t, one, nth(2), 4)); /* the third is the oldest now */
	assert_true(station_seen(&t, one, nth(100), 4));
	assert_true(is_at(nth(3), 4, NULL) && is_at(nth(2), 4, one) && is_at(nth(1), 4, one));
	for (uint32_t i = 200; i < 200 + STATION_PER_MAC; i++)
		assert_true(station_claim(&t, one, nth(i), 4));
	assert_true(is_at(nth(1), 4, NULL) && is_at(nth(200), 4, one));
	assert_true(is_at(nth(5000), 4, two));
	assert_int_equal(t.others, STATION_PER_MAC + 1);
	assert_true(station_claim(&t, one, nth(5000), 4)); /* one that moves to it, too */
	assert_true(is_at(nth(200), 4, NULL) && is_at(nth(5000), 4, one));
	assert_int_equal(t.others, STATION_PER_MAC);
}

/* A host that makes up MACs takes the places of those that were silent for longest. */
static void flood__of_macs(void **state)
{
	uint8_t mac[6] = {2, 9};

	station_claim(&t, one, nth(1), 4);
	station_claim(&t, two, nth(2), 4);
	for (uint32_t i = 3; i <= STATION_MAX; i++) {
		put_be32(mac + 2, i);
		assert_false(station_seen(&t, mac, nth(i), 4));
	}
	for (uint32_t i = 0; i < STATION_MAX - 2; i++) {
		put_be32(mac + 2, 5000 + i);
		assert_true(station_claim(&t, mac, nth(5000 + i), 4));
	}
	assert_true(is_at(nth(1), 4, one) && is_at(nth(2), 4, two));
	station_seen(&t, one, nth(1), 4);
	assert_true(station_claim(&t, own, ip4, 4));
	assert_true(is_at(nth(1), 4, one) && is_at(nth(2), 4, NULL) && is_at(ip4, 4, own));
	assert_int_equal(t.others, STATION_MAX - 1);
}

/* Addresses at the MAC before are at the new one, whose own addresses are the netdev's now. */
static void station_set_own__renames(void **state)
{
	station_claim(&t, own, nth(1), 4);
	station_claim(&t, one, nth(2), 4);
	station_claim(&t, two, nth(3), 4);
	assert_int_equal(t.others, 2);
	station_set_own(&t, one);
	assert_true(is_at(nth(1), 4, one) && is_at(nth(2), 4, one) && is_at(nth(3), 4, two));
	assert_int_equal(t.others, 1);
	for (uint32_t i = 0; i < STATION_PER_MAC - 2; i++)
		assert_false(station_claim(&t, one, nth(100 + i), 4));
	assert_true(station_claim(&t, one, nth(200), 4)); /* all of them count */
}

static void station_doubt__once(void **state)
{
	assert_false(station_doubt(&t, ip4, 4));
	station_seen(&t, one, ip4, 4);
	assert_false(station_doubt(&t, ip4, 4));
	station_claim(&t, one, ip4, 4);
	assert_true(station_doubt(&t, ip4, 4));
	station_seen(&t, one, ip4, 4);
	assert_false(station_doubt(&t, ip4, 4));
	assert_true(is_at(ip4, 4, one));
	station_claim(&t, one, ip4, 4);
	assert_true(station_doubt(&t, ip4, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(station_mac__by_family, setup),
		cmocka_unit_test_setup(station_claim__moves, setup),
		cmocka_unit_test_setup(station_claim__of_groups_and_nobody, setup),
		cmocka_unit_test_setup(flood__of_one_mac, setup),
		cmocka_unit_test_setup(flood__of_macs, setup),
		cmocka_unit_test_setup(station_set_own__renames, setup),
		cmocka_unit_test_setup(station_doubt__once, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
