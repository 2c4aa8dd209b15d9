/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "measure.h"
#include "ticks.h"

#define DURATION_USUAL_US 1000000u
/* Fractions of a run: the warm-up before it, and a slice for the peak. */
#define WARM_PART  10
#define SLICE_PART 50
#define WARM_MAX   10000u /* messages */
/* Accumulated completions are polled faster than messages are sent, so a slice is several times
 * as many messages as can accumulate, and at least SLICE_MIN. */
#define SLICE_WINDOWS 4u
#define SLICE_MIN     1024u

void measure_start(
	struct measure *m, const struct plan *plan, bool active, uint64_t window, uint64_t now)
{
	uint64_t us = plan->value[PARAM_DURATION], senders = plan_senders(plan);
	uint64_t messages = plan->value[PARAM_ITERATIONS] * senders;
	struct histogram *trip = m->trip;

	*m = (struct measure){
		.phase = active ? PHASE_WARM : PHASE_PASSIVE,
		.began = now,
		.slice_messages = SLICE_WINDOWS * window,
		.trip = trip,
	};
	if (m->slice_messages < SLICE_MIN)
		m->slice_messages = SLICE_MIN;
	if (trip)
		histogram_clear(trip);
	if (messages) {
		m->messages = messages;
		m->warm_messages = messages / WARM_PART + 1;
		if (m->warm_messages > WARM_MAX)
			m->warm_messages = WARM_MAX;
		if (m->slice_messages < messages / SLICE_PART)
			m->slice_messages = messages / SLICE_PART;
		return;
	}
	m->ticks = (uint64_t)((double)(us ? us : DURATION_USUAL_US) / 1e6 * ticks_per_second());
	m->warm_ticks = m->ticks / WARM_PART;
	m->slice_ticks = m->ticks / SLICE_PART;
}

static void enter(struct measure *m, enum phase phase, uint64_t now)
{
	m->phase = phase;
	m->began = now;
	m->completed = 0;
	m->slice_began = now;
	m->slice_first = 0;
}

static void slice(struct measure *m, uint64_t now)
{
	uint64_t count = m->completed - m->slice_first, took = now - m->slice_began;
	double rate;

	if (count < m->slice_messages || took < m->slice_ticks || !took)
		return;
	rate = (double)count / (double)took;
	if (rate > m->best)
		m->best = rate;
	m->slice_began = now;
	m->slice_first = m->completed;
}

void measure_count(struct measure *m, uint64_t completed, uint64_t now)
{
	uint64_t took = now - m->began;

	/* Time is taken only at completions: a message may take longer than the run. */
	if (!completed)
		return;
	m->completed += completed;
	if (m->phase == PHASE_WARM) {
		if (m->completed >= m->warm_messages && took >= m->warm_ticks)
			enter(m, PHASE_MEASURE, now);
	} else if (m->phase == PHASE_MEASURE) {
		slice(m, now);
		if (m->messages ? m->completed < m->messages : took < m->ticks)
			return;
		m->took = took;
		m->phase = PHASE_HOLD;
		m->messages = m->completed;
	}
}

void measure_figures(const struct measure *m, unsigned divisor, double figure[FIGURE_COUNT])
{
	static const struct {
		enum figure figure;
		double percent;
	} percentile[] = {
		{FIGURE_TYPICAL, 50},
		{FIGURE_P90, 90},
		{FIGURE_P99, 99},
		{FIGURE_P99_9, 99.9},
		{FIGURE_P99_99, 99.99},
	};
	double hz = ticks_per_second(), us = 1e6 / hz / divisor, mean;

	memset(figure, 0, FIGURE_COUNT * sizeof(figure[0]));
	if (!m->took)
		return;
	figure[FIGURE_ITERATIONS] = (double)m->messages;
	figure[FIGURE_SECONDS] = (double)m->took / hz;
	/* A run that is shorter than a slice is one slice. */
	mean = (double)m->messages / (double)m->took;
	figure[FIGURE_PEAK] = (m->best > mean ? m->best : mean) * hz;
	if (!m->trip || !m->trip->total)
		return;
	figure[FIGURE_MIN] = (double)m->trip->min * us;
	figure[FIGURE_MAX] = (double)m->trip->max * us;
	figure[FIGURE_AVERAGE] = histogram_mean(m->trip) * us;
	figure[FIGURE_STDEV] = histogram_stdev(m->trip) * us;
	for (unsigned i = 0; i < sizeof(percentile) / sizeof(percentile[0]); i++)
		figure[percentile[i].figure] =
			histogram_percentile(m->trip, percentile[i].percent) * us;
}
