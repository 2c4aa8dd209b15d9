/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sizes.h
 * Message sizes: a single one, or a cumulative distribution, as in the files of HPCC's simulator: a
 * line per point, bytes and percent, from 0 to 100.
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

/** Sets @p s to one of the known distributions, or to that of the file @p name.
 *  @return 0, or -EINVAL with the reason in @p why */
int sizes_read(struct sizes *s, const char *name, char *why, size_t size);

/** @return the mean in bytes. */
double sizes_mean(const struct sizes *s);

/** @return the largest in bytes. */
uint64_t sizes_most(const struct sizes *s);

/** Draws a size, 1 or more. */
uint64_t sizes_draw(const struct sizes *s, struct random *random);

/** @return an exponentially distributed number with mean 1, by comparisons only (von Neumann 1951),
 * so that every machine draws the same. */
double draw_exponential(struct random *random);

/** @return a number in [0, 1). */
static inline double draw_part(struct random *random)
{
	return (double)(random_next(random) >> 11) * 0x1p-53;
}

#endif
