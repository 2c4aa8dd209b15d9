/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file siphash.h
 * SipHash-2-4 (Aumasson, Bernstein), a pseudorandom function: somebody who sees results, but
 * not the key, cannot predict others. hash.h is faster and promises only that keys do not collide.
 */
#ifndef SIPHASH_H
#define SIPHASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** 16 random bytes, of which nobody else learns any. */
struct siphash_key {
	uint8_t byte[16];
};

struct siphash_state {
	uint64_t a, b, c, d;
};

static inline uint64_t siphash_rotate(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

/* The bytes of a word in the order of the wire, lowest first; those beyond @p len are 0. */
static inline uint64_t siphash_word(const uint8_t *p, size_t len)
{
	uint64_t word = 0;

	for (size_t i = 0; i < len && i < 8; i++)
		word |= (uint64_t)p[i] << 8 * i;
	return word;
}

static inline void siphash_round(struct siphash_state *s)
{
	s->a += s->b;
	s->b = siphash_rotate(s->b, 13) ^ s->a;
	s->a = siphash_rotate(s->a, 32);
	s->c += s->d;
	s->d = siphash_rotate(s->d, 16) ^ s->c;
	s->a += s->d;
	s->d = siphash_rotate(s->d, 21) ^ s->a;
	s->c += s->b;
	s->b = siphash_rotate(s->b, 17) ^ s->c;
	s->c = siphash_rotate(s->c, 32);
}

static inline void siphash_take(struct siphash_state *s, uint64_t word)
{
	s->d ^= word;
	siphash_round(s);
	siphash_round(s);
	s->a ^= word;
}

/** @return the hash of the @p len bytes at @p p. */
static inline uint64_t siphash(const struct siphash_key *key, const void *p, size_t len)
{
	const uint64_t k0 = siphash_word(key->byte, 8), k1 = siphash_word(key->byte + 8, 8);
	struct siphash_state s = {k0 ^ 0x736F6D6570736575u, k1 ^ 0x646F72616E646F6Du,
		k0 ^ 0x6C7967656E657261u, k1 ^ 0x7465646279746573u};
	const uint8_t *at = p, *end = at + len / 8 * 8;

	for (; at != end; at += 8)
		siphash_take(&s, siphash_word(at, 8));
	siphash_take(&s, (uint64_t)len << 56 | siphash_word(at, len % 8));
	s.c ^= 0xFF;
	for (unsigned i = 0; i < 4; i++)
		siphash_round(&s);
	return s.a ^ s.b ^ s.c ^ s.d;
}

#endif
