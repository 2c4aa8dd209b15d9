/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens the file of a shared mapping, which is not swapped because other processes must see the
 * data. Tries a descriptor of the program; the path, if it still leads to that file; and the
 * kernel's link to the mapping, which needs a capability that rocid may have.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "arena_impl.h"

/* Of <linux/fcntl.h>, which conflicts with <fcntl.h>. */
#define GET_SEALS (1024 + 10)

static bool is_file_of(int fd, const struct vma *v, bool write)
{
	int mode = fcntl(fd, F_GETFL);
	struct stat st;

	if (mode < 0 || mode & O_PATH || fstat(fd, &st))
		return false;
	if (st.st_ino != v->inode || major(st.st_dev) != v->major || minor(st.st_dev) != v->minor)
		return false;
	return write ? (mode & O_ACCMODE) == O_RDWR : (mode & O_ACCMODE) != O_WRONLY;
}

/* @return a duplicate, because another thread may close the program's descriptor. */
static int find_open(const struct vma *v, bool write)
{
	DIR *dir = opendir("/proc/thread-self/fd");
	struct dirent *d;
	int fd = -1;

	while (dir && fd < 0 && (d = readdir(dir))) {
		int n = d->d_name[0] == '.' ? -1 : atoi(d->d_name);

		if (n < 0 || !is_file_of(n, v, write))
			continue;
		fd = fcntl(n, F_DUPFD_CLOEXEC, 3);
		if (fd >= 0 && !is_file_of(fd, v, write)) {
			close(fd);
			fd = -1;
		}
	}
	if (dir)
		closedir(dir);
	return fd;
}

static int open_if(const char *path, const struct vma *v, bool write)
{
	int fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0 && !is_file_of(fd, v, write)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int open_path(const struct vma *v, bool write)
{
	char name[MAPS_PATH_MAX];
	struct stat st;

	maps_name(&arena.maps, v->start, name);
	/* Regular files only: opening a device could have any effect. */
	if (name[0] != '/' || stat(name, &st) || !S_ISREG(st.st_mode) || st.st_ino != v->inode)
		return -1;
	return open_if(name, v, write);
}

static int open_link(const struct vma *v, bool write)
{
	char path[96];

	/* Uses the thread's own number: /proc/self refers to the first thread, which may have
	 * ended. */
	snprintf(path, sizeof(path), "/proc/%ld/map_files/%lx-%lx", syscall(SYS_gettid),
		(unsigned long)v->start, (unsigned long)v->end);
	return open_if(path, v, write);
}

int open_shared(
	const struct arena_source *src, const struct vma *v, bool write, char why[ARENA_WHY_MAX])
{
	int fd = find_open(v, write);

	if (fd < 0)
		fd = open_path(v, write);
	if (fd < 0)
		fd = open_link(v, write);
	if (fd < 0 && src->map_file) {
		fd = src->map_file(src->arg, v->start, v->end);
		if (fd >= 0 && !is_file_of(fd, v, write)) {
			close(fd);
			fd = -1;
		}
	}
	if (fd < 0)
		return -refuse(why, EOPNOTSUPP,
			"memory at %#lx is shared (MAP_SHARED), and neither this program nor rocid "
			"can open its file: keep its descriptor open, or use "
			"memfd_create() or roci_alloc_mem()",
			(unsigned long)v->start);
	if (fcntl(fd, GET_SEALS) >= 0)
		return fd;
	close(fd);
	return -refuse(why, EOPNOTSUPP,
		"memory at %#lx is a shared mapping of a file on a disk, for which rocid "
		"cannot wait: use a file in /dev/shm, or copy it",
		(unsigned long)v->start);
}
