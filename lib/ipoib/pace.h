/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file pace.h
 * Polling policy of the IPoIB thread, which serves the kernel's queue and the wire's: when to poll
 * again, yield the CPU or sleep.
 */
#ifndef IPOIB_PACE_H
#define IPOIB_PACE_H

#include <stdbool.h>
#include <stdint.h>

/** Time to poll for an answer after a packet: an event of the completion queue would be slower. */
#define PACE_LINGER_NS 200000u
/** The same while packets come at intervals of at most this. Otherwise a reply that is late because
 * one of the threads slept would always find both asleep. */
#define PACE_PATIENT_NS 1000000u
/** A stream ends when no packet arrives for this long. */
#define PACE_STREAM_NS 2000000u
/** Pause between polls of a stream: 60 packets at 5 Gb/s then share one wakeup. */
#define PACE_NAP_NS 200000u
/** Average packets per busy round at which traffic counts as a stream. */
#define PACE_STREAM 8u

enum pace_step {
	PACE_LOOK,  /**< poll again at once */
	PACE_YIELD, /**< poll again after the other runnable threads of this CPU */
	PACE_NAP,   /**< sleep until the kernel has a packet, PACE_NAP_NS at most */
	PACE_REST,  /**< arm the CQ, then sleep until either queue has a packet */
};

struct pace {
	uint64_t busy_at; /* when the last busy round began, ns */
	uint64_t linger;  /* how long to poll after that outside a stream, ns */
	uint32_t load;	  /* moving average of packets per busy round, times its weight */
};

/** One poll of both queues. */
struct pace_round {
	uint64_t now;	  /* when it began, ns */
	uint32_t packets; /* that it moved */
	bool full;	  /* the send queue is full */
};

void pace_begin(struct pace *p, uint64_t now);

/** @return the step after the round @p r. */
enum pace_step pace_next(struct pace *p, const struct pace_round *r);

#endif
