/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CQ-11 with everything real: one thread resizes a completion queue up and down while another
 * sleeps on its channel between completions, and polls. Each completion comes, once, in order,
 * and no wake-up is lost.
 */
#include <err.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "pair.h"

#define DEPTH  32 /* work requests outstanding */
#define WAIT_S 120

static atomic_bool stop;
static atomic_ulong resized;

static void *resize(void *arg)
{
	struct roci_cq *cq = arg;
	unsigned seed = 1;

	while (!stop) {
		int size = DEPTH + rand_r(&seed) % 200; /* never too small for what may come */

		if (roci_resize_cq(cq, size))
			errx(1, "resize to %d: %s", size, roci_last_error());
		if (cq->cqe < size)
			errx(1, "%d entries instead of %d", cq->cqe, size);
		atomic_fetch_add(&resized, 1);
		usleep(rand_r(&seed) % 300);
	}
	return NULL;
}

static void post(struct end e[2], uint64_t id)
{
	struct roci_sge sge = {(uintptr_t)e[0].mr->addr, 8, e[0].mr->lkey};
	struct roci_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = ROCI_WR_RDMA_WRITE};

	wr.send_flags = ROCI_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = (uintptr_t)e[1].mr->addr;
	wr.wr.rdma.rkey = e[1].mr->rkey;
	if (roci_post_send(e[0].qp, &wr, NULL))
		errx(1, "post: %s", roci_last_error());
}

/* Sleeps until there is something; returns true when it had to. */
static bool sleep_for(struct end *e, struct roci_wc *wc, int *n)
{
	struct pollfd p = {.fd = e->channel->fd, .events = POLLIN};
	struct roci_cq *cq;

	roci_req_notify_cq(e->cq, 0);
	*n = roci_poll_cq(e->cq, 4, wc);
	if (*n)
		return false;
	if (poll(&p, 1, WAIT_S * 1000) != 1)
		errx(1, "no event within %d s: a wake-up was lost", WAIT_S);
	if (roci_get_cq_event(e->channel, &cq, NULL))
		errx(1, "event: %s", roci_last_error());
	roci_ack_cq_events(cq, 1);
	return true;
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 0) : 40000;
	unsigned long posted = 0, done = 0, slept = 0;
	struct roci_wc wc[4];
	struct end e[2];
	pthread_t resizer;

	if (argc < 2)
		errx(2, "use: resize_race SOCKET [COUNT]");
	pair_open(e, argv[1], 4096, ROCI_MTU_1024);
	if (pthread_create(&resizer, NULL, resize, e[0].cq))
		err(1, "cannot start a thread");
	while (done < count || resized < 500) {
		int n;

		while (posted < done + 1 + done % DEPTH)
			post(e, posted++);
		n = roci_poll_cq(e[0].cq, 4, wc);
		if (!n)
			slept += sleep_for(&e[0], wc, &n);
		if (n < 0)
			errx(1, "poll: %s", roci_last_error());
		for (int i = 0; i < n; i++, done++)
			if (wc[i].wr_id != done || wc[i].status != ROCI_WC_SUCCESS)
				errx(1, "completion %llu (%s) instead of %lu",
					(unsigned long long)wc[i].wr_id,
					roci_wc_status_str(wc[i].status), done);
	}
	stop = true;
	pthread_join(resizer, NULL);
	printf("%lu completions in order, %lu sleeps, %lu resizes\n", done, slept, resized);
	while (done < posted) {
		pair_wait(&e[0]);
		done++;
	}
	pair_close(e);
	return 0;
}
