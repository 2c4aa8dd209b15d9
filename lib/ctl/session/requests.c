/* SPDX-License-Identifier: BSD-3-Clause */
/* The requests of an application and their replies. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "abi_ctl.h"
#include "bits.h"
#include "config/ctl_parts.h"
#include "loop/loop.h"
#include "loop/reaper.h"
#include "loop/recv_fds.h"
#include "refuse.h"
#include "session/message.h"
#include "session/server.h"
#include "session/session.h"
#include "session/sessions.h"
#include "session/turn.h"

/* --- replies -------------------------------------------------------------------------- */

void reply_body(struct reply *r, const void *body, size_t len)
{
	memcpy(r->body, body, len);
	r->body_len = len;
}

void reply_fd(struct reply *r, int fd)
{
	r->fd[r->nfds++] = fd;
}

static void put_fds(struct msghdr *mh, const struct reply *r)
{
	struct cmsghdr *c = mh->msg_control;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(r->nfds * sizeof(int));
	memcpy(CMSG_DATA(c), r->fd, r->nfds * sizeof(int));
	mh->msg_controllen = CMSG_SPACE(r->nfds * sizeof(int));
}

bool message_send(int fd, const struct abi_msg *msg, const struct reply *r)
{
	union {
		char buf[CMSG_SPACE(REPLY_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov[2] = {
		{.iov_base = (void *)msg, .iov_len = sizeof(*msg)},
		{.iov_base = (void *)r->body, .iov_len = r->body_len},
	};
	struct msghdr mh = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t n;

	if (r->nfds) {
		memset(&control, 0, sizeof(control));
		mh.msg_control = control.buf;
		put_fds(&mh, r);
	}
	do
		n = sendmsg(fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n >= 0;
}

static void drop_fds(struct reply *r)
{
	while (r->nfds)
		close(r->fd[--r->nfds]);
}

void session_reply(struct session *s, const struct abi_msg *msg, int result, struct reply *r)
{
	struct abi_msg out = {.type = msg->type, .seq = msg->seq, .status = result};

	if (result == DEFERRED)
		return;
	if (result < 0) {
		drop_fds(r);
		reply_body(r, r->why, strlen(r->why) + 1);
	}
	if (s->replied) {
		s->replied(s, &out, r);
		drop_fds(r);
		return;
	}
	/* An application with dozens of unread replies will not read this one either. The shutdown
	 * then ends the session from the event loop, where that is safe. */
	if (!message_send(s->watch.fd, &out, r))
		shutdown(s->watch.fd, SHUT_RDWR);
	drop_fds(r);
}

bool session_privileged(const struct session *s)
{
	return s->peer.uid == 0 || s->peer.uid == geteuid();
}

/* --- requests ------------------------------------------------------------------------- */

/* Results of receive() besides 0 and a negative errno. */
enum {
	NOTHING = 1,
	HELD
};

/* A user whose passed descriptors hang in close() waits until few of them do. */
static bool must_wait(const struct session *s)
{
	struct reaper *closer = s->ctl->sessions->closer;

	return reaper_load(closer, owner_passed(s->peer.uid)) >= CLOSING_USER_MAX &&
	       recv_fds_waits(s->watch.fd);
}

/* @return 0, or the refusal of a message with descriptors that do not belong to it. */
static int check_passed(
	const struct session *s, const struct recv_fds *p, struct request *q, struct reply *r)
{
	if (p->excess)
		return refuse(r->why, -EPROTO, "a message can carry at most one descriptor");
	if (p->fd >= 0 && !s->ctl->sessions->ops->takes_descriptor(q->msg.type))
		return refuse(
			r->why, -EPROTO, "message type %u carries no descriptor", q->msg.type);
	return 0;
}

/* Reads one request into @p q, which starts as zeroes.
 * @return 0; NOTHING; HELD; -EPIPE at the end; another errno for a malformed message.
 * @param fatal  set when the session ends with the reply */
static int receive(struct session *s, struct request *q, struct reply *r, bool *fatal)
{
	const struct iovec iov[2] = {
		{.iov_base = &q->msg, .iov_len = sizeof(q->msg)},
		{.iov_base = q->body, .iov_len = sizeof(q->body)},
	};
	struct recv_fds p = {.fd = -1};
	ssize_t n;
	bool full;
	int err;

	q->fd = -1;
	if (must_wait(s))
		return HELD;
	n = recv_fds(s->watch.fd, iov, ARRAY_SIZE(iov), &p);
	full = n >= 0 && p.no_room;
	if (full && server_use_reserve(s->ctl))
		n = recv_fds(s->watch.fd, iov, ARRAY_SIZE(iov), &p);
	q->fd = p.fd;
	if (n >= 0 && p.no_room)
		return HELD;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? NOTHING : -EPIPE;
	if (n == 0 && !p.cut)
		return -EPIPE;
	err = check_passed(s, &p, q, r);
	*fatal = err;
	if (err)
		return err;
	if (p.cut)
		return refuse(r->why, -EPROTO, "a message has at most %u bytes", ABI_MSG_MAX);
	if ((size_t)n < sizeof(q->msg))
		return refuse(
			r->why, -EPROTO, "a message of %zd bytes is too short for its header", n);
	if (full)
		return refuse(r->why, -EMFILE,
			"rocid has no room for the descriptor: raise its limit of open files "
			"(ulimit -n)");
	q->body_len = (size_t)n - sizeof(q->msg);
	return 0;
}

/* Stops watching the socket; sessions_poll() resumes it. */
static void hold(struct session *s)
{
	struct ctl *ctl = s->ctl;

	turn_unwatch(s);
	if (list_empty(&ctl->sessions->held))
		ctl->sessions->held_ms = loop_now_ms() + HELD_MS;
	list_push(&ctl->sessions->held, &s->held);
}

int sessions_poll(struct ctl *ctl, uint64_t now_ms)
{
	struct list again;
	struct list *l;

	if (list_empty(&ctl->sessions->held))
		return -1;
	if (now_ms < ctl->sessions->held_ms)
		return (int)(ctl->sessions->held_ms - now_ms);
	list_init(&again);
	list_splice(&again, &ctl->sessions->held);
	while ((l = list_pop(&again))) {
		struct session *s = container_of(l, struct session, held);

		if (must_wait(s))
			list_push(&ctl->sessions->held, &s->held);
		else if (turn_watch(s))
			session_begin_close(s); /* no memory */
	}
	ctl->sessions->held_ms = now_ms + HELD_MS;
	return list_empty(&ctl->sessions->held) ? -1 : (int)HELD_MS;
}

void session_ready(struct watch *w)
{
	struct session *s = container_of(w, struct session, watch);
	struct request q = {0};
	struct reply r = {0};
	struct ctl *ctl = s->ctl;
	bool fatal = false;
	int got = receive(s, &q, &r, &fatal);
	int result = got ? got : ctl->sessions->ops->run(s, &q, &r);

	server_make_reserve(ctl);
	if (q.fd >= 0) /* also at the end of the stream, because an empty message looks like it */
		reap_fd(ctl->sessions->closer, owner_passed(s->peer.uid), q.fd);
	if (got == HELD)
		hold(s);
	else if (got != NOTHING && got != -EPIPE)
		session_reply(s, &q.msg, result, &r);
	if (got == -EPIPE || fatal)
		session_begin_close(s);
}
