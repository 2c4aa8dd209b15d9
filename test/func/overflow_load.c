/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CQ-01 under load: queues overflow, one after the other, that of the requester and that of the
 * responder in turns, while another queue pair of the same sessions and its queue are busy. Each
 * overflow tells of the queue and of the QP, what had room can be taken, and the others notice
 * nothing.
 */
#include <err.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include "pair.h"

#define WAIT_S 120
#define ROOM   4  /* completions */
#define POSTED 20 /* requests for them */
#define LENGTH 64

static struct end base[2];
static atomic_bool stop;
static atomic_ulong done;

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static void *load(void *arg)
{
	while (!stop) {
		for (int i = 0; i < 8; i++)
			pair_post(&base[0], &base[1],
				i % 2 ? ROCI_WR_RDMA_READ : ROCI_WR_RDMA_WRITE, 0, LENGTH);
		for (int i = 0; i < 8; i++) {
			pair_wait(&base[0]);
			atomic_fetch_add(&done, 1);
		}
	}
	return NULL;
}

static void await_load(unsigned long more)
{
	unsigned long from = done;

	while (done < from + more)
		poll(NULL, 0, 1);
}

static struct roci_async_event next_event(struct end *e)
{
	struct pollfd p = {.fd = e->ctx->async_fd, .events = POLLIN};
	struct roci_async_event ev = {.size = sizeof(ev)};

	if (poll(&p, 1, WAIT_S * 1000) != 1)
		errx(1, "no event within %d s", WAIT_S);
	must(!roci_get_async_event(e->ctx, &ev), "event");
	roci_ack_async_event(&ev);
	return ev;
}

/* CQ_ERR of its queue and QP_FATAL, in any order, and no other. */
static void expect_overflow(struct end *e)
{
	bool cq = false, qp = false;

	while (!cq || !qp) {
		struct roci_async_event ev = next_event(e);

		if (ev.event_type == ROCI_EVENT_CQ_ERR && ev.element.cq == e->cq && !cq)
			cq = true;
		else if (ev.event_type == ROCI_EVENT_QP_FATAL && ev.element.qp == e->qp && !qp)
			qp = true;
		else
			errx(1, "an event %s that was not expected",
				roci_event_type_str(ev.event_type));
	}
}

static void expect_state(struct end *e, enum roci_qp_state state)
{
	struct roci_qp_attr attr = {.size = sizeof(attr)};

	must(!roci_query_qp(e->qp, &attr, ROCI_QP_STATE, NULL), "query");
	if (attr.qp_state != state)
		errx(1, "the QP is in %s, not in %s", roci_qp_state_str(attr.qp_state),
			roci_qp_state_str(state));
}

/* Exactly what had room, all good, and then nothing more. */
static void expect_room(struct end *e)
{
	struct roci_wc wc;

	for (int i = 0; i < e->cq->cqe; i++)
		pair_wait(e);
	if (roci_poll_cq(e->cq, 1, &wc))
		errx(1, "more completions than there was room for");
}

static void requester_overflows(void)
{
	struct end e[2];

	pair_share(e, base, ROOM, ROCI_MTU_1024);
	for (int i = 0; i < POSTED; i++)
		pair_post(&e[0], &e[1], ROCI_WR_RDMA_WRITE, LENGTH, LENGTH);
	expect_overflow(&e[0]);
	expect_state(&e[0], ROCI_QPS_ERR);
	expect_state(&e[1], ROCI_QPS_RTS);
	expect_room(&e[0]);
	pair_close(e);
}

static void responder_overflows(void)
{
	struct roci_sge sge = {(uintptr_t)base[1].mr->addr, LENGTH, base[1].mr->lkey};
	struct roci_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
	struct end e[2];

	pair_share(e, base, ROOM, ROCI_MTU_1024);
	for (int i = 0; i < POSTED; i++)
		must(!roci_post_recv(e[1].qp, &wr, NULL), "post a receive");
	for (int i = 0; i < ROOM; i++) {
		pair_post(&e[0], &e[1], ROCI_WR_SEND, LENGTH, LENGTH);
		pair_wait(&e[0]);
	}
	pair_post(
		&e[0], &e[1], ROCI_WR_SEND, LENGTH, LENGTH); /* nobody will answer this one well */
	expect_overflow(&e[1]);
	expect_state(&e[1], ROCI_QPS_ERR);
	expect_room(&e[1]);
	pair_close(e);
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 60;
	pthread_t loader;

	if (argc < 2)
		errx(2, "use: overflow_load SOCKET [ROUNDS]");
	pair_open(base, argv[1], 4096, ROCI_MTU_1024);
	if (pthread_create(&loader, NULL, load, NULL))
		err(1, "cannot start a thread");
	for (int i = 0; i < rounds; i++) {
		if (i % 2)
			requester_overflows();
		else
			responder_overflows();
		await_load(10);
	}
	stop = true;
	pthread_join(loader, NULL);
	expect_state(&base[0], ROCI_QPS_RTS);
	printf("%d overflows, and %lu requests of others meanwhile\n", rounds, done);
	pair_close(base);
	return 0;
}
