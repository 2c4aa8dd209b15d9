/* SPDX-License-Identifier: BSD-3-Clause */
#include "classes.h"
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "abi_ctl.h"
#include "shadow.h"
#include "unique_name.h"

#define CLASS "/sys/class"

/* The interface of libibverbs and libibumad with the kernel. */
#define VERBS_ABI  "6"
#define UVERBS_ABI "1"
#define UMAD_ABI   "5"
/* Of /dev/null, which is bound to /dev/infiniband/uverbsN. */
#define NODE_NUMBERS "1:3"

/* --- the devices ------------------------------------------------------------------------------ */

/* The files of a killed rocid stay until the next one starts. @return 0 if one is serving, or a
 * negative errno. */
static int look(const char *socket_path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err;

	if (fd < 0)
		return -errno;
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", socket_path);
	err = connect(fd, (const struct sockaddr *)&un, sizeof(un)) ? -errno : 0;
	close(fd);
	return err == -EAGAIN ? 0 : err; /* many connect to it */
}

static bool taken(const void *arg, const char *name)
{
	const struct class_devices *found = arg;

	for (unsigned i = 0; i < found->n; i++)
		if (!strcmp(found->at[i].name, name))
			return true;
	return false;
}

/* A rocid has one device, whose name is that of the folder. */
static bool find_name(const char *folder, char name[CLASSES_NAME_MAX])
{
	DIR *dir = opendir(folder);
	struct dirent *d;
	bool found = false;

	while (dir && !found && (d = readdir(dir)))
		found = d->d_name[0] != '.' &&
			snprintf(name, CLASSES_NAME_MAX, "%s", d->d_name) < CLASSES_NAME_MAX;
	if (dir)
		closedir(dir);
	return found;
}

static int find_one(struct class_devices *found, const char *socket_path)
{
	struct class_device *d = &found->at[found->n];
	char folder[PATH_MAX / 2], real[PATH_MAX], name[CLASSES_NAME_MAX];
	int err = look(socket_path);

	if (err)
		return err;
	if (!realpath(socket_path, real))
		return -errno;
	if (snprintf(folder, sizeof(folder), "%s" ABI_SYSFS_SUFFIX "/infiniband", real) >=
			(int)sizeof(folder) ||
		!find_name(folder, name))
		return -ENODEV;
	snprintf(d->folder, sizeof(d->folder), "%s/%s", folder, name);
	unique_name(name, sizeof(name), taken, found);
	strcpy(d->name, name);
	found->n++;
	return 0;
}

static const char *advice(int err)
{
	switch (err) {
	case -EACCES:
		return "become a member of its group (usermod -aG rdma USER, and log in again)";
	case -ENOENT:
	case -ECONNREFUSED:
		return "start rocid there (systemctl start rocid), or give its socket with "
		       "--socket";
	case -ENODEV:
		return "start a rocid of this release there";
	default:
		return "check that a rocid of this release serves there";
	}
}

int classes_find(struct class_devices *found, const char *sockets, char why[WHY_MAX])
{
	char *copy = strdup(sockets && *sockets ? sockets : ABI_SOCKET_DEFAULT), *rest = copy;
	const char *socket_path;
	int err = copy ? 0 : refuse(why, -ENOMEM, "out of memory: end other programs");

	found->n = 0;
	while (found->n < CLASSES_MAX && (socket_path = strsep(&rest, ":"))) {
		int one = *socket_path ? find_one(found, socket_path) : 0;

		if (one)
			err = refuse(why, one, "%s shows no device (%s): %s", socket_path,
				strerror(-one), advice(one));
	}
	free(copy);
	return err;
}

/* --- the files -------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static int write_line(
	const char *text, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	FILE *f;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	f = fopen(path, "we");
	if (!f)
		return -errno;
	fprintf(f, "%s\n", text);
	return fclose(f) ? -errno : 0;
}

static int link_to(const char *target, const char *path)
{
	return symlink(target, path) ? -errno : 0;
}

static int add_uverbs(const struct class_device *d, unsigned i)
{
	char folder[64], path[96], target[PATH_MAX + 8];
	int err;

	snprintf(folder, sizeof(folder), STAGE "/infiniband_verbs/uverbs%u", i);
	err = mkdir(folder, 0755) ? -errno : write_line(d->name, "%s/ibdev", folder);
	if (!err)
		err = write_line(UVERBS_ABI, "%s/abi_version", folder);
	if (!err)
		err = write_line(NODE_NUMBERS, "%s/dev", folder);
	if (err)
		return err;
	snprintf(path, sizeof(path), "%s/device", folder);
	snprintf(target, sizeof(target), "%s/device", d->folder);
	return link_to(target, path);
}

static int add_device(const struct class_device *d, unsigned i)
{
	char path[PATH_MAX];
	int err;

	snprintf(path, sizeof(path), STAGE "/infiniband/%s", d->name);
	err = link_to(d->folder, path);
	return err ? err : add_uverbs(d, i);
}

static int add_classes(void)
{
	if (mkdir(STAGE "/infiniband", 0755) || mkdir(STAGE "/infiniband_verbs", 0755) ||
		mkdir(STAGE "/infiniband_mad", 0755))
		return -errno;
	if (write_line(VERBS_ABI, STAGE "/infiniband_verbs/abi_version"))
		return -errno;
	return write_line(UMAD_ABI, STAGE "/infiniband_mad/abi_version");
}

int classes_make(const struct class_devices *found, char why[WHY_MAX])
{
	static const char *const hidden[] = {
		"infiniband", "infiniband_verbs", "infiniband_mad", NULL};
	int err = shadow_begin(CLASS, hidden, why);

	if (err)
		return err;
	err = add_classes();
	for (unsigned i = 0; !err && i < found->n; i++)
		err = add_device(&found->at[i], i);
	if (!err)
		return shadow_end(CLASS, true, why);
	shadow_abandon();
	return refuse(why, err, CLASS "/infiniband cannot be created: %s", strerror(-err));
}
