/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/session.h
 * One connected application (design.md 5): a session ends with its socket.
 *
 * It ends in steps (session/end.c): one with ten thousand QPs must not keep the control thread from
 * the commands of others. From session_end() on nobody finds it; its memory and its place are
 * taken until the last step. Control thread.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include "abi_ctl.h"
#include "config/config.h"
#include "list.h"
#include "loop/loop.h"
#include "session/handles.h"
#include "session/notifier.h"
#include "session/shm.h"

struct account;
struct bells;
struct ctl;
struct job;
struct mr_obj;
struct reply;
struct turn;

struct session {
	struct watch watch; /* in its user's turn */
	struct turn *turn;  /* NULL: none yet */
	struct job *job;    /* a command that goes on in steps (session/job.h); NULL: none */
	struct list held;   /* on sessions.held, while its socket is not looked at */
	struct ctl *ctl;
	uint32_t slot;	 /* in sessions.session */
	uint32_t number; /* cq.session, qp.session: slot in the low bits, a count above */
	struct ucred peer;
	bool greeted;						 /* HELLO done */
	char program[sizeof(((struct abi_hello *)0)->name) + 1]; /* what it calls itself */
	uint64_t since_ms;
	struct shm region;
	struct account *account;   /* its user's */
	uint64_t used[CTL_KINDS];  /* session/quota.h */
	uint32_t faulted;	   /* regions that did */
	struct mr_obj *populating; /* its region that session/huge.h has; NULL: none */
	struct list ahs;
	struct list ahs_gone; /* unpublished, until the grace period is over */
	uint32_t ninjected;   /* QPs that have faults: verbs/fault.c */
	struct bells *bells;
	struct event_turn events; /* of its channels */
	struct channel async;
	struct event_source port_events[PORT_MAX];
	struct handles pds, mrs, mws, channels, cqs, xrcds, srqs, qps;
	/* session/end.c */
	uint32_t ending;  /* phase of its end (verbs/close.c), from 1; 0: it lives */
	uint32_t cursor;  /* in the table that this phase is at */
	uint32_t told;	  /* failures of its QPs (diagnose/log.c) */
	struct list node; /* on sessions.endings */
};

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

/** @return whether the program is root's, or of the user that runs rocid. */
bool session_privileged(const struct session *s);

/** Begins the end of @p s. */
void session_end(struct session *s);

/** All of the end at once: of a session that has nothing, or when rocid itself ends. */
void session_close(struct session *s);

/** Goes on with one session, to its end or for some hundred objects.  @return true while there is
 *  more to do. */
bool endings_poll(struct ctl *ctl);

/** @return @p size zeroed bytes, aligned to CACHE_LINE, to be freed with free(), or NULL. */
void *object_alloc(size_t size);

/** Makes a ring region on the account of @p s.  @return as shm_create(); -EDQUOT beyond
 *  its limit. */
int session_shm(struct session *s, struct shm *m, const char *name, size_t size, int *fd,
	char why[ABI_SENTENCE_MAX]);
void session_shm_free(struct session *s, struct shm *m);

#endif
