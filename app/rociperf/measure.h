/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file measure.h
 * The clockwork of a measurement: first warm up, then count for as long as was asked, while all the
 * time the queues are kept full, so that neither beginning nor end is in the figure.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdbool.h>
#include <stdint.h>
#include "histogram.h"
#include "plan.h"

enum phase {
	PHASE_WARM,    /* sending, nothing counts yet */
	PHASE_MEASURE, /* completions count */
	PHASE_HOLD,    /* sending on until the other end has measured too */
	PHASE_DRAIN,   /* nothing new is sent */
	PHASE_PASSIVE, /* the target of a one-way test: never sends of its own accord */
};

/** What one end found out: words of MESSAGE_DRAINED. Times in microseconds. */
enum figure {
	FIGURE_ITERATIONS,
	FIGURE_SECONDS,
	FIGURE_PEAK, /* messages a second, in the best slice */
	FIGURE_MIN,
	FIGURE_MAX,
	FIGURE_TYPICAL, /* the median, as perftest calls it */
	FIGURE_AVERAGE,
	FIGURE_STDEV,
	FIGURE_P90,
	FIGURE_P99,
	FIGURE_P99_9,
	FIGURE_P99_99,
	FIGURE_SENT, /* messages of this size, those that are not measured too */
	FIGURE_COUNT,
};

struct measure {
	enum phase phase;
	/* What was asked; messages of all QPs, ticks. */
	uint64_t warm_messages, warm_ticks;
	uint64_t messages; /* 0: by time */
	uint64_t ticks;
	uint64_t slice_messages, slice_ticks;

	uint64_t began;	    /* the phase */
	uint64_t completed; /* in it */
	uint64_t took;	    /* ticks of PHASE_MEASURE, once it is over */
	uint64_t slice_began, slice_first;
	double best;		/* messages a tick of the best slice */
	struct histogram *trip; /* ticks of each message; NULL: not asked for */
};

/** Begins with PHASE_WARM, or PHASE_PASSIVE. Forgets what was measured before.
 *  @param window  messages under way, of all QPs: so many may complete at once */
void measure_start(
	struct measure *m, const struct plan *plan, bool active, uint64_t window, uint64_t now);

/** @p completed messages are complete since the last call. Moves on from PHASE_WARM and
 *  PHASE_MEASURE when it is time. */
void measure_count(struct measure *m, uint64_t completed, uint64_t now);

/** @return whether new messages are sent in this phase. */
static inline bool measure_sends(const struct measure *m)
{
	return m->phase <= PHASE_HOLD;
}

/** Fills in the figures; @p divisor: of times, 2 where a message went to and fro. */
void measure_figures(const struct measure *m, unsigned divisor, double figure[FIGURE_COUNT]);

#endif
