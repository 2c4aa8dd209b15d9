/* SPDX-License-Identifier: BSD-3-Clause */
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include "ticks.h"

#define SETTLE_NS 10000000 /* between two readings with an error of 50 ns: 5 in a million */
#define TRIES	  5

int ticks_by_counter;

/* The same moment by both clocks. */
struct moment {
	uint64_t ticks;
	uint64_t ns;
};

static struct moment opened;

uint64_t ticks_slow(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int counter_is_constant(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8; /* "invariant TSC" */
#else
	return 0;
#endif
}

/* Reads both clocks, again if something interrupted it. */
static struct moment moment(void)
{
	struct moment best = {0};
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = ticks(), ns = ticks_slow(), after = ticks();

		if (after - before < shortest) {
			shortest = after - before;
			best = (struct moment){before + shortest / 2, ns};
		}
	}
	return best;
}

void ticks_open(void)
{
	const struct timespec settle = {.tv_nsec = SETTLE_NS};

	ticks_by_counter = counter_is_constant();
	opened = moment();
	nanosleep(&settle, NULL);
}

double ticks_per_second(void)
{
	struct moment now = moment();

	return (double)(now.ticks - opened.ticks) * 1e9 / (double)(now.ns - opened.ns);
}
