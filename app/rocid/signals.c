/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "ctl.h"
#include "signals.h"

/* Grace period of a start that was asked to stop: far longer than any pause of the machine. */
#define PATIENCE_S 60
/* Interval at which a shutdown reports what it is waiting for. */
#define REPORT_S 10

static struct {
	pthread_mutex_t lock;
	bool asked;
	bool started;		      /* the start is over */
	struct ctl *ctl;	      /* what a signal stops */
	const char *_Atomic stopping; /* signals_stopping() */
	_Atomic uint32_t number;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void stop_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

/* @return whether the start is still in progress. */
static bool ask(void)
{
	bool starting;

	pthread_mutex_lock(&state.lock);
	state.asked = true;
	starting = !state.started;
	if (state.ctl)
		ctl_stop(state.ctl);
	pthread_mutex_unlock(&state.lock);
	return starting;
}

static bool is_starting(void)
{
	bool starting;

	pthread_mutex_lock(&state.lock);
	starting = !state.started;
	pthread_mutex_unlock(&state.lock);
	return starting;
}

/* Waits @p seconds for another signal.  @return whether there was one. */
static bool signal_within(const sigset_t *set, time_t seconds)
{
	const struct timespec patience = {.tv_sec = seconds};
	int sig;

	do /* stopping and continuing the process, for instance by a debugger, interrupts it */
		sig = sigtimedwait(set, NULL, &patience);
	while (sig < 0 && errno == EINTR);
	return sig > 0;
}

static void watch_start(const sigset_t *set)
{
	static const char sentence[] =
		"rocid: a signal arrived while the start was stuck: stopped without cleaning up\n";

	signal_within(set, PATIENCE_S);
	if (!is_starting())
		return;
	if (write(STDERR_FILENO, sentence, sizeof(sentence) - 1) < 0)
		_exit(1);
	_exit(1);
}

/* A driver can be stuck, as can the reader of standard output. */
static void report_stopping(void)
{
	const char *what = atomic_load(&state.stopping);
	uint32_t number = atomic_load(&state.number);
	char sentence[160], of[16] = "";
	int n;

	if (number)
		snprintf(of, sizeof(of), " %u", number);
	n = snprintf(sentence, sizeof(sentence),
		"rocid: not stopped yet: waiting for %s%s; SIGKILL stops it without cleaning "
		"up\n",
		what ? what : "the control thread", of);
	if (write(STDERR_FILENO, sentence, (size_t)n) < 0)
		return; /* nobody to tell */
}

static void *wait_for_signals(void *arg)
{
	sigset_t set;
	int sig;

	pthread_setname_np(pthread_self(), "roci-signals");
	stop_signals(&set);
	while (sigwait(&set, &sig))
		;
	if (ask())
		watch_start(&set);
	for (;;)
		if (!signal_within(&set, REPORT_S))
			report_stopping();
	return NULL;
}

int signals_start(void)
{
	pthread_t thread;
	sigset_t set;
	int err;

	stop_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	err = pthread_create(&thread, NULL, wait_for_signals, NULL);
	if (!err)
		pthread_detach(thread);
	return -err;
}

bool signals_asked(void)
{
	bool asked;

	pthread_mutex_lock(&state.lock);
	asked = state.asked;
	pthread_mutex_unlock(&state.lock);
	return asked;
}

void signals_serve(struct ctl *ctl)
{
	pthread_mutex_lock(&state.lock);
	state.started = true;
	state.ctl = ctl;
	if (ctl && state.asked)
		ctl_stop(ctl);
	pthread_mutex_unlock(&state.lock);
}

void signals_stopping(const char *what, uint32_t number)
{
	atomic_store(&state.number, number);
	atomic_store(&state.stopping, what);
}
