/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file turns.h
 * Whose request is served next: users take turns, then the sessions of each. A command waits for
 * one of each other user, however many sessions that user has. The kernel keeps the order: each
 * user has an epoll of its own in the control thread's, which reports what stays ready in turn.
 * Control thread.
 */
#ifndef TURNS_H
#define TURNS_H

#include "state.h"

/** One user with sessions. */
struct turn {
	struct watch watch; /* epoll of the sessions' sockets */
	struct list node;   /* of ctl.turns */
	struct ctl *ctl;
	uid_t uid;
	uint32_t sessions;
};

/** Serves @p s, whose peer is known, from now on.  @return 0 or a negative errno. */
int turn_join(struct session *s);

/** Serves @p s no more; harmless when it never was. */
void turn_leave(struct session *s);

#endif
