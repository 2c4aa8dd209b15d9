/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file random.h
 * xorshift64*, and random-access splitmix64: the same numbers on every machine and in every run for
 * the same seed.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
	uint64_t state; /* not 0 */
};

static inline uint64_t random_next(struct random *r)
{
	r->state ^= r->state >> 12;
	r->state ^= r->state << 25;
	r->state ^= r->state >> 27;
	return r->state * 0x2545F4914F6CDD1Dull;
}

/* @return a number in [0, n). */
static inline uint64_t random_below(struct random *r, uint64_t n)
{
	return (random_next(r) >> 16) % n;
}

/* @return element @p n of the sequence of @p seed (splitmix64: any seed is good). */
static inline uint64_t random_at(uint64_t seed, uint64_t n)
{
	uint64_t z = seed + (n + 1) * 0x9E3779B97F4A7C15ull;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ z >> 27) * 0x94D049BB133111EBull;
	return z ^ z >> 31;
}

/* @return @p random scaled to [0, 1). */
static inline double random_part(uint64_t random)
{
	return (double)(random >> 11) * 0x1p-53;
}

static inline void random_fill(struct random *r, uint8_t *dst, size_t len)
{
	for (size_t i = 0; i < len; i++)
		dst[i] = (uint8_t)(random_next(r) >> 56);
}

#endif
