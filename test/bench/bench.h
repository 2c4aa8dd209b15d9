/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file bench.h
 * What the benchmark programs share: time, samples, and the lines that they print. README.md of
 * this folder says what the fields of a line mean.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdint.h>

/** Samples per figure. Odd, so that one sample is the median. */
#define SAMPLES	    15u
#define SAMPLES_MAX 64u

struct samples {
	unsigned n;
	double v[SAMPLES_MAX];
};

double median(const struct samples *s);
double lowest(const struct samples *s);

/** @return nanoseconds of the monotonic clock. */
double bench_ns(void);

/** Sleeps for 50 ms. For 20 ms after an event, such as a new connection, rocid's notifier beside
 *  polling workers looks for the next one every 50 us, perhaps on the CPU that measures. */
void bench_settle(void);

/** Ends the program with a sentence. */
__attribute__((noreturn, format(printf, 1, 2))) void bench_die(const char *format, ...);

/** A very cheap random number generator: xorshift. @p state must not be 0. */
static inline uint32_t bench_random(uint32_t *state)
{
	uint32_t x = *state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return *state = x;
}

/** @return one of [0, @p n), without a division. */
static inline uint32_t bench_below(uint32_t *state, uint32_t n)
{
	return (uint32_t)((uint64_t)bench_random(state) * n >> 32);
}

/* --- one line of JSON ------------------------------------------------------------------- */

void line_begin(const char *bench);
void line_text(const char *name, const char *value);
void line_number(const char *name, double value);
/** median, min, samples and unit. */
void line_samples(const char *unit, const struct samples *s);
void line_end(void);

#endif
