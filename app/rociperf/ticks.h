/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ticks.h
 * A clock that is cheap to read: the CPU's time stamp counter if its rate is constant, otherwise
 * the kernel's monotonic clock.
 */
#ifndef TICKS_H
#define TICKS_H

#include <stdint.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

uint64_t ticks_slow(void);

/** Chosen by ticks_open(), constant afterwards. */
extern int ticks_by_counter;

/** Call once, before all other functions. Takes some milliseconds. */
void ticks_open(void);

/** @return now. */
static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
	if (ticks_by_counter)
		return __rdtsc();
#endif
	return ticks_slow();
}

/** @return ticks per second, measured between ticks_open() and now: more precise the later it is
 * called. */
double ticks_per_second(void);

#endif
