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
#include "list.h"
#include "loop/reaper.h"

#define PIECE	  (64u << 20) /* takes about a millisecond to unmap */
#define GIVE_UP_S 2	      /* in reaper_destroy(): releases that take longer are hanging */

/* How long one close may linger. A lingering socket watches for signals (sk_stream_wait_close()),
 * and a pending signal ends the lingering of all sockets that the same close releases. */
#define LINGER_NS 100000L

struct burden {
	struct list node;
	int fd; /* -1: memory */
	uint8_t *base;
	size_t size;
	uint64_t charge;     /* bytes to count */
	struct reaped *done; /* NULL: not counted */
	void *heap;	     /* NULL: base is a mapping */
};

/* The pending releases of one owner; it exists while there are any. */
struct lane {
	struct list node; /* on reaper.lanes */
	struct list turn; /* on reaper.turns, while a thread may take from it */
	uint64_t owner;
	struct list queue;
	unsigned queued;
	unsigned busy; /* threads at work on it */
};

/* Shared by its owner and its threads; the last one to leave frees it. */
struct reaper {
	pthread_mutex_t lock;
	pthread_cond_t work; /* a burden is queued, or `stop` is set */
	pthread_cond_t done; /* a thread has ended */
	struct reaper_config cfg;
	struct list lanes;
	struct list turns;
	unsigned threads;
	unsigned idle;
	bool stop;
	bool left; /* the owner has left */
};

/* --- the threads ---------------------------------------------------------------------- */

/* Makes a timer that interrupts the calling thread's close() periodically, if the system can. */
static bool make_timer(const struct reaper *d, timer_t *timer)
{
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG};
	sigset_t set;

	if (!d->cfg.interrupts)
		return false;
	ev._sigev_un._tid = gettid();
	if (timer_create(CLOCK_MONOTONIC, &ev, timer))
		return false;
	sigemptyset(&set);
	sigaddset(&set, SIGURG);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return true;
}

static void set_timer(const timer_t *timer, long ns)
{
	const struct itimerspec t = {.it_value.tv_nsec = ns, .it_interval.tv_nsec = ns};

	if (timer)
		timer_settime(*timer, 0, &t, NULL);
}

static void unmap(const struct burden *b)
{
	size_t left = b->size;

	while (left) {
		size_t piece = left < PIECE ? left : PIECE;

		/* The front, and the file with it, stays mapped until the last piece. */
		munmap(b->base + left - piece, piece);
		left -= piece;
	}
	if (!b->done)
		return;
	atomic_fetch_add_explicit(&b->done->mappings, 1, memory_order_release);
	atomic_fetch_add_explicit(&b->done->bytes, b->charge, memory_order_release);
}

static void release(const struct burden *b, const timer_t *timer)
{
	if (b->fd >= 0) {
		set_timer(timer, LINGER_NS);
		close(b->fd);
		set_timer(timer, 0);
		return;
	}
	free(b->heap);
	unmap(b);
}

static void free_reaper(struct reaper *d)
{
	pthread_cond_destroy(&d->work);
	pthread_cond_destroy(&d->done);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* Gives @p l another turn if a thread may take from it, or frees it if it has no burdens. */
static void lane_settle(struct reaper *d, struct lane *l)
{
	if (!l->queued && !l->busy) {
		list_del(&l->node);
		free(l);
	} else if (l->queued && l->busy < d->cfg.owner_threads && list_empty(&l->turn)) {
		list_push(&d->turns, &l->turn);
	}
}

/* Takes the next burden of the owner whose turn it is.  @return NULL if there is none. */
static struct burden *take(struct reaper *d, struct lane **lane)
{
	struct list *turn = list_pop(&d->turns);
	struct lane *l;

	if (!turn)
		return NULL;
	*lane = l = container_of(turn, struct lane, turn);
	l->queued--;
	l->busy++;
	turn = list_pop(&l->queue);
	lane_settle(d, l);
	return container_of(turn, struct burden, node);
}

static void *reap(void *arg);

static void start_thread(struct reaper *d)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all); /* another thread waits for signals */
	pthread_sigmask(SIG_BLOCK, &all, &old);
	if (!pthread_create(&thread, &attr, reap, d))
		d->threads++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
}

/* One thread per burden that may be released now. */
static void start_as_needed(struct reaper *d)
{
	if (!list_empty(&d->turns) && !d->idle && d->threads < d->cfg.threads)
		start_thread(d);
}

