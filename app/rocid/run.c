/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include "ctl.h"
#include "daemon.h"
#include "notify.h"
#include "prompt.h"
#include "signals.h"

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
	notify("READY=1\nSTATUS=serving applications\n");
}

/* The control thread: commands to workers need workers that run, so it waits for all, and it
 * closes the sessions while they still do. */
static void *control(void *arg)
{
	struct daemon *d = arg;
	struct dataplane *dp = d->dp;
	char why[VALUE_MAX * 2];
	struct prompt *prompt;
	unsigned turns = 0;
	intptr_t err;

	for (uint32_t i = 0; i < dp->nworkers; i++)
		while (!worker_running(dp->worker[i])) {
			if (atomic_load(&d->launch_failed))
				return NULL;
			worker_wait(&turns);
		}
	signals_serve(d->ctl);
	say_ready(d);
	err = prompt_start(&prompt, d->opt);
	if (err)
		fprintf(stderr, "rocid: cannot start the prompt: %s\n", strerror((int)-err));
	if (daemon_start_ribs(d, why))
		fprintf(stderr, "rocid: %s\n", why);
	err = ctl_run(d->ctl);
	signals_serve(NULL);
	daemon_stop_ribs(d);
	notify("STOPPING=1\nSTATUS=stopping\n");
	signals_stopping("the sessions of programs", 0);
	ctl_destroy(d->ctl);
	d->ctl = NULL;
	signals_stopping("the netdevs of IP over InfiniBand", 0);
	daemon_end_ribs(d);
	signals_stopping("the prompt", 0);
	prompt_stop(prompt);
	signals_stopping("the workers", 0);
	for (uint32_t i = 0; i < dp->nworkers; i++)
		worker_stop(dp->worker[i]);
	return (void *)err;
}

/* Ends the launched workers, 1 to @p last: one may not have started to run yet. */
static void undo_launch(struct daemon *d, uint32_t last)
{
	unsigned turns = 0;

	for (uint32_t i = 1; i <= last; i++) {
		while (!worker_running(d->dp->worker[i]))
			worker_wait(&turns);
		worker_stop(d->dp->worker[i]);
	}
	atomic_store(&d->launch_failed, true);
}

/* Workers take the lcores in order, the main one first: the control thread needs none. */
static int launch(struct daemon *d)
{
	struct dataplane *dp = d->dp;
	uint32_t next = 1;
	unsigned lcore;
	int err = 0;

	RTE_LCORE_FOREACH_WORKER(lcore)
	{
		if (next == dp->nworkers)
			break;
		err = rte_eal_remote_launch(worker_run, dp->worker[next], lcore);
		if (err)
			break;
		next++;
	}
	if (err)
		undo_launch(d, next - 1);
	else
		worker_run(dp->worker[0]);
	RTE_LCORE_FOREACH_WORKER(lcore)
	{
		if (--next == 0)
			break;
		rte_eal_wait_lcore(lcore);
	}
	return err;
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
	err = launch(d);
	pthread_join(thread, &result);
	if (!err)
		err = (int)(intptr_t)result;
	if (err)
		snprintf(why, VALUE_MAX * 2, "serving applications failed (%s): start rocid again",
			strerror(-err));
	return err;
}
