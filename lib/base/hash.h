/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file hash.h
 * A hash for tables whose keys others choose. It is multilinear: over all seeds, two different keys
 * collide with probability 2^-32, so nobody without the seed can fill a bucket with many keys.
 * Consecutive keys, such as addresses of a network, have sums in arithmetic progression, which
 * under some seeds would fall into few buckets; a final mix (MurmurHash3's finalizer, a bijection)
 * spreads them.
 */
#ifndef HASH_H
#define HASH_H

#include <stdint.h>
#include <string.h>

/** Longest key, in words of 32 bits. */
#define HASH_WORDS 8u

/** Random bytes; all zeroes put every key into one bucket. */
struct hash_seed {
	uint64_t factor[HASH_WORDS + 1];
};

static inline uint32_t hash_mix(uint32_t h)
{
	h = (h ^ h >> 16) * 0x85EBCA6Bu;
	h = (h ^ h >> 13) * 0xC2B2AE35u;
	return h ^ h >> 16;
}

/** @return the hash of the @p words words at @p key; all keys of a table must have the same
 *  length. */
static inline uint32_t hash_words(const struct hash_seed *seed, const void *key, unsigned words)
{
	uint64_t sum = seed->factor[HASH_WORDS];

	for (unsigned i = 0; i < words; i++) {
		uint32_t word;

		memcpy(&word, (const uint8_t *)key + i * sizeof(word), sizeof(word));
		sum += seed->factor[i] * word;
	}
	return hash_mix((uint32_t)(sum >> 32));
}

#endif
