/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads sleep while the memory of what they wait for is registered: robust and process-shared
 * locks, whose futexes the kernel finds by their page. They must wake; the others must not notice.
 */
#include <err.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "memory.h"

#define MB	     (1ul << 20)
#define TO_SLEEP_US  200000
#define WAIT_SECONDS 60 /* only a waiter that nobody wakes takes so long */

struct locks {
	pthread_mutex_t robust, shared;
	sem_t sem;
	pthread_cond_t cond;
	pthread_mutex_t outer;
	int go;
};

static struct locks *l;
static _Atomic unsigned awake;
static int quiet[2];
static _Atomic int disturbed;

static void locked(pthread_mutex_t *m)
{
	pthread_mutex_lock(m);
	pthread_mutex_unlock(m);
	atomic_fetch_add(&awake, 1);
}

static void *robust(void *arg)
{
	locked(&l->robust);
	return arg;
}

static void *shared(void *arg)
{
	locked(&l->shared);
	return arg;
}

static void *sem(void *arg)
{
	while (sem_wait(&l->sem))
		;
	atomic_fetch_add(&awake, 1);
	return arg;
}

static void *cond(void *arg)
{
	pthread_mutex_lock(&l->outer);
	while (!l->go)
		pthread_cond_wait(&l->cond, &l->outer);
	pthread_mutex_unlock(&l->outer);
	atomic_fetch_add(&awake, 1);
	return arg;
}

static void *uninvolved(void *arg)
{
	disturbed = poll(&(struct pollfd){.fd = quiet[0], .events = POLLIN}, 1, -1) != 1;
	return arg;
}

static void make_locks(void *at)
{
	pthread_mutexattr_t m;
	pthread_condattr_t c;

	l = at;
	pthread_mutexattr_init(&m);
	pthread_mutexattr_setrobust(&m, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&l->robust, &m);
	pthread_mutexattr_init(&m);
	pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&l->shared, &m);
	pthread_mutex_init(&l->outer, &m);
	pthread_condattr_init(&c);
	pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&l->cond, &c);
	sem_init(&l->sem, 1, 0);
}

static void let_go(void)
{
	pthread_mutex_unlock(&l->robust);
	pthread_mutex_unlock(&l->shared);
	sem_post(&l->sem);
	pthread_mutex_lock(&l->outer);
	l->go = 1;
	pthread_cond_signal(&l->cond);
	pthread_mutex_unlock(&l->outer);
}

int main(int argc, char **argv)
{
	static void *(*const run[])(void *) = {robust, shared, sem, cond};
	enum {
		N = sizeof(run) / sizeof(run[0])
	};
	const char *means = getenv("ROCI_WRITERS");
	uint8_t *p = mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t t[N], other;
	struct end e[2];
	struct roci_mr *mr;

	(void)argc;
	memset(p, 1, MB);
	make_locks(p + 4096);
	peer_open(e, argv[1], MB);
	if (pipe(quiet))
		err(1, "pipe");
	pthread_mutex_lock(&l->robust);
	pthread_mutex_lock(&l->shared);
	for (unsigned i = 0; i < N; i++)
		pthread_create(&t[i], NULL, run[i], NULL);
	pthread_create(&other, NULL, uninvolved, NULL);
	usleep(TO_SLEEP_US);
	mr = roci_reg_mr(e[0].pd, p, MB, ALL);
	must(mr != NULL, "roci_reg_mr");
	let_go();
	for (unsigned i = 0; i < WAIT_SECONDS * 100 && awake < N; i++)
		usleep(10000);
	if (awake < N)
		errx(1, "%u of %u waiters woke", awake, N);
	for (unsigned i = 0; i < N; i++)
		pthread_join(t[i], NULL);
	if (write(quiet[1], "", 1) != 1)
		err(1, "write");
	pthread_join(other, NULL);
	if (disturbed && means && strcmp(means, "signals"))
		errx(1, "poll() of an uninvolved thread ended");
	must(roci_dereg_mr(mr) == 0, "roci_dereg_mr");
	pair_close(e);
	return 0;
}
