/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP of Ethernet and of RFC 4391 9.2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include "arp.h"
#include "bits.h"

static const struct ipoib_addr one = {.qpn = 0x12345, .gid = {0xFE, 0x80, [15] = 1}};
static const struct ipoib_addr two = {.qpn = 0xFEDCBA, .gid = {0xFE, 0x80, [15] = 2}};

/* proves IPB-04 */
static void arp_write_ipoib__hardware_type_and_length(void **state)
{
	static const uint8_t head[] = {0, 32, 8, 0, 20, 4, 0, 1};
	const struct arp a = {.op = 1, .sender_ip = {10, 0, 0, 1}, .target_ip = {10, 0, 0, 2}};
	uint8_t p[ARP_IPOIB_LEN], addr[IPOIB_LLADDR_LEN];

	arp_write_ipoib(p, &a, &one, &two);
	assert_memory_equal(p, head, sizeof(head));
	ipoib_addr_put(addr, &one);
	assert_memory_equal(p + 8, addr, sizeof(addr));
	assert_memory_equal(p + 28, a.sender_ip, 4);
	ipoib_addr_put(addr, &two);
	assert_memory_equal(p + 32, addr, sizeof(addr));
	assert_memory_equal(p + 52, a.target_ip, 4);
}

/* proves IPB-04 */
static void arp_read_ipoib__refuses_others(void **state)
{
	static const uint8_t at[] = {1, 2, 4, 5};
	const struct arp a = {.op = 2};
	struct ipoib_addr s, t;
	uint8_t p[ARP_IPOIB_LEN];
	struct arp b;

	arp_write_ipoib(p, &a, &one, &two);
	assert_true(arp_read_ipoib(&b, p, sizeof(p), &s, &t));
	assert_true(ipoib_addr_same(&s, &one) && ipoib_addr_same(&t, &two) && b.op == 2);
	assert_false(arp_read_ipoib(&b, p, sizeof(p) - 1, &s, &t));
	for (unsigned i = 0; i < ARRAY_SIZE(at); i++) {
		p[at[i]] ^= 1;
		assert_false(arp_read_ipoib(&b, p, sizeof(p), &s, &t));
		p[at[i]] ^= 1;
	}
}

static void arp_read_eth__and_back(void **state)
{
	static const uint8_t one_mac[6] = {2, 1, 1, 1, 1, 1}, two_mac[6] = {2, 2, 2, 2, 2, 2};
	const struct arp a = {.op = 2, .sender_ip = {10, 0, 0, 1}, .target_ip = {10, 0, 0, 2}};
	uint8_t p[ARP_ETH_LEN], s[6], t[6];
	struct arp b;

	arp_write_eth(p, &a, one_mac, two_mac);
	assert_true(arp_read_eth(&b, p, sizeof(p), s, t));
	assert_memory_equal(&a, &b, sizeof(a));
	assert_memory_equal(s, one_mac, 6);
	assert_memory_equal(t, two_mac, 6);
	assert_false(arp_read_eth(&b, p, sizeof(p) - 1, s, t));
	p[4] = 20;
	assert_false(arp_read_eth(&b, p, sizeof(p), s, t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arp_write_ipoib__hardware_type_and_length),
		cmocka_unit_test(arp_read_ipoib__refuses_others),
		cmocka_unit_test(arp_read_eth__and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
