/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels, ids and their events. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bits.h"
#include "cm/connections.h"
#include "cm/id.h"
#include "config/ctl_parts.h"
#include "loop/loop.h"
#include "refuse.h"
#include "session/ids.h"
#include "session/message.h"
#include "session/quota.h"
#include "session/session.h"

static const struct charge channel_charge[] = {{CTL_CHANNELS, 1}, {CTL_DESCRIPTORS, 2}};

struct cm_id *id_named(struct session *s, uint32_t handle, struct reply *r)
{
	struct cm_id *id = handle_get(&s->ctl->connections->ids, handle);

	if (id && id->channel->session == s)
		return id;
	refuse(r->why, -EINVAL, "there is no CM id %u", handle);
	return NULL;
}

struct cm_channel *channel_named(struct session *s, uint32_t handle, struct reply *r)
{
	struct cm_channel *ch = handle_get(&s->ctl->connections->channels, handle);

	if (ch && ch->session == s)
		return ch;
	refuse(r->why, -EINVAL, "there is no CM channel %u", handle);
	return NULL;
}

/* --- events ----------------------------------------------------------------------------------- */

/* Keeps the pipe readable exactly while events are queued. A program that reads from it harms only
 * itself: neither end blocks us. */
static void show_events(struct cm_channel *ch, bool before)
{
	bool now = !list_empty(&ch->events);
	char byte = 0;
	ssize_t n = 0;

	if (now && !before)
		n = write(ch->fd[1], &byte, 1);
	else if (!now && before)
		n = read(ch->fd[0], &byte, 1);
	(void)n;
}

struct cm_note *note_new(struct cm_id *id, uint32_t type, int32_t status)
{
	struct cm_note *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->id = n->counts = id;
	list_init(&n->node);
	list_push(&id->events, &n->of);
	id->unread++;
	n->event.event = type;
	n->event.status = status;
	n->event.uid = id->uid;
	n->event.id = id->handle;
	return n;
}

int note_asked(struct cm_id *id, uint32_t type, struct cm_note **n, char why[ABI_SENTENCE_MAX])
{
	int err;

	if (id->unread >= CM_UNREAD_MAX)
		return refuse(why, -ENOBUFS,
			"%u events of this id are unread: read them from its channel first",
			id->unread);
	err = quota_take_one(id->channel->session, CTL_CM_EVENTS, why);
	if (err)
		return err;
	*n = note_new(id, type, 0);
	if (!*n) {
		quota_give_one(id->channel->session, CTL_CM_EVENTS);
		return refuse_memory(why);
	}
	(*n)->charged = true;
	return 0;
}

void note_free(struct cm_note *n)
{
	if (n->charged)
		quota_give_one(n->id->channel->session, CTL_CM_EVENTS);
	if (n->id->request == n)
		n->id->request = NULL;
	n->id->unread--;
	list_del(&n->of);
	list_del(&n->node);
	free(n);
}

void note_raise(struct cm_note *n)
{
	struct cm_channel *ch = n->counts->channel;
	bool before = !list_empty(&ch->events);

	list_push(&ch->events, &n->node);
	show_events(ch, before);
}

void id_raise(struct cm_id *id, uint32_t type, int32_t status, const char *why)
{
	struct cm_note *n = note_new(id, type, status);

	if (!n)
		return;
	if (why)
		snprintf(n->event.why, sizeof(n->event.why), "%s", why);
	note_raise(n);
}

void id_drop_events(struct cm_id *id)
{
	struct cm_channel *ch = id->channel;
	bool before = !list_empty(&ch->events);

	while (!list_empty(&id->events))
		note_free(container_of(id->events.next, struct cm_note, of));
	if (id->request)
		note_free(id->request);
	show_events(ch, before);
}

/* A listener's events include its requests, in order. */
static void move_events(struct cm_id *id, struct cm_channel *to)
{
	bool before = !list_empty(&id->channel->events), to_before = !list_empty(&to->events);

	for (struct list *l = id->events.next; l != &id->events; l = l->next) {
		struct cm_note *n = container_of(l, struct cm_note, of);

		if (n == id->answer) /* not raised yet */
			continue;
		list_del(&n->node);
		list_push(&to->events, &n->node);
	}
	show_events(id->channel, before);
	show_events(to, to_before);
}

int cmd_cm_get_event(struct cm_channel *ch, const struct request *q, struct reply *r)
{
	struct cm_note *n;
	struct list *l;

	l = list_pop(&ch->events);
	if (!l)
		return refuse(r->why, -EAGAIN, "no event is pending");
	show_events(ch, true);
	n = container_of(l, struct cm_note, node);
	n->counts->reported++;
	if (n == n->id->request)
		cm_heard(n->id->all->cm, n->id->conn);
	reply_body(r, &n->event, sizeof(n->event));
	note_free(n);
	return 0;
}

/* --- ids -------------------------------------------------------------------------------------- */

/* Makes an id with a handle and a starting PSN.  @return 0 or a negative errno. */
static int id_new(struct connections *all, struct cm_id **made)
{
	struct cm_id *id = calloc(1, sizeof(*id));
	int err = id ? random_bytes(&id->psn, sizeof(id->psn)) : -ENOMEM;

	if (!err)
		err = handle_add(&all->ids, id, &id->handle);
	if (err) {
		free(id);
		return err;
	}
	id->psn &= 0xFFFFFF;
	id->all = all;
	list_init(&id->events);
	list_init(&id->node);
	list_init(&id->bind_node);
	list_init(&id->lookup_node);
	wheel_timer_init(&id->deadline);
	*made = id;
	return 0;
}

