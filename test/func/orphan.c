/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * orphan SOCKET STATE: what a program sees when its rocid dies while it is in STATE. All that is
 * outstanding completes, once, in order; DEVICE_FATAL arrives; commands fail with a sentence;
 * everything can be destroyed. A line of input later a new session works.
 */
#include <err.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "pair.h"

#define SENDS	5
#define RECVS	7
#define SEND_ID 100u
#define RECV_ID 200u
#define SIZE	65536u
#define WINDOW	32u
#define WAIT_S	120

static struct end e[2];
static unsigned sends, recvs; /* completions so far */
static bool fatal;

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

/* @return false: rocid is gone. */
static bool post_send(uint64_t id, enum roci_wr_opcode opcode, uint32_t length)
{
	struct roci_sge sge = {(uintptr_t)e[0].mr->addr, length, e[0].mr->lkey};
	struct roci_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = opcode};
	int err;

	wr.send_flags = ROCI_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = (uintptr_t)e[1].mr->addr;
	wr.wr.rdma.rkey = e[1].mr->rkey;
	err = roci_post_send(e[0].qp, &wr, NULL);
	must(!err || err == EIO, "post");
	return !err;
}

/* SENDs for which no receive will ever be posted, and receives that nothing will ever fill. */
static void post_for_ever(void)
{
	struct roci_recv_wr wr = {0};

	for (unsigned i = 0; i < SENDS; i++)
		must(post_send(SEND_ID + i, ROCI_WR_SEND, 64), "SEND");
	for (unsigned i = 0; i < RECVS; i++) {
		wr.wr_id = RECV_ID + i;
		must(!roci_post_recv(e[0].qp, &wr, NULL), "receive");
	}
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void take(const struct roci_wc *wc)
{
	uint64_t want = wc->wr_id < RECV_ID ? SEND_ID + sends++ : RECV_ID + recvs++;

	if (wc->wr_id != want || wc->status != ROCI_WC_WR_FLUSH_ERR)
		errx(1, "request %llu, %s", (unsigned long long)wc->wr_id,
			roci_wc_status_str(wc->status));
}

/* Polls until rocid is found dead and nothing is outstanding any more. */
static void drain(void)
{
	time_t until = time(NULL) + WAIT_S;
	struct roci_wc wc;
	int n;

	while ((n = roci_poll_cq(e[0].cq, 1, &wc)) >= 0) {
		if (n)
			take(&wc);
		if (time(NULL) > until)
			errx(1, "poll_cq does not see that rocid is gone");
		sched_yield();
	}
	if (n != -EIO || sends != SENDS || recvs != RECVS)
		errx(1, "%u of %u sends, %u of %u receives flushed; %d, %s", sends, SENDS, recvs,
			RECVS, n, roci_last_error());
}

static void wait_fatal(void)
{
	struct roci_async_event ev = {.size = sizeof(ev)};

	must(!roci_get_async_event(e[0].ctx, &ev), "async event");
	if (ev.event_type != ROCI_EVENT_DEVICE_FATAL)
		errx(1, "%s instead of DEVICE_FATAL", roci_event_type_str(ev.event_type));
	roci_ack_async_event(&ev);
	fatal = true;
}

static void in_poll(void)
{
	post_for_ever();
	ready();
}

static void in_async(void)
{
	post_for_ever();
	ready();
	wait_fatal();
}

static void in_event(void)
{
	struct roci_cq *cq;

	post_for_ever();
	must(!roci_req_notify_cq(e[0].cq, 0), "arm");
	ready();
	must(!roci_get_cq_event(e[0].channel, &cq, NULL), "completion event");
	if (cq != e[0].cq)
		errx(1, "an event for another CQ");
	roci_ack_cq_events(cq, 1);
}

static void in_command(void)
{
	struct roci_pd *pd;

	post_for_ever();
	ready();
	while ((pd = roci_alloc_pd(e[0].ctx)))
		if (roci_dealloc_pd(pd))
			break;
	if (errno != EIO)
		err(1, "another error than EIO");
}

/* WRITEs without end, each of which completes once and in order. */
static void in_post(void)
{
	uint64_t posted = 0, done = 0;
	bool flushing = false, gone = false;
	struct roci_wc wc;
	int n;

	ready();
	do {
		while (posted - done < WINDOW && !flushing && !gone) {
			gone = !post_send(
				posted, ROCI_WR_RDMA_WRITE, 1 + (uint32_t)posted * 37 % SIZE);
			posted += !gone;
		}
		n = roci_poll_cq(e[0].cq, 1, &wc);
		if (n != 1)
			continue;
		if (wc.wr_id != done++ || (flushing && wc.status == ROCI_WC_SUCCESS))
			errx(1, "request %llu, %s", (unsigned long long)wc.wr_id,
				roci_wc_status_str(wc.status));
		flushing = wc.status == ROCI_WC_WR_FLUSH_ERR;
		if (!flushing && wc.status != ROCI_WC_SUCCESS)
			errx(1, "%s", roci_wc_status_str(wc.status));
	} while (n >= 0);
	if (n != -EIO || done != posted)
		errx(1, "%llu of %llu completed; %s", (unsigned long long)done,
			(unsigned long long)posted, roci_last_error());
	sends = SENDS;
	recvs = RECVS;
}

static const struct {
	const char *name;
	void (*wait)(void);
} state[] = {
	{"poll", in_poll},
	{"async", in_async},
	{"event", in_event},
	{"command", in_command},
	{"post", in_post},
};

int main(int argc, char **argv)
{
	void (*wait)(void) = NULL;
	char byte;

	for (size_t i = 0; argc == 3 && i < sizeof(state) / sizeof(state[0]); i++)
		if (!strcmp(state[i].name, argv[2]))
			wait = state[i].wait;
	if (!wait)
		errx(2, "use: orphan SOCKET poll|async|event|command|post");
	pair_open(e, argv[1], SIZE, ROCI_MTU_1024);
	wait();
	drain();
	if (!fatal)
		wait_fatal();
	if (roci_alloc_pd(e[0].ctx) || errno != EIO || !roci_last_error()[0])
		errx(1, "a command to a dead rocid: %s", roci_last_error());
	pair_close(e);
	puts("bereft");
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) != 1)
		return 1;
	memset(e, 0, sizeof(e));
	pair_open(e, argv[1], SIZE, ROCI_MTU_1024);
	pair_post(&e[0], &e[1], ROCI_WR_RDMA_WRITE, 0, SIZE);
	pair_wait(&e[0]);
	pair_close(e);
	return 0;
}
