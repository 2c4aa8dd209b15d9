/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/notifier.h
 * Events from workers (and from the control thread) to applications, sent by a separate thread:
 * waking a sleeper takes 11-15 us, which no worker can spare (decision 0000.4).
 *
 * Nothing is lost and nothing is allocated: an event is recorded in its object, and the object
 * waits on its channel until the channel's socket accepts the message. A pending event of the same
 * type coalesces into the later one: after a port went down and came up, the last event is that it
 * is up. A full socket delays nobody else.
 *
 * The notifier's lock guards the data that its thread reads: the list of sessions, their channels,
 * CQs and QPs. The control thread takes it to change them, not to read them.
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

/** The channels of one session with pending events. Sessions take turns, and so do the channels of
 *  one session: it delays others by one object, however many objects it has. */
struct event_turn {
	struct list node;      /* on notifier.busy */
	struct list channels;  /* channel.busy */
	struct list full_node; /* on notifier.full */
	struct list full;      /* channel.busy of channels whose sockets are full */
};

/** A socket to an application: a completion channel or the async channel of a session. */
struct channel {
	int fd;		     /* our end; -1: closed */
	uint32_t handle;     /* in its session */
	uint32_t users;	     /* CQs that use it; control thread only */
	struct list pending; /* event_source.node with pending events */
	struct list busy;    /* on turn->channels or turn->full */
	struct event_turn *turn;
};

/** The object of an event: one for the completions of a CQ, one for the async events of an object.
 */
struct event_source {
	struct list node;	 /* on channel.pending */
	struct channel *channel; /* NULL: nobody listens */
	uint32_t handle;	 /* for the message */
	uint8_t npending;
	uint8_t pending[EVENT_TYPES]; /* ABI_EVENT_*, each once, in the order they were raised */
};

/** Finds the source of @p ev, or NULL if its object has been destroyed. Notifier thread, lock
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
	int late_fd;	  /* eventfd that announces workers' late QPs; set before the start */
	struct list busy; /* event_turn.node: sessions with pending events */
	struct list full; /* event_turn.full_node: each round tries some, in turn */
};

/** Prepares @p n; without notifier_start(), events stay pending. */
void notifier_init(struct notifier *n, struct dataplane *dp, notifier_find find, void *find_arg);

/** @return 0 or a negative errno. */
int notifier_start(struct notifier *n);

/** Ends the thread. */
void notifier_stop(struct notifier *n);

void event_turn_init(struct event_turn *t);

/** Makes a SOCK_SEQPACKET pair for @p ch.  @return 0 or a negative errno.
 *  @param turn    of its session
 *  @param app_fd  receives the application's end, which the caller sends and closes */
int channel_open(struct channel *ch, struct event_turn *turn, int *app_fd);

/** Withdraws and closes @p ch, whose sources have been withdrawn. Lock held. */
void channel_close(struct channel *ch);

void event_source_init(struct event_source *src, struct channel *ch, uint32_t handle);

/** Discards the pending events of @p src and detaches it from its channel. Lock held. */
void event_source_withdraw(struct event_source *src);

/** Raises an event of @p type (ABI_EVENT_*) for @p src. Lock held. */
void notifier_raise(struct notifier *n, struct event_source *src, uint32_t type);

/**
 * One round: takes the events that workers queued and sends those that sockets accept. The thread
 * runs it, and tests call it.
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
