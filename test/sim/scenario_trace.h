/* SPDX-License-Identifier: BSD-3-Clause */
/** @file scenario_trace.h  Impairs the frames of a scenario, and writes a line of text per frame.
 */
#ifndef SCENARIO_TRACE_H
#define SCENARIO_TRACE_H

#include "scenario.h"

#define TRACE_ROOM (1u << 20)

struct trace_end {
	struct trace *trace;
	int side;
	uint32_t seen[SCENARIO_PICKS]; /* frames so far that match each pick */
};

struct trace {
	const struct scenario *row;
	const struct pair *pair;
	struct trace_end end[ENDS];
	size_t used;
	char text[TRACE_ROOM];
};

/** Watches the frames that both ends send from now on. A line is
 *
 *      A> SEND_FIRST 0         PSN, counted from the first of its direction
 *      B> NAK 60 1 msn 0  lost
 */
void trace_init(struct trace *t, const struct scenario *row, struct pair *p);

/** Delivers to @p side an ACK from its peer for the PSN @p ahead of the newest that it has sent. */
void trace_ghost_ack(struct pair *p, int side, uint32_t ahead);

#endif
