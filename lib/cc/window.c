/* SPDX-License-Identifier: BSD-3-Clause */
#include "window.h"

/* AckReq is set at least once per quarter: below four there is no quarter. */
#define WINDOW_MIN 4u

void window_init(struct window *w, uint32_t max)
{
	w->max = max < WINDOW_MIN ? WINDOW_MIN : max;
	w->size = w->max;
	w->credit = 0;
}

void window_limit(struct window *w, uint32_t max)
{
	w->max = max < WINDOW_MIN ? WINDOW_MIN : max;
	if (w->size > w->max)
		w->size = w->max;
}

void window_on_ack(struct window *w, uint32_t packets)
{
	if (w->size >= w->max)
		return;
	/* One more packet per window acknowledged while it is small would take long on paths
	 * without congestion; one per four packets regrows 128 within some 500 packets. */
	w->credit += packets;
	while (w->credit >= WINDOW_MIN && w->size < w->max) {
		w->credit -= WINDOW_MIN;
		w->size++;
	}
}

void window_on_loss(struct window *w)
{
	w->size /= 2;
	if (w->size < WINDOW_MIN)
		w->size = WINDOW_MIN;
	w->credit = 0;
}
