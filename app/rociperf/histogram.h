/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file histogram.h
 * Counts of values in buckets whose width grows with the value, as HdrHistogram's: linear steps
 * within each power of two, fine enough for three significant digits. Recording takes a few
 * instructions and no memory; any percentile can be read afterwards.
 */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

/** Steps within a power of two: 1024 keep the error of a value below one in a thousand. */
#define HISTOGRAM_STEP_BITS 10
/** Values of more bits count as the largest value of this many: 2^44 ns are five hours. */
#define HISTOGRAM_VALUE_BITS 44
#define HISTOGRAM_BUCKETS    ((HISTOGRAM_VALUE_BITS - HISTOGRAM_STEP_BITS + 1) << HISTOGRAM_STEP_BITS)

struct histogram {
	uint64_t total; /**< values recorded */
	uint64_t min;
	uint64_t max;
	double sum;
	uint64_t count[HISTOGRAM_BUCKETS];
};

/** @return an empty histogram, to be freed; ends the program if there is no memory. */
struct histogram *histogram_new(void);

void histogram_clear(struct histogram *h);

/** @return the bucket of @p value. */
static inline unsigned histogram_bucket(uint64_t value)
{
	unsigned shift;

	if (value >> HISTOGRAM_VALUE_BITS)
		return HISTOGRAM_BUCKETS - 1;
	if (value < 2u << HISTOGRAM_STEP_BITS)
		return (unsigned)value;
	shift = 63u - (unsigned)__builtin_clzll(value) - HISTOGRAM_STEP_BITS;
	return (shift << HISTOGRAM_STEP_BITS) + (unsigned)(value >> shift);
}

static inline void histogram_record(struct histogram *h, uint64_t value)
{
	h->count[histogram_bucket(value)]++;
	h->total++;
	h->sum += (double)value;
	if (value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
}

/** @return the middle of bucket @p b. */
double histogram_value(unsigned b);

/** @return the value that @p percent of all values do not exceed; 0 if there are none. */
double histogram_percentile(const struct histogram *h, double percent);

double histogram_mean(const struct histogram *h);

/** @return the standard deviation. */
double histogram_stdev(const struct histogram *h);

#endif
