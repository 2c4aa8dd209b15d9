/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/resource.h>
#include <rte_lcore.h>
#include "arguments.h"
#include "bench.h"
#include "ctl.h"
#include "daemon.h"
#include "eal.h"
#include "host.h"
#include "option_table.h"
#include "pacing.h"
#include "qp.h"
#include "qp_table.h"
#include "worker_impl.h"

/* MB: packet buffers, tables and the floor's own buffers; the packet buffers of another worker. */
#define EAL_MEMORY  256u
#define EAL_ANOTHER 32u
/* Of the worker between two offers of the CPU. */
#define ROUNDS 256u

static struct {
	char folder[64];
	struct options opt;
	struct daemon daemon;
	struct worker *worker; /* the first */
	unsigned workers;
	pthread_t control;
} host = {.workers = 1};

static void set(const char *name, const char *value)
{
	char why[VALUE_MAX];

	if (options_set(&host.opt, name, value, why))
		bench_die("--%s %s: %s", name, value, why);
}

static void make_socket(void)
{
	char path[sizeof(host.folder) + 8];

	snprintf(host.folder, sizeof(host.folder), "/tmp/roci-bench-XXXXXX");
	if (!mkdtemp(host.folder))
		bench_die("/tmp cannot be written: make it so");
	snprintf(path, sizeof(path), "%s/sock", host.folder);
	set("socket", path);
}

static void make_ring_pair(const char *cc)
{
	char value[VALUE_MAX];

	set("ring-pair", "");
	set("gid", "0,192.0.2.1");
	set("gid", "1,192.0.2.2");
	set("mtu", "0,4300");
	set("mtu", "1,4300");
	snprintf(value, sizeof(value), "%u", host.workers);
	set("workers", value);
	set("migrate", "off"); /* all samples measure the same workers */
	for (unsigned port = 0; cc && port < 2; port++) {
		snprintf(value, sizeof(value), "%u,%s", port, cc);
		set("cc", value);
	}
}

static void *control(void *arg)
{
	int err = ctl_run(host.daemon.ctl);

	if (err)
		bench_die("rocid's control thread ended with error %d", -err);
	return NULL;
}

/* Ten thousand QPs pass as many descriptors. */
static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static struct worker *start(int argc, char *argv[])
{
	char why[VALUE_MAX * 2] = "no memory";

	raise_limits();
	make_socket();
	if (eal_start(argc, argv, &host.opt, why) || daemon_up(&host.daemon, &host.opt, why))
		bench_die("%s", why);
	host.worker = host.daemon.dp->worker[0];
	for (unsigned i = 0; i < host.workers; i++)
		worker_begin(host.daemon.dp->worker[i]);
	if (rte_ctrl_thread_create(&host.control, "bench-control", NULL, control, NULL))
		bench_die("no thread can be made: raise the limit of threads");
	return host.worker;
}

void host_workers(unsigned n)
{
	host.workers = n;
}

struct worker *host_worker(unsigned i)
{
	return host.daemon.dp->worker[i];
}

void host_round(void)
{
	for (unsigned i = 0; i < host.workers; i++)
		worker_round(host.daemon.dp->worker[i]);
}

struct worker *host_start(const char *program, const char *cc)
{
	char memory[16];
	char *argv[] = {(char *)program, (char *)"--no-huge", (char *)"--no-pci",
		(char *)"--no-telemetry", (char *)"-m", memory, NULL};

	snprintf(memory, sizeof(memory), "%u", EAL_MEMORY + (host.workers - 1) * EAL_ANOTHER);
	options_init(&host.opt);
	make_ring_pair(cc);
	return start(6, argv);
}

struct worker *host_start_at(int argc, char *argv[])
{
	char why[VALUE_MAX * 2];
	int own = 1;

	while (own < argc && strcmp(argv[own], "--"))
		own++;
	options_init(&host.opt);
	if (own < argc && options_parse(&host.opt, argc - own, argv + own, why))
		bench_die("%s", why);
	return start(own, argv);
}

void host_slow_clock(unsigned factor)
{
	for (unsigned i = 0; i < host.workers; i++)
		host.daemon.dp->worker[i]->clock.mult /= factor;
}

unsigned host_limit(void)
{
	struct core *c = &host.worker->core;
	unsigned limited = 0;

	for (unsigned i = 0; i < QP_MAX; i++) {
		struct qp *qp = atomic_load(&c->cfg.qps->slot[i]);

		if (!qp)
			continue;
		pacing_cnp(c, qp, CC_CNP_PLAIN, host.worker->now);
		limited += qp->limited;
	}
	return limited;
}

const char *host_socket(void)
{
	return host.opt.socket;
}

struct task {
	void (*fn)(void *arg);
	void *arg;
	_Atomic bool done;
};

static void *run_task(void *arg)
{
	struct task *t = arg;

	t->fn(t->arg);
	atomic_store(&t->done, true);
	return NULL;
}

void host_while(void (*fn)(void *arg), void *arg)
{
	struct task t = {.fn = fn, .arg = arg};
	pthread_t thread;

	if (rte_ctrl_thread_create(&thread, "bench-task", NULL, run_task, &t))
		bench_die("no thread can be made: raise the limit of threads");
	while (!atomic_load(&t.done)) {
		for (unsigned i = 0; i < ROUNDS; i++)
			host_round();
		sched_yield(); /* there may be one CPU only */
	}
	pthread_join(thread, NULL);
}

void host_stop(void)
{
	ctl_stop(host.daemon.ctl);
	while (pthread_tryjoin_np(host.control, NULL)) {
		host_round();
		sched_yield();
	}
	for (unsigned i = 0; i < host.workers; i++)
		worker_end(host.daemon.dp->worker[i]);
	daemon_down(&host.daemon);
	eal_stop();
	rmdir(host.folder);
}
