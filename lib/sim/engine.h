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
	uint64_t due; /* SIM_NEVER: not set */
	uint32_t id;  /* of sim_engine.place; engine_at() gives it at first */
};

/** A place in the heap. */
struct sim_due {
	uint64_t at;
	uint64_t order;
	struct sim_event *ev;
	uint64_t id; /* of `ev`, whose line is not read to move it */
};

struct sim_engine {
	uint64_t now; /* nanoseconds */
	uint64_t order;
	uint64_t fired;
	struct sim_due *heap;
	uint32_t *place; /* in the heap, of each event that is set */
	uint32_t ids;
	uint32_t used;
	uint32_t room;
};

/** @param heap, place  @p room places and one place more, the caller's memory: @p room is the
 * number of events that are ever set */
void engine_init(
	struct sim_engine *e, struct sim_due *heap, uint32_t *place, uint32_t room, uint64_t now);

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
