/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file loop/loop.h
 * The event loop of the control thread: descriptors, and the functions to call when they are
 * ready. Control thread.
 */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop {
	int epoll; /* -1: none */
};

/** A descriptor in the event loop. */
struct watch {
	int fd; /* -1: none */
	void (*ready)(struct watch *w);
};

/** @return 0 or a negative errno. */
int loop_open(struct loop *l);

/** Does nothing if @p l is not open. */
void loop_close(struct loop *l);

/** Waits until a watch is ready, and calls its function. One event at a time, because the
 *  function may free any other watch.
 *  @param wait  milliseconds; -1: forever
 *  @return 1; 0 if nothing was ready; or a negative errno when epoll itself fails. */
int loop_wait(struct loop *l, int wait);

/** Watches @p w for input.  @return 0 or a negative errno. */
int loop_watch(struct loop *l, struct watch *w);

/** Watches @p w for room to write instead of input, or for input again. */
void loop_watch_output(struct loop *l, struct watch *w, bool output);

/** Keeps @p w registered without watching for anything, until loop_watch_output(). */
void loop_watch_nothing(struct loop *l, struct watch *w);

/** Stops watching @p w, without closing its descriptor. */
void loop_forget(struct loop *l, struct watch *w);

/** Stops watching and closes @p w->fd; does nothing if there is none. */
void loop_unwatch(struct loop *l, struct watch *w);

/** @return the time of the monotonic clock. */
uint64_t loop_now_ns(void);
uint64_t loop_now_ms(void);

/** @return the sooner of two waits in milliseconds, -1: forever. */
static inline int loop_sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/** @return the wall-clock time in milliseconds. */
uint64_t loop_calendar_ms(void);

#endif
