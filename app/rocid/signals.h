/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file signals.h
 * SIGINT, SIGTERM and SIGHUP stop rocid, at any time. A dedicated thread waits for them; all others
 * have them blocked, so no code runs inside a signal handler.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

struct ctl;

/**
 * Blocks the signals and starts the thread. Call it first, so that every other thread has them
 * blocked. A start that ignores signals_asked() for a minute, or until a second signal, is aborted.
 * @return 0 or a negative errno.
 */
int signals_start(void);

/** @return whether a signal has arrived: checked between the steps of the start. */
bool signals_asked(void);

/** The start is over: from now on a signal, even an earlier one, calls ctl_stop(@p ctl). NULL:
 * rocid is already stopping. */
void signals_serve(struct ctl *ctl);

/** Notes which object is being stopped now, for the sentence that a shutdown of more than ten
 * seconds prints. Call it on the thread that stops the object.
 * @param what  remains valid
 * @param number  for example of the port; 0: none */
void signals_stopping(const char *what, uint32_t number);

#endif
