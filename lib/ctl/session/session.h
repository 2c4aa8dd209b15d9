/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/session.h
 * One connected application (decision 0000.5): a session ends with its socket.
 *
 * It is closed in steps (session/close.c): one with ten thousand QPs must not keep the control
 * thread from the commands of others. After session_begin_close() it cannot be found any more, but
 * keeps its memory and its place until the last step. Control thread.
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
#include "memory/shm.h"
#include "session/handles.h"
#include "session/notifier.h"

struct account;
struct bells;
struct ctl;
struct job;
struct mr_obj;
struct reply;
struct turn;

struct session {
	struct watch watch; /* watched in its user's turn */
	struct turn *turn;  /* NULL: none yet */
	struct job *job;    /* a command that continues in steps (session/job.h); NULL: none */
	struct list held;   /* on sessions.held, while its socket is not watched */
	struct ctl *ctl;
	uint32_t slot;	 /* in sessions.session */
	uint32_t number; /* cq.session, qp.session: a count times SESSION_MAX, plus the slot */
	struct ucred peer;
	bool own; /* rocid's own: hidden from administrators */
	/* if `own`: receives deferred replies, which would otherwise fill the socket and end the
	 * session */
	void (*replied)(struct session *s, const struct abi_msg *msg, const struct reply *r);
	void *replied_arg;					 /* for `replied` */
	bool greeted;						 /* HELLO done */
	char program[sizeof(((struct abi_hello *)0)->name) + 1]; /* name from its HELLO */
	uint64_t since_ms;
	struct shm region;
	struct account *account;   /* its user's */
	uint64_t used[CTL_KINDS];  /* session/quota.h */
	uint32_t reports;	   /* REPORTs recorded */
	uint32_t faulted;	   /* number of mappings (session/mapping.h) that have faulted */
	uint32_t writers;	   /* enum abi_writers */
	struct mr_obj *populating; /* the region that memory/huge.h populates; NULL: none */
	struct list ahs;
	struct list ahs_gone;	 /* withdrawn from workers, until the grace period is over */
	struct list cm_channels; /* cm_channel.of_session */
	uint32_t ninjected;	 /* QPs with injected faults: verbs/fault.c */
	struct bells *bells;
	struct event_turn events; /* of its channels */
	struct channel async;
	struct event_source port_events[PORT_MAX];
	struct handles pds, mrs, mws, channels, cqs, xrcds, srqs, qps;
	/* session/close.c */
	uint32_t closing;  /* phase (verbs/close.c), from 1; 0: open */
	uint32_t cursor;   /* in the table of this phase */
	uint32_t recorded; /* failures of its QPs since then (diagnose/log.c) */
	struct list node;  /* on sessions.closing */
};

/** Starts to serve the connection @p fd, and closes it if that fails.
 *  @return 0 or a negative errno. */
int session_open(struct ctl *ctl, int fd);

/** Reads and executes one request of the session that @p w belongs to. */
void session_ready(struct watch *w);

/** Sets up the region, doorbells and async channel of @p s, for its HELLO.
 *  @return 0, or a negative errno with a sentence. */
int session_greet(struct session *s, struct reply *r);

/** Sends the reply to @p msg. Ends a session that does not read its replies. */
void session_reply(struct session *s, const struct abi_msg *msg, int result, struct reply *r);

/** Resumes sessions whose user had too many descriptors waiting to be closed.
 *  @return milliseconds until it must be called again, -1: never. */
int sessions_poll(struct ctl *ctl, uint64_t now_ms);

/** @return whether the program runs as root or as rocid's own user. */
bool session_privileged(const struct session *s);

/** Starts to close @p s. */
void session_begin_close(struct session *s);

/** Closes @p s completely: for a session without objects, or when rocid itself stops. */
void session_close(struct session *s);

/** Continues to close one session, up to a bounded number of objects.  @return true while there is
 *  more to do. */
bool sessions_close_some(struct ctl *ctl);

#endif
