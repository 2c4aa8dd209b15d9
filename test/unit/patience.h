/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file patience.h
 * How long tests wait for events that a fast machine delivers at once: on a busy machine a thread
 * may not run for many seconds. A wait ends when its event comes, so a long limit costs nothing.
 */
#ifndef PATIENCE_H
#define PATIENCE_H

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S  120
#define PATIENCE_MS (1000 * PATIENCE_S)

/** Seconds: PATIENCE_S, or what the environment says, where waits are in vain (test/mutants/run).
 */
static inline int patience_s(void)
{
	const char *s = getenv("TEST_PATIENCE_S");

	return s ? atoi(s) : PATIENCE_S;
}

static inline time_t patience_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/** Begins a wait.  @return its end, for patience_over(). */
static inline time_t patience_begin(void)
{
	return patience_now() + patience_s();
}

static inline bool patience_over(time_t end)
{
	return patience_now() > end;
}

/** Looks each 10 ms until @p so holds or patience is over; what holds then is for the caller to
 *  assert. */
#define WAIT_UNTIL(so)                                                               \
	do {                                                                         \
		for (time_t end_ = patience_begin(); !(so) && !patience_over(end_);) \
			usleep(10000);                                               \
	} while (0)

#endif
