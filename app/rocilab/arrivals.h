/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file arrivals.h
 * Messages that arrive at random: a host draws the times, and assigns each message to one of its
 * queue pairs, where it waits for the earlier ones.
 */
#ifndef ARRIVALS_H
#define ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>
#include "engine.h"
#include "random.h"
#include "sizes.h"

struct lab;
struct lab_flow;

/** A message that has arrived at a flow and is not complete. */
struct arrival {
	uint64_t at; /* ns */
	uint64_t size;
};

/** Of one flow: a ring that grows. */
struct arrivals {
	struct arrival *ring;
	uint32_t room; /* a power of two; 0: none yet */
	uint64_t came; /* messages so far */
	uint64_t gone; /* of them complete */
};

/** @return false: no memory */
bool arrivals_push(struct arrivals *a, struct arrival one);

/** @return message number @p i, which has arrived and is not complete. */
static inline const struct arrival *arrivals_at(const struct arrivals *a, uint64_t i)
{
	return &a->ring[i & (a->room - 1)];
}

/** Draws the messages of one host. */
struct source {
	struct sim_event next;
	struct lab *lab;
	struct lab_flow **flow; /* of the host, into lab.by_source */
	uint32_t flows;
	const struct sizes *sizes;
	double gap_ns;	/* mean time between two messages */
	uint64_t until; /* no message comes later */
	struct random random;
	uint64_t lost; /* messages that were lost for lack of memory */
};

/** @p s begins at @p at. */
void source_begin(struct source *s, uint64_t at);

#endif
