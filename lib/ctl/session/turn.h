/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/turn.h
 * Users take turns on the control thread, and the sessions of one user among each other: one who
 * has a hundred of them delays others by one command, not by a hundred. Each user's sockets are in
 * an epoll of their own, which is one descriptor among those of the event loop. Control thread.
 */
#ifndef SESSION_TURN_H
#define SESSION_TURN_H

struct session;

/** Takes @p s into the turns of its user.  @return 0 or a negative errno. */
int turn_join(struct session *s);

/** Takes @p s out. Harmless when it is in none. */
void turn_leave(struct session *s);

/** Looks at the socket of @p s, or no longer. */
int turn_watch(struct session *s);
void turn_unwatch(struct session *s);

#endif
