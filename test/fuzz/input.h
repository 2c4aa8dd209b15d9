/* SPDX-License-Identifier: BSD-3-Clause */
/** @file input.h  The input of a fuzzer of frames: bytes that are taken one after the other. */
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

/** @return the next @p bytes, 4 at most, as a number; beyond the end they are 0. */
static inline uint32_t take(struct input *in, unsigned bytes)
{
	uint32_t v = 0;

	for (; bytes && in->left; bytes--, in->left--)
		v = v << 8 | *in->at++;
	return v;
}

/** Changes the bits of @p frame that the rest of @p in names. @return whether there is a rest */
static inline bool flip_bits(uint8_t *frame, size_t len, struct input *in)
{
	bool any = in->left;

	while (in->left) {
		size_t bit = take(in, 2) % (8 * len);

		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	return any;
}

/** @return a copy in a block of its own, and @p more bytes after it: one byte too far is a report
 *  of AddressSanitizer. */
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
