/* SPDX-License-Identifier: BSD-3-Clause */
/* Closes sessions, in turn and in steps. */
#include <stdlib.h>
#include <sys/socket.h>
#include "config/ctl_parts.h"
#include "list.h"
#include "loop/reaper.h"
#include "net/net.h"
#include "session/bells.h"
#include "session/handles.h"
#include "session/job.h"
#include "session/notifier.h"
#include "session/quota.h"
#include "session/rings.h"
#include "session/session.h"
#include "session/sessions.h"
#include "session/turn.h"
#include "worker.h"

/* The last step: only the application still refers to the session. */
static void finish(struct session *s)
{
	struct ctl *ctl = s->ctl;

	handles_free(&s->qps);
	handles_free(&s->srqs);
	handles_free(&s->xrcds);
	handles_free(&s->cqs);
	handles_free(&s->mrs);
	handles_free(&s->mws);
	handles_free(&s->channels);
	handles_free(&s->pds);
	notifier_lock(&ctl->sessions->notifier);
	for (uint32_t i = 0; i < ctl->net->nports; i++)
		if (s->greeted)
			event_source_withdraw(&s->port_events[i]);
	channel_close(&s->async);
	notifier_unlock(&ctl->sessions->notifier);
	free(s->bells);
	if (s->region.base) /* for a program that outlives rocid */
		atomic_store(&((struct abi_session *)s->region.base)->epoch, 0);
	/* The socket last: its end means that no more completions will follow. */
	shutdown(s->watch.fd, SHUT_RDWR);
	reap_fd(ctl->sessions->closer, owner_connections(s->peer.uid), s->watch.fd);
	rings_free(s, &s->region);
	quota_close(s);
	list_del(&s->node);
	ctl->sessions->nclosing--;
	free(s);
}

/* @return false if @p s has been freed. */
static bool continue_close(struct session *s)
{
	if (s->ctl->sessions->ops->release_some(s))
		return true;
	finish(s);
	return false;
}

void session_begin_close(struct session *s)
{
	struct ctl *ctl = s->ctl;

	notifier_lock(&ctl->sessions->notifier);
	ctl->sessions->session[s->slot] = NULL; /* from here on, its events find no session */
	ctl->sessions->nsessions--;
	notifier_unlock(&ctl->sessions->notifier);
	ctl->sessions->nclosing++;
	s->closing = 1;
	ctl->sessions->ops->give_up(s);
	list_push(&ctl->sessions->closing, &s->node);
	list_del(&s->held);
	job_cancel(s);
	turn_leave(s);
	for (uint32_t i = 0; s->bells && i < ctl->dp->nworkers; i++)
		worker_del_doorbell(ctl->dp->worker[i], &s->bells->w[i]);
}

void session_close(struct session *s)
{
	session_begin_close(s);
	while (continue_close(s))
		;
}

bool sessions_close_some(struct ctl *ctl)
{
	struct list *l = list_pop(&ctl->sessions->closing);
	struct session *s;

	if (!l)
		return false;
	/* in turn, so that a large session does not delay small ones */
	s = container_of(l, struct session, node);
	list_push(&ctl->sessions->closing, &s->node);
	continue_close(s);
	return !list_empty(&ctl->sessions->closing);
}
