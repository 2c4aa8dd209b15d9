/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include "config/ctl_parts.h"
#include "list.h"
#include "loop/loop.h"
#include "session/session.h"
#include "session/sessions.h"
#include "session/turn.h"

struct turn {
	struct watch watch; /* the epoll of `sockets` */
	struct loop sockets;
	struct list node; /* on sessions.turns */
	struct ctl *ctl;
	uid_t uid;
	uint32_t sessions;
};

/* One event only, because its handler may free any other watch, and this turn. */
static void turn_ready(struct watch *w)
{
	loop_wait(&container_of(w, struct turn, watch)->sockets, 0);
}

static struct turn *find(const struct ctl *ctl, uid_t uid)
{
	for (struct list *n = ctl->sessions->turns.next; n != &ctl->sessions->turns; n = n->next) {
		struct turn *t = container_of(n, struct turn, node);

		if (t->uid == uid)
			return t;
	}
	return NULL;
}

static struct turn *make(struct ctl *ctl, uid_t uid, int *err)
{
	struct turn *t = calloc(1, sizeof(*t));

	*err = -ENOMEM;
	if (!t)
		return NULL;
	*t = (struct turn){.ctl = ctl, .uid = uid};
	*err = loop_open(&t->sockets);
	t->watch = (struct watch){.fd = t->sockets.epoll, .ready = turn_ready};
	if (!*err)
		*err = loop_watch(ctl->loop, &t->watch);
	if (*err) {
		loop_unwatch(ctl->loop, &t->watch);
		free(t);
		return NULL;
	}
	list_push(&ctl->sessions->turns, &t->node);
	return t;
}

int turn_join(struct session *s)
{
	struct turn *t = find(s->ctl, s->peer.uid);
	int err = 0;

	if (!t)
		t = make(s->ctl, s->peer.uid, &err);
	if (!t)
		return err;
	t->sessions++;
	s->turn = t;
	return turn_watch(s);
}

void turn_leave(struct session *s)
{
	struct turn *t = s->turn;

	if (!t)
		return;
	turn_unwatch(s);
	s->turn = NULL;
	if (--t->sessions)
		return;
	loop_unwatch(t->ctl->loop, &t->watch);
	list_del(&t->node);
	free(t);
}

int turn_watch(struct session *s)
{
	return loop_watch(&s->turn->sockets, &s->watch);
}

void turn_unwatch(struct session *s)
{
	loop_forget(&s->turn->sockets, &s->watch);
}
