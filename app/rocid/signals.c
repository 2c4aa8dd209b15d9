/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "ctl.h"
#include "signals.h"

#define PATIENCE_S                                                                \
	60 /* for a start that was asked to end: far longer than any pause of the \
	    * machine */

static struct {
	pthread_mutex_t lock;
	bool asked;
	bool started;	 /* the start is over */
	struct ctl *ctl; /* what a signal stops */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void ending_signals(sigset_t *set)
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

static void *wait_for_signals(void *arg)
{
	static const char sentence[] =
		"rocid: a signal arrived while the start was stuck: ended without cleaning up\n";
	const struct timespec patience = {.tv_sec = PATIENCE_S};
	sigset_t set;
	int sig;

	pthread_setname_np(pthread_self(), "roci-signals");
	ending_signals(&set);
	for (;;) {
		if (sigwait(&set, &sig) || !ask())
			continue;
		do /* stopping and continuing the process, by a debugger say, interrupts it */
			sig = sigtimedwait(&set, NULL, &patience);
		while (sig < 0 && errno == EINTR);
		if (!is_starting())
			continue;
		if (write(STDERR_FILENO, sentence, sizeof(sentence) - 1) < 0)
			_exit(1);
		_exit(1);
	}
	return NULL;
}

int signals_start(void)
{
	pthread_t thread;
	sigset_t set;
	int err;

	ending_signals(&set);
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
