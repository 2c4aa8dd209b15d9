/* SPDX-License-Identifier: BSD-3-Clause */
/* AVX-512 with VBMI and VPCLMULQDQ: 64-byte blocks in four parallel lanes. */
#include "icrc_fold.h"
#include "icrc_impl.h"

#define BLOCK 64u
#define LANES 4u
/* Length from which four lanes are worth the cost of joining them. */
#define LANES_FROM (2 * LANES * BLOCK)

#define FOLD512_BY(d) _mm512_broadcast_i32x4(FOLD_BY(d))

static ALWAYS_INLINE __m512i next_block(struct stream *s)
{
	__m512i x = _mm512_loadu_si512(s->src);

	LOADED(x);
	if (s->copies)
		_mm512_storeu_si512(s->dst, x);
	if (s->masks)
		x = _mm512_or_si512(x, _mm512_loadu_si512(s->mask));
	stream_advance(s, BLOCK);
	return x;
}

/* The next n < 64 bytes, followed by zeros. Reads and writes no other byte. */
static ALWAYS_INLINE __m512i next_bytes(struct stream *s, size_t n)
{
	__mmask64 there = (1ull << n) - 1;
	__m512i x = _mm512_maskz_loadu_epi8(there, s->src);

	LOADED(x);
	if (s->copies)
		_mm512_mask_storeu_epi8(s->dst, there, x);
	if (s->masks)
		x = _mm512_or_si512(x, _mm512_maskz_loadu_epi8(there, s->mask));
	stream_advance(s, n);
	return x;
}

/* Moves the first n < 64 bytes of x to its end, after zeros. */
static ALWAYS_INLINE __m512i bytes_to_end(__m512i x, size_t n)
{
	static const uint8_t iota[BLOCK] __attribute__((aligned(BLOCK))) = {0, 1, 2, 3, 4, 5, 6, 7,
		8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
		29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49,
		50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
	__mmask64 end = ~(~0ull >> n);
	__m512i from = _mm512_add_epi8(_mm512_load_si512(iota), _mm512_set1_epi8((char)n));

	return _mm512_maskz_permutexvar_epi8(end, from, x);
}

static ALWAYS_INLINE __m512i fold512(__m512i x, __m512i k, __m512i next)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k, 0x00),
		_mm512_clmulepi64_epi128(x, k, 0x11), next, 0x96 /* a ^ b ^ c */);
}

/* The CRC register after the 512 bits x, from register 0. Each word is folded to the place of the
 * last one, by as many bits as lie between them and 32 (icrc_const.h); that one stays. */
static ALWAYS_INLINE uint32_t reduce512(__m512i x)
{
	const __m512i k = _mm512_set_epi64(1, FOLD_128_SECOND, FOLD_128_FIRST, FOLD_256_SECOND,
		FOLD_256_FIRST, FOLD_384_SECOND, FOLD_384_FIRST, FOLD_512_SECOND);
	__m512i all = _mm512_xor_si512(
		_mm512_clmulepi64_epi128(x, k, 0x00), _mm512_clmulepi64_epi128(x, k, 0x11));
	__m256i half =
		_mm256_xor_si256(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));

	return reduce96(
		_mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}

/* Folds all whole rounds of four blocks; leaves the remaining length in *len. */
static ALWAYS_INLINE __m512i fold_lanes(__m512i x, struct stream *s, size_t *len)
{
	const __m512i k2048 = FOLD512_BY(2048);
	__m512i a = x;
	__m512i b = next_block(s);
	__m512i c = next_block(s);
	__m512i d = next_block(s);
	size_t n;

	for (n = *len - (LANES - 1) * BLOCK; n >= LANES * BLOCK; n -= LANES * BLOCK) {
		a = fold512(a, k2048, next_block(s));
		b = fold512(b, k2048, next_block(s));
		c = fold512(c, k2048, next_block(s));
		d = fold512(d, k2048, next_block(s));
	}
	*len = n;
	d = fold512(a, FOLD512_BY(1536), d);
	d = fold512(b, FOLD512_BY(1024), d);
	return fold512(c, FOLD512_BY(512), d);
}

