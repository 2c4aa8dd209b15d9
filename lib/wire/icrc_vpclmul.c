/* SPDX-License-Identifier: BSD-3-Clause */
/* AVX2 and VPCLMULQDQ, which many CPUs without AVX-512 have: long data in four lanes of 32 bytes.
 */
#include "icrc_fold.h"

static ALWAYS_INLINE vec128 fold_wide(vec128 x, struct stream *s, size_t *len);

#define FOLD_WIDE fold_wide
#include "icrc_fold16.h"

#define WIDE 32u

#define FOLD256_BY(d) _mm256_broadcastsi128_si256(FOLD_BY(d))

static ALWAYS_INLINE __m256i next_wide(struct stream *s)
{
	__m256i x = _mm256_loadu_si256((const __m256i_u *)s->src);

	LOADED(x);
	if (s->copies)
		_mm256_storeu_si256((__m256i_u *)s->dst, x);
	stream_advance(s, WIDE);
	return x;
}

static ALWAYS_INLINE __m256i fold256(__m256i x, __m256i k, __m256i next)
{
	return _mm256_clmulepi64_epi128(x, k, 0x00) ^ _mm256_clmulepi64_epi128(x, k, 0x11) ^ next;
}

static ALWAYS_INLINE vec128 fold_wide(vec128 x, struct stream *s, size_t *len)
{
	const __m256i k1024 = FOLD256_BY(1024);
	__m256i a, b, c, d;
	size_t n;

	if (*len < LANES * WIDE - BLOCK)
		return x;
	a = _mm256_set_m128i(next_block(s), x);
	b = next_wide(s);
	c = next_wide(s);
	d = next_wide(s);
	for (n = *len - (LANES * WIDE - BLOCK); n >= LANES * WIDE; n -= LANES * WIDE) {
		a = fold256(a, k1024, next_wide(s));
		b = fold256(b, k1024, next_wide(s));
		c = fold256(c, k1024, next_wide(s));
		d = fold256(d, k1024, next_wide(s));
	}
	*len = n;
	d = fold256(a, FOLD256_BY(768), d);
	d = fold256(b, FOLD256_BY(512), d);
	d = fold256(c, FOLD256_BY(256), d);
	return fold128(_mm256_castsi256_si128(d), FOLD_BY(128), _mm256_extracti128_si256(d, 1));
}

/* Whole words do not tear in a vector store to a multiple of 8; volatile, so that none is stored
 * twice; ascending. */
static void vpclmul_move_words(void *dst, const void *src, size_t words)
{
	const size_t wide = WIDE / 8;
	uint8_t *d = dst;
	const uint8_t *s = src;

	for (; words >= wide; words -= wide, d += WIDE, s += WIDE)
		*(volatile __m256i_u *)d = _mm256_loadu_si256((const __m256i_u *)s);
	icrc_move_words(d, s, words);
}

const struct icrc_ops icrc_vpclmul = {
	.name = "vpclmul",
	.crc = fold_crc,
	.copy = fold_copy,
	.crc_masked = fold_crc_masked,
	.masked_copy = fold_masked_copy,
	.move_words = vpclmul_move_words,
};
