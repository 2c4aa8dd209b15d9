/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "abi_ctl.h"
#include "ask.h"

static const char *advice(int err)
{
	switch (err) {
	case ENOENT:
	case ECONNREFUSED:
		return "no rocid serves it: start rocid, or give another socket with --socket";
	case EACCES:
	case EPERM:
		return "permission denied: run rocictl as rocid's user, or see rocid's "
		       "--admin-group";
	default:
		return strerror(err);
	}
}

int ask_connect(const char *path, char why[ASK_WHY])
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) + strlen(ABI_ADMIN_SUFFIX) >= sizeof(un.sun_path)) {
		snprintf(why, ASK_WHY, "the socket path is too long: at most %zu bytes fit",
			sizeof(un.sun_path) - strlen(ABI_ADMIN_SUFFIX) - 1);
		return -1;
	}
	stpcpy(stpcpy(un.sun_path, path), ABI_ADMIN_SUFFIX);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		snprintf(why, ASK_WHY, "cannot create a socket: %s", strerror(errno));
		return -1;
	}
	if (!connect(fd, (struct sockaddr *)&un, sizeof(un)))
		return fd;
	snprintf(why, ASK_WHY, "%s: %s", un.sun_path, advice(errno));
	close(fd);
	return -1;
}

static int send_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static size_t take(void *buffer, size_t size, void *arg)
{
	ssize_t n;

	do
		n = recv(*(int *)arg, buffer, size, 0);
	while (n < 0 && errno == EINTR);
	return n < 0 ? (size_t)-1 : (size_t)n;
}

static json_t *take_document(int fd, char why[ASK_WHY])
{
	json_error_t error;
	json_t *document = json_load_callback(take, &fd, JSON_DISABLE_EOF_CHECK, &error);

	if (!document)
		snprintf(why, ASK_WHY,
			"rocid's answer is incomplete: it has stopped, or is of another version");
	return document;
}

json_t *ask(int fd, const char *line, char why[ASK_WHY])
{
	if (!send_all(fd, line, strlen(line)))
		send_all(fd, "\n", 1);
	return take_document(fd, why);
}

/* The newline carries the descriptor. */
static int send_passing(int fd, int passed)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {.iov_base = (char[]){'\n'}, .iov_len = 1};
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
	ssize_t n;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &passed, sizeof(int));
	do
		n = sendmsg(fd, &mh, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

json_t *ask_stream(int fd, const char *line, int *stream, char why[ASK_WHY])
{
	json_t *document;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		snprintf(why, ASK_WHY, "cannot create a socket: %s", strerror(errno));
		return NULL;
	}
	if (!send_all(fd, line, strlen(line)))
		send_passing(fd, pair[1]);
	close(pair[1]);
	document = take_document(fd, why);
	if (document) {
		*stream = pair[0];
		return document;
	}
	close(pair[0]);
	return NULL;
}
