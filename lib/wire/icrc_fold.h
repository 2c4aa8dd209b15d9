/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file icrc_fold.h
 * Building blocks on 128-bit registers. Included only by files that are compiled for PCLMUL or
 * PMULL.
 *
 * All implementations have the same structure: the odd bytes come first, moved to the end of a
 * register that is zero before them (leading zeros do not change the CRC of a message when the
 * register starts at zero). Only whole blocks follow, without a tail.
 */
#ifndef ICRC_FOLD_H
#define ICRC_FOLD_H

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "bits.h"
#include "icrc_const.h"

/** 128 bits, the first bytes of memory lowest. On x86-64 this is __m128i. */
typedef long long vec128 __attribute__((vector_size(16), may_alias));
typedef long long vec128_unaligned __attribute__((vector_size(16), may_alias, aligned(1)));

/* Compilers have no common names for these: clmul_XY, the carry-less product of one word of a and
 * one of b (clmul_lh: low word of a, high word of b); pick_bytes, the bytes of x at the indices in
 * `from`, 0 where its top bit is set; without_bytes, x without its first n bytes, zeros at the end.
 */
#if defined(__x86_64__)
#define clmul_ll(a, b)	    _mm_clmulepi64_si128(a, b, 0x00)
#define clmul_lh(a, b)	    _mm_clmulepi64_si128(a, b, 0x10)
#define clmul_hh(a, b)	    _mm_clmulepi64_si128(a, b, 0x11)
#define pick_bytes(x, from) _mm_shuffle_epi8(x, from)
#define without_bytes(x, n) _mm_srli_si128(x, n)
#elif defined(__aarch64__)
#define clmul_words(a, b)   ((vec128)vmull_p64((poly64_t)(a), (poly64_t)(b)))
#define clmul_ll(a, b)	    clmul_words((a)[0], (b)[0])
#define clmul_lh(a, b)	    clmul_words((a)[0], (b)[1])
#define clmul_hh(a, b)	    ((vec128)vmull_high_p64((poly64x2_t)(a), (poly64x2_t)(b)))
#define pick_bytes(x, from) ((vec128)vqtbl1q_u8((uint8x16_t)(x), (uint8x16_t)(from)))
#define without_bytes(x, n) ((vec128)vextq_u8((uint8x16_t)(x), vdupq_n_u8(0), n))
#endif

/* Prevents the compiler from loading the source again for a second use of a value (decision
 * 0000.5): it cannot know that the output equals the memory. */
#if defined(__x86_64__)
#define LOADED(v) __asm__("" : "+v"(v))
#elif defined(__aarch64__)
#define LOADED(v) __asm__("" : "+w"(v))
#endif

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

#define FOLD_BY(d) ((vec128){FOLD_##d##_FIRST, FOLD_##d##_SECOND})

/** @return a value congruent to @p x advanced by the distance of @p k, plus @p next. */
static ALWAYS_INLINE vec128 fold128(vec128 x, vec128 k, vec128 next)
{
	return clmul_ll(x, k) ^ clmul_hh(x, k) ^ next;
}

/** @return the remainder of the 96 bits @p x by P: x without P * floor(x / P), whose quotient
 * follows from the first 64 bits and mu (Barrett). */
static ALWAYS_INLINE uint32_t reduce96(vec128 x)
{
	const vec128 barrett = {ICRC_P, (long long)ICRC_MU};
	vec128 quotient = clmul_lh(x, barrett);

	return (uint32_t)(x ^ clmul_ll(quotient, barrett))[1];
}

/** @return the CRC register after the 128 bits @p x, from register 0; its first word is 96 bits
 * away from its final place. */
static ALWAYS_INLINE uint32_t reduce128(vec128 x)
{
	return reduce96(without_bytes(x, 8) ^ clmul_lh(x, FOLD_BY(128)));
}

/** @return the part of register @p state that remains after the first @p n bytes of a message. */
static ALWAYS_INLINE uint32_t state_after(uint32_t state, size_t n)
{
	return n < 4 ? state >> (8 * n) : 0;
}

#endif
