/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include "session/turn.h"

struct turn {
	struct watch watch; /* the epoll of the user's sockets */
	struct list node;   /* on ctl.turns */
	struct ctl *ctl;
	uid_t uid;
	uint32_t sessions;
};

/* One event: what handles it may free any other watch, and this turn. */
static void turn_ready(struct watch *w)
{
	struct epoll_event ev;
	struct watch *of;

	if (epoll_wait(w->fd, &ev, 1, 0) != 1)
		return;
	of = ev.data.ptr;
	of->ready(of);
}

static struct turn *find(const struct ctl *ctl, uid_t uid)
{
	for (struct list *n = ctl->turns.next; n != &ctl->turns; n = n->next) {
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
	t->watch = (struct watch){.fd = epoll_create1(EPOLL_CLOEXEC), .ready = turn_ready};
	*err = t->watch.fd < 0 ? -errno : ctl_watch(ctl, &t->watch);
	if (*err) {
		ctl_unwatch(ctl, &t->watch);
		free(t);
		return NULL;
	}
	list_push(&ctl->turns, &t->node);
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
	ctl_unwatch(t->ctl, &t->watch);
	list_del(&t->node);
	free(t);
}

int turn_watch(struct session *s)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &s->watch};

	return epoll_ctl(s->turn->watch.fd, EPOLL_CTL_ADD, s->watch.fd, &ev) ? -errno : 0;
}

void turn_unwatch(struct session *s)
{
	epoll_ctl(s->turn->watch.fd, EPOLL_CTL_DEL, s->watch.fd, NULL);
}
