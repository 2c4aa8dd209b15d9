/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file window.h
 * The number of packets of one QP that may be in flight (decision 0000.3, "Window"). RC is
 * go-back-N: if every loss resent a whole message, a slow peer would livelock. The window halves
 * after a loss and grows back with acknowledgements.
 *
 * Only the functions below write, on behalf of the owner worker.
 */
#ifndef WINDOW_H
#define WINDOW_H

#include <stdint.h>

struct window {
	uint32_t size;	/* packets that may be unacknowledged now: the minimum of the next two */
	uint32_t grown; /* the result of losses and acknowledgements, at most max */
	uint32_t cap;	/* window_cap() */
	uint32_t max;
	uint32_t credit; /* acknowledged packets towards the next increment */
};

/** @param max 4 or more packets */
void window_init(struct window *w, uint32_t max);

/** Limits @p w to @p max packets; if the limit rises, acknowledgements grow it back. */
void window_limit(struct window *w, uint32_t max);

/** The congestion control algorithm now allows @p cap packets, 1 or more. */
void window_cap(struct window *w, uint32_t cap);

/** @p packets were acknowledged for the first time. */
void window_on_ack(struct window *w, uint32_t packets);

/** A timeout, NAK or implied NAK: call once per event, not per packet. */
void window_on_loss(struct window *w);

#endif
