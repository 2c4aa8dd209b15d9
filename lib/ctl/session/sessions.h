/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/sessions.h
 * All sessions, and what they share: the socket that programs connect to, the notifier, the
 * accounts of their users, and the threads that release what takes long. Control thread.
 */
#ifndef SESSION_SESSIONS_H
#define SESSION_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "limits.h"
#include "list.h"
#include "loop/loop.h"
#include "session/notifier.h"
#include "session/quota.h"

struct ctl;
struct reaper;
struct reply;
struct request;
struct session;

/** What the room `verbs` does for sessions, which know nothing else of it. */
struct session_ops {
	/** Checks and executes @p q, and fills in @p r.  @return 0, DEFERRED, or a negative errno
	 *  with a sentence in r->why. */
	int (*run)(struct session *s, const struct request *q, struct reply *r);
	/** @return whether a descriptor belongs to messages of @p type. */
	bool (*takes_descriptor)(uint32_t type);
	/** The end of @p s begins: gives up what it has under way, without a reply. */
	void (*give_up)(struct session *s);
	/** Releases some of its objects.  @return false when none is left. */
	bool (*release_some)(struct session *s);
	/** Memory of @p mr faulted.  @return its session if that has to end for it, or NULL. */
	struct session *(*mr_faulted)(void *mr);
};

struct sessions {
	struct ctl *ctl;
	const struct session_ops *ops;
	struct watch listener;
	struct watch faults; /* eventfd: shared memory faulted */
	char *socket_path;
	uint64_t listen_ms; /* when to look at the listener again; 0: always */
	int reserve_fd;	    /* given up to turn a connection away when descriptors run out */
	int fd_max;	    /* connections beyond it are turned away, for the others' sake */
	struct quota quota;
	uint64_t epoch;
	struct notifier notifier;
	struct session *session[SESSION_MAX];
	uint32_t nsessions;  /* of them */
	struct list endings; /* sessions that end */
	uint32_t nending;
	struct list turns;	 /* session/turn.c */
	struct list jobs;	 /* session/job.c */
	struct list held;	 /* sessions that wait until what was passed is closed */
	uint64_t held_ms;	 /* when to look at them again */
	uint32_t session_count;	 /* sessions ever opened */
	struct reaper *closer;	 /* of descriptors that others made */
	struct reaper *unmapper; /* of memory */
};

/** Prepares @p all, which starts as zeroes.  @return 0 or -ENOMEM. */
int sessions_init(
	struct sessions *all, struct ctl *ctl, const struct session_ops *ops, notifier_find find);

/** Ends all sessions, which nobody listens for any more. */
void sessions_close(struct sessions *all);

/** Frees the rest, when no object of theirs is left. */
void sessions_destroy(struct sessions *all);

#endif
