/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "refuse.h"
#include "sysfs/folder.h"

#define FOLDER_MODE 0755
#define FILE_MODE   0644
#define OPEN_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/** Suffix of a file's new text until it is complete. */
#define FRESH ".new"
/** Deeper than any folder of ours. */
#define DEPTH_MAX 16

/* --- removal ------------------------------------------------------------------------------ */

static void remove_entry(int fd, const char *name, unsigned depth);

/* Closes @p fd. */
static void empty(int fd, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *d;

	if (!dir) {
		close(fd);
		return;
	}
	while ((d = readdir(dir)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			remove_entry(dirfd(dir), d->d_name, depth);
	closedir(dir);
}

static void remove_entry(int fd, const char *name, unsigned depth)
{
	int sub;

	if (!unlinkat(fd, name, 0) || errno == ENOENT || depth == DEPTH_MAX)
		return;
	sub = openat(fd, name, OPEN_FOLDER);
	if (sub < 0)
		return;
	empty(sub, depth + 1);
	unlinkat(fd, name, AT_REMOVEDIR);
}

void folder_remove(const struct folder *f, const char *path)
{
	remove_entry(f->fd, path, 0);
}

/* --- the folder --------------------------------------------------------------------------- */

static int take(struct folder *f, char why[ABI_SENTENCE_MAX])
{
	struct stat st;

	f->fd = open(f->path, OPEN_FOLDER);
	if (f->fd < 0 || fstat(f->fd, &st))
		return refuse(why, -errno, "%s cannot be opened (%s): remove it", f->path,
			strerror(errno));
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return refuse(why, -EPERM,
			"%s does not belong to rocid alone: remove it, or choose another socket "
			"path",
			f->path);
	fchmod(f->fd, FOLDER_MODE);
	return 0;
}

static int make(struct folder *f, char why[ABI_SENTENCE_MAX])
{
	int err, again;

	if (mkdir(f->path, FOLDER_MODE) && errno != EEXIST)
		return refuse(why, -errno, "rocid cannot create %s: %s", f->path, strerror(errno));
	err = take(f, why);
	if (err)
		return err;
	again = openat(f->fd, ".", OPEN_FOLDER);
	if (again < 0)
		return refuse(
			why, -errno, "%s cannot be opened again: %s", f->path, strerror(errno));
	empty(again, 0);
	return 0;
}

int folder_open(struct folder *f, const char *path, char why[ABI_SENTENCE_MAX])
{
	int err;

	*f = (struct folder){.fd = -1, .path = strdup(path)};
	if (!f->path)
		return refuse_memory(why);
	err = make(f, why);
	if (!err)
		return 0;
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	*f = (struct folder){.fd = -1};
	return err;
}

void folder_close(struct folder *f)
{
	if (f->fd < 0)
		return;
	empty(f->fd, 0);
	rmdir(f->path);
	free(f->path);
	*f = (struct folder){.fd = -1};
}

/* --- contents ----------------------------------------------------------------------------- */

int folder_make(const struct folder *f, const char *path)
{
	if (mkdirat(f->fd, path, FOLDER_MODE))
		return -errno;
	return fchmodat(f->fd, path, FOLDER_MODE, 0) ? -errno : 0; /* whatever the umask is */
}

static int write_fresh(const struct folder *f, const char *text)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(f->fd, FRESH, flags, FILE_MODE);
	size_t len = strlen(text);
	ssize_t n;
	int err = 0;

	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	if (n < 0 || fchmod(fd, FILE_MODE))
		err = -errno;
	else if ((size_t)n < len)
		err = -ENOSPC;
	close(fd);
	return err;
}

static int rename_fresh(const struct folder *f, const char *path)
{
	return renameat(f->fd, FRESH, f->fd, path) ? -errno : 0;
}

/* Links @p path to the previous file if the text is the same. Files are replaced, never changed, so
 * one name keeps its text when the other gets a new one. @return false: the file must be written,
 * because @p path exists, or the file system has no links. */
static bool link_same(const struct folder *f, const char *path, const char *text)
{
	return *f->last_path && !strcmp(f->last_text, text) &&
	       !linkat(f->fd, f->last_path, f->fd, path, 0);
}

static void remember(struct folder *f, const char *path, const char *text)
{
	*f->last_path = 0;
	if (strlen(path) >= FOLDER_LAST || strlen(text) >= FOLDER_LAST)
		return;
	strcpy(f->last_path, path);
	strcpy(f->last_text, text);
}

int folder_write(struct folder *f, const char *path, const char *text)
{
	int err;

	if (link_same(f, path, text))
		return 0;
	err = write_fresh(f, text);
	if (!err)
		err = rename_fresh(f, path);
	if (!err)
		remember(f, path, text);
	return err;
}

int folder_link(struct folder *f, const char *path, const char *target)
{
	if (!strcmp(f->last_path, path))
		*f->last_path = 0;
	unlinkat(f->fd, FRESH, 0);
	return symlinkat(target, f->fd, FRESH) ? -errno : rename_fresh(f, path);
}