static void work(struct reaper *d, const timer_t *timer)
{
	struct burden *b;
	struct lane *l;

	for (;;) {
		b = take(d, &l);
		if (b) {
			start_as_needed(d); /* this thread may hang */
			pthread_mutex_unlock(&d->lock);
			release(b, timer);
			free(b);
			pthread_mutex_lock(&d->lock);
			l->busy--;
			lane_settle(d, l);
		} else if (d->stop) {
			return;
		} else {
			d->idle++;
			pthread_cond_wait(&d->work, &d->lock);
			d->idle--;
		}
	}
}

static void *reap(void *arg)
{
	struct reaper *d = arg;
	timer_t timer;
	bool timed = make_timer(d, &timer);
	bool last;

	pthread_setname_np(pthread_self(), "roci-reaper");
	pthread_mutex_lock(&d->lock);
	work(d, timed ? &timer : NULL);
	d->threads--;
	pthread_cond_signal(&d->done);
	last = !d->threads && d->left;
	pthread_mutex_unlock(&d->lock);
	if (timed)
		timer_delete(timer);
	if (last)
		free_reaper(d);
	return NULL;
}

/* --- the control thread --------------------------------------------------------------- */

static void interrupted(int signal)
{
	(void)signal; /* close() has returned */
}

struct reaper *reaper_create(const struct reaper_config *cfg)
{
	const struct sigaction sa = {.sa_handler = interrupted, .sa_flags = SA_RESTART};
	struct reaper *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->work, NULL);
	pthread_cond_init(&d->done, NULL);
	list_init(&d->lanes);
	list_init(&d->turns);
	d->cfg = *cfg;
	if (cfg->interrupts)
		sigaction(SIGURG, &sa, NULL); /* an ignored signal would interrupt nothing */
	return d;
}

static struct lane *find_lane(struct reaper *d, uint64_t owner)
{
	for (struct list *n = d->lanes.next; n != &d->lanes; n = n->next) {
		struct lane *l = container_of(n, struct lane, node);

		if (l->owner == owner)
			return l;
	}
	return NULL;
}

static struct lane *get_lane(struct reaper *d, uint64_t owner)
{
	struct lane *l = find_lane(d, owner);

	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->owner = owner;
	list_init(&l->turn);
	list_init(&l->queue);
	list_push(&d->lanes, &l->node);
	return l;
}

/* @return false if there is no memory for a lane, or no thread. */
static bool enqueue(struct reaper *d, uint64_t owner, struct burden *b)
{
	struct lane *l = get_lane(d, owner);

	if (l) {
		list_push(&l->queue, &b->node);
		l->queued++;
		lane_settle(d, l);
	}
	start_as_needed(d);
	if (l && !d->threads) {
		list_del(&b->node);
		l->queued--;
		list_del(&l->turn);
		lane_settle(d, l);
	}
	return l && d->threads;
}

static void queue(struct reaper *d, uint64_t owner, struct burden burden)
{
	struct burden *b = malloc(sizeof(*b));
	bool taken = false;

	if (b) {
		*b = burden;
		pthread_mutex_lock(&d->lock);
		taken = enqueue(d, owner, b);
		pthread_cond_signal(&d->work);
		pthread_mutex_unlock(&d->lock);
	}
	if (!taken) {
		free(b);
		release(&burden, NULL);
	}
}

void reap_fd(struct reaper *d, uint64_t owner, int fd)
{
	queue(d, owner, (struct burden){.fd = fd});
}

void reap_memory(struct reaper *d, void *base, size_t size, uint64_t charge, struct reaped *done)
{
	queue(d, OWNER_ROCID,
		(struct burden){
			.fd = -1, .base = base, .size = size, .charge = charge, .done = done});
}

void reap_heap(struct reaper *d, void *p)
{
	queue(d, OWNER_ROCID, (struct burden){.fd = -1, .heap = p});
}

unsigned reaper_load(struct reaper *d, uint64_t owner)
{
	struct lane *l;
	unsigned load;

	pthread_mutex_lock(&d->lock);
	l = find_lane(d, owner);
	load = l ? l->queued + l->busy : 0;
	pthread_mutex_unlock(&d->lock);
	return load;
}

void reaper_destroy(struct reaper *d)
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
	d->left = true;
	last = !d->threads;
	pthread_mutex_unlock(&d->lock);
	if (last)
		free_reaper(d);
}
