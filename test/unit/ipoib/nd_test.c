/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbour discovery of Ethernet and of RFC 4391 9.3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include "bits.h"
#include "nd.h"

static const struct ipoib_addr own = {.qpn = 0x12345, .gid = {0xFE, 0x80, [15] = 1}};
static const uint8_t mac[6] = {2, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE};

static void ip6_of(uint8_t ip[16], const char *text)
{
	assert_int_equal(inet_pton(AF_INET6, text, ip), 1);
}

/* One's complement sum of the pseudo-header and the message: 0xFFFF when right. */
static uint16_t sum_of(const uint8_t *p, uint32_t len)
{
	uint32_t sum = (len - 40) + 58;

	for (uint32_t i = 8; i + 1 < len; i += 2)
		sum += get_be16(p + i);
	if (len & 1)
		sum += (uint32_t)p[len - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)sum;
}

/* The checksum field of a message whose bytes are there. */
static void seal(uint8_t *p, uint32_t len)
{
	put_be16(p + 4, (uint16_t)(len - 40));
	put_be16(p + 42, 0);
	put_be16(p + 42, (uint16_t)~sum_of(p, len));
}

static uint32_t message(
	uint8_t *p, uint8_t type, uint32_t fixed, const uint8_t *options, uint32_t len)
{
	memset(p, 0, 40 + fixed);
	p[0] = 0x60;
	p[6] = 58;
	p[7] = 255;
	ip6_of(p + 8, "fe80::2");
	ip6_of(p + 24, "ff02::1");
	p[40] = type;
	if (len)
		memcpy(p + 40 + fixed, options, len);
	seal(p, 40 + fixed + len);
	return 40 + fixed + len;
}

/* proves IPB-05: length 3, and two zero octets before the address */
static void nd_solicit__option(void **state)
{
	uint8_t source[16], target[16], addr[IPOIB_LLADDR_LEN], p[128];
	struct nd nd;
	uint32_t len;

	ip6_of(source, "fe80::1");
	ip6_of(target, "fe80::12:3456");
	len = nd_solicit(p, source, target, &own);
	assert_int_equal(len, 40 + 24 + 24);
	assert_int_equal(sum_of(p, len), 0xFFFF);
	assert_int_equal(p[64], 1);
	assert_int_equal(p[65], 3);
	assert_int_equal(get_be16(p + 66), 0);
	ipoib_addr_put(addr, &own);
	assert_memory_equal(p + 68, addr, sizeof(addr));
	assert_true(nd_is(p, len) && nd_read(&nd, p, len, IPOIB_ND_UNITS));
	assert_ptr_equal(nd.source, p + 68);
	assert_memory_equal(nd.target, target, 16);
	ip6_of(target, "ff02::1:ff12:3456");
	assert_memory_equal(p + 24, target, 16);
}

/* proves IPB-05: all other options stay */
static void nd_write__other_options_stay(void **state)
{
	static const uint8_t options[] = {5, 1, 0, 0, 0, 0, 7, 0xFC, 1, 1, 2, 0xAA, 0xBB, 0xCC,
		0xDD, 0xEE, 14, 1, 1, 2, 3, 4, 5, 6};
	uint8_t p[256], wire[256], back[256], addr[IPOIB_LLADDR_LEN];
	uint32_t len = message(p, ND_ROUTER_ADVERT, 16, options, sizeof(options)), n;
	struct nd nd;

	assert_true(nd_read(&nd, p, len, ND_ETH_UNITS));
	assert_memory_equal(nd.source, mac, 6);
	ipoib_addr_put(addr, &own);
	n = nd_write(wire, sizeof(wire), p, IPOIB_ND_UNITS, addr);
	assert_int_equal(n, len + 16);
	assert_int_equal(get_be16(wire + 4), n - 40);
	assert_int_equal(sum_of(wire, n), 0xFFFF);
	assert_true(nd_read(&nd, wire, n, IPOIB_ND_UNITS));
	assert_false(nd_read(&nd, wire, n, ND_ETH_UNITS));
	assert_int_equal(nd_write(back, sizeof(back), wire, ND_ETH_UNITS, mac), len);
	assert_memory_equal(back, p, len);
	assert_int_equal(nd_write(back, n, wire, ND_ETH_UNITS, mac), 0); /* no room */
}

/* Of a redirect the address of the other node is left out. */
static void nd_write__redirect(void **state)
{
	static const uint8_t options[] = {2, 1, 2, 1, 1, 1, 1, 1, 4, 1, 1, 2, 3, 4, 5, 6};
	uint8_t p[256], wire[256], addr[IPOIB_LLADDR_LEN] = {0};
	uint32_t len = message(p, ND_REDIRECT, 40, options, sizeof(options));
	struct nd nd;

	assert_true(nd_read(&nd, p, len, ND_ETH_UNITS));
	assert_int_equal(nd_write(wire, sizeof(wire), p, IPOIB_ND_UNITS, addr), len - 8);
	assert_int_equal(wire[80], 4);
	assert_int_equal(sum_of(wire, len - 8), 0xFFFF);
}

/* proves IPB-05: options that overrun, of no length, of another length, twice */
static void nd_read__refuses(void **state)
{
	static const uint8_t overrun[] = {1, 2, 2, 0, 0, 0, 0, 1};
	static const uint8_t none[] = {1, 0, 2, 0, 0, 0, 0, 1};
	static const uint8_t twice[] = {1, 1, 2, 0, 0, 0, 0, 1, 1, 1, 2, 0, 0, 0, 0, 1};
	static const uint8_t odd[] = {1};
	static const uint8_t right[] = {1, 1, 2, 0, 0, 0, 0, 1};
	static const struct {
		const uint8_t *options;
		uint32_t len;
	} row[] = {{overrun, 8}, {none, 8}, {twice, 16}, {odd, 1}};
	uint8_t p[256];
	uint32_t len;
	struct nd nd;

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		len = message(p, ND_NEIGHBOUR_SOLICIT, 24, row[i].options, row[i].len);
		assert_false(nd_read(&nd, p, len, ND_ETH_UNITS));
	}
	len = message(p, ND_NEIGHBOUR_SOLICIT, 24, right, sizeof(right));
	assert_true(nd_read(&nd, p, len, ND_ETH_UNITS));
	assert_false(nd_read(&nd, p, len, IPOIB_ND_UNITS));
	assert_false(nd_read(&nd, p, len - 1, ND_ETH_UNITS));
	p[50] ^= 1; /* the checksum */
	assert_false(nd_read(&nd, p, len, ND_ETH_UNITS));
	p[50] ^= 1;
	p[7] = 254; /* a router forwarded it */
	assert_false(nd_read(&nd, p, len, ND_ETH_UNITS));
	message(p, ND_NEIGHBOUR_SOLICIT, 16, NULL, 0);
	assert_false(nd_read(&nd, p, 56, ND_ETH_UNITS));
}

static void nd_is__of_five_types(void **state)
{
	uint8_t p[80] = {[6] = 58};

	for (unsigned type = 0; type < 256; type++) {
		p[40] = (uint8_t)type;
		assert_int_equal(nd_is(p, sizeof(p)), type >= 133 && type <= 137);
		assert_false(nd_is(p, 40));
	}
	p[40] = 135;
	p[6] = 17;
	assert_false(nd_is(p, sizeof(p)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nd_solicit__option),
		cmocka_unit_test(nd_write__other_options_stay),
		cmocka_unit_test(nd_write__redirect),
		cmocka_unit_test(nd_read__refuses),
		cmocka_unit_test(nd_is__of_five_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
