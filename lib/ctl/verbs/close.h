/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/close.h
 * The end of a session, in steps: one with ten thousand QPs must not keep the control thread from
 * the commands of others. From session_end() on nobody finds it; its memory and its place are
 * taken until the last step. Control thread.
 */
#ifndef VERBS_CLOSE_H
#define VERBS_CLOSE_H

#include "state.h"

/** Begins the end of @p s. */
void session_end(struct session *s);

/** All of the end at once: of a session that has nothing, or when rocid itself ends. */
void session_close(struct session *s);

/** Goes on with one session, to its end or for some hundred objects.  @return true while there is
 *  more to do. */
bool endings_poll(struct ctl *ctl);

#endif
