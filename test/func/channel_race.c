/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One channel for all: several queues whose completions some threads sleep for, while other threads
 * post, and destroy and make the queues again, which waits until their events were acknowledged. No
 * event is lost, none is for a queue that is gone, and nobody waits for ever.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "pair.h"

#define WAIT_S	 120
#define DRIVERS	 3
#define WAITERS	 2
#define LIFETIME 25 /* requests, then a queue is destroyed and made again */
#define LENGTH	 8

struct driver {
	struct end e[2];
	unsigned rounds;
	unsigned seed;
	atomic_uint completions; /* a waiter took them */
	atomic_ulong events;
	pthread_t thread;
};

static struct end base[2];
static struct driver driver[DRIVERS];
static atomic_bool stop;

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static struct driver *driver_of(const struct roci_cq *cq)
{
	for (int i = 0; i < DRIVERS; i++)
		if (driver[i].e[0].cq == cq)
			return &driver[i];
	errx(1, "an event for a completion queue that is not there");
}

static unsigned drain(struct roci_cq *cq)
{
	struct roci_wc wc;
	unsigned total = 0;
	int n;

	while ((n = roci_poll_cq(cq, 1, &wc)) > 0) {
		if (wc.status != ROCI_WC_SUCCESS)
			errx(1, "a work request failed: %s", roci_wc_status_str(wc.status));
		total++;
	}
	must(n == 0, "poll");
	return total;
}

static void *sleep_for_events(void *arg)
{
	struct pollfd p = {.fd = base[0].channel->fd, .events = POLLIN};

	while (!stop) {
		struct roci_cq *cq;
		struct driver *d;
		int got;

		if (poll(&p, 1, 100) != 1)
			continue;
		got = roci_get_cq_event(base[0].channel, &cq, NULL);
		if (got == EAGAIN) /* another thread was faster */
			continue;
		must(!got, "event");
		d = driver_of(cq);
		atomic_fetch_add(&d->events, 1);
		/* Before it is drained: what comes after the last look makes another event. */
		must(!roci_req_notify_cq(cq, 0), "arm");
		atomic_fetch_add(&d->completions, drain(cq));
		roci_ack_cq_events(cq, 1); /* from here on it may be destroyed */
	}
	return NULL;
}

static void wait_for(struct driver *d, unsigned count)
{
	time_t end = time(NULL) + WAIT_S;

	while (atomic_load(&d->completions) < count) {
		if (time(NULL) > end)
			errx(1, "%u of %u completions within %d s: an event was lost",
				atomic_load(&d->completions), count, WAIT_S);
		usleep(20);
	}
}

static void *drive(void *arg)
{
	struct driver *d = arg;
	unsigned posted = 0;

	for (unsigned i = 0; i < d->rounds; i++) {
		unsigned burst = 1 + (unsigned)rand_r(&d->seed) % 3;

		if (i % LIFETIME == 0) {
			if (i)
				pair_close(d->e);
			pair_share(d->e, base, 64, ROCI_MTU_1024);
			must(!roci_req_notify_cq(d->e[0].cq, 0), "arm");
		}
		for (unsigned k = 0; k < burst; k++, posted++)
			pair_post(&d->e[0], &d->e[1], ROCI_WR_RDMA_WRITE, 0, LENGTH);
		wait_for(d, posted);
		if (rand_r(&d->seed) % 4 == 0)
			usleep((unsigned)rand_r(&d->seed) % 2000);
	}
	pair_close(d->e);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 5000;
	pthread_t waiter[WAITERS];
	unsigned long events = 0;

	if (argc < 2)
		errx(2, "use: channel_race SOCKET [ROUNDS]");
	pair_open(base, argv[1], 4096, ROCI_MTU_1024);
	if (fcntl(base[0].channel->fd, F_SETFL, O_NONBLOCK))
		err(1, "O_NONBLOCK");
	for (unsigned i = 0; i < DRIVERS; i++) {
		driver[i].rounds = rounds;
		driver[i].seed = i;
		if (pthread_create(&driver[i].thread, NULL, drive, &driver[i]))
			err(1, "cannot start a thread");
	}
	for (int i = 0; i < WAITERS; i++)
		if (pthread_create(&waiter[i], NULL, sleep_for_events, NULL))
			err(1, "cannot start a thread");
	for (int i = 0; i < DRIVERS; i++) {
		pthread_join(driver[i].thread, NULL);
		events += driver[i].events;
	}
	stop = true;
	for (int i = 0; i < WAITERS; i++)
		pthread_join(waiter[i], NULL);
	printf("%u requests by each of %d threads, %lu events\n", rounds, DRIVERS, events);
	pair_close(base);
	return 0;
}
