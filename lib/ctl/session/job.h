/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/job.h
 * Long commands, executed in steps: one that walks gigabytes must not keep the control thread from
 * the commands of others. The session's socket is not watched meanwhile, so that none of its other
 * commands finds a half-finished operation; the session may end. Control thread.
 */
#ifndef SESSION_JOB_H
#define SESSION_JOB_H

#include <stdbool.h>
#include "list.h"
#include "session/message.h"

struct ctl;

/** The result of a step that leaves more to do. */
#define JOB_MORE 2

/** Embedded in the command's own allocated structure. */
struct job {
	struct list node; /* on sessions.jobs */
	struct session *session;
	struct abi_msg request;
	/** Does a small part of the command.
	 *  @return JOB_MORE, or as a command_handler except DEFERRED */
	int (*step)(struct job *j, struct reply *r);
	/** Frees the job, finished or not. */
	void (*drop)(struct job *j);
};

/** Starts @p j, whose `step` and `drop` are set.  @return as a command_handler: a command of one
 *  step is finished. */
int job_begin(struct job *j, struct session *s, const struct request *q, struct reply *r);

/** Executes one step of the command whose turn it is.  @return true while there is more to do. */
bool jobs_poll(struct ctl *ctl);

/** Drops the unfinished command of @p s, which is being closed. */
void job_cancel(struct session *s);

#endif
