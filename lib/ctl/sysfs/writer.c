/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>
#include "sysfs/writer.h"

static void *run(void *arg)
{
	struct writer *w = arg;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct changes *c = w->given;
		bool ok;

		if (!c && w->stop)
			break;
		if (!c) {
			pthread_cond_wait(&w->work, &w->lock);
			continue;
		}
		pthread_mutex_unlock(&w->lock);
		ok = changes_apply(c, w->folder);
		pthread_mutex_lock(&w->lock);
		w->failed = !ok;
		w->given = NULL;
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int writer_start(struct writer *w, const struct folder *f)
{
	sigset_t all, old;
	int err;

	*w = (struct writer){.folder = f};
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->work, NULL);
	sigfillset(&all); /* another thread waits for signals */
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = pthread_create(&w->thread, NULL, run, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err) {
		pthread_setname_np(w->thread, "roci-sysfs");
		return 0;
	}
	pthread_cond_destroy(&w->work);
	pthread_mutex_destroy(&w->lock);
	return -err;
}

void writer_stop(struct writer *w)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->work);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->work);
	pthread_mutex_destroy(&w->lock);
}

void writer_give(struct writer *w, struct changes *c)
{
	pthread_mutex_lock(&w->lock);
	w->given = c;
	pthread_cond_signal(&w->work);
	pthread_mutex_unlock(&w->lock);
}

bool writer_idle(struct writer *w, bool *failed)
{
	bool idle;

	pthread_mutex_lock(&w->lock);
	idle = !w->given;
	*failed = w->failed;
	pthread_mutex_unlock(&w->lock);
	return idle;
}
