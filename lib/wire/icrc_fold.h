/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file icrc_fold.h
 * Building blocks on 128-bit registers. Included by files that are compiled for PCLMUL only.
 *
 * The structure of both implementations: the odd bytes come first, moved to the end of a register
 * that is zero before them (leading zeros do not change the CRC of a message when the register
 * starts at zero); after that there are only whole blocks, and no tail.
 */
#ifndef ICRC_FOLD_H
#define ICRC_FOLD_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "bits.h"
#include "icrc_const.h"

/* The compiler must not load the source again for a second use of a value (design.md 5): it cannot
 * know that the output of this is what was in memory. */
#define LOADED(v) __asm__("" : "+v"(v))

/** Source and destination of the next bytes. Whether they are copied and masked is known at compile
 *  time after inlining, so one function body makes three functions. */
struct stream {
	const uint8_t *src;
	uint8_t *dst;	     /* when copies */
	const uint8_t *mask; /* when masks */
	bool copies;
	bool masks;
};

static ALWAYS_INLINE void stream_advance(struct stream *s, size_t n)
{
	s->src += n;
	if (s->copies)
		s->dst += n;
	if (s->masks)
		s->mask += n;
}

#define FOLD_BY(d) _mm_set_epi64x(FOLD_##d##_SECOND, FOLD_##d##_FIRST)

/** @return a value congruent to @p x advanced by the distance of @p k, plus @p next. */
static ALWAYS_INLINE __m128i fold128(__m128i x, __m128i k, __m128i next)
{
	__m128i first = _mm_clmulepi64_si128(x, k, 0x00);
	__m128i second = _mm_clmulepi64_si128(x, k, 0x11);

	return _mm_xor_si128(_mm_xor_si128(first, second), next);
}

/** @return the CRC register after the 128 bits @p x, from register 0. */
static ALWAYS_INLINE uint32_t reduce128(__m128i x)
{
	const __m128i low32 = _mm_set_epi32(0, 0, 0, -1);
	const __m128i barrett = _mm_set_epi64x(ICRC_MU, ICRC_P);
	__m128i t;

	/* 128 -> 96 bits: the first word is 96 bits away from its final place */
	t = _mm_clmulepi64_si128(x, FOLD_BY(128), 0x10);
	x = _mm_xor_si128(_mm_srli_si128(x, 8), t);
	/* 96 -> 64 */
	t = _mm_clmulepi64_si128(_mm_and_si128(x, low32), _mm_set_epi64x(0, ICRC_X64), 0x00);
	x = _mm_xor_si128(_mm_srli_si128(x, 4), t);
	/* 64 -> 32, Barrett: subtract P * floor(x * mu) */
	t = _mm_clmulepi64_si128(_mm_and_si128(x, low32), barrett, 0x10);
	t = _mm_clmulepi64_si128(_mm_and_si128(t, low32), barrett, 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, t), 1);
}

/** @return the part of register @p state that remains after the first @p n bytes of a message. */
static ALWAYS_INLINE uint32_t state_after(uint32_t state, size_t n)
{
	return n < 4 ? state >> (8 * n) : 0;
}

#endif
