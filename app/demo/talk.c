/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "talk.h"

void die(const char *format, ...)
{
	va_list ap;

	fputs("demo_peer: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static int make_socket(const char *path, struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("no socket can be made: %s", strerror(errno));
	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(addr->sun_path))
		die("the path of the socket, %s, is longer than %zu bytes: use a shorter TMPDIR",
			path, sizeof(addr->sun_path) - 1);
	strcpy(addr->sun_path, path);
	return fd;
}

int talk_listen(const char *path)
{
	struct sockaddr_un addr;
	int fd = make_socket(path, &addr);
	int peer;

	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 1))
		die("cannot listen on %s: %s", path, strerror(errno));
	printf("{\"listening\": true}\n");
	fflush(stdout);
	peer = accept(fd, NULL, NULL);
	if (peer < 0)
		die("nobody connects to %s: %s", path, strerror(errno));
	close(fd);
	return peer;
}

int talk_connect(const char *path)
{
	struct sockaddr_un addr;
	int fd = make_socket(path, &addr);

	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		die("cannot connect to %s: %s: start role b first", path, strerror(errno));
	return fd;
}

void talk_send(int fd, const void *msg, size_t size)
{
	if (send(fd, msg, size, MSG_NOSIGNAL) != (ssize_t)size)
		die("the other program is gone");
}

void talk_receive(int fd, void *msg, size_t size)
{
	ssize_t n;

	do
		n = recv(fd, msg, size, MSG_WAITALL);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)size)
		die("the other program is gone: its own message says why");
}
