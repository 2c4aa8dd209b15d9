/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of ids and channels, in steps: a program may have tens of thousands of ids, and a
 * listener ten thousand requests, each of whose peers is notified. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bits.h"
#include "cm/connections.h"
#include "cm/id.h"
#include "config/ctl_parts.h"
#include "loop/loop.h"
#include "refuse.h"
#include "session/job.h"
#include "session/message.h"
#include "session/quota.h"
#include "session/session.h"

/* @return a new connection of the listener whose request no program has received, or NULL. */
static struct cm_id *unheard(const struct cm_id *listener)
{
	for (struct list *l = listener->events.next; l != &listener->events; l = l->next) {
		struct cm_note *n = container_of(l, struct cm_note, of);

		if (n->id != listener)
			return n->id;
	}
	return NULL;
}

static void forget(struct cm_id *id)
{
	struct session *s = id->channel->session;
	struct connections *all = id->all;
	uint64_t now = loop_now_ns();

	if (id->state == ID_LISTEN) {
		cm_unlisten(all->cm, id->listener, now);
		quota_give_one(s, CTL_LISTENERS);
	}
	id_stop_resolving(id);
	if (id->conn) {
		cm_destroy(all->cm, id->conn, now);
		id_answered(id);
		quota_give_one(s, CTL_CONNECTIONS);
	}
	id_unbind(id);
	id_drop_events(id);
	list_del(&id->node);
	handle_del(&all->ids, id->handle);
	quota_give_one(s, CTL_CM_IDS);
	free(id);
}

/* Destroys @p id and the requests of a listener that no program has received, up to *@p left ids.
 * @return whether @p id is gone. */
static bool destroy_some(struct cm_id *id, uint32_t *left)
{
	struct cm_id *request;

	if (id->state == ID_LISTEN)
		cm_close(id->all->cm, id->listener);
	for (; *left && (request = unheard(id)); --*left)
		forget(request);
	if (!*left)
		return false;
	--*left;
	forget(id);
	return true;
}

void id_destroy(struct cm_id *id)
{
	uint32_t all = UINT32_MAX;

	destroy_some(id, &all);
}

/* Likewise. */
static bool channel_destroy_some(struct cm_channel *ch, uint32_t *left)
{
	struct session *s = ch->session;

	while (!list_empty(&ch->ids))
		if (!destroy_some(container_of(ch->ids.next, struct cm_id, node), left))
			return false;
	if (!*left)
		return false;
	--*left;
	handle_del(&s->ctl->connections->channels, ch->handle);
	list_del(&ch->of_session);
	close(ch->fd[0]);
	close(ch->fd[1]);
	channel_uncharge(s);
	free(ch);
	return true;
}

void channel_destroy(struct cm_channel *ch)
{
	uint32_t all = UINT32_MAX;

	channel_destroy_some(ch, &all);
}

/* --- the end of a session --------------------------------------------------------------------- */

/* Listeners are the first ids of a channel. */
static void close_listeners(const struct cm_channel *ch)
{
	for (const struct list *l = ch->ids.next; l != &ch->ids; l = l->next) {
		const struct cm_id *id = container_of(l, struct cm_id, node);

		if (id->state != ID_LISTEN)
			return;
		cm_close(id->all->cm, id->listener);
	}
}

void channels_give_up(struct session *s)
{
	for (struct list *l = s->cm_channels.next; l != &s->cm_channels; l = l->next)
		close_listeners(container_of(l, struct cm_channel, of_session));
}

bool channels_release_some(struct session *s)
{
	uint32_t left = CM_STEP;

	while (!list_empty(&s->cm_channels))
		if (!channel_destroy_some(
			    container_of(s->cm_channels.next, struct cm_channel, of_session),
			    &left))
			return true;
	return false;
}

/* --- commands --------------------------------------------------------------------------------- */

/* DESTROY_ID or CLOSE. */
struct removal {
	struct job job;
	struct cm_id *id; /* NULL: the channel */
	struct cm_channel *channel;
	struct abi_cm_destroyed out;
};

static void drop_removal(struct job *j)
{
	free(container_of(j, struct removal, job));
}

static int step_removal(struct job *j, struct reply *r)
{
	struct removal *m = container_of(j, struct removal, job);
	uint32_t left = CM_STEP;

	if (!m->id)
		return channel_destroy_some(m->channel, &left) ? 0 : JOB_MORE;
	if (!destroy_some(m->id, &left))
		return JOB_MORE;
	reply_body(r, &m->out, sizeof(m->out));
	return 0;
}

static int begin_removal(
	struct cm_channel *ch, struct cm_id *id, const struct request *q, struct reply *r)
{
	struct removal *m = calloc(1, sizeof(*m));

	if (!m)
		return refuse_memory(r->why);
	m->job = (struct job){.step = step_removal, .drop = drop_removal};
	m->channel = ch;
	m->id = id;
	m->out.events_reported = id ? id->reported : 0;
	if (!id)
		close_listeners(ch); /* or peers refill those that are last */
	return job_begin(&m->job, ch->session, q, r);
}

int cmd_cm_destroy_id(struct cm_id *id, const struct request *q, struct reply *r)
{
	return begin_removal(id->channel, id, q, r);
}

int cmd_cm_close(struct cm_channel *ch, const struct request *q, struct reply *r)
{
	return begin_removal(ch, NULL, q, r);
}
