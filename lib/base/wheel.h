/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wheel.h
 * Hierarchical timer wheel driven by `now`; it reads no clock. Each wheel has its own tick length.
 * With ticks of 1.024 us it resolves the shortest RNR timer (10 us), and its five levels of 256
 * slots reach beyond the longest local ACK timeout (2.4 h).
 *
 * A timer never fires early, and at most one tick late, measured by the `now` passed to
 * wheel_expire(). One thread.
 */
#ifndef WHEEL_H
#define WHEEL_H

#include <stdbool.h>
#include <stdint.h>
#include "list.h"

#define WHEEL_TICK_SHIFT 10 /* nanoseconds -> ticks of the wheel for protocol timers */
#define PACE_TICK_SHIFT	 6  /* 64 ns, for packet departures */
#define WHEEL_LEVELS	 5
#define WHEEL_SLOTS	 256
#define WHEEL_NEVER	 UINT64_MAX

struct wheel_timer {
	struct list node;
	uint64_t due;  /* tick */
	uint16_t slot; /* level * WHEEL_SLOTS + index, for the occupancy bitmap */
};

struct wheel {
	unsigned shift;	     /* nanoseconds -> ticks */
	uint64_t tick;	     /* all timers due at or before this tick have been handed out */
	uint64_t soonest;    /* before this tick, no timer is due and no slot begins */
	struct list expired; /* due, but not handed out yet */
	struct list moving;  /* from slots that began at `tick`, not moved to a lower level yet */
	uint64_t occupied[WHEEL_LEVELS][WHEEL_SLOTS / 64];
	struct list slots[WHEEL_LEVELS][WHEEL_SLOTS];
};

/** @param shift  a tick is 2^shift nanoseconds, less than 2^32
 *  @param now    nanoseconds; any epoch, but the same for all calls. */
void wheel_init(struct wheel *w, unsigned shift, uint64_t now);

void wheel_timer_init(struct wheel_timer *t);

/** Arms @p t for @p when (nanoseconds, any value); moves it if it is armed. */
void wheel_arm(struct wheel *w, struct wheel_timer *t, uint64_t when);

/** Takes @p t off the wheel; harmless when it is not armed. */
void wheel_cancel(struct wheel *w, struct wheel_timer *t);

/** @return true while @p t waits on the wheel or among the expired. */
bool wheel_armed(const struct wheel_timer *t);

/** Advances the wheel to @p now if no slot begins until then, as in most rounds of a poll loop.
 *  Timers armed next are then placed relative to the present, and wheel_deadline() stays in the
 *  future.
 *  @return false: call wheel_expire(). */
static inline bool wheel_pass(struct wheel *w, uint64_t now)
{
	uint64_t tick = now >> w->shift;

	if (tick >= w->soonest)
		return false;
	if (tick > w->tick)
		w->tick = tick;
	return true;
}

/**
 * Takes one timer that is due at @p now off the wheel. Moves at most @p moves timers between slots,
 * because thousands may share one, and subtracts their number from @p moves.
 * @return the timer, or NULL: no more are due, unless @p moves is 0. Call until NULL.
 */
struct wheel_timer *wheel_expire(struct wheel *w, uint64_t now, unsigned *moves);

/** @return a time in nanoseconds no later than the next timer; WHEEL_NEVER if there is none. */
uint64_t wheel_deadline(const struct wheel *w);

#endif
