/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/turn.h
 * Users take turns on the control thread, and so do the sessions of each user: a user with a
 * hundred sessions delays others by one command, not by a hundred. Each user's sockets are in a
 * separate epoll, which is one descriptor of the event loop. Control thread.
 */
#ifndef SESSION_TURN_H
#define SESSION_TURN_H

struct session;

/** Adds @p s to the turns of its user.  @return 0 or a negative errno. */
int turn_join(struct session *s);

/** Removes @p s. Harmless if it has no turn. */
void turn_leave(struct session *s);

/** Starts or stops watching the socket of @p s. */
int turn_watch(struct session *s);
void turn_unwatch(struct session *s);

#endif
