/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sizes.h
 * Sizes of messages: one, or a distribution given by points of its cumulative distribution, as in
 * the files of HPCC's simulator: a line per point, bytes and percent, from 0 to 100.
 */
#ifndef SIZES_H
#define SIZES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "random.h"

#define SIZES_POINTS 128u

struct sizes {
	unsigned points; /* 0: every message has `bytes[0]` */
	double bytes[SIZES_POINTS];
	double part[SIZES_POINTS]; /* [0, 1], rising */
};

/** Makes @p s one of the known distributions, or that of the file @p name.
 *  @return 0, or -EINVAL with the reason in @p why */
int sizes_read(struct sizes *s, const char *name, char *why, size_t size);

/** @return the mean in bytes. */
double sizes_mean(const struct sizes *s);

/** @return the largest in bytes. */
uint64_t sizes_most(const struct sizes *s);

/** Draws a size, 1 or more. */
uint64_t sizes_draw(const struct sizes *s, struct random *random);

/** @return an exponentially distributed number with mean 1, of comparisons alone (von Neumann
 * 1951): every machine draws the same. */
double draw_exponential(struct random *random);

/** @return a number in [0, 1). */
static inline double draw_part(struct random *random)
{
	return (double)(random_next(random) >> 11) * 0x1p-53;
}

#endif
