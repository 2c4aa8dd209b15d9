/* SPDX-License-Identifier: BSD-3-Clause */
/* The header, link-layer addresses and MGIDs of RFC 4391. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include "bits.h"
#include "encap.h"

/* proves IPB-01: reserved bits are sent as 0 */
static void header_put__reserved_is_zero(void **state)
{
	static const uint8_t want[] = {0x86, 0xDD, 0, 0};
	uint8_t header[IPOIB_HLEN] = {0xFF, 0xFF, 0xFF, 0xFF};

	ipoib_header_put(header, IPOIB_IP6);
	assert_memory_equal(header, want, sizeof(want));
}

/* proves IPB-02 */
static void type_known__of_table_1(void **state)
{
	unsigned known = 0;

	for (unsigned type = 0; type <= UINT16_MAX; type++)
		known += ipoib_type_known((uint16_t)type);
	assert_int_equal(known, 4);
	assert_true(ipoib_type_known(0x0800) && ipoib_type_known(0x0806));
	assert_true(ipoib_type_known(0x8035) && ipoib_type_known(0x86DD));
}

/* proves IPB-03 */
static void addr__reserved_octet(void **state)
{
	struct ipoib_addr a = {.qpn = 0xABCDEF, .gid = {0xFE, 0x80, [15] = 7}}, b;
	uint8_t raw[IPOIB_LLADDR_LEN];

	ipoib_addr_put(raw, &a);
	assert_int_equal(raw[0], 0);
	assert_int_equal(get_be24(raw + 1), 0xABCDEF);
	assert_memory_equal(raw + 4, a.gid, 16);
	raw[0] = 0x80; /* ignored */
	ipoib_addr_get(&b, raw);
	assert_true(ipoib_addr_same(&a, &b));
	b.qpn++;
	assert_false(ipoib_addr_same(&a, &b));
	b = a;
	b.gid[15]++;
	assert_false(ipoib_addr_same(&a, &b));
}

/* proves IPB-07, IPB-08, IPB-09, IPB-10 */
static void mgid__of_groups(void **state)
{
	static const struct {
		const char *ip, *mgid;
		uint16_t pkey;
		uint8_t scope;
	} row[] = {
		{"255.255.255.255", "ff12:401b:ffff::ffff:ffff", 0xFFFF, 2},
		{"224.0.0.2", "ff12:401b:8000::2", 0x8000, 2},
		{"239.255.0.1", "ff12:401b:ffff::fff:1", 0x7FFF, 2},
		{"239.255.0.1", "ff15:401b:8001::fff:1", 0x8001, 5},
		{"ff02::2", "ff12:601b:8000::2", 0x8000, 2},
		{"ff05::1:ff00:1234", "ff12:601b:8001::1:ff00:1234", 1, 2},
		{"ff0e:1:2:3:4:5:6:7", "ff18:601b:ffff:3:4:5:6:7", 0xFFFF, 8},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		uint8_t ip[16], want[16], got[16];

		if (inet_pton(AF_INET, row[i].ip, ip) == 1)
			ipoib_mgid_of_ip4(got, row[i].pkey, row[i].scope, ip);
		else if (inet_pton(AF_INET6, row[i].ip, ip) == 1)
			ipoib_mgid_of_ip6(got, row[i].pkey, row[i].scope, ip);
		assert_int_equal(inet_pton(AF_INET6, row[i].mgid, want), 1);
		assert_memory_equal(got, want, 16);
	}
}

/* proves IPB-12: bit 31 is set */
static void qkey__is_controlled(void **state)
{
	assert_true(IPOIB_QKEY >> 31);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_put__reserved_is_zero),
		cmocka_unit_test(type_known__of_table_1),
		cmocka_unit_test(addr__reserved_octet),
		cmocka_unit_test(mgid__of_groups),
		cmocka_unit_test(qkey__is_controlled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
