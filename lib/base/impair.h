/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file impair.h
 * What a bad link does to its frames. Each choice follows from the seed, the number of the frame
 * and the kind of impairment alone: the same seed and the same frames give the same choices, and
 * the rate of one kind does not change what another does.
 */
#ifndef IMPAIR_H
#define IMPAIR_H

#include <stddef.h>
#include <stdint.h>

enum impair_kind {
	IMPAIR_LOSE,
	IMPAIR_DUPLICATE,
	IMPAIR_REORDER,	 /* later frames pass it */
	IMPAIR_CORRUPT,	 /* one bit is flipped */
	IMPAIR_TRUNCATE, /* bytes are missing at the end */
	IMPAIR_MARK,	 /* ECN says "congestion experienced" */
	IMPAIR_DELAY,	 /* it is late, or the link stalls before it */
	IMPAIR_KINDS
};

struct impair {
	uint64_t seed;
	double rate[IMPAIR_KINDS]; /* probabilities in [0, 1] */
	uint64_t mask;		   /* bit i: frame i is lost, i < 64 */
	uint32_t nth;		   /* every n-th frame is lost; 0: none */
};

/** @return the impairments of frame number @p frame, from 0: a set of 1u << enum impair_kind. */
unsigned impair_choose(const struct impair *i, uint64_t frame);

/** @return a number of 64 bits for the details of one: which bit, how late. */
uint64_t impair_random(const struct impair *i, uint64_t frame, enum impair_kind kind);

/** Flips the bit of @p bytes that @p random names.  @param len at least 1 */
void impair_flip(uint8_t *bytes, size_t len, uint64_t random);

#endif
