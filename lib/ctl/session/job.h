/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/job.h
 * Commands that take long, in steps: one with gigabytes to walk must not keep the control thread
 * from the commands of others. Their session's socket is not looked at meanwhile, so that no other
 * command of its own finds things half done; it may end. Control thread.
 */
#ifndef SESSION_JOB_H
#define SESSION_JOB_H

#include <stdbool.h>
#include "list.h"
#include "session/message.h"

struct ctl;

/** What a step returns while there is more to do. */
#define JOB_MORE 2

/** Part of a larger one, which is allocated. */
struct job {
	struct list node; /* on sessions.jobs */
	struct session *session;
	struct abi_msg request;
	/** Does a small part of the command.
	 *  @return JOB_MORE, or as a command_handler but DEFERRED */
	int (*step)(struct job *j, struct reply *r);
	/** Frees it, finished or not. */
	void (*drop)(struct job *j);
};

/** Begins @p j, whose `step` and `drop` are set.  @return as a command_handler: a command of one
 *  step is over. */
int job_begin(struct job *j, struct session *s, const struct request *q, struct reply *r);

/** Makes a step of one command, each in turn.  @return true while there is more to do. */
bool jobs_poll(struct ctl *ctl);

/** Drops what @p s is at, whose end has come. */
void job_cancel(struct session *s);

#endif
