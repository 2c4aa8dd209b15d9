/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/session.h
 * One connected application (design.md 5): a session ends with its socket.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "verbs/command.h"

/** Starts to serve the connection @p fd, which is closed when that fails.
 *  @return 0 or a negative errno. */
int session_open(struct ctl *ctl, int fd);

/** Sets up the region, doorbells and async channel of @p s, for its HELLO.
 *  @return 0, or a negative errno with a sentence. */
int session_greet(struct session *s, struct reply *r);

/** Sends the reply to @p msg. A session that does not read its replies is ended. */
void session_reply(struct session *s, const struct abi_msg *msg, int result, struct reply *r);

/** Goes on with sessions whose user had too many descriptors that were not closed yet.
 *  @return milliseconds until it must be called again, -1: never. */
int sessions_poll(struct ctl *ctl, uint64_t now_ms);

/** The eventfd of sigbus_notify() is readable: deals with the owners of what faulted. The handler
 *  has withdrawn a region of memory, so that nobody takes the zeroes for data; a session whose
 *  queues faulted, or more than SESSION_FAULTED_MAX regions, ends. */
void session_faults_ready(struct watch *w);

/** Notes an event about port @p index for all sessions. */
void session_port_event(struct ctl *ctl, uint32_t index, uint32_t type);

/** The notifier's way from an event of a worker to its object (notifier_find). */
struct event_source *session_event_source(void *arg, const struct core_event *ev);

/** @return whether the program is root's, or of the user that runs rocid. */
bool session_privileged(const struct session *s);

#endif
