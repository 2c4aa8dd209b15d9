/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "pcapng.h"

static uint8_t block[PCAPNG_BLOCK_MAX + 4096];

static uint32_t word(size_t at)
{
	uint32_t v;

	memcpy(&v, block + at, sizeof(v));
	return v;
}

/* Every block begins and ends with its length, a multiple of four. */
static void check_block(size_t len, uint32_t type)
{
	assert_int_equal(len % 4, 0);
	assert_in_range(len, 12, sizeof(block));
	assert_int_equal(word(0), type);
	assert_int_equal(word(4), len);
	assert_int_equal(word(len - 4), len);
}

/* The value of option @p code of a block whose options begin at @p at; NULL: it has none. */
static const uint8_t *find_option(size_t at, size_t end, uint16_t code, uint16_t *len)
{
	while (at + 4 <= end) {
		uint16_t c, n;

		memcpy(&c, block + at, 2);
		memcpy(&n, block + at + 2, 2);
		if (!c) {
			assert_int_equal(at + 4, end); /* it is the last */
			return NULL;
		}
		*len = n;
		if (c == code)
			return block + at + 4;
		at += 4 + ((n + 3u) & ~3u);
	}
	fail();
	return NULL;
}

static void pcapng_section__has_its_magic(void **state)
{
	size_t len = pcapng_section(block, "hw", "", "rocid");
	uint16_t n;

	check_block(len, 0x0A0D0D0A);
	assert_int_equal(word(8), 0x1A2B3C4D);
	assert_int_equal(word(12), 1); /* 1.0 */
	assert_memory_equal(find_option(24, len - 4, 4, &n), "rocid", 5);
	assert_int_equal(n, 5);
	assert_null(find_option(24, len - 4, 3, &n)); /* an empty one is left out */
}

static void pcapng_interface__tells_what_is_known(void **state)
{
	const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	struct pcapng_interface i = {.name = "eth0", .filter = "qp 7", .snap = 99};
	size_t len = pcapng_interface(block, &i);
	const uint8_t *value;
	uint16_t n;

	check_block(len, 1);
	assert_int_equal(word(8), 1); /* Ethernet */
	assert_int_equal(word(12), 99);
	value = find_option(16, len - 4, 11, &n);
	assert_int_equal(n, 5);
	assert_memory_equal(value, "\0qp 7", 5); /* kind 0: text */
	assert_int_equal(*find_option(16, len - 4, 9, &n), 9);
	assert_null(find_option(16, len - 4, 6, &n));
	assert_null(find_option(16, len - 4, 8, &n));
	i.mac = mac;
	i.speed = 10000000000ull;
	len = pcapng_interface(block, &i);
	assert_memory_equal(find_option(16, len - 4, 6, &n), mac, 6);
	assert_memory_equal(find_option(16, len - 4, 8, &n), &i.speed, 8);
}

static void pcapng_interface__cuts_what_is_too_long(void **state)
{
	char text[4 * PCAPNG_STRING_MAX];
	struct pcapng_interface i = {.name = text, .description = text, .filter = text};
	uint16_t n;
	size_t len;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	len = pcapng_interface(block, &i);
	check_block(len, 1);
	assert_true(len <= PCAPNG_BLOCK_MAX);
	assert_non_null(find_option(16, len - 4, 2, &n));
	assert_int_equal(n, PCAPNG_STRING_MAX);
}

static void pcapng_packet__is_padded_but_not_longer(void **state)
{
	static const uint8_t bytes[9] = "12345678";
	uint16_t n;

	for (uint32_t kept = 0; kept <= 8; kept++) {
		const struct pcapng_packet p = {.interface = 2,
			.time = 0x123456789ABCDEFull,
			.bytes = bytes,
			.kept = kept,
			.len = 64,
			.direction = PCAPNG_OUT,
			.queue = 3,
			.comment = "dropped: icrc",
			.lost = kept};
		size_t len = pcapng_packet(block, &p);
		size_t options = 28 + ((kept + 3) & ~3u);

		check_block(len, 6);
		assert_int_equal(word(8), 2);
		assert_int_equal(word(12), 0x1234567);
		assert_int_equal(word(16), 0x89ABCDEF);
		assert_int_equal(word(20), kept);
		assert_int_equal(word(24), 64);
		assert_memory_equal(block + 28, bytes, kept);
		assert_memory_equal(find_option(options, len - 4, 1, &n), "dropped: icrc", 13);
		assert_int_equal(*find_option(options, len - 4, 2, &n), 2);
		assert_int_equal(*find_option(options, len - 4, 6, &n), 3);
		if (kept)
			assert_int_equal(*find_option(options, len - 4, 4, &n), kept);
		else
			assert_null(find_option(options, len - 4, 4, &n));
	}
}

static void pcapng_statistics__counts(void **state)
{
	const struct pcapng_statistics s = {
		.interface = 1, .start = 5, .end = 7ull << 32, .received = 1000, .dropped = 1};
	size_t len = pcapng_statistics(block, &s);
	uint16_t n;

	check_block(len, 5);
	assert_int_equal(word(8), 1);
	assert_int_equal(word(12), 7);
	assert_int_equal(word(16), 0);
	assert_memory_equal(find_option(20, len - 4, 4, &n), &s.received, 8);
	assert_memory_equal(find_option(20, len - 4, 5, &n), &s.dropped, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pcapng_section__has_its_magic),
		cmocka_unit_test(pcapng_interface__tells_what_is_known),
		cmocka_unit_test(pcapng_interface__cuts_what_is_too_long),
		cmocka_unit_test(pcapng_packet__is_padded_but_not_longer),
		cmocka_unit_test(pcapng_statistics__counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
