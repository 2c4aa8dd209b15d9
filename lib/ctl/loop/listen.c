/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "loop/listen.h"
#include "number.h"
#include "refuse.h"

#define BACKLOG 64

/* Each step needs a new socket: one that has tried to connect cannot listen. */
static int new_socket(int type, char why[ABI_SENTENCE_MAX])
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return refuse(why, -errno, "rocid cannot create a socket: %s", strerror(errno));
	return fd;
}

/* Removes a stale socket file.  @return 0 if @p un is free to bind to, or a negative errno with a
 * sentence. */
static int clear_path(int type, const struct sockaddr_un *un, char why[ABI_SENTENCE_MAX])
{
	struct stat st;
	int fd, err = 0;

	if (lstat(un->sun_path, &st))
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return refuse(why, -EADDRINUSE,
			"%s exists and is not a socket: remove it, or choose "
			"another socket path",
			un->sun_path);
	fd = new_socket(type, why);
	if (fd < 0)
		return fd;
	if (!connect(fd, (const struct sockaddr *)un, sizeof(*un)))
		err = refuse(why, -EADDRINUSE,
			"another rocid serves %s: stop it, or choose another socket path",
			un->sun_path);
	else if (errno == ECONNREFUSED) /* a rocid that was killed left it */
		unlink(un->sun_path);
	close(fd);
	return err;
}

int listen_group(const char *group, gid_t *gid)
{
	struct group *gr = getgrnam(group);
	uint64_t number;

	/* For chown(), (gid_t)-1 means "do not change". */
	if (!gr && !parse_in_base(group, 10, (gid_t)-2, &number))
		return -EINVAL;
	*gid = gr ? gr->gr_gid : (gid_t)number;
	return 0;
}

static int set_owner(const struct listen_spec *spec, char why[ABI_SENTENCE_MAX])
{
	gid_t gid = (gid_t)-1;

	if (spec->group && listen_group(spec->group, &gid))
		return refuse(why, -EINVAL,
			"group \"%s\" does not exist: create it, or choose another one",
			spec->group);
	if (chown(spec->path, (uid_t)-1, gid) || chmod(spec->path, spec->mode))
		return refuse(why, -errno, "rocid cannot set the group and mode of %s: %s",
			spec->path, strerror(errno));
	return 0;
}

static int bind_socket(int fd, const struct sockaddr_un *un, char why[ABI_SENTENCE_MAX])
{
	fchmod(fd, 0600); /* the file's mode until set_owner() sets the final one */
	if (!bind(fd, (const struct sockaddr *)un, sizeof(*un)))
		return 0;
	return refuse(why, -errno,
		"rocid cannot create its socket %s (%s): run it as a user who may write to that "
		"directory, or choose another socket path",
		un->sun_path, strerror(errno));
}

int listen_open(const struct listen_spec *spec, char why[ABI_SENTENCE_MAX])
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(spec->path) >= sizeof(un.sun_path))
		return refuse(why, -ENAMETOOLONG,
			"the socket path is too long: use at most %zu bytes",
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
