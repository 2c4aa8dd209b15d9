/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <rte_lcore.h>
#include "console.h"
#include "options.h"
#include "prompt.h"

struct prompt {
	const struct options *opt;
	pthread_t thread;
	struct console console;
	int stop; /* eventfd */
	int pipe[2];
	int taken[2]; /* the original standard output and standard error; -1: not replaced */
};

/* --- the terminal ----------------------------------------------------------------------- */

/* Redirects @p fd, if it is a terminal, into the pipe. @return the original, or -1. */
static int take(const struct prompt *p, int fd)
{
	int was = isatty(fd) ? fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;

	if (was >= 0)
		dup2(p->pipe[1], fd);
	return was;
}

static void give_back(int fd, int *was)
{
	if (*was < 0)
		return;
	dup2(*was, fd);
	close(*was);
	*was = -1;
}

/* @return 0 or a negative errno. */
static int take_terminal(struct prompt *p)
{
	fflush(stdout);
	if (pipe2(p->pipe, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	p->taken[0] = take(p, STDOUT_FILENO);
	p->taken[1] = take(p, STDERR_FILENO);
	p->console.says = p->pipe[0];
	return 0;
}

/* The last output still reaches the terminal. */
static void give_terminal_back(struct prompt *p)
{
	char text[4096];
	ssize_t n;

	fflush(stdout);
	give_back(STDOUT_FILENO, &p->taken[0]);
	give_back(STDERR_FILENO, &p->taken[1]);
	while (p->pipe[0] >= 0 && (n = read(p->pipe[0], text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)n, stdout);
	fflush(stdout);
}

/* --- the thread ------------------------------------------------------------------------- */

static void *run(void *arg)
{
	struct prompt *p = arg;
	struct console *c = &p->console;
	const char *path = p->opt->cmdline_file;
	int err = *path ? console_file(c, path) : 0;

	if (err)
		fprintf(c->out, "rocid: --cmdline-file %s: %s\n", path, strerror(-err));
	if (p->opt->interactive && !c->quit) {
		console_run(c);
		c->quit = true; /* its end ends rocid */
	}
	fflush(c->out);
	if (c->quit)
		kill(getpid(), SIGTERM); /* signals.c: harmless when the end has begun */
	return NULL;
}

static void release(struct prompt *p)
{
	int *const fd[] = {&p->stop, &p->pipe[0], &p->pipe[1]};

	give_terminal_back(p);
	if (p->console.out)
		fclose(p->console.out);
	for (unsigned i = 0; i < sizeof(fd) / sizeof(fd[0]); i++)
		if (*fd[i] >= 0)
			close(*fd[i]);
	free(p);
}

static int open_console(struct prompt *p)
{
	int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	p->console.out = out >= 0 ? fdopen(out, "w") : NULL;
	if (!p->console.out) {
		if (out >= 0)
			close(out);
		return -errno;
	}
	p->stop = eventfd(0, EFD_CLOEXEC);
	p->console.stop = p->stop;
	if (p->stop < 0)
		return -errno;
	if (p->opt->interactive && isatty(STDIN_FILENO))
		return take_terminal(p);
	return 0;
}

int prompt_start(struct prompt **out, const struct options *o)
{
	struct prompt *p;
	int err;

	*out = NULL;
	if (!o->interactive && !*o->cmdline_file)
		return 0;
	p = malloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct prompt){
		.opt = o,
		.console = {.socket = o->socket,
			.prompt = "rocid> ",
			.in = STDIN_FILENO,
			.signals = true,
			.says = -1},
		.stop = -1,
		.pipe = {-1, -1},
		.taken = {-1, -1},
	};
	err = open_console(p);
	if (!err)
		err = rte_ctrl_thread_create(&p->thread, "rocid-console", NULL, run, p);
	if (err) {
		release(p);
		return err;
	}
	*out = p;
	return 0;
}

void prompt_stop(struct prompt *p)
{
	static const uint64_t one = 1;
	ssize_t n;

	if (!p)
		return;
	n = write(p->stop, &one, sizeof(one));
	(void)n; /* it counts to 2^64 */
	pthread_join(p->thread, NULL);
	release(p);
}
