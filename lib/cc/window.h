/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file window.h
 * Packets in flight of one QP (decision 0000.3, "Window"). RC is go-back-N: with a slow peer it
 * livelocks if a whole message is sent again each time. The window halves after a loss and grows
 * back with acknowledgements.
 *
 * Written by the functions below only, on behalf of the owner worker.
 */
#ifndef WINDOW_H
#define WINDOW_H

#include <stdint.h>

struct window {
	uint32_t size;	/* packets that may be unacknowledged now: the lesser of the next two */
	uint32_t grown; /* what losses and acknowledgements have made of it, up to max */
	uint32_t cap;	/* window_cap() */
	uint32_t max;
	uint32_t credit; /* acknowledged packets towards the next increment */
};

/** @param max 4 or more packets */
void window_init(struct window *w, uint32_t max);

/** Limits @p w to @p max packets from now on; it grows back with acknowledgements if the limit is
 *  raised. */
void window_limit(struct window *w, uint32_t max);

/** An algorithm of congestion control allows @p cap packets, 1 or more, from now on. */
void window_cap(struct window *w, uint32_t cap);

/** @p packets were acknowledged for the first time. */
void window_on_ack(struct window *w, uint32_t packets);

/** A timeout, a NAK or an implied NAK: once per event, not per packet. */
void window_on_loss(struct window *w);

#endif