/* Folds all whole blocks after x. */
static ALWAYS_INLINE __m512i fold_blocks(__m512i x, struct stream *s, size_t len)
{
	const __m512i k512 = FOLD512_BY(512);

	if (len >= LANES_FROM)
		x = fold_lanes(x, s, &len);
	for (; len; len -= BLOCK)
		x = fold512(x, k512, next_block(s));
	return x;
}

static ALWAYS_INLINE uint32_t run(uint32_t state, struct stream s, size_t len)
{
	const __m512i k512 = FOLD512_BY(512);
	size_t head = len % BLOCK;
	__m512i first = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state_after(state, head)));
	__m512i x = _mm512_setzero_si512();

	if (head) {
		x = _mm512_xor_si512(next_bytes(&s, head),
			_mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state)));
		x = bytes_to_end(x, head);
		len -= head;
	}
	if (!len)
		return reduce512(x) ^ state_after(state, head);
	x = fold512(x, k512, _mm512_xor_si512(first, next_block(&s)));
	len -= BLOCK;
	s.masks = false; /* the mask ends within the first whole block */
	return reduce512(fold_blocks(x, &s, len));
}

static uint32_t avx512_crc(uint32_t state, const void *src, size_t len)
{
	return run(state, (struct stream){.src = src}, len);
}

static uint32_t avx512_copy(uint32_t state, void *dst, const void *src, size_t len)
{
	return run(state, (struct stream){.src = src, .dst = dst, .copies = true}, len);
}

static uint32_t avx512_crc_masked(
	uint32_t state, const void *src, size_t len, const uint8_t mask[ICRC_MASK_LEN])
{
	return run(state, (struct stream){.src = src, .mask = mask, .masks = true}, len);
}

static uint32_t avx512_masked_copy(uint32_t state, const void *hdr, size_t hdr_len,
	const uint8_t mask[ICRC_MASK_LEN], void *dst, const void *src, size_t len)
{
	struct stream h = {.src = hdr, .mask = mask, .masks = true};
	struct stream s = {.src = src, .dst = dst, .copies = true};
	__m512i x = _mm512_xor_si512(
		next_bytes(&h, hdr_len), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state)));

	x = fold512(bytes_to_end(x, hdr_len), FOLD512_BY(512), next_block(&s));
	return reduce512(fold_blocks(x, &s, len - BLOCK));
}

/* Moves whole cache lines, because a store across two lines costs twice: the words before the first
 * line boundary come first. The elements are words, so none tears; volatile, so that none is stored
 * twice; ascending. */
static void avx512_move_words(void *dst, const void *src, size_t words)
{
	const size_t line = BLOCK / 8;
	size_t head = -((uintptr_t)dst / 8) % line;
	uint8_t *d = dst;
	const uint8_t *s = src;

	if (head > words)
		head = words;
	if (head) {
		__mmask8 there = (__mmask8)((1u << head) - 1);

		_mm512_mask_storeu_epi64(d, there, _mm512_maskz_loadu_epi64(there, s));
		d += head * 8;
		s += head * 8;
		words -= head;
	}
	__asm__ volatile("" ::: "memory");
	for (; words >= line; words -= line, d += BLOCK, s += BLOCK)
		*(volatile __m512i *)d = _mm512_loadu_si512(s);
	__asm__ volatile("" ::: "memory");
	if (words) {
		__mmask8 there = (__mmask8)((1u << words) - 1);

		_mm512_mask_storeu_epi64(d, there, _mm512_maskz_loadu_epi64(there, s));
	}
}

const struct icrc_ops icrc_avx512 = {
	.name = "avx512",
	.crc = avx512_crc,
	.copy = avx512_copy,
	.crc_masked = avx512_crc_masked,
	.masked_copy = avx512_masked_copy,
	.move_words = avx512_move_words,
};