int id_create(struct cm_channel *ch, const struct abi_cm_create_id *in, struct cm_id **made,
	char why[ABI_SENTENCE_MAX])
{
	int err = quota_take_one(ch->session, CTL_CM_IDS, why);
	struct cm_id *id;

	if (err)
		return err;
	err = id_new(ch->session->ctl->connections, &id);
	if (err) {
		quota_give_one(ch->session, CTL_CM_IDS);
		return err == -ENOSPC ? refuse(why, err, "rocid has no CM id left: destroy some")
				      : refuse_memory(why);
	}
	id->channel = ch;
	id->ps = in->ps;
	id->qp_type = in->qp_type;
	id->uid = in->uid;
	id_enlist(id);
	*made = id;
	return 0;
}

void id_enlist(struct cm_id *id)
{
	struct list *ids = &id->channel->ids;

	list_del(&id->node);
	list_push(id->state == ID_LISTEN ? ids->next : ids, &id->node);
}

static void move_id(struct cm_id *id, struct cm_channel *to)
{
	move_events(id, to);
	id->channel = to;
	id_enlist(id);
}

/* Requests that no program has received move with their listener. */
static void migrate(struct cm_id *id, struct cm_channel *to)
{
	move_id(id, to);
	for (struct list *l = id->events.next; l != &id->events; l = l->next) {
		struct cm_id *request = container_of(l, struct cm_note, of)->id;

		if (request->channel != to)
			move_id(request, to);
	}
}

/* The port space decides; only that of IB allows all types. */
static bool type_fits(const struct abi_cm_create_id *in)
{
	bool datagrams = in->ps == ABI_CM_PS_UDP || in->ps == ABI_CM_PS_IPOIB;

	return in->ps == ABI_CM_PS_IB || datagrams == (in->qp_type == ABI_QPT_UD);
}

int cmd_cm_create_id(struct cm_channel *ch, const struct request *q, struct reply *r)
{
	struct abi_cm_create_id in;
	struct abi_handle_reply out;
	struct cm_id *id;
	int err;

	memcpy(&in, q->body, sizeof(in));
	if (in.ps != ABI_CM_PS_TCP && in.ps != ABI_CM_PS_UDP && in.ps != ABI_CM_PS_IB &&
		in.ps != ABI_CM_PS_IPOIB)
		return refuse(r->why, -EINVAL,
			"there is no port space 0x%x: use TCP (0x106) or UDP (0x111)", in.ps);
	if (!type_fits(&in))
		return refuse(r->why, -EINVAL,
			"a QP of type %u does not belong to port space 0x%x: UD belongs to UDP and "
			"IPoIB, other types to TCP",
			in.qp_type, in.ps);
	err = id_create(ch, &in, &id, r->why);
	if (err)
		return err;
	out.handle = id->handle;
	reply_body(r, &out, sizeof(out));
	return 0;
}

int cmd_cm_migrate_id(struct cm_id *id, const struct request *q, struct reply *r)
{
	struct abi_cm_destroyed out;
	struct abi_cm_migrate in;
	struct cm_channel *ch;

	memcpy(&in, q->body, sizeof(in));
	ch = channel_named(id->channel->session, in.channel, r);
	if (!ch)
		return -EINVAL;
	out.events_reported = id->reported;
	if (ch != id->channel)
		migrate(id, ch);
	reply_body(r, &out, sizeof(out));
	return 0;
}

/* --- channels --------------------------------------------------------------------------------- */

/* Makes the program's end of a pipe, and our end. O_NONBLOCK belongs to an open file description,
 * so ours must be a different one: a program that clears the flag must not make us wait. */
static int make_pipe(struct cm_channel *ch)
{
	char path[32];
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
	ch->fd[0] = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ch->fd[1] = ends[1];
	if (ch->fd[0] >= 0 && !fcntl(ends[1], F_SETFL, O_NONBLOCK))
		return ends[0];
	err = -errno;
	if (ch->fd[0] >= 0)
		close(ch->fd[0]);
	close(ends[0]);
	close(ends[1]);
	return err;
}

static int make_channel(struct session *s, struct cm_channel *ch, struct reply *r)
{
	int app = make_pipe(ch);

	if (app < 0)
		return refuse(r->why, app,
			"rocid cannot create a channel (%s): raise its limit of open files (ulimit "
			"-n), and make sure that it can read /proc",
			strerror(-app));
	if (handle_add(&s->ctl->connections->channels, ch, &ch->handle)) {
		close(app);
		close(ch->fd[0]);
		close(ch->fd[1]);
		return refuse(r->why, -ENOSPC, "no room for another CM channel: close some");
	}
	reply_fd(r, app);
	return 0;
}

void channel_uncharge(struct session *s)
{
	quota_give(s, channel_charge, ARRAY_SIZE(channel_charge));
}

int cmd_cm_open(struct session *s, const struct request *q, struct reply *r)
{
	struct connections *all = s->ctl->connections;
	struct abi_handle_reply out;
	struct cm_channel *ch;
	int err;

	if (!all->cm)
		return refuse(r->why, -EOPNOTSUPP,
			"rocid has no communication manager: start it without --cm no");
	err = quota_take(s, channel_charge, ARRAY_SIZE(channel_charge), r->why);
	if (err)
		return err;
	ch = calloc(1, sizeof(*ch));
	err = ch ? make_channel(s, ch, r) : refuse_memory(r->why);
	if (err) {
		channel_uncharge(s);
		free(ch);
		return err;
	}
	ch->session = s;
	list_init(&ch->ids);
	list_init(&ch->events);
	list_push(&s->cm_channels, &ch->of_session);
	out.handle = ch->handle;
	reply_body(r, &out, sizeof(out));
	return 0;
}
