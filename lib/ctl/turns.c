/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include "turns.h"

/* One request: its session may end with it, and @p w with that. */
static void serve(struct watch *w)
{
	struct epoll_event ev;
	struct watch *session;

	if (epoll_wait(w->fd, &ev, 1, 0) != 1)
		return;
	session = ev.data.ptr;
	session->ready(session);
}

static struct turn *find(struct ctl *ctl, uid_t uid)
{
	for (struct list *l = ctl->turns.next; l != &ctl->turns; l = l->next) {
		struct turn *t = container_of(l, struct turn, node);

		if (t->uid == uid)
			return t;
	}
	return NULL;
}

static void release(struct turn *t)
{
	if (t->sessions)
		return;
	list_del(&t->node);
	ctl_unwatch(t->ctl, &t->watch);
	free(t);
}

/* @return 0 or a negative errno. */
static int make(struct ctl *ctl, uid_t uid, struct turn **out)
{
	struct turn *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	*t = (struct turn){.ctl = ctl,
		.uid = uid,
		.watch = {.fd = epoll_create1(EPOLL_CLOEXEC), .ready = serve}};
	list_init(&t->node);
	err = t->watch.fd < 0 ? -errno : ctl_watch(ctl, &t->watch);
	if (err) {
		release(t);
		return err;
	}
	list_push(&ctl->turns, &t->node);
	*out = t;
	return 0;
}

int turn_join(struct session *s)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &s->watch};
	struct turn *t = find(s->ctl, s->peer.uid);
	int err = t ? 0 : make(s->ctl, s->peer.uid, &t);

	if (err)
		return err;
	if (epoll_ctl(t->watch.fd, EPOLL_CTL_ADD, s->watch.fd, &ev)) {
		err = -errno;
		release(t);
		return err;
	}
	t->sessions++;
	s->turn = t;
	return 0;
}

void turn_leave(struct session *s)
{
	struct turn *t = s->turn;

	if (!t)
		return;
	s->turn = NULL;
	epoll_ctl(t->watch.fd, EPOLL_CTL_DEL, s->watch.fd, NULL);
	t->sessions--;
	release(t);
}
