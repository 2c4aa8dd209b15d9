/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine.h
 * Virtual time: what happens next, of thousands of hosts, ports and links. Each has an event with
 * the time of its next action, in one heap. Events of one instant happen in the order in which
 * they were set, so a run depends on nothing but its input.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdbool.h>
#include <stdint.h>

/** No event is scheduled. */
#define SIM_NEVER UINT64_MAX

struct sim_event {
	void (*fire)(struct sim_event *ev, uint64_t now);
	uint64_t due;	/* SIM_NEVER: not set */
	uint32_t place; /* in the heap, while it is set */
};

/** A place in the heap. */
struct sim_due {
	uint64_t at;
	uint64_t order;
	struct sim_event *ev;
};

struct sim_engine {
	uint64_t now; /* nanoseconds */
	uint64_t order;
	uint64_t fired;
	struct sim_due *heap;
	uint32_t used;
	uint32_t room;
};

/** @param heap  @p room places, the caller's memory: as many as events that may be set at once */
void engine_init(struct sim_engine *e, struct sim_due *heap, uint32_t room, uint64_t now);

/** Prepares @p ev, which is not set. */
static inline void engine_event(
	struct sim_event *ev, void (*fire)(struct sim_event *ev, uint64_t now))
{
	*ev = (struct sim_event){.fire = fire, .due = SIM_NEVER};
}

/** Sets @p ev for @p due, moves it, or with SIM_NEVER takes it away. */
void engine_at(struct sim_engine *e, struct sim_event *ev, uint64_t due);

/** @return when the next event is due, or SIM_NEVER. */
static inline uint64_t engine_next(const struct sim_engine *e)
{
	return e->used ? e->heap[0].at : SIM_NEVER;
}

/** Lets all events up to @p until happen; the clock is then there. */
void engine_run(struct sim_engine *e, uint64_t until);

#endif
