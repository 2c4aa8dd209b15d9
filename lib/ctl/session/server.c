/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "config/ctl_parts.h"
#include "loop/listen.h"
#include "loop/reaper.h"
#include "refuse.h"
#include "session/server.h"
#include "session/session.h"
#include "session/sessions.h"

#define MODE_DEFAULT	0660u
#define ACCEPT_PAUSE_MS 20u /* after accept() failed for lack of memory or descriptors */

bool server_use_reserve(struct ctl *ctl)
{
	if (ctl->sessions->reserve_fd < 0)
		return false;
	close(ctl->sessions->reserve_fd);
	ctl->sessions->reserve_fd = -1;
	return true;
}

void server_make_reserve(struct ctl *ctl)
{
	if (ctl->sessions->reserve_fd < 0)
		ctl->sessions->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static uint64_t owner_of(int connection)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return OWNER_ROCID;
	return owner_connections(peer.uid);
}

int server_accept(struct ctl *ctl, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int err;

	if (fd >= 0)
		return fd;
	if (errno != EMFILE && errno != ENFILE)
		return -errno;
	/* Out of descriptors: turn the connection away instead of spinning on it. */
	server_use_reserve(ctl);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	err = fd < 0 ? -errno : -ECONNABORTED;
	if (fd >= 0)
		reap_fd(ctl->sessions->closer, owner_of(fd), fd);
	server_make_reserve(ctl);
	return err;
}

static void server_ready(struct watch *w)
{
	struct ctl *ctl = container_of(w, struct sessions, listener)->ctl;
	int fd = server_accept(ctl, w->fd);

	if (fd >= 0) {
		session_open(ctl, fd);
	} else if (fd == -ENOMEM || fd == -ENOBUFS || fd == -EMFILE || fd == -ENFILE) {
		/* The connection stays in the queue and would make the loop spin. */
		loop_watch_nothing(ctl->loop, w);
		ctl->sessions->listen_ms = loop_now_ms() + ACCEPT_PAUSE_MS;
	}
}

int server_poll(struct ctl *ctl, uint64_t now_ms)
{
	if (!ctl->sessions->listen_ms)
		return -1;
	if (now_ms < ctl->sessions->listen_ms)
		return (int)(ctl->sessions->listen_ms - now_ms);
	ctl->sessions->listen_ms = 0;
	loop_watch_output(ctl->loop, &ctl->sessions->listener, false);
	return -1;
}

int server_open(struct ctl *ctl, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX])
{
	const struct listen_spec spec = {
		.path = cfg->socket_path ? cfg->socket_path : ABI_SOCKET_DEFAULT,
		.type = SOCK_SEQPACKET,
		.mode = cfg->socket_mode ? cfg->socket_mode : MODE_DEFAULT,
		.group = cfg->socket_group,
	};
	int fd = listen_open(&spec, why);

	if (fd < 0)
		return fd;
	ctl->sessions->listener = (struct watch){.fd = fd, .ready = server_ready};
	ctl->sessions->socket_path = strdup(spec.path);
	if (!ctl->sessions->socket_path) {
		unlink(spec.path);
		return refuse_memory(why);
	}
	server_make_reserve(ctl);
	return loop_watch(ctl->loop, &ctl->sessions->listener);
}

void server_close(struct ctl *ctl)
{
	if (ctl->sessions->listener.fd >= 0) { /* with connections that were not accepted */
		loop_forget(ctl->loop, &ctl->sessions->listener);
		reap_fd(ctl->sessions->closer, OWNER_ROCID, ctl->sessions->listener.fd);
		ctl->sessions->listener.fd = -1;
	}
	if (ctl->sessions->socket_path)
		unlink(ctl->sessions->socket_path);
	free(ctl->sessions->socket_path);
	ctl->sessions->socket_path = NULL;
	server_use_reserve(ctl);
}
