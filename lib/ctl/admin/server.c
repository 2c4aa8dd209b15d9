/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "admin/admin.h"
#include "admin/command.h"
#include "admin/server.h"
#include "config/ctl_parts.h"
#include "list.h"
#include "loop/listen.h"
#include "loop/loop.h"
#include "loop/reaper.h"
#include "loop/recv_fds.h"
#include "refuse.h"
#include "session/server.h"
#include "session/sessions.h"
#include "text/document.h"

#define MODE_DEFAULT 0600u

struct admin_client {
	struct watch watch;
	struct ctl *ctl;
	uint32_t slot;	   /* in admin.client */
	uint64_t heard_ms; /* when it last sent or received something */
	int recv_fd;	   /* descriptor received with `line`; -1: none */
	char line[ADMIN_LINE_MAX];
	size_t len;
	bool too_long; /* data up to the end of the line still belongs to it */
	bool ended;    /* the client has closed its end */
	/* the reply */
	bool replying;
	bool more; /* `document` has more parts */
	struct document document;
	struct text text; /* the current part, */
	size_t sent;	  /* this much of it was sent */
};

static void client_close(struct admin_client *c)
{
	int fd = c->watch.fd;

	loop_forget(c->ctl->loop, &c->watch);
	shutdown(fd, SHUT_RDWR);
	reap_fd(c->ctl->sessions->closer, OWNER_ROCID, fd); /* with its unread data */
	if (c->recv_fd >= 0)
		reap_fd(c->ctl->sessions->closer, OWNER_ROCID, c->recv_fd);
	c->ctl->admin->client[c->slot] = NULL;
	text_free(&c->text);
	free(c);
}

/* --- replies ---------------------------------------------------------------------------- */

static int begin_reply(struct admin_client *c, char *line)
{
	static const char refusal[] = "{\"error\":\"the line is too long: see \\\"help\\\"\"}\n";
	int err;

	c->replying = true;
	loop_watch_output(c->ctl->loop, &c->watch, true);
	if (c->too_long) {
		c->too_long = false;
		c->more = false;
		return text_add(&c->text, refusal, sizeof(refusal) - 1);
	}
	c->ctl->admin->recv_fd = c->recv_fd;
	c->recv_fd = -1;
	err = admin_execute(c->ctl, line, &c->document, &c->text);
	if (c->ctl->admin->recv_fd >= 0) { /* not used by the command */
		reap_fd(c->ctl->sessions->closer, OWNER_ROCID, c->ctl->admin->recv_fd);
		c->ctl->admin->recv_fd = -1;
	}
	if (err)
		return err;
	c->more = !c->text.len;
	return 0;
}

/* Takes the first line received, if it is complete, and begins its reply.
 * @return 1 if there is none, 0, or a negative errno: end the connection. */
static int next_line(struct admin_client *c)
{
	char *end = memchr(c->line, '\n', c->len);
	char line[ADMIN_LINE_MAX];
	size_t taken;

	if (!end && c->len == sizeof(c->line)) {
		c->too_long = true;
		c->len = 0;
	}
	if (!end && (!c->ended || !c->len))
		return c->ended ? -EPIPE : 1;
	taken = end ? (size_t)(end - c->line) : c->len; /* the last may lack its newline */
	if (taken == sizeof(line))
		taken--;
	for (size_t i = 0; i < taken; i++)
		line[i] = c->line[i] ? c->line[i] : '?'; /* a NUL must not hide words */
	line[taken] = '\0';
	taken = end ? (size_t)(end - c->line) + 1 : c->len;
	c->len -= taken;
	memmove(c->line, c->line + taken, c->len);
	return begin_reply(c, line);
}

/* Generates the next part when the last was sent, and sends as much as the socket accepts.
 * @return 1 if something is left, 0 when the reply is complete, or a negative errno. */
