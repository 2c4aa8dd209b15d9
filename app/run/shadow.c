/* SPDX-License-Identifier: BSD-3-Clause */
#include "shadow.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOUNT_FLAGS (MS_NOSUID | MS_NOEXEC)

int make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int bind_to(const char *from, const char *to)
{
	return mount(from, to, NULL, MS_BIND | MS_REC, NULL) ? -errno : 0;
}

static int copy_link(const char *from, const char *to)
{
	char target[PATH_MAX];
	ssize_t n = readlink(from, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = 0;
	return symlink(target, to) ? -errno : 0;
}

/* Shows entry @p name of @p folder at the same place of the new one. */
static int show(const char *folder, const char *name)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct stat st;
	int err;

	snprintf(from, sizeof(from), "%s/%s", folder, name);
	snprintf(to, sizeof(to), STAGE "/%s", name);
	if (lstat(from, &st))
		return errno == ENOENT ? 0 : -errno; /* it has just gone */
	if (S_ISLNK(st.st_mode))
		return copy_link(from, to);
	if (S_ISDIR(st.st_mode))
		err = mkdir(to, 0755) ? -errno : 0;
	else
		err = make_file(to);
	return err ? err : bind_to(from, to);
}

static bool skipped(const char *name, const char *const hidden[])
{
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return true;
	for (; *hidden; hidden++)
		if (!strcmp(name, *hidden))
			return true;
	return false;
}

static int show_all(const char *folder, const char *const hidden[], char why[WHY_MAX])
{
	DIR *dir = opendir(folder);
	struct dirent *d;
	int err = dir ? 0 : -errno;

	while (!err && (d = readdir(dir))) {
		if (skipped(d->d_name, hidden))
			continue;
		err = show(folder, d->d_name);
		if (err)
			refuse(why, err, "%s/%s cannot be mounted: %s", folder, d->d_name,
				strerror(-err));
	}
	if (!dir)
		return refuse(why, err, "%s cannot be read: %s", folder, strerror(-err));
	closedir(dir);
	return err;
}

int shadow_begin(const char *folder, const char *const hidden[], char why[WHY_MAX])
{
	int err;

	if (mount("roci-run", STAGE, "tmpfs", MOUNT_FLAGS, "mode=0755"))
		return refuse(why, -errno, "cannot mount a tmpfs: %s", strerror(errno));
	err = show_all(folder, hidden, why);
	if (err)
		shadow_abandon();
	return err;
}

int shadow_end(const char *folder, bool read_only, char why[WHY_MAX])
{
	const unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MOUNT_FLAGS;
	int err;

	if ((!read_only || !mount(NULL, STAGE, NULL, flags, NULL)) &&
		!mount(STAGE, folder, NULL, MS_MOVE, NULL))
		return 0;
	err = refuse(why, -errno, "%s cannot be replaced: %s", folder, strerror(errno));
	shadow_abandon();
	return err;
}

void shadow_abandon(void)
{
	umount2(STAGE, MNT_DETACH);
}
