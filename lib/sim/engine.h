/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine.h
 * Virtual time and the order of events for thousands of hosts, ports and links. Each has an event
 * with the time of its next action, in one heap. Events of the same instant happen in the order in
 * which they were scheduled, so a run depends only on its input.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdbool.h>
#include <stdint.h>

/** The due time of an event that is not scheduled. */
#define SIM_NEVER UINT64_MAX

struct sim_event {
	void (*fire)(struct sim_event *ev, uint64_t now);
	uint64_t due; /* SIM_NEVER: not scheduled */
	uint32_t id;  /* index into sim_engine.place, assigned by the first engine_at() */
};

/** A heap node. */
struct sim_due {
	uint64_t at;
	uint64_t order;
	struct sim_event *ev;
	uint64_t id; /* of `ev`, so that moving a node does not touch the event's cache line */
};

struct sim_engine {
	uint64_t now; /* nanoseconds */
	uint64_t order;
	uint64_t fired;
	struct sim_due *heap;
	uint32_t *place; /* heap position of each scheduled event */
	uint32_t ids;
	uint32_t used;
	uint32_t room;
};

/** @param heap, place  memory for @p room + 1 elements each, provided by the caller; @p room is the
 *  total number of events */
void engine_init(
	struct sim_engine *e, struct sim_due *heap, uint32_t *place, uint32_t room, uint64_t now);

/** Prepares @p ev without scheduling it. */
static inline void engine_event(
	struct sim_event *ev, void (*fire)(struct sim_event *ev, uint64_t now))
{
	*ev = (struct sim_event){.fire = fire, .due = SIM_NEVER};
}

/** Schedules @p ev for @p due, or reschedules it; SIM_NEVER cancels it. */
void engine_at(struct sim_engine *e, struct sim_event *ev, uint64_t due);

/** Runs all events up to @p until and sets the clock to it. */
void engine_run(struct sim_engine *e, uint64_t until);

#endif
