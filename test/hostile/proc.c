/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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

	*p = (struct proc){.pid = server_of(socket), .control = -1};
	snprintf(path, sizeof(path), "/proc/%d/task", p->pid);
	dir = opendir(path);
	if (!dir)
		err(1, "%s", path);
	while ((d = readdir(dir))) {
		if (d->d_name[0] == '.' || !comm_of(p->pid, d->d_name, comm))
			continue;
		if (!strncmp(comm, "rocid-control", 13))
			p->control = open_stat(p->pid, d->d_name);
		else if (is_worker(p->pid, d->d_name, comm) && p->nworkers < PROC_WORKERS)
			p->worker[p->nworkers++] = open_stat(p->pid, d->d_name);
	}
	closedir(dir);
	if (p->control < 0 || !p->nworkers)
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

static uint64_t read_stat(int fd)
{
	unsigned long long ran = 0;
	char buf[96];
	ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);

	if (n > 0) {
		buf[n] = '\0';
		sscanf(buf, "%llu", &ran);
	}
	return ran;
}

void proc_ran(const struct proc *p, struct ran *r)
{
	for (unsigned i = 0; i < p->nworkers; i++)
		r->worker[i] = read_stat(p->worker[i]);
	r->control = read_stat(p->control);
}

uint64_t proc_worker_ns(const struct proc *p, const struct ran *a, const struct ran *b)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < p->nworkers; i++)
		if (b->worker[i] - a->worker[i] > most)
			most = b->worker[i] - a->worker[i];
	return most;
}
