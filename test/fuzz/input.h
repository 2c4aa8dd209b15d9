/* SPDX-License-Identifier: BSD-3-Clause */
/** @file input.h  The input of a frame fuzzer: bytes that are consumed in order. */
#ifndef INPUT_H
#define INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "oracle.h"

struct input {
	const uint8_t *at;
	size_t left;
};

/** @return the next @p bytes bytes, at most 4, as a big-endian number; at the end, of fewer. */
static inline uint32_t take(struct input *in, unsigned bytes)
{
	uint32_t v = 0;

	for (; bytes && in->left; bytes--, in->left--)
		v = v << 8 | *in->at++;
	return v;
}

/** Flips the bits of @p frame that the rest of @p in names. @return whether it named any */
static inline bool flip_bits(uint8_t *frame, size_t len, struct input *in)
{
	bool any = in->left;

	while (in->left) {
		size_t bit = take(in, 2) % (8 * len);

		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	return any;
}

/** @return a copy in its own heap block, followed by @p more bytes of @p filler: AddressSanitizer
 *  reports any access past them. */
static inline uint8_t *copy_of(const uint8_t *frame, size_t len, size_t more, uint8_t filler)
{
	uint8_t *copy = malloc(len + more ? len + more : 1);

	MUST(copy);
	if (len)
		memcpy(copy, frame, len);
	memset(copy + len, filler, more);
	return copy;
}

#endif
