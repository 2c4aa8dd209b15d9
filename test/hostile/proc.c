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
	p->self = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
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

static void read_stat(int fd, uint64_t *ran, uint64_t *waited)
{
	unsigned long long a = 0, b = 0;
	char buf[96];
	ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);

	if (n > 0) {
		buf[n] = '\0';
		sscanf(buf, "%llu %llu", &a, &b);
	}
	*ran = a;
	*waited = b;
}

void proc_now(const struct proc *p, struct moment *m)
{
	uint64_t unused;

	for (unsigned i = 0; i < p->nworkers; i++)
		read_stat(p->worker[i], &m->worker[i], &unused);
	read_stat(p->control, &m->control, &unused);
	read_stat(p->self, &unused, &m->waited);
}

static uint64_t less(uint64_t ran, uint64_t waited)
{
	return ran > waited ? ran - waited : 0;
}

uint64_t proc_worker_ns(const struct proc *p, const struct moment *a, const struct moment *b)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < p->nworkers; i++)
		if (b->worker[i] - a->worker[i] > most)
			most = b->worker[i] - a->worker[i];
	return less(most, b->waited - a->waited);
}

uint64_t proc_control_ns(const struct moment *a, const struct moment *b)
{
	return less(b->control - a->control, b->waited - a->waited);
}
