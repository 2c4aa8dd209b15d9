/* SPDX-License-Identifier: BSD-3-Clause */
/* The Internet checksum by vectors, of this CPU and of any, against one word after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "inet.h"
#include "random.h"

#undef __x86_64__
#define inet_add_many inet_add_many_of_any
uint64_t inet_add_many(uint64_t sum, const uint8_t *p, uint32_t len);
#include "../../../lib/ipoib/inet.c"
#undef inet_add_many

#define LONGEST IP_PACKET_MAX

static uint8_t data[LONGEST + 64];

static uint16_t slow(uint64_t sum, const uint8_t *p, uint32_t len)
{
	for (; len > 1; p += 2, len -= 2) {
		uint16_t word;

		memcpy(&word, p, sizeof(word));
		sum += word;
	}
	if (len)
		sum += (uint16_t)(*p << (8 * (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)));
	while (sum >> 16)
		sum = (sum & UINT16_MAX) + (sum >> 16);
	return (uint16_t)sum;
}

static void check(uint64_t before, uint32_t at, uint32_t len)
{
	uint16_t want = slow(before, data + at, len);

	assert_int_equal(inet_fold(inet_add(before, data + at, len)), want);
	assert_int_equal(inet_fold(inet_add_many_of_any(before, data + at, len)), want);
}

static void add__every_length(void **state)
{
	struct random r = {.state = 7};

	random_fill(&r, data, sizeof(data));
	for (uint32_t len = 0; len < 2200; len++)
		check(random_next(&r) >> 20, len % 64, len);
	check(0, 1, LONGEST);
}

/* Each addition that can carry does. */
static void add__all_ones(void **state)
{
	memset(data, 0xFF, sizeof(data));
	for (uint32_t len = 0; len < LONGEST; len += 997)
		check(UINT32_MAX, len % 8, len);
	check(UINT32_MAX, 0, LONGEST);
	memset(data, 0, sizeof(data));
	check(0, 0, LONGEST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add__every_length), cmocka_unit_test(add__all_ones)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
