/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "proc.h"
#include "raw.h"

static pid_t server_of(const char *socket)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);
	int sock = raw_connect(socket);

	if (sock < 0 || getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		err(1, "who serves %s", socket);
	close(sock);
	return peer.pid;
}

static bool comm_of(pid_t pid, const char *tid, char comm[32])
{
	char path[320];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", pid, tid);
	f = fopen(path, "r");
	if (!f)
		return false;
	ok = fgets(comm, 32, f) != NULL;
	fclose(f);
	return ok;
}

static int open_stat(pid_t pid, const char *tid)
{
	char path[320];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

/* Worker 0 is the main thread, others are EAL's. */
static bool is_worker(pid_t pid, const char *tid, const char *comm)
{
	return atoi(tid) == pid || !strncmp(comm, "lcore-worker", 12) ||
	       !strncmp(comm, "rte-worker", 10);
}

void proc_open(struct proc *p, const char *socket)
{
	char path[64], comm[32];
	struct dirent *d;
	DIR *dir;

	*p = (struct proc){.pid = server_of(socket), .control = -1, .notifier = -1};
	snprintf(path, sizeof(path), "/proc/%d/task", p->pid);
	dir = opendir(path);
	if (!dir)
		err(1, "%s", path);
	while ((d = readdir(dir))) {
		if (d->d_name[0] == '.' || !comm_of(p->pid, d->d_name, comm))
			continue;
		if (!strncmp(comm, "rocid-control", 13))
			p->control = open_stat(p->pid, d->d_name);
		else if (!strncmp(comm, "roci-notify", 11))
			p->notifier = open_stat(p->pid, d->d_name);
		else if (is_worker(p->pid, d->d_name, comm) && p->nworkers < PROC_WORKERS)
			p->worker[p->nworkers++] = open_stat(p->pid, d->d_name);
	}
	closedir(dir);
	if (p->control < 0 || p->notifier < 0 || !p->nworkers)
		errx(1, "rocid's threads have other names: teach proc.c");
}

bool proc_alive(const struct proc *p)
{
	return !kill(p->pid, 0);
}

struct holdings proc_holdings(const struct proc *p)
{
	struct holdings h = {0};
	struct dirent *d;
	char path[64], line[512];
	DIR *dir;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fd", p->pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir)))
		h.fds += d->d_name[0] != '.';
	if (dir)
		closedir(dir);
	snprintf(path, sizeof(path), "/proc/%d/maps", p->pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		h.maps += strstr(line, "memfd:") != NULL;
	if (f)
		fclose(f);
	return h;
}

static struct spent read_stat(int fd)
{
	unsigned long long ran = 0, queued = 0;
	char buf[96];
	ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);

	if (n > 0) {
		buf[n] = '\0';
		sscanf(buf, "%llu %llu", &ran, &queued);
	}
	return (struct spent){ran, queued};
}

static void read_all(const struct proc *p, struct look *l)
{
	for (unsigned i = 0; i < p->nworkers; i++)
		l->worker[i] = read_stat(p->worker[i]);
	l->control = read_stat(p->control);
	l->notifier = read_stat(p->notifier);
}

void proc_look(const struct proc *p, struct look *l)
{
	struct timespec ts;
	struct look after;

	/* A pause between two lines of this function must not count as a wait: the pauses of
	 * rocid's threads are counted from before the time, and what they ran from after it. */
	read_all(p, l);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	l->wall = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	read_all(p, &after);
	for (unsigned i = 0; i < p->nworkers; i++)
		l->worker[i].ran = after.worker[i].ran;
	l->control.ran = after.control.ran;
	l->notifier.ran = after.notifier.ran;
}

static uint64_t more(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The kernel counts a thread's wait for a CPU when the wait ends: until the answer. */
static uint64_t queued(const struct spent *begin, const struct spent *end)
{
	return end->queued - begin->queued;
}

uint64_t proc_waited(const struct proc *p, enum thread thread, const struct look *begin,
	const struct look *last, const struct look *end)
{
	uint64_t passed = last->wall - begin->wall;
	uint64_t paused = 0, ran = 0;

	/* All others wait for workers, too. Of several, which one it was is not known: the time
	 * that all were paused for is taken off. */
	for (unsigned i = 0; i < p->nworkers; i++) {
		paused += queued(&begin->worker[i], &end->worker[i]);
		if (thread == THREAD_WORKER)
			ran = more(ran, last->worker[i].ran - begin->worker[i].ran);
	}
	/* The other two hold a lock now and then, and are paused as well. */
	if (thread != THREAD_WORKER)
		paused += queued(&begin->control, &end->control) +
			  queued(&begin->notifier, &end->notifier);
	if (thread == THREAD_CONTROL)
		ran = last->control.ran - begin->control.ran;
	if (thread == THREAD_NOTIFIER)
		ran = last->notifier.ran - begin->notifier.ran;
	return more(ran, passed > paused ? passed - paused : 0);
}
