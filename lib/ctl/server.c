/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "server.h"
#include "session.h"

#define BACKLOG	     64
#define MODE_DEFAULT 0660u

static void server_ready(struct watch *w)
{
	struct ctl *ctl = container_of(w, struct ctl, listener);
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		session_open(ctl, fd);
		return;
	}
	if (errno != EMFILE && errno != ENFILE)
		return; /* whoever it was went away again */
	/* Out of descriptors: turn the caller away instead of spinning on it. */
	close(ctl->reserve_fd);
	fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	ctl->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* @return 0, or a negative errno with a sentence, when @p un is free to bind to. */
static int clear_path(int fd, const struct sockaddr_un *un, char why[ABI_SENTENCE_MAX])
{
	struct stat st;

	if (lstat(un->sun_path, &st))
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return refuse(why, -EADDRINUSE,
			"%s exists and is no socket: remove it, or choose "
			"another socket path",
			un->sun_path);
	if (!connect(fd, (const struct sockaddr *)un, sizeof(*un)))
		return refuse(why, -EADDRINUSE,
			"another rocid is serving %s: stop it, or choose another socket path",
			un->sun_path);
	if (errno == ECONNREFUSED) /* left behind by one that was killed */
		unlink(un->sun_path);
	return 0;
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

static int set_owner(const char *path, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX])
{
	mode_t mode = cfg->socket_mode ? cfg->socket_mode : MODE_DEFAULT;
	gid_t gid = (gid_t)-1;

	if (cfg->socket_group && group_id(cfg->socket_group, &gid))
		return refuse(why, -EINVAL,
			"there is no group \"%s\": create it, or choose another",
			cfg->socket_group);
	if (chown(path, (uid_t)-1, gid) || chmod(path, mode))
		return refuse(why, -errno, "the group and mode of %s cannot be set: %s", path,
			strerror(errno));
	return 0;
}

static int bind_socket(int fd, const struct sockaddr_un *un, char why[ABI_SENTENCE_MAX])
{
	char dir[sizeof(un->sun_path)], *slash;

	strcpy(dir, un->sun_path);
	slash = strrchr(dir, '/');
	if (slash && slash != dir) {
		*slash = '\0';
		mkdir(dir, 0755); /* bind() complains when there is still none */
	}
	fchmod(fd, 0600); /* the file's mode until set_owner() says who may connect */
	if (!bind(fd, (const struct sockaddr *)un, sizeof(*un)) && !listen(fd, BACKLOG))
		return 0;
	return refuse(why, -errno,
		"rocid cannot make its socket %s (%s): run it with the right to do so, or choose "
		"another socket path",
		un->sun_path, strerror(errno));
}

/* A socket per step: one that has tried to connect is not used for listening. */
static int new_socket(char why[ABI_SENTENCE_MAX])
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return refuse(why, -errno, "rocid cannot make a socket: %s", strerror(errno));
	return fd;
}

int server_open(struct ctl *ctl, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX])
{
	const char *path = cfg->socket_path ? cfg->socket_path : ABI_SOCKET_DEFAULT;
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(un.sun_path))
		return refuse(why, -ENAMETOOLONG, "the socket path is too long: %zu bytes fit",
			sizeof(un.sun_path) - 1);
	strcpy(un.sun_path, path);
	fd = new_socket(why);
	if (fd < 0)
		return fd;
	err = clear_path(fd, &un, why);
	close(fd);
	if (err)
		return err;
	fd = new_socket(why);
	if (fd < 0)
		return fd;
	err = bind_socket(fd, &un, why);
	if (!err) {
		ctl->socket_path = strdup(path);
		err = ctl->socket_path ? set_owner(path, cfg, why)
				       : refuse(why, -ENOMEM, "rocid is out of memory");
	}
	if (err) {
		close(fd);
		return err;
	}
	ctl->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ctl->listener = (struct watch){.fd = fd, .ready = server_ready};
	return ctl_watch(ctl, &ctl->listener);
}

void server_close(struct ctl *ctl)
{
	ctl_unwatch(ctl, &ctl->listener);
	if (ctl->socket_path)
		unlink(ctl->socket_path);
	free(ctl->socket_path);
	ctl->socket_path = NULL;
	if (ctl->reserve_fd >= 0)
		close(ctl->reserve_fd);
	ctl->reserve_fd = -1;
}
