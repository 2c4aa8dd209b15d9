/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of too many groups a netdev of IP over InfiniBand receives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include "bits.h"
#include "rib_impl.h"

static struct rib_members m;

static int begin(void **state)
{
	memset(&m, 0, sizeof(m));
	m.pkey = 0xFFFF;
	return 0;
}

static void listed(const char *ip)
{
	uint8_t raw[16];
	bool v6 = strchr(ip, ':');

	assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, ip, raw), 1);
	rib_groups_listed(&m, raw, v6 ? 16 : 4);
}

static void own(const char *ip)
{
	uint8_t raw[16];

	assert_int_equal(inet_pton(AF_INET6, ip, raw), 1);
	rib_groups_own(&m, raw);
}

static bool has(const char *mgid)
{
	uint8_t raw[16];

	assert_int_equal(inet_pton(AF_INET6, mgid, raw), 1);
	return rib_groups_has(&m.now, raw);
}

/* By a program without privileges: ff02::1:ff00:<i>, as if all were addresses of the host. */
static void list_many(uint32_t first, uint32_t n)
{
	uint8_t ip[16] = {0xFF, 2, [11] = 1, [12] = 0xFF};

	for (uint32_t i = first; i < first + n; i++) {
		put_be16(ip + 14, (uint16_t)i);
		rib_groups_listed(&m, ip, sizeof(ip));
	}
}

static void rib_groups_listed__each_once(void **state)
{
	listed("239.1.2.3");
	listed("239.1.2.3");
	listed("ff15::1");
	assert_int_equal(m.now.n, 2);
	assert_int_equal(m.now.over, 0);
	assert_true(has("ff12:401b:ffff::f01:203"));
	assert_true(has("ff12:601b:ffff::1"));
	rib_groups_remove(&m.now, 0);
	assert_int_equal(m.now.n, 1);
	assert_true(has("ff12:601b:ffff::1"));
}

/* The kernel lists those first that were joined last. */
static void rib_groups_listed__own_before_others(void **state)
{
	own("fe80::1:2:abcd:ef01");
	list_many(1, 300);
	assert_int_equal(m.now.n, RIB_GROUPS);
	assert_int_equal(m.now.over, 300 - RIB_GROUPS);
	listed("224.0.0.1");
	listed("ff02::1:ffcd:ef01");
	listed("ff02::2");
	listed("ff02::1");
	listed("ff02::3");
	assert_true(has("ff12:401b:ffff::1"));
	assert_true(has("ff12:601b:ffff::1:ffcd:ef01"));
	assert_true(has("ff12:601b:ffff::1"));
	assert_true(has("ff12:601b:ffff::2"));
	assert_false(has("ff12:601b:ffff::3"));
	assert_int_equal(m.now.n, RIB_GROUPS);
	assert_int_equal(m.now.over, 300 + 5 - RIB_GROUPS);
	list_many(1000, 300);
	assert_true(has("ff12:401b:ffff::1"));
	assert_true(has("ff12:601b:ffff::1:ffcd:ef01"));
}

static void joined(void)
{
	m.joined = m.now;
	m.now.n = 0;
	m.reads++;
}

/* Those that are received stay, whatever others are joined; when one must go, because the host has
 * a new address, it is one that came last. */
static void rib_groups_listed__joined_before_others(void **state)
{
	listed("ff15::77");
	listed("239.1.2.3");
	joined();
	for (unsigned i = 0; i < 3; i++) {
		listed("239.1.2.3");
		list_many(1, 300);
		listed("ff15::77");
		assert_true(has("ff12:601b:ffff::77"));
		assert_true(has("ff12:401b:ffff::f01:203"));
		joined();
	}
	own("fe80::1:2:abcd:ef01");
	listed("239.1.2.3");
	listed("ff02::1:ffcd:ef01");
	list_many(1, 300);
	listed("ff15::77");
	assert_true(has("ff12:601b:ffff::1:ffcd:ef01"));
	assert_true(has("ff12:601b:ffff::77"));
	assert_true(has("ff12:401b:ffff::f01:203"));
}

/* The host has one of a bridge's hosts' groups, and leaves: it is the bridge's. */
static void rib_groups_add__rank_rises(void **state)
{
	uint8_t ip[16] = {0xFF, 2, [11] = 1, [12] = 0xFF, [15] = 1};

	list_many(1, 1);
	assert_true(rib_groups_add(&m, &m.now, ip, sizeof(ip), RIB_HOST));
	assert_false(rib_groups_add(&m, &m.now, ip, sizeof(ip), RIB_HOST));
	assert_false(rib_groups_add(&m, &m.now, ip, sizeof(ip), RIB_REST));
	assert_int_equal(m.now.n, 1);
	assert_int_equal(m.now.rank[0], RIB_HOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(rib_groups_listed__each_once, begin),
		cmocka_unit_test_setup(rib_groups_listed__own_before_others, begin),
		cmocka_unit_test_setup(rib_groups_listed__joined_before_others, begin),
		cmocka_unit_test_setup(rib_groups_add__rank_rises, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
