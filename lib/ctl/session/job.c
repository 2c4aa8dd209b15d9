/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/ctl_parts.h"
#include "session/job.h"
#include "session/session.h"
#include "session/sessions.h"
#include "session/turn.h"

int job_begin(struct job *j, struct session *s, const struct request *q, struct reply *r)
{
	int result;

	j->session = s;
	j->request = q->msg;
	result = j->step(j, r);
	if (result != JOB_MORE) {
		j->drop(j);
		return result;
	}
	s->job = j;
	list_push(&s->ctl->sessions->jobs, &j->node);
	turn_unwatch(s);
	return DEFERRED;
}

void job_cancel(struct session *s)
{
	struct job *j = s->job;

	if (!j)
		return;
	s->job = NULL;
	list_del(&j->node);
	j->drop(j);
}

bool jobs_poll(struct ctl *ctl)
{
	struct list *l = list_pop(&ctl->sessions->jobs);
	struct reply r = {0};
	struct session *s;
	struct job *j;
	int result;

	if (!l)
		return false;
	j = container_of(l, struct job, node);
	result = j->step(j, &r);
	if (result == JOB_MORE) {
		list_push(&ctl->sessions->jobs, &j->node);
		return true;
	}
	s = j->session;
	session_reply(s, &j->request, result, &r);
	job_cancel(s);
	if (turn_watch(s))
		session_begin_close(s); /* no memory */
	return !list_empty(&ctl->sessions->jobs);
}
