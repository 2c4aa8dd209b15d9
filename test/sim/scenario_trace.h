/* SPDX-License-Identifier: BSD-3-Clause */
/** @file scenario_trace.h  Frames of a scenario: their fate, and a line of text for each. */
#ifndef SCENARIO_TRACE_H
#define SCENARIO_TRACE_H

#include "scenario.h"

#define TRACE_ROOM (1u << 20)

struct trace_end {
	struct trace *trace;
	int side;
	uint32_t seen[SCENARIO_PICKS]; /* frames that a pick is about */
};

struct trace {
	const struct scenario *row;
	const struct pair *pair;
	struct trace_end end[ENDS];
	size_t used;
	char text[TRACE_ROOM];
};

/** Looks at what both ends send from now on. A line is
 *
 *      A> SEND_FIRST 0         PSN, counted from the first of its direction
 *      B> NAK 60 1 msn 0  lost
 */
void trace_init(struct trace *t, const struct scenario *row, struct pair *p);

/** Gives @p side an ACK from its peer of the PSN @p ahead of the newest it has sent. */
void trace_ghost_ack(struct pair *p, int side, uint32_t ahead);

#endif
