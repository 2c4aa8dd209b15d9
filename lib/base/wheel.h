/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wheel.h
 * Hierarchical timer wheel driven by `now`: it uses no clock. Each wheel has ticks of its own
 * length. Those of 1.024 us meet the shortest RNR timer (10 us), and five levels of 256 slots reach
 * beyond the longest local ACK timeout (2.4 h).
 *
 * A timer never fires early and fires at most one tick late (in terms of the `now` that
 * wheel_expire is given). One thread.
 */
#ifndef WHEEL_H
#define WHEEL_H

#include <stdbool.h>
#include <stdint.h>
#include "list.h"

#define WHEEL_TICK_SHIFT 10 /* nanoseconds -> ticks of the wheel for protocol timers */
#define PACE_TICK_SHIFT	 6  /* 64 ns, for departures of packets */
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
	struct list expired; /* due, not handed out yet */
	struct list moving;  /* from slots that began at `tick`, not in a lower one yet */
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

/** Brings the wheel to @p now if no slot begins until then, as in most rounds of a poll loop. So
 * what is armed next is placed by the present, and wheel_deadline() stays in the future.
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
 * Takes one timer that is due at @p now off the wheel.
 * @return the timer, or NULL when none (more) is due. Call until NULL.
 */
struct wheel_timer *wheel_expire(struct wheel *w, uint64_t now);

/**
 * The same, but moves at most @p moves timers from slot to slot, and subtracts the number moved
 * from @p moves: thousands may share a slot. NULL with @p moves 0: there may be more.
 */
struct wheel_timer *wheel_expire_some(struct wheel *w, uint64_t now, unsigned *moves);

/** @return nanoseconds at or before which the next timer may be due; WHEEL_NEVER if none. */
uint64_t wheel_deadline(const struct wheel *w);

#endif
