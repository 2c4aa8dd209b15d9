/* SPDX-License-Identifier: BSD-3-Clause */
#include "namespace.h"
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include "siblings.h"

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return err;
}

/* Maps the user and the group to themselves, so that the program notices nothing. */
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

static struct siblings siblings = {.fd = -1};

/* Some systems allow user namespaces but not mapping a user in them, and a process cannot leave a
 * namespace, so a child process tries first.  @return 0 or a negative errno */
static int try_in_child(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return -errno;
	if (!pid)
		_exit(unshare(CLONE_NEWUSER | CLONE_NEWNS) ? errno : -map_ids(uid, gid));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

/* A process that ignores SIGCHLD cannot wait for a child. The program inherits the action as it
 * was. */
static int try_first(void)
{
	const struct sigaction noticed = {.sa_handler = SIG_DFL};
	struct sigaction before;
	int err;

	sigaction(SIGCHLD, &noticed, &before);
	err = try_in_child();
	sigaction(SIGCHLD, &before, NULL);
	return err;
}

/* Root in a container may be allowed to create both namespaces but not a mount namespace alone.
 * @return as namespace_enter() */
static int leave_namespaces(const char *shown, bool *user)
{
	int err;

	*user = false;
	if (!unshare(CLONE_NEWNS))
		return 0;
	if (errno != EPERM)
		return -errno;
	*user = true;
	if (siblings_join(&siblings, shown, NAMESPACE_EXIT))
		return 1;
	err = try_first();
	if (err)
		return err;
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) ? -errno : 0;
}

void namespace_complete(void)
{
	siblings_announce(&siblings);
}

int namespace_enter(const char *shown, char why[WHY_MAX])
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	bool user;
	int err = leave_namespaces(shown, &user);

	if (err > 0) {
		namespace_complete(); /* this one, too, may outlive the others */
		return err;
	}
	if (err)
		return refuse(why, err,
			user ? "user namespaces, or mapping a user in them, are denied here (%s): "
			       "allow them (sysctl kernel.unprivileged_userns_clone=1, "
			       "user.max_user_namespaces, "
			       "kernel.apparmor_restrict_unprivileged_userns=0), or run as root"
			     : "a mount namespace is denied here (%s): raise "
			       "user.max_mnt_namespaces",
			strerror(-err));
	err = user ? map_ids(uid, gid) : 0;
	if (err) {
		warnx("the user cannot be mapped to itself in a user namespace (%s): use "
		      "--libraries",
			strerror(-err));
		exit(NAMESPACE_EXIT);
	}
	/* Mounts that the system makes later appear here, too, but not the reverse. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return refuse(why, -errno, "mounts cannot be made private: %s", strerror(errno));
	return 0;
}
