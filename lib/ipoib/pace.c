/* SPDX-License-Identifier: BSD-3-Clause */
#include "pace.h"

#define WEIGHT 8u /* of the rounds before in their average */

void pace_begin(struct pace *p, uint64_t now)
{
	*p = (struct pace){.busy_at = now, .linger = PACE_LINGER_NS};
}

/* Answers are soon taken. A stream is not: while the thread sleeps, packets come together. */
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

/* A worker empties the send queue in less than a nap, and would then have nothing to send. */
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
	/* Outside of a stream the worker has the packet that was sent just now, or the next one. */
	return stream ? next_of_stream(r) : PACE_YIELD;
}
