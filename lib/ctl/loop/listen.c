/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "loop/listen.h"
#include "text/sentence.h"

#define BACKLOG 64

/* A socket per step: one that has tried to connect is not used for listening. */
static int new_socket(int type, char why[ABI_SENTENCE_MAX])
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return refuse(why, -errno, "rocid cannot make a socket: %s", strerror(errno));
	return fd;
}

/* @return 0, or a negative errno with a sentence, when @p un is free to bind to. */
static int clear_path(int type, const struct sockaddr_un *un, char why[ABI_SENTENCE_MAX])
{
	struct stat st;
	int fd, err = 0;

	if (lstat(un->sun_path, &st))
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return refuse(why, -EADDRINUSE,
			"%s exists and is no socket: remove it, or choose "
			"another socket path",
			un->sun_path);
	fd = new_socket(type, why);
	if (fd < 0)
		return fd;
	if (!connect(fd, (const struct sockaddr *)un, sizeof(*un)))
		err = refuse(why, -EADDRINUSE,
			"another rocid is serving %s: stop it, or choose another socket path",
			un->sun_path);
	else if (errno == ECONNREFUSED) /* left behind by one that was killed */
		unlink(un->sun_path);
	close(fd);
	return err;
}

static int group_id(const char *group, gid_t *gid)
{
	struct group *gr = getgrnam(group);
	char *end;

	if (gr) {
		*gid = gr->gr_gid;
		return 0;
	}
	*gid = (gid_t)strtoul(group, &end, 10);
	return *group && !*end ? 0 : -EINVAL;
}

static int set_owner(const struct listen_spec *spec, char why[ABI_SENTENCE_MAX])
{
	gid_t gid = (gid_t)-1;

	if (spec->group && group_id(spec->group, &gid))
		return refuse(why, -EINVAL,
			"there is no group \"%s\": create it, or choose another", spec->group);
	if (chown(spec->path, (uid_t)-1, gid) || chmod(spec->path, spec->mode))
		return refuse(why, -errno, "the group and mode of %s cannot be set: %s", spec->path,
			strerror(errno));
	return 0;
}

static int bind_socket(int fd, const struct sockaddr_un *un, char why[ABI_SENTENCE_MAX])
{
	fchmod(fd, 0600); /* the file's mode until set_owner() says who may connect */
	if (!bind(fd, (const struct sockaddr *)un, sizeof(*un)))
		return 0;
	return refuse(why, -errno,
		"rocid cannot make its socket %s (%s): run it with the right to do so, or choose "
		"another socket path",
		un->sun_path, strerror(errno));
}

int listen_open(const struct listen_spec *spec, char why[ABI_SENTENCE_MAX])
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(spec->path) >= sizeof(un.sun_path))
		return refuse(why, -ENAMETOOLONG, "the socket path is too long: %zu bytes fit",
			sizeof(un.sun_path) - 1);
	strcpy(un.sun_path, spec->path);
	err = clear_path(spec->type, &un, why);
	if (err)
		return err;
	fd = new_socket(spec->type, why);
	if (fd < 0)
		return fd;
	err = bind_socket(fd, &un, why);
	if (!err) {
		err = set_owner(spec, why);
		if (!err && listen(fd, BACKLOG))
			err = refuse(why, -errno, "rocid cannot listen at %s: %s", spec->path,
				strerror(errno));
		if (err)
			unlink(spec->path);
	}
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}
