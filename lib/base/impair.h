/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file impair.h
 * Impairments of a bad link. Each choice follows from the seed, the frame number and the kind of
 * impairment alone: the same seed and frames give the same choices, and the rate of one kind does
 * not affect another.
 */
#ifndef IMPAIR_H
#define IMPAIR_H

#include <stddef.h>
#include <stdint.h>

enum impair_kind {
	IMPAIR_LOSE,
	IMPAIR_DUPLICATE,
	IMPAIR_REORDER,	 /* overtaken by later frames */
	IMPAIR_CORRUPT,	 /* one bit is flipped */
	IMPAIR_TRUNCATE, /* cut short at the end */
	IMPAIR_MARK,	 /* ECN says "congestion experienced" */
	IMPAIR_DELAY,	 /* late, or the link stalls before it */
	IMPAIR_KINDS
};

struct impair {
	uint64_t seed;
	double rate[IMPAIR_KINDS]; /* probabilities in [0, 1] */
	uint64_t mask;		   /* bit i: frame i is lost, i < 64 */
	uint32_t nth;		   /* every n-th frame is lost; 0: none */
};

/** @return the impairments of frame number @p frame, counted from 0: a set of 1u << enum
 *  impair_kind. */
unsigned impair_choose(const struct impair *i, uint64_t frame);

/** @return 64 random bits for the details of an impairment: which bit, how late. */
uint64_t impair_random(const struct impair *i, uint64_t frame, enum impair_kind kind);

/** Flips one bit of @p bytes, chosen by @p random.  @param len at least 1 */
void impair_flip(uint8_t *bytes, size_t len, uint64_t random);

#endif
