/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file pace.h
 * When a thread between two queues without interrupts, the kernel's and the wire's, looks at them
 * again, and when it leaves its CPU to others: to the workers and programs that fill them.
 */
#ifndef IPOIB_PACE_H
#define IPOIB_PACE_H

#include <stdbool.h>
#include <stdint.h>

/** An answer comes within this time: the thread polls for it. An event of the completion queue
 * would be later. */
#define PACE_LINGER_NS 200000u
/** The same while packets come no farther apart than this: answers that are late because the thread
 * at the other end slept, or this one, would otherwise find both asleep each time. */
#define PACE_PATIENT_NS 1000000u
/** A stream is over when no packet came for this time. */
#define PACE_STREAM_NS 2000000u
/** Between looks at a stream: 60 packets at 5 Gb/s, which are then paid for once. */
#define PACE_NAP_NS 200000u
/** Packets per busy round: from so many on it is a stream. */
#define PACE_STREAM 8u

enum pace_step {
	PACE_LOOK,  /**< look again at once */
	PACE_YIELD, /**< look again after the others that can run on this CPU */
	PACE_NAP,   /**< sleep until the kernel has a packet, PACE_NAP_NS at most */
	PACE_REST,  /**< sleep until either queue has one, which the wire's has to be asked for */
};

struct pace {
	uint64_t busy_at; /* when a round had packets last, ns */
	uint64_t linger;  /* how long it polls after that, outside of a stream, ns */
	uint32_t load;	  /* packets of a busy round, averaged, times the weight of those before */
};

/** A round, that is a look at both queues. */
struct pace_round {
	uint64_t now;	  /* when it began, ns */
	uint32_t packets; /* that it moved */
	bool full;	  /* no more can be sent before a worker has sent some */
};

void pace_begin(struct pace *p, uint64_t now);

/** @return the step after the round @p r. */
enum pace_step pace_next(struct pace *p, const struct pace_round *r);

#endif
