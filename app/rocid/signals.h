/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file signals.h
 * SIGINT, SIGTERM and SIGHUP end rocid, at any moment of its life. A thread of its own waits for
 * them; all others have them blocked, so no code runs inside a signal handler.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <stdbool.h>

struct ctl;

/**
 * Blocks the signals and starts the thread. First of all, so that every other thread has them
 * blocked. A start that does not heed signals_asked() within a minute, or until a second
 * signal, is cut off.  @return 0 or a negative errno.
 */
int signals_start(void);

/** @return whether a signal has come: looked at between the steps of the start. */
bool signals_asked(void);

/** The start is over: from now on a signal, also one that came before, is ctl_stop(@p ctl). NULL:
 *  the end has begun, there is nothing left to stop. */
void signals_serve(struct ctl *ctl);

#endif
