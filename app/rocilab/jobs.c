/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "jobs.h"

/* Exit statuses of a job: unmet expectations, as many as fit, or: */
#define BAD_MAX	    100
#define NOT_DONE    101
#define BUFFER_SIZE 65536u

struct job {
	pid_t pid;
	FILE *output; /* of a job that is not the next to print */
	int status;
	bool ended;
};

static int do_job(struct job *j, unsigned i, int (*job)(void *arg, unsigned i), void *arg)
{
	int bad;

	if (dup2(fileno(j->output), STDOUT_FILENO) < 0)
		return NOT_DONE;
	bad = job(arg, i);
	fflush(stdout);
	return bad < 0 ? NOT_DONE : bad > BAD_MAX ? BAD_MAX : bad;
}

static void begin(struct job *j, unsigned i, int (*job)(void *arg, unsigned i), void *arg)
{
	fflush(NULL);
	j->output = tmpfile();
	j->pid = j->output ? fork() : -1;
	if (!j->pid)
		_exit(do_job(j, i, job, arg));
	if (j->pid < 0) {
		perror("rocilab");
		j->ended = true;
		j->status = NOT_DONE;
	}
}

/* Waits for any. */
static void end_one(struct job *all, unsigned n, struct jobs_result *r)
{
	struct rusage use;
	int status;
	pid_t pid;

	do
		pid = wait4(-1, &status, 0, &use);
	while (pid < 0 && errno == EINTR);
	for (unsigned i = 0; pid > 0 && i < n; i++) {
		if (all[i].pid != pid)
			continue;
		all[i].ended = true;
		all[i].status = WIFEXITED(status) ? WEXITSTATUS(status) : NOT_DONE;
		r->cpu_s += (double)use.ru_utime.tv_sec + (double)use.ru_utime.tv_usec * 1e-6;
	}
}

static void print(struct job *j, struct jobs_result *r)
{
	char block[BUFFER_SIZE];
	size_t n;

	if (j->output) {
		rewind(j->output);
		while ((n = fread(block, 1, sizeof(block), j->output)))
			fwrite(block, 1, n, stdout);
		fclose(j->output);
		fflush(stdout);
	}
	if (j->status == NOT_DONE)
		r->failed++;
	else
		r->bad += (unsigned)j->status;
}

struct jobs_result jobs_run(
	unsigned n, unsigned at_once, int (*job)(void *arg, unsigned i), void *arg)
{
	struct jobs_result r = {0};
	struct job *all = calloc(n, sizeof(*all));
	unsigned begun = 0, printed = 0;

	if (!all && n)
		r.failed = n;
	while (all && printed < n) {
		unsigned running = 0;

		for (unsigned i = printed; i < begun; i++)
			running += !all[i].ended;
		if (begun < n && running < at_once) {
			begin(&all[begun], begun, job, arg);
			begun++;
		} else if (!all[printed].ended) {
			end_one(all, n, &r);
		}
		while (printed < begun && all[printed].ended)
			print(&all[printed++], &r);
	}
	free(all);
	return r;
}
