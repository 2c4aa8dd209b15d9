/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file clock.h
 * The time-stamp counter as nanoseconds, without a division and without a system call.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

/** One thread's clock. It never goes back, even if the counter does (a virtual machine that was
 * migrated or suspended): time then stands still. */
struct tsc_clock {
	uint64_t tsc;  /* at the last reading */
	uint64_t ns;   /* since the clock was made, whole */
	uint64_t frac; /* and 2^-32 of them */
	uint64_t mult; /* nanoseconds * 2^32 per cycle */
};

/** @param hz  cycles per second, not 0.  @param tsc  the counter now: time 0. */
void clock_init(struct tsc_clock *c, uint64_t hz, uint64_t tsc);

/** @return nanoseconds at counter value @p tsc. */
static inline uint64_t clock_at(struct tsc_clock *c, uint64_t tsc)
{
	uint64_t cycles = tsc - c->tsc;
	unsigned __int128 acc;

	c->tsc = tsc;
	if (__builtin_expect((int64_t)cycles < 0, 0))
		return c->ns;
	acc = (unsigned __int128)cycles * c->mult + c->frac;
	c->frac = (uint32_t)acc;
	c->ns += (uint64_t)(acc >> 32);
	return c->ns;
}

#endif
