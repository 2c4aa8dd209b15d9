/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everybody sleeps: two threads send a message to and fro with pauses of any length between, each
 * asleep on its completion channel while it waits, over daemons whose workers sleep too. No timeout
 * runs anywhere, so one wake-up that is lost is the end of it. Then commands, one by one, to
 * workers that are fast asleep.
 *
 * With --hold it connects, says so, and sleeps until it is killed. With --quiet S it also sleeps, S
 * seconds at the end, and says so before: then is the time to look what the daemons use.
 */
#include <err.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "pair.h"

#define WAIT_S	  120 /* far above any pause of the machine */
#define COMMANDS  30
#define ASLEEP_US 30000 /* after this workers and notifier sleep for good */
#define LONG	  64	/* one round of so many begins when all sleep */
#define LENGTH	  64
#define RECVS	  8

struct side {
	struct end *end;
	unsigned rounds;
	unsigned seed;
	uint64_t *rtt; /* of the pinger: nanoseconds, after a pause that let all fall asleep */
	unsigned measured;
};

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void post_recv(struct end *e)
{
	struct roci_sge sge = {(uintptr_t)e->mr->addr, LENGTH, e->mr->lkey};
	struct roci_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	must(!roci_post_recv(e->qp, &wr, NULL), "post a receive");
}

static void post_send(struct end *e)
{
	struct roci_sge sge = {(uintptr_t)e->mr->addr + LENGTH, LENGTH, e->mr->lkey};
	struct roci_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = ROCI_WR_SEND};

	wr.send_flags = ROCI_SEND_SIGNALED;
	must(!roci_post_send(e->qp, &wr, NULL), "post a send");
}

static void sleep_on_channel(struct end *e)
{
	struct pollfd p = {.fd = e->channel->fd, .events = POLLIN};
	struct roci_cq *cq;

	if (poll(&p, 1, WAIT_S * 1000) != 1)
		errx(1, "no event within %d s: a wake-up was lost", WAIT_S);
	must(!roci_get_cq_event(e->channel, &cq, NULL), "event");
	roci_ack_cq_events(cq, 1);
}

/* Sleeps until `sends` sends and `recvs` receives of @p e are complete. */
static void await(struct end *e, int sends, int recvs)
{
	bool armed = false;

	while (sends || recvs) {
		struct roci_wc wc;
		int n = roci_poll_cq(e->cq, 1, &wc);

		must(n >= 0, "poll");
		if (!n && armed) {
			sleep_on_channel(e);
			armed = false;
		} else if (!n) {
			must(!roci_req_notify_cq(e->cq, 0), "arm");
			armed = true;
		} else if (wc.status != ROCI_WC_SUCCESS) {
			errx(1, "a work request failed: %s", roci_wc_status_str(wc.status));
		} else {
			sends -= wc.opcode == ROCI_WC_SEND;
			recvs -= wc.opcode == ROCI_WC_RECV;
		}
	}
}

/* Mostly as long as it takes a worker to fall asleep; now and then long enough for everybody.
 * Returns true when all sleep then. */
static bool random_pause(unsigned *seed, unsigned round)
{
	unsigned us = (unsigned)rand_r(seed) % 300;

	if (round % LONG == LONG - 1)
		us = ASLEEP_US;
	else if (round % 16 == 15)
		us = 5000;
	usleep(us);
	return us == ASLEEP_US;
}

static void *ping(void *arg)
{
	struct side *s = arg;

	for (unsigned i = 0; i < s->rounds; i++) {
		bool asleep = random_pause(&s->seed, i);
		uint64_t start = now_ns();

		post_recv(s->end);
		post_send(s->end);
		await(s->end, 1, 1);
		if (asleep)
			s->rtt[s->measured++] = now_ns() - start;
	}
	return NULL;
}

static void *pong(void *arg)
{
	struct side *s = arg;

	for (unsigned i = 0; i < s->rounds; i++) {
		await(s->end, 0, 1);
		post_recv(s->end);
		if (i % LONG != LONG - 1) /* those are measured */
			random_pause(&s->seed, rand_r(&s->seed) % 16 ? 0 : 15);
		post_send(s->end);
		await(s->end, 1, 0);
	}
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void traffic(struct end e[2], unsigned rounds)
{
	struct side side[2] = {
		{&e[0], rounds, 1, calloc(rounds, 8), 0}, {&e[1], rounds, 2, NULL, 0}};
	pthread_t thread;

	for (int i = 0; i < RECVS; i++)
		post_recv(&e[1]);
	if (pthread_create(&thread, NULL, pong, &side[1]))
		err(1, "cannot start a thread");
	ping(&side[0]);
	pthread_join(thread, NULL);
	qsort(side[0].rtt, side[0].measured, 8, by_size);
	if (side[0].measured)
		printf("%u rounds; with everybody asleep %u round trips: median %.0f us, 99 %% "
		       "%.0f "
		       "us\n",
			rounds, side[0].measured, (double)side[0].rtt[side[0].measured / 2] / 1e3,
			(double)side[0].rtt[side[0].measured * 99 / 100] / 1e3);
	free(side[0].rtt);
}

static void commands(struct end *e)
{
	struct roci_qp_init_attr init = {.size = sizeof(init), .qp_type = ROCI_QPT_RC};
	struct roci_qp_attr attr = {.size = sizeof(attr)};

	for (int i = 0; i < COMMANDS; i++) {
		struct roci_cq *cq;
		struct roci_qp *qp;

		usleep(1000);
		must((cq = roci_create_cq(e->ctx, 16, NULL, NULL, 0)) != NULL, "CQ");
		usleep(1000);
		init.send_cq = init.recv_cq = cq;
		init.cap = (struct roci_qp_cap){16, 16, 1, 1, 0};
		must((qp = roci_create_qp(e->pd, &init)) != NULL, "QP");
		usleep(1000);
		must(!roci_query_qp(qp, &attr, ROCI_QP_STATE, NULL), "query");
		usleep(1000);
		attr = (struct roci_qp_attr){.size = sizeof(attr), .qp_state = ROCI_QPS_INIT};
		attr.port_num = 1;
		must(!roci_modify_qp(qp, &attr,
			     ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT |
				     ROCI_QP_ACCESS_FLAGS),
			"QP to INIT");
		usleep(1000);
		must(!roci_resize_cq(cq, 100), "resize");
		usleep(1000);
		must(!roci_destroy_qp(qp), "destroy the QP");
		usleep(1000);
		must(!roci_destroy_cq(cq), "destroy the CQ");
	}
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 5 ? (unsigned)strtoul(argv[5], NULL, 0) : 0;
	struct place place[2];
	struct end e[2];

	if (argc < 6)
		errx(2, "use: sleepers SOCKET PORT SOCKET PORT ROUNDS [--hold | --quiet S]");
	for (int i = 0; i < 2; i++)
		place[i] = (struct place){argv[1 + 2 * i], (uint8_t)atoi(argv[2 + 2 * i]), 0};
	pair_open_at(e, place, 4096, ROCI_MTU_1024, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 6 && !strcmp(argv[6], "--hold")) {
		puts("connected");
		for (;;)
			pause();
	}
	traffic(e, rounds);
	for (int i = 0; i < 2; i++)
		commands(&e[i]);
	if (argc > 7 && !strcmp(argv[6], "--quiet")) {
		puts("quiet");
		sleep((unsigned)atoi(argv[7]));
	}
	pair_close(e);
	return 0;
}
