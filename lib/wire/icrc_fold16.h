/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file icrc_fold16.h
 * The ICRC in 16-byte blocks: the functions of icrc_pclmul.c, icrc_vpclmul.c and icrc_pmull.c, each
 * of which is compiled with the flags of its instruction set.
 */
#ifndef ICRC_FOLD16_H
#define ICRC_FOLD16_H

#include "icrc_fold.h"
#include "icrc_impl.h"

#define BLOCK 16u
#define LANES 4u

static ALWAYS_INLINE vec128 next_block(struct stream *s)
{
	vec128 x = *(const vec128_unaligned *)s->src;

	LOADED(x);
	if (s->copies)
		*(vec128_unaligned *)s->dst = x;
	if (s->masks)
		x |= *(const vec128_unaligned *)s->mask;
	stream_advance(s, BLOCK);
	return x;
}

/* The next 8, 4, 2 or 1 bytes of the stream, as an integer. */
#define NEXT_WORD(s, type)                                        \
	({                                                        \
		type word_;                                       \
                                                                  \
		memcpy(&word_, (s)->src, sizeof(word_));          \
		__asm__("" : "+r"(word_));                        \
		if ((s)->copies)                                  \
			memcpy((s)->dst, &word_, sizeof(word_));  \
		if ((s)->masks) {                                 \
			type mask_;                               \
                                                                  \
			memcpy(&mask_, (s)->mask, sizeof(mask_)); \
			word_ |= mask_;                           \
		}                                                 \
		stream_advance(s, sizeof(word_));                 \
		word_;                                            \
	})

/* The next n < 16 bytes, followed by zeros. Reads and writes no other byte. */
static ALWAYS_INLINE vec128 next_bytes(struct stream *s, size_t n)
{
	uint64_t whole = n & 8 ? NEXT_WORD(s, uint64_t) : 0;
	uint64_t part = 0;
	unsigned shift = 0;

	if (n & 4) {
		part = NEXT_WORD(s, uint32_t);
		shift = 32;
	}
	if (n & 2) {
		part |= (uint64_t)NEXT_WORD(s, uint16_t) << shift;
		shift += 16;
	}
	if (n & 1)
		part |= (uint64_t)NEXT_WORD(s, uint8_t) << shift;
	return n & 8 ? (vec128){(long long)whole, (long long)part} : (vec128){(long long)part, 0};
}

/* Moves the first n < 16 bytes of x to its end, after zeros. */
static ALWAYS_INLINE vec128 bytes_to_end(vec128 x, size_t n)
{
	/* pick_bytes() writes 0 where the index has its top bit. */
	static const uint8_t window[2 * BLOCK] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
		11, 12, 13, 14, 15};

	return pick_bytes(x, *(const vec128_unaligned *)(window + n));
}

/* Folds in four lanes what is long enough; leaves the remaining length in *len. */
static ALWAYS_INLINE vec128 fold_lanes(vec128 x, struct stream *s, size_t *len)
{
	const vec128 k512 = FOLD_BY(512);
	vec128 a, b, c, d;
	size_t n;

	if (*len < (LANES - 1) * BLOCK)
		return x;
	a = x;
	b = next_block(s);
	c = next_block(s);
	d = next_block(s);
	for (n = *len - (LANES - 1) * BLOCK; n >= LANES * BLOCK; n -= LANES * BLOCK) {
		a = fold128(a, k512, next_block(s));
		b = fold128(b, k512, next_block(s));
		c = fold128(c, k512, next_block(s));
		d = fold128(d, k512, next_block(s));
	}
	*len = n;
	d = fold128(a, FOLD_BY(384), d);
	d = fold128(b, FOLD_BY(256), d);
	return fold128(c, FOLD_BY(128), d);
}

/* A file that has wider registers defines it as a function that folds in them as fold_lanes(). */
#ifndef FOLD_WIDE
#define FOLD_WIDE(x, s, len) (x)
#endif

/* Folds all whole blocks after x. */
static ALWAYS_INLINE vec128 fold_blocks(vec128 x, struct stream *s, size_t len)
{
	x = FOLD_WIDE(x, s, &len);
	x = fold_lanes(x, s, &len);
	for (; len; len -= BLOCK)
		x = fold128(x, FOLD_BY(128), next_block(s));
	return x;
}

/* The odd bytes and the first block, and all other blocks that the mask may reach. *len, at least
 * BLOCK, becomes the length that remains. */
static ALWAYS_INLINE vec128 fold_first(uint32_t state, struct stream *s, size_t *len)
{
	const vec128 k128 = FOLD_BY(128);
	size_t head = *len % BLOCK;
	vec128 first = {state_after(state, head), 0};
	vec128 x = {0, 0};

	if (head) {
		x = next_bytes(s, head) ^ (vec128) { state, 0 };
		x = bytes_to_end(x, head);
	}
	x = fold128(x, k128, first ^ next_block(s));
	*len -= head + BLOCK;
	if (s->masks)
		for (size_t pos = BLOCK; pos < ICRC_MASK_LEN / 2 && *len;
			pos += BLOCK, *len -= BLOCK)
			x = fold128(x, k128, next_block(s));
	s->masks = false;
	return x;
}

static ALWAYS_INLINE uint32_t run(uint32_t state, struct stream s, size_t len)
{
	vec128 x;

	if (len < BLOCK) {
		if (!len)
			return state;
		x = next_bytes(&s, len) ^ (vec128) { state, 0 };
		return reduce128(bytes_to_end(x, len)) ^ state_after(state, len);
	}
	x = fold_first(state, &s, &len);
	return reduce128(fold_blocks(x, &s, len));
}

static uint32_t fold_crc(uint32_t state, const void *src, size_t len)
{
	return run(state, (struct stream){.src = src}, len);
}

static uint32_t fold_copy(uint32_t state, void *dst, const void *src, size_t len)
{
	return run(state, (struct stream){.src = src, .dst = dst, .copies = true}, len);
}

static uint32_t fold_crc_masked(
	uint32_t state, const void *src, size_t len, const uint8_t mask[ICRC_MASK_LEN])
{
	return run(state, (struct stream){.src = src, .mask = mask, .masks = true}, len);
}

static uint32_t fold_masked_copy(uint32_t state, const void *hdr, size_t hdr_len,
	const uint8_t mask[ICRC_MASK_LEN], void *dst, const void *src, size_t len)
{
	struct stream h = {.src = hdr, .mask = mask, .masks = true};
	struct stream s = {.src = src, .dst = dst, .copies = true};
	vec128 x = fold_first(state, &h, &hdr_len); /* all of it: the mask may reach 64 bytes */

	x = fold128(x, FOLD_BY(128), next_block(&s));
	return reduce128(fold_blocks(x, &s, len - BLOCK));
}

#endif
