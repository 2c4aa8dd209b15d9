/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "loop/lock.h"
#include "refuse.h"

#define LOCK_PATH 256 /* far longer than a socket address can be */

static void path_of(char path[LOCK_PATH], const char *socket_path)
{
	snprintf(path, LOCK_PATH, "%s%s", socket_path, LOCK_SUFFIX);
}

/* @return the directory of @p path. */
static const char *directory_of(char dir[LOCK_PATH], const char *path)
{
	char *slash;

	snprintf(dir, LOCK_PATH, "%s", path);
	slash = strrchr(dir, '/');
	if (!slash)
		return ".";
	slash[slash == dir] = '\0';
	return dir;
}

static int open_lock(const char *path, char why[ABI_SENTENCE_MAX])
{
	char buffer[LOCK_PATH];
	const char *dir = directory_of(buffer, path);
	int made = mkdir(dir, 0755) ? errno : 0;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd >= 0)
		return fd;
	if (errno == ENOENT) /* mkdir() failed */
		errno = made;
	return refuse(why, -errno,
		"cannot create a socket in %s (%s): %s, or choose another --socket", dir,
		strerror(errno),
		errno == ENOENT ? "create that directory" : "give rocid's user write access to it");
}

/* @return whether @p fd still is the file at @p path: its former owner may have removed it. */
static bool is_there(int fd, const char *path)
{
	struct stat mine, there;

	return !fstat(fd, &mine) && !stat(path, &there) && mine.st_dev == there.st_dev &&
	       mine.st_ino == there.st_ino;
}

int lock_take(const char *socket_path, char why[ABI_SENTENCE_MAX])
{
	char path[LOCK_PATH];
	int fd;

	path_of(path, socket_path);
	for (;;) {
		fd = open_lock(path, why);
		if (fd < 0)
			return fd;
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			int err = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;

			close(fd);
			if (err != -EADDRINUSE)
				return refuse(
					why, err, "rocid cannot lock %s: %s", path, strerror(-err));
			return refuse(why, err,
				"another rocid serves %s: stop it, or give this one another "
				"--socket",
				socket_path);
		}
		if (is_there(fd, path))
			return fd;
		close(fd);
	}
}

void lock_release(int lock, const char *socket_path)
{
	char path[LOCK_PATH];

	path_of(path, socket_path);
	unlink(path);
	close(lock);
}