static int reply(struct admin_client *c)
{
	ssize_t n;
	int err;

	if (c->sent == c->text.len && c->more) {
		c->sent = 0;
		c->text.len = 0;
		err = document_part(&c->document, &c->text);
		if (err < 0)
			return err;
		c->more = err;
	}
	n = send(c->watch.fd, c->text.bytes + c->sent, c->text.len - c->sent,
		MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -errno;
	c->sent += (size_t)n;
	return c->more || c->sent < c->text.len;
}

/* --- events ----------------------------------------------------------------------------- */

static int receive(struct admin_client *c)
{
	struct iovec iov = {.iov_base = c->line + c->len, .iov_len = sizeof(c->line) - c->len};
	struct recv_fds p;
	ssize_t n = recv_fds(c->watch.fd, &iov, 1, &p);
	int err = n < 0 ? -errno : 0;

	if (p.fd >= 0) { /* the newest belongs to the next command */
		if (c->recv_fd >= 0)
			reap_fd(c->ctl->sessions->closer, OWNER_ROCID, c->recv_fd);
		c->recv_fd = p.fd;
	}
	if (err)
		return err == -EAGAIN || err == -EINTR ? 1 : err;
	if (p.excess || p.no_room)
		return -EMFILE;
	c->ended = n == 0;
	c->len += (size_t)n;
	return next_line(c);
}

static int finish(struct admin_client *c)
{
	text_free(&c->text); /* do not keep the memory of a large reply */
	c->sent = 0;
	c->replying = false;
	loop_watch_output(c->ctl->loop, &c->watch, false);
	return next_line(c);
}

static void client_ready(struct watch *w)
{
	struct admin_client *c = container_of(w, struct admin_client, watch);
	int err;

	c->heard_ms = loop_now_ms();
	if (c->replying) {
		err = reply(c);
		if (!err)
			err = finish(c);
	} else {
		err = receive(c);
	}
	if (err < 0)
		client_close(c);
}

/* @return a free slot, after closing the connection that was silent longest if necessary. */
static uint32_t find_place(struct admin *a)
{
	uint32_t quiet = 0;

	for (uint32_t i = 0; i < ADMIN_CLIENT_MAX; i++) {
		if (!a->client[i])
			return i;
		if (a->client[i]->heard_ms < a->client[quiet]->heard_ms)
			quiet = i;
	}
	client_close(a->client[quiet]);
	return quiet;
}

static void admin_ready(struct watch *w)
{
	struct admin *a = container_of(w, struct admin, listener);
	int fd = server_accept(a->ctl, w->fd);
	struct admin_client *c;

	if (fd < 0)
		return;
	c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return;
	}
	c->ctl = a->ctl;
	c->slot = find_place(a);
	c->heard_ms = loop_now_ms();
	c->recv_fd = -1;
	c->watch = (struct watch){.fd = fd, .ready = client_ready};
	a->client[c->slot] = c;
	if (loop_watch(a->ctl->loop, &c->watch))
		client_close(c);
}

/* --- life ------------------------------------------------------------------------------- */

void admin_init(struct admin *a, struct ctl *ctl)
{
	a->ctl = ctl;
	a->listener.fd = -1;
	a->recv_fd = -1;
	list_init(&a->captures);
	list_init(&a->traces);
}

int admin_open(struct ctl *ctl, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX])
{
	struct admin *a = ctl->admin;
	struct listen_spec spec = {
		.type = SOCK_STREAM,
		.mode = cfg->admin_mode ? cfg->admin_mode : MODE_DEFAULT,
		.group = cfg->admin_group,
	};
	int fd;

	if (asprintf(&a->path, "%s%s", ctl->sessions->socket_path, ABI_ADMIN_SUFFIX) < 0) {
		a->path = NULL;
		return refuse_memory(why);
	}
	spec.path = a->path;
	fd = listen_open(&spec, why);
	if (fd < 0) {
		free(a->path);
		a->path = NULL;
		return fd;
	}
	a->listener = (struct watch){.fd = fd, .ready = admin_ready};
	return loop_watch(ctl->loop, &a->listener);
}

void admin_close(struct ctl *ctl)
{
	struct admin *a = ctl->admin;

	if (!a->path)
		return;
	for (uint32_t i = 0; i < ADMIN_CLIENT_MAX; i++)
		if (a->client[i])
			client_close(a->client[i]);
	loop_unwatch(ctl->loop, &a->listener);
	unlink(a->path);
	free(a->path);
	a->path = NULL;
}
