/* SPDX-License-Identifier: BSD-3-Clause */
/* One byte at a time: the plain definition, and the reference that the others are tested against.
 */
#include "icrc_impl.h"

/* ICRC-01: 0xEDB88320. The CRC is linear, so the entry of a byte is the XOR of the entries of its
 * bits. */
#define BIT(i, n, value) ((i) >> (n)&1 ? (value) : 0u)
#define T1(i)                                                                              \
	(BIT(i, 0, 0x77073096u) ^ BIT(i, 1, 0xEE0E612Cu) ^ BIT(i, 2, 0x076DC419u) ^        \
		BIT(i, 3, 0x0EDB8832u) ^ BIT(i, 4, 0x1DB71064u) ^ BIT(i, 5, 0x3B6E20C8u) ^ \
		BIT(i, 6, 0x76DC4190u) ^ BIT(i, 7, 0xEDB88320u))
#define T4(i)  T1(i), T1((i) + 1), T1((i) + 2), T1((i) + 3)
#define T16(i) T4(i), T4((i) + 4), T4((i) + 8), T4((i) + 12)
#define T64(i) T16(i), T16((i) + 16), T16((i) + 32), T16((i) + 48)

static const uint32_t table[256] = {T64(0), T64(64), T64(128), T64(192)};

static uint32_t step(uint32_t state, uint8_t byte)
{
	return state >> 8 ^ table[(state ^ byte) & 0xFF];
}

static uint32_t table_crc(uint32_t state, const void *src, size_t len)
{
	const uint8_t *s = src;

	for (size_t i = 0; i < len; i++)
		state = step(state, s[i]);
	return state;
}

static uint32_t table_copy(uint32_t state, void *dst, const void *src, size_t len)
{
	/* volatile: the CRC covers exactly the byte that is stored. */
	const volatile uint8_t *s = src;
	uint8_t *d = dst;

	for (size_t i = 0; i < len; i++) {
		uint8_t byte = s[i];

		d[i] = byte;
		state = step(state, byte);
	}
	return state;
}

static uint32_t table_crc_masked(
	uint32_t state, const void *src, size_t len, const uint8_t mask[ICRC_MASK_LEN])
{
	return icrc_masked_copy(table_crc, state, src, len, mask);
}

const struct icrc_ops icrc_table = {
	.name = "table",
	.crc = table_crc,
	.copy = table_copy,
	.crc_masked = table_crc_masked,
	.move_words = icrc_move_words,
};
