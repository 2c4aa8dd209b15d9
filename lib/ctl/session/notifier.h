/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/notifier.h
 * Events from workers (and from the control thread) to applications, by a thread of its own:
 * waking a sleeper costs 11-15 us, which no worker may pay (design.md 4).
 *
 * Nothing is lost and nothing is allocated: an event is noted in the object that it is about,
 * and the object waits on its channel until the channel's socket takes the message. An event
 * that is pending already coalesces, into the later one: of a port that went down and came up,
 * the last word is that it is up. A full socket holds up nobody else.
 *
 * The notifier's lock guards what its thread reads: the list of sessions, their channels, CQs
 * and QPs. The control thread takes it to change them, not to read.
 */
#ifndef SESSION_NOTIFIER_H
#define SESSION_NOTIFIER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "list.h"

struct dataplane;
struct core_event;

#define EVENT_TYPES 20 /* ABI_EVENT_* are below */

/** The channels of one session that have something to say. Sessions take turns, and the channels of
 *  one among each other: however many objects a session has, it delays others by one of them. */
struct event_turn {
	struct list node;      /* on notifier.busy */
	struct list channels;  /* channel.busy */
	struct list full_node; /* on notifier.full */
	struct list full;      /* channel.busy of those whose sockets took no more */
};

/** A socket to an application: completion channel or the async channel of a session. */
struct channel {
	int fd;		     /* our end; -1: gone */
	uint32_t handle;     /* in its session */
	uint32_t users;	     /* CQs that name it; control thread only */
	struct list pending; /* event_source.node with something to say */
	struct list busy;    /* on turn->channels or turn->full */
	struct event_turn *turn;
};

/** What an event is about: one for completions of a CQ, one for async events of an object. */
struct event_source {
	struct list node;	 /* on channel.pending */
	struct channel *channel; /* NULL: nobody listens */
	uint32_t handle;	 /* goes into the message */
	uint8_t npending;
	uint8_t pending[EVENT_TYPES]; /* ABI_EVENT_*, each once, in the order they were raised in */
};

/** Finds the source that @p ev is about, NULL when its object is gone. Notifier thread, lock
 *  held. */
typedef struct event_source *(*notifier_find)(void *arg, const struct core_event *ev);

struct notifier {
	pthread_mutex_t lock;
	pthread_t thread;
	bool started;
	atomic_bool stop;
	struct dataplane *dp;
	notifier_find find;
	void *find_arg;
	int late_fd;	  /* eventfd of who takes workers' late QPs; set before the start */
	struct list busy; /* event_turn.node: sessions with pending events */
	struct list full; /* event_turn.full_node: some are tried each round, in turns */
};

/** Prepares @p n; without notifier_start() events just stay pending. */
void notifier_init(struct notifier *n, struct dataplane *dp, notifier_find find, void *find_arg);

/** @return 0 or a negative errno. */
int notifier_start(struct notifier *n);

/** Ends the thread. */
void notifier_stop(struct notifier *n);

void event_turn_init(struct event_turn *t);

/** Makes a SOCK_SEQPACKET pair for @p ch.  @return 0 or a negative errno.
 *  @param turn    of its session
 *  @param app_fd  the application's end, to be sent and closed by the caller */
int channel_open(struct channel *ch, struct event_turn *turn, int *app_fd);

/** Withdraws @p ch, whose sources must be withdrawn already, and closes it. Lock held. */
void channel_close(struct channel *ch);

void event_source_init(struct event_source *src, struct channel *ch, uint32_t handle);

/** Forgets what @p src had to say. Lock held. */
void event_source_withdraw(struct event_source *src);

/** Notes an event of @p type (ABI_EVENT_*) for @p src. Lock held. */
void notifier_raise(struct notifier *n, struct event_source *src, uint32_t type);

/**
 * One round: takes what workers queued, sends what sockets take. The thread's body, and what
 * tests call.
 * @return the number of events taken and sent
 */
unsigned notifier_round(struct notifier *n);

static inline void notifier_lock(struct notifier *n)
{
	pthread_mutex_lock(&n->lock);
}

static inline void notifier_unlock(struct notifier *n)
{
	pthread_mutex_unlock(&n->lock);
}

#endif
