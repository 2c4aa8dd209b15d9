/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include "loop/loop.h"

#define NSEC_PER_SEC  1000000000ull
#define NSEC_PER_MSEC 1000000ull

uint64_t loop_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t loop_now_ms(void)
{
	return loop_now_ns() / NSEC_PER_MSEC;
}

uint64_t loop_calendar_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / NSEC_PER_MSEC;
}

int loop_open(struct loop *l)
{
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	return l->epoll < 0 ? -errno : 0;
}

void loop_close(struct loop *l)
{
	if (l->epoll >= 0)
		close(l->epoll);
	l->epoll = -1;
}

int loop_wait(struct loop *l, int wait)
{
	struct epoll_event ev;
	struct watch *w;
	int n = epoll_wait(l->epoll, &ev, 1, wait);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (!n)
		return 0;
	w = ev.data.ptr;
	w->ready(w);
	return 1;
}

int loop_watch(struct loop *l, struct watch *w)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = w};

	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, w->fd, &ev) ? -errno : 0;
}

void loop_watch_nothing(struct loop *l, struct watch *w)
{
	struct epoll_event ev = {.data.ptr = w};

	epoll_ctl(l->epoll, EPOLL_CTL_MOD, w->fd, &ev);
}

void loop_watch_output(struct loop *l, struct watch *w, bool output)
{
	struct epoll_event ev = {.events = output ? EPOLLOUT : EPOLLIN, .data.ptr = w};

	epoll_ctl(l->epoll, EPOLL_CTL_MOD, w->fd, &ev);
}

void loop_forget(struct loop *l, struct watch *w)
{
	epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
}

void loop_unwatch(struct loop *l, struct watch *w)
{
	if (w->fd < 0)
		return;
	loop_forget(l, w);
	close(w->fd);
	w->fd = -1;
}
