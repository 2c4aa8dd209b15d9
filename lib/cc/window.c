/* SPDX-License-Identifier: BSD-3-Clause */
#include "window.h"

/* AckReq is set at least once per quarter of the window, which must be a packet or more. */
#define WINDOW_MIN 4u

static void settle(struct window *w)
{
	w->size = w->grown < w->cap ? w->grown : w->cap;
}

void window_init(struct window *w, uint32_t max)
{
	w->max = max < WINDOW_MIN ? WINDOW_MIN : max;
	w->grown = w->max;
	w->cap = UINT32_MAX;
	w->credit = 0;
	settle(w);
}

void window_cap(struct window *w, uint32_t cap)
{
	w->cap = cap;
	settle(w);
}

void window_limit(struct window *w, uint32_t max)
{
	w->max = max < WINDOW_MIN ? WINDOW_MIN : max;
	if (w->grown > w->max)
		w->grown = w->max;
	settle(w);
}

void window_on_ack(struct window *w, uint32_t packets)
{
	if (w->grown >= w->max)
		return;
	/* Growing by one packet per acknowledged window would be slow for small windows on paths
	 * without congestion; one per four packets regrows 128 within some 500 packets. */
	w->credit += packets;
	while (w->credit >= WINDOW_MIN && w->grown < w->max) {
		w->credit -= WINDOW_MIN;
		w->grown++;
	}
	if (w->grown >= w->max) /* as if each packet had been acknowledged by itself */
		w->credit = 0;
	settle(w);
}

void window_on_loss(struct window *w)
{
	w->grown /= 2;
	if (w->grown < WINDOW_MIN)
		w->grown = WINDOW_MIN;
	w->credit = 0;
	settle(w);
}
