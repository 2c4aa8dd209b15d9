/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "nodes.h"

#define DEV "/dev"
/** Any folder that is not below /dev: the new /dev grows here, hidden, until it is complete. */
#define STAGE "/tmp"

/* --- the namespace ---------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static int fail(
	char why[NODES_WHY], int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, NODES_WHY, format, args);
	va_end(args);
	return err;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return err;
}

/* The same user and group inside, so that the program notices nothing. */
static int map_ids(uid_t uid, gid_t gid)
{
	char map[64];
	int err =
		write_file("/proc/self/setgroups", "deny"); /* the kernel's condition for gid_map */

	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	if (!err)
		err = write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	return err ? err : write_file("/proc/self/gid_map", map);
}

/* Root in a container may lack the right to have a mount namespace, but not that to have both. */
static int leave_namespaces(bool *user)
{
	*user = false;
	if (!unshare(CLONE_NEWNS))
		return 0;
	if (errno != EPERM)
		return -errno;
	*user = true;
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) ? -errno : 0;
}

static int enter(char why[NODES_WHY])
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	bool user;
	int err = leave_namespaces(&user);

	if (err)
		return fail(why, err,
			user ? "user namespaces are denied here (%s): allow them (sysctl "
			       "kernel.unprivileged_userns_clone=1, user.max_user_namespaces), or "
			       "run as root"
			     : "a mount namespace is denied here (%s): raise "
			       "user.max_mnt_namespaces",
			strerror(-err));
	err = user ? map_ids(uid, gid) : 0;
	if (err) {
		warnx("the user cannot be mapped to itself in a user namespace (%s): use "
		      "--libraries",
			strerror(-err));
		exit(NODES_EXIT);
	}
	/* Mounts that the system makes later appear here, too, but not the reverse. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return fail(why, -errno, "mounts cannot be made private: %s", strerror(errno));
	return 0;
}

/* --- /dev ------------------------------------------------------------------------------------- */

static int make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int bind_to(const char *from, const char *to)
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

/* Shows entry @p name of /dev at the same place of the new one. */
static int show(const char *name)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct stat st;
	int err;

	snprintf(from, sizeof(from), DEV "/%s", name);
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

static int show_all(char why[NODES_WHY])
{
	DIR *dir = opendir(DEV);
	struct dirent *d;
	int err = dir ? 0 : -errno;

	while (!err && (d = readdir(dir)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, "..") &&
			strcmp(d->d_name, "infiniband")) {
			err = show(d->d_name);
			if (err)
				fail(why, err, DEV "/%s cannot be shown: %s", d->d_name,
					strerror(-err));
		}
	if (!dir)
		return fail(why, err, DEV " cannot be read: %s", strerror(-err));
	closedir(dir);
	return err;
}

/* A bound /dev/null has the type that programs look for, and can be opened by anybody. */
static int add_node(const char *name)
{
	char path[PATH_MAX];
	int err;

	snprintf(path, sizeof(path), STAGE "/infiniband/%s", name);
	err = make_file(path);
	return err ? err : bind_to(DEV "/null", path);
}

static int add_nodes(unsigned devices)
{
	char name[32];
	int err = mkdir(STAGE "/infiniband", 0755) ? -errno : add_node("rdma_cm");

	for (unsigned i = 0; !err && i < devices; i++) {
		snprintf(name, sizeof(name), "uverbs%u", i);
		err = add_node(name);
	}
	return err;
}

static int build(unsigned devices, char why[NODES_WHY])
{
	int err = show_all(why);

	if (err)
		return err;
	err = add_nodes(devices);
	if (err)
		return fail(why, err, DEV "/infiniband cannot be made: %s", strerror(-err));
	if (mount(STAGE, DEV, NULL, MS_MOVE, NULL))
		return fail(why, -errno, DEV " cannot be replaced: %s", strerror(errno));
	return 0;
}

int nodes_make(unsigned devices, char why[NODES_WHY])
{
	int err = enter(why);

	if (err)
		return err;
	if (mount("roci-run", STAGE, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755"))
		return fail(why, -errno, "there is no tmpfs: %s", strerror(errno));
	err = build(devices, why);
	if (err)
		umount2(STAGE, MNT_DETACH);
	return err;
}
