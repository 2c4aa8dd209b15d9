/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "bits.h"
#include "disposer.h"
#include "list.h"

#define PIECE	  (64u << 20) /* unmapping as much takes about a millisecond */
#define GIVE_UP_S 2	      /* disposer_destroy(): what has not ended by then hangs */

struct burden {
	struct list node;
	int fd; /* -1: memory */
	uint8_t *base;
	size_t size;
	struct disposed *done; /* NULL: nobody counts */
};

/* Belongs to its owner and to its threads: the last to leave frees it. */
struct disposer {
	pthread_mutex_t lock;
	pthread_cond_t work; /* something is queued, or the end has come */
	pthread_cond_t done; /* a thread has nothing to do */
	struct list queue;
	unsigned max;
	unsigned threads;
	unsigned idle;
	bool stop;
};

/* --- the threads ---------------------------------------------------------------------- */

static void unmap(const struct burden *b)
{
	size_t left = b->size;

	while (left) {
		size_t piece = left < PIECE ? left : PIECE;

		/* The front stays mapped, and the file with it, until the last piece. */
		munmap(b->base + left - piece, piece);
		left -= piece;
	}
	if (!b->done)
		return;
	atomic_fetch_add_explicit(&b->done->mappings, 1, memory_order_release);
	atomic_fetch_add_explicit(&b->done->bytes, b->size, memory_order_release);
}

static void release(const struct burden *b)
{
	if (b->fd >= 0)
		close(b->fd);
	else
		unmap(b);
}

static void free_disposer(struct disposer *d)
{
	pthread_cond_destroy(&d->work);
	pthread_cond_destroy(&d->done);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

static void *dispose(void *arg)
{
	struct disposer *d = arg;
	bool last;

	pthread_setname_np(pthread_self(), "roci-dispose");
	pthread_mutex_lock(&d->lock);
	for (;;) {
		struct list *l = list_pop(&d->queue);
		struct burden *b;

		if (l) {
			b = container_of(l, struct burden, node);
			pthread_mutex_unlock(&d->lock);
			release(b);
			free(b);
			pthread_mutex_lock(&d->lock);
			continue;
		}
		if (d->stop)
			break;
		d->idle++;
		pthread_cond_wait(&d->work, &d->lock);
		d->idle--;
	}
	d->threads--;
	pthread_cond_signal(&d->done);
	last = !d->threads && d->max == 0;
	pthread_mutex_unlock(&d->lock);
	if (last)
		free_disposer(d);
	return NULL;
}

/* --- the control thread --------------------------------------------------------------- */

struct disposer *disposer_create(unsigned threads)
{
	struct disposer *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->work, NULL);
	pthread_cond_init(&d->done, NULL);
	list_init(&d->queue);
	d->max = threads;
	return d;
}

static void start_thread(struct disposer *d)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all); /* signals are for the thread that waits for them */
	pthread_sigmask(SIG_BLOCK, &all, &old);
	if (!pthread_create(&thread, &attr, dispose, d))
		d->threads++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
}

static void queue(struct disposer *d, const struct burden *what)
{
	struct burden *b = malloc(sizeof(*b));
	bool taken;

	if (!b) {
		release(what);
		return;
	}
	*b = *what;
	pthread_mutex_lock(&d->lock);
	list_push(&d->queue, &b->node);
	if (!d->idle && d->threads < d->max)
		start_thread(d);
	taken = d->threads;
	if (!taken) /* no thread can be had */
		list_del(&b->node);
	pthread_cond_signal(&d->work);
	pthread_mutex_unlock(&d->lock);
	if (!taken) {
		release(b);
		free(b);
	}
}

void dispose_fd(struct disposer *d, int fd)
{
	queue(d, &(struct burden){.fd = fd});
}

void dispose_memory(struct disposer *d, void *base, size_t size, struct disposed *done)
{
	queue(d, &(struct burden){.fd = -1, .base = base, .size = size, .done = done});
}

void disposer_destroy(struct disposer *d)
{
	struct timespec until;
	bool last;

	if (!d)
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += GIVE_UP_S;
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_cond_broadcast(&d->work);
	while (d->threads && pthread_cond_timedwait(&d->done, &d->lock, &until) != ETIMEDOUT)
		;
	d->max = 0; /* the owner has left */
	last = !d->threads;
	pthread_mutex_unlock(&d->lock);
	if (last)
		free_disposer(d);
}
