/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"

#define NS_PER_S 1000000000ull

void clock_init(struct tsc_clock *c, uint64_t hz, uint64_t tsc)
{
	c->tsc = tsc;
	c->ns = 0;
	c->frac = 0;
	c->mult = (NS_PER_S << 32) / hz;
}
