/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file side.h
 * The running state of an end: sending, answering, measuring. Nothing here waits: each step does
 * what can be done now, so that one thread can run both ends.
 */
#ifndef SIDE_H
#define SIDE_H

#include "end.h"
#include "measure.h"

struct side {
	struct end end;
	struct measure measure;
	/** Does what can be done at @p now. @return false: nothing to do. */
	bool (*step)(struct side *s, uint64_t now);
	uint64_t under_way; /* requests of all QPs */

	/* The ping-pong's */
	bool marks;	    /* the last byte of a message announces it: see pingpong.c */
	bool awaits;	    /* the initiator has a message in flight ... */
	uint64_t sent_at;   /* ... which it sent at this time */
	uint32_t fruitless; /* polls memory without polling the completion queue */

	/* The messages between the ends; see run.c */
	bool told_measured, heard_measured;
	bool told_drained, heard_drained;
	bool told_arrived, heard_arrived;
	uint64_t arrived;	/* messages of this size that took a receive */
	uint64_t peer_arrived;	/* the same at the other end, once it is known */
	uint64_t arrived_known; /* the latest known value of `arrived` ... */
	uint64_t arrived_at;	/* ... and when it was first seen */
	double own[FIGURE_COUNT];
	double peer[FIGURE_COUNT];
};

/** The step of bw and rate: as many messages in flight as the depth allows. */
bool stream_step(struct side *s, uint64_t now);

/** The step of lat: one message in flight. */
bool pingpong_step(struct side *s, uint64_t now);

/** Posts @p count requests of @p f as one list, at most LIST_MAX; the last one is signaled if
 *  @p flush. */
void side_post(struct side *s, struct flow *f, uint32_t count, bool flush);

/** Ensures that a completion will report everything in flight. */
void side_flush(struct side *s);

/** Counts a completion of the send queue.  @return how many requests it completes. */
uint32_t side_completed(struct side *s, struct flow *f, const struct roci_wc *wc);

/** A message that took a receive has arrived: compares it and posts a new receive. */
void side_received(struct side *s, struct flow *f, const struct roci_wc *wc);

/** Polls up to POLL_MAX completions, which must be successes.  @return how many. */
int side_poll(struct side *s, struct roci_wc wc[POLL_MAX]);

/** @return the mark for the last byte of a message in the slot of @p c: it differs from the byte
 * that is there. */
static inline uint8_t side_mark(const struct cursor *c)
{
	return (uint8_t)(1 + c->round % 255); /* 0 is there at first */
}

/** @return the QP of @p wc. */
static inline struct flow *side_flow(struct side *s, const struct roci_wc *wc)
{
	return &s->end.flow[(uint32_t)wc->wr_id];
}

#endif
