/* SPDX-License-Identifier: BSD-3-Clause */
#include "siblings.h"
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define RECORDS	  64
#define TRIES	  100 /* for the lock, which is held for milliseconds unless its holder is stalled */
#define PAUSE_NS  50000000
#define LOOKS	  20 /* for a program that cannot be inspected while it calls execvp() */
#define LOOK_NS	  10000000
#define FNV_BASIS 0xCBF29CE484222325
#define FNV_PRIME 0x100000001B3

/* A program, its namespaces, and what these show. */
struct record {
	pid_t pid;
	uint32_t reserved;
	uint64_t user, mnt; /* inode numbers */
	uint64_t key;
};

/* --- what a namespace is for ------------------------------------------------------------------ */

static uint64_t hash(uint64_t h, const void *data, size_t len)
{
	for (const uint8_t *p = data; len--; p++)
		h = (h ^ *p) * FNV_PRIME;
	return h;
}

static uint64_t inode(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

static uint64_t namespace_of(pid_t pid, const char *kind)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
	return inode(path);
}

/* Entries that are added to /dev and /sys/class later do not appear in a namespace: shadow.h. */
static uint64_t entries(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *d;
	uint64_t sum = 0;

	while (dir && (d = readdir(dir)))
		sum += hash(FNV_BASIS, d->d_name, strlen(d->d_name));
	if (dir)
		closedir(dir);
	return sum;
}

static uint64_t key_of(const char *shown)
{
	uint64_t is[] = {namespace_of(getpid(), "user"), namespace_of(getpid(), "mnt"), getegid(),
		inode("/proc/self/exe"), entries("/dev"), entries("/sys/class")};

	return hash(hash(FNV_BASIS, is, sizeof(is)), shown, strlen(shown));
}

/* --- the file --------------------------------------------------------------------------------- */

static void nap(long ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static bool lock(int fd)
{
	for (int i = 0; i < TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return true;
		nap(PAUSE_NS);
	}
	return false;
}

/* Others may write to these folders: the file is the user's own, or is not used. */
static int open_own(const char *folder)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/roci-run.%u", folder, geteuid());
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		!(st.st_mode & 022) && lock(fd))
		return fd;
	close(fd);
	return -1;
}

static unsigned read_all(int fd, struct record *r)
{
	ssize_t n = pread(fd, r, RECORDS * sizeof(*r), 0);

	return n < 0 ? 0 : (unsigned)((size_t)n / sizeof(*r));
}

static bool lives(const struct record *r)
{
	return r->user && namespace_of(r->pid, "user") == r->user &&
	       namespace_of(r->pid, "mnt") == r->mnt;
}

/* One that is about to call execvp() cannot be inspected, and stays. */
static bool is_gone(pid_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

/* The latest first; drops those of programs that have ended, and the oldest if there are too many.
 */
static void add(const struct siblings *s)
{
	struct record new[1 + RECORDS] = {{.pid = getpid(),
		.user = namespace_of(getpid(), "user"),
		.mnt = namespace_of(getpid(), "mnt"),
		.key = s->key}};
	struct record old[RECORDS];
	unsigned n = read_all(s->fd, old), kept = 1;

	for (unsigned i = 0; i < n && kept < RECORDS; i++)
		if (old[i].pid != getpid() && !is_gone(old[i].pid))
			new[kept++] = old[i];
	if (pwrite(s->fd, new, kept * sizeof(*new), 0) != (ssize_t)(kept * sizeof(*new)) ||
		ftruncate(s->fd, (off_t)(kept * sizeof(*new)))) { /* then nobody joins */
	}
}

/* --- joining ---------------------------------------------------------------------------------- */

/* Whether the other namespace has the same folder at the path of the working directory: not if it
 * was mounted later and mounts are private. */
static bool has_folder(pid_t pid, const char *cwd)
{
	char path[PATH_MAX + 32];
	struct stat here, there;

	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, cwd);
	return !stat(".", &here) && !stat(path, &there) && here.st_dev == there.st_dev &&
	       here.st_ino == there.st_ino;
}

/* The user created that namespace, and has all rights in it; setns() moves to its root. */
static bool enter(const struct record *r, const char *cwd)
{
	int fd = pidfd_open(r->pid, 0);
	bool ok = fd >= 0 && lives(r) && has_folder(r->pid, cwd) &&
		  !setns(fd, CLONE_NEWUSER | CLONE_NEWNS);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Whether it exists, but its namespaces cannot be inspected. */
static bool is_hidden(const struct record *r)
{
	return !namespace_of(r->pid, "user") && !is_gone(r->pid);
}

/* @return whether another attempt may find more */
static bool enter_any(const struct siblings *s, const char *cwd, bool *joined)
{
	struct record r[RECORDS];
	unsigned n = read_all(s->fd, r);
	bool hidden = false;

	for (unsigned i = 0; i < n && !*joined; i++) {
		if (r[i].key != s->key)
			continue;
		*joined = enter(&r[i], cwd);
		hidden |= is_hidden(&r[i]);
	}
	return hidden && !*joined;
}

bool siblings_join(struct siblings *s, const char *shown, int status)
{
	char cwd[PATH_MAX];
	bool joined = false;

	s->key = key_of(shown);
	s->fd = open_own("/dev/shm");
	if (s->fd < 0)
		s->fd = open_own("/tmp");
	if (s->fd < 0 || !getcwd(cwd, sizeof(cwd)))
		return false;
	for (int i = 0; i < LOOKS && enter_any(s, cwd, &joined); i++)
		nap(LOOK_NS);
	if (joined && chdir(cwd)) /* it was there just now */
		err(status, "%s", cwd);
	return joined;
}

void siblings_announce(struct siblings *s)
{
	if (s->fd < 0)
		return;
	/* The change of namespace has made this process undumpable: others could not inspect its
	 * namespaces until it has called execvp(). */
	prctl(PR_SET_DUMPABLE, 1);
	add(s);
	close(s->fd); /* and unlocked */
	s->fd = -1;
}
