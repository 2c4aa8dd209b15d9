/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "json_line.h"
#include "row.h"
#include "talk.h"

static int make_socket(const char *path, struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		errx(1, "cannot create a socket: %s", strerror(errno));
	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(addr->sun_path))
		errx(1,
			"the path of the socket, %s, is longer than %zu bytes: use a shorter "
			"TMPDIR",
			path, sizeof(addr->sun_path) - 1);
	strcpy(addr->sun_path, path);
	return fd;
}

int talk_listen(const char *path)
{
	struct sockaddr_un addr;
	struct row r;
	int fd = make_socket(path, &addr);
	int peer;

	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 1))
		errx(1, "cannot listen on %s: %s", path, strerror(errno));
	row_begin(&r);
	put_bool(&r, "listening", true);
	json_line(row_end(&r));
	peer = accept(fd, NULL, NULL);
	if (peer < 0)
		errx(1, "the other end did not connect to %s: %s", path, strerror(errno));
	close(fd);
	return peer;
}

int talk_connect(const char *path)
{
	struct sockaddr_un addr;
	int fd = make_socket(path, &addr);

	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		errx(1, "cannot connect to %s: %s: start role b first", path, strerror(errno));
	return fd;
}
