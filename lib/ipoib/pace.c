/* SPDX-License-Identifier: BSD-3-Clause */
#include "pace.h"

#define WEIGHT 8u /* weight of earlier rounds in the average */

void pace_begin(struct pace *p, uint64_t now)
{
	*p = (struct pace){.busy_at = now, .linger = PACE_LINGER_NS};
}

/* Polls for answers, but not for a stream, whose packets accumulate while the thread sleeps. */
static bool streams(const struct pace *p)
{
	return p->load >= WEIGHT * PACE_STREAM;
}

static void notice(struct pace *p, const struct pace_round *r)
{
	p->linger = r->now - p->busy_at <= PACE_PATIENT_NS ? PACE_PATIENT_NS : PACE_LINGER_NS;
	p->busy_at = r->now;
	p->load += r->packets - p->load / WEIGHT;
}

/* A worker drains the send queue in less time than a sleep takes and would then be idle. */
static enum pace_step next_of_stream(const struct pace_round *r)
{
	if (r->packets)
		return PACE_LOOK;
	return r->full ? PACE_YIELD : PACE_NAP;
}

enum pace_step pace_next(struct pace *p, const struct pace_round *r)
{
	bool stream;

	if (r->packets)
		notice(p, r);
	stream = streams(p);
	if (r->now - p->busy_at >= (stream ? PACE_STREAM_NS : p->linger))
		return PACE_REST;
	/* Outside a stream the worker still has to process the packet that was just sent, or the
	 * next one. */
	return stream ? next_of_stream(r) : PACE_YIELD;
}
