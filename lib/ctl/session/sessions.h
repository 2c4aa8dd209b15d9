/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/sessions.h
 * All sessions and their shared parts: the listening socket, the notifier, the accounts of their
 * users, and the threads for slow releases. Control thread.
 */
#ifndef SESSION_SESSIONS_H
#define SESSION_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "config/config.h"
#include "hash.h"
#include "limits.h"
#include "list.h"
#include "loop/loop.h"
#include "session/notifier.h"

struct ctl;
struct reaper;
struct reply;
struct request;
struct session;

/** Functions of lib/ctl/verbs, wrapped by lib/ctl/cm, for sessions, which otherwise know nothing of
 *  verbs and connections. */
struct session_ops {
	/** Checks and executes @p q, and fills in @p r.  @return 0, DEFERRED, or a negative errno
	 *  with a sentence in r->why. */
	int (*run)(struct session *s, const struct request *q, struct reply *r);
	/** @return whether messages of @p type carry a descriptor. */
	bool (*takes_descriptor)(uint32_t type);
	/** Cancels the unfinished operation of @p s, which is being closed, without a reply. */
	void (*give_up)(struct session *s);
	/** Releases some of its objects.  @return false if none is left. */
	bool (*release_some)(struct session *s);
	/** Memory of @p mapping faulted.  @return its session if that must end, or NULL. */
	struct session *(*mr_faulted)(void *mapping);
};

/** The charges of all users. */
struct quota {
	struct ctl_limits limits;     /* none is 0 */
	uint64_t capacity[CTL_KINDS]; /* of the daemon; UINT64_MAX: unlimited */
	uint64_t used[CTL_KINDS];     /* by all accounts */
	uint64_t retired[CTL_KINDS];  /* likewise */
	struct list accounts;
};

struct sessions {
	struct ctl *ctl;
	const struct session_ops *ops;
	struct watch listener;
	struct watch faults; /* eventfd: shared memory faulted */
	char *socket_path;
	uint64_t listen_ms; /* when to watch the listener again; 0: it is being watched */
	int reserve_fd;	    /* closed in order to turn away a connection when descriptors run out */
	int fd_max; /* connections with a higher descriptor are turned away, to spare the others */
	struct quota quota;
	uint64_t epoch;
	struct notifier notifier;
	struct session *session[SESSION_MAX];
	uint32_t nsessions;  /* in session[] */
	struct list closing; /* sessions that are being closed */
	uint32_t nclosing;
	struct list turns;	 /* session/turn.c */
	struct list jobs;	 /* session/job.c */
	struct list held;	 /* sessions that wait until passed descriptors are closed */
	uint64_t held_ms;	 /* when to check them again */
	uint32_t session_count;	 /* sessions ever opened */
	struct reaper *closer;	 /* of descriptors from other processes */
	struct reaper *unmapper; /* of memory */
	struct hash_seed mapping_seed;
	struct list mapping[MAPPING_BUCKETS]; /* session/mapping.c */
};

/** Prepares @p all, which starts as zeroes.  @return 0 or -ENOMEM. */
int sessions_init(
	struct sessions *all, struct ctl *ctl, const struct session_ops *ops, notifier_find find);

/** Closes all sessions. rocid no longer listens for new ones. */
void sessions_close(struct sessions *all);

/** Frees the rest, once all of their objects are gone. */
void sessions_destroy(struct sessions *all);

/** Raises an event of port @p index for all sessions. */
void sessions_port_event(struct ctl *ctl, uint32_t index, uint32_t type);

/** Handles the owners of memory that faulted, when the eventfd of sigbus_notify() is readable. The
 *  signal handler has already withdrawn the faulted region, so that nobody takes its zeroes for
 *  data. A session ends if its queues faulted, or more than SESSION_FAULTED_MAX regions. */
void sessions_faults_ready(struct watch *w);

#endif
