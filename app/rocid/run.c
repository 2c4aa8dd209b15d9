/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include "daemon.h"

/* What a signal ends; set before a thread can take one. */
static struct ctl *running;

static void on_signal(int sig)
{
	ctl_stop(running);
}

static void ending_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

void daemon_block_signals(void)
{
	sigset_t set;

	ending_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void handle_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};
	sigset_t set;

	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	ending_signals(&set);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void say_ready(const struct daemon *d)
{
	static const char line[] = "rocid: ready\n";
	int fd = d->opt->ready_fd;

	banner_print(d);
	fputs(line, stdout);
	fflush(stdout);
	if (fd >= 0 && write(fd, line, sizeof(line) - 1) < 0)
		fprintf(stderr, "rocid: --ready-fd %d: %s\n", fd, strerror(errno));
	if (fd > STDERR_FILENO)
		close(fd);
}

/* The control thread: commands to workers need workers that run, so it waits for all, and it
 * ends the sessions while they still do. */
static void *control(void *arg)
{
	struct daemon *d = arg;
	struct dataplane *dp = d->dp;
	intptr_t err;

	for (uint32_t i = 0; i < dp->nworkers; i++)
		while (!worker_running(dp->worker[i]))
			sched_yield();
	running = d->ctl;
	handle_signals();
	say_ready(d);
	err = ctl_run(d->ctl);
	daemon_block_signals(); /* nobody is left to take another */
	ctl_destroy(d->ctl);
	d->ctl = NULL;
	for (uint32_t i = 0; i < dp->nworkers; i++)
		worker_stop(dp->worker[i]);
	return (void *)err;
}

/* Workers take the lcores in order, the main one first: the control thread needs none. */
static int launch(struct dataplane *dp)
{
	uint32_t next = 1;
	unsigned lcore;

	RTE_LCORE_FOREACH_WORKER(lcore)
	{
		if (next == dp->nworkers)
			break;
		if (rte_eal_remote_launch(worker_run, dp->worker[next++], lcore))
			return -EBUSY;
	}
	worker_run(dp->worker[0]);
	rte_eal_mp_wait_lcore();
	return 0;
}

int daemon_run(struct daemon *d, char why[VALUE_MAX * 2])
{
	pthread_t thread;
	void *result;
	int err = rte_ctrl_thread_create(&thread, "rocid-control", NULL, control, d);

	if (err) {
		snprintf(why, VALUE_MAX * 2,
			"the control thread cannot start (%s): raise the limit "
			"of threads",
			strerror(-err));
		return err;
	}
	err = launch(d->dp);
	pthread_join(thread, &result);
	if (!err)
		err = (int)(intptr_t)result;
	if (err)
		snprintf(why, VALUE_MAX * 2, "serving applications failed (%s): start rocid again",
			strerror(-err));
	return err;
}
