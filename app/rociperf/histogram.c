/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "histogram.h"

#define STEPS (1u << HISTOGRAM_STEP_BITS)

struct histogram *histogram_new(void)
{
	struct histogram *h = malloc(sizeof(*h));

	if (!h)
		errx(1, "no memory for a histogram");
	histogram_clear(h);
	return h;
}

void histogram_clear(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

double histogram_value(unsigned b)
{
	unsigned shift;
	uint64_t low;

	if (b < 2 * STEPS)
		return b;
	shift = b / STEPS - 1;
	low = (uint64_t)(b - shift * STEPS) << shift;
	return (double)low + (double)((1ull << shift) - 1) / 2;
}

static double bounded(const struct histogram *h, double value)
{
	if (value < (double)h->min)
		return (double)h->min;
	return value > (double)h->max ? (double)h->max : value;
}

double histogram_percentile(const struct histogram *h, double percent)
{
	uint64_t rank = (uint64_t)ceil(percent / 100 * (double)h->total);
	uint64_t seen = 0;

	if (rank >= h->total)
		return h->total ? (double)h->max : 0;
	for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b++) {
		seen += h->count[b];
		if (seen >= rank && seen)
			return bounded(h, histogram_value(b));
	}
	return (double)h->max;
}

double histogram_mean(const struct histogram *h)
{
	return h->total ? h->sum / (double)h->total : 0;
}

double histogram_stdev(const struct histogram *h)
{
	double mean = histogram_mean(h), squares = 0;

	for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b++) {
		double off = histogram_value(b) - mean;

		if (h->count[b])
			squares += off * off * (double)h->count[b];
	}
	return h->total ? sqrt(squares / (double)h->total) : 0;
}
