/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file measure.h
 * The phases of a measurement: first warm up, then count for the requested time, while the queues
 * are kept full throughout, so that neither beginning nor end affects the figure.
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
	PHASE_HOLD,    /* keep sending until the other end has measured too */
	PHASE_DRAIN,   /* nothing new is sent */
	PHASE_PASSIVE, /* the target of a one-way test: never sends on its own */
};

/** The results of one end: words of MESSAGE_DRAINED. Times in microseconds. */
enum figure {
	FIGURE_ITERATIONS,
	FIGURE_SECONDS,
	FIGURE_PEAK, /* messages per second, in the best slice */
	FIGURE_MIN,
	FIGURE_MAX,
	FIGURE_TYPICAL, /* the median, as perftest calls it */
	FIGURE_AVERAGE,
	FIGURE_STDEV,
	FIGURE_P90,
	FIGURE_P99,
	FIGURE_P99_9,
	FIGURE_P99_99,
	FIGURE_SENT, /* messages of this size, including those that are not measured */
	FIGURE_COUNT,
};

struct measure {
	enum phase phase;
	/* The request; messages of all QPs, ticks. */
	uint64_t warm_messages, warm_ticks;
	uint64_t messages; /* 0: by time */
	uint64_t ticks;
	uint64_t slice_messages, slice_ticks;

	uint64_t began;	    /* the phase */
	uint64_t completed; /* in it */
	uint64_t took;	    /* ticks of PHASE_MEASURE, once it is over */
	uint64_t slice_began, slice_first;
	double best;		/* messages per tick of the best slice */
	struct histogram *trip; /* ticks of each message; NULL: not requested */
};

/** Begins with PHASE_WARM, or PHASE_PASSIVE. Forgets what was measured before. @param window
 * messages in flight, of all QPs, which may complete at once */
void measure_start(
	struct measure *m, const struct plan *plan, bool active, uint64_t window, uint64_t now);

/** @p completed messages are complete since the last call. Ends PHASE_WARM and PHASE_MEASURE when
 * it is time. */
void measure_count(struct measure *m, uint64_t completed, uint64_t now);

/** @return whether new messages are sent in this phase. */
static inline bool measure_sends(const struct measure *m)
{
	return m->phase <= PHASE_HOLD;
}

/** Fills in the figures; @p divisor: of times, 2 if a message made a round trip. */
void measure_figures(const struct measure *m, unsigned divisor, double figure[FIGURE_COUNT]);

#endif
