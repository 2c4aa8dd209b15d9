/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * widow SOCKET SEED ROUNDS: in each round a child program is the peer, with traffic both ways, and
 * is killed at a random moment. All that this side has posted must complete, each once and in
 * order: some successes, then one RETRY_EXC_ERR, then flushes (decision 0000.5).
 */
#include <err.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "pair.h"

#define SIZE   65536u
#define DEPTH  32u
#define WAIT_S 120

/* 4 ms without an answer, three times again: the peer is in the same daemon, which charges no
 * retry for a pause of its own. */
static const struct end_tuning tuning = {.mtu = ROCI_MTU_1024, .timeout = 10, .retry_cnt = 3};

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static void post(struct end *e, const struct end_address *peer, uint64_t id)
{
	uint32_t length = 1 + (uint32_t)rand() % (SIZE / 4);
	struct roci_sge sge = {(uintptr_t)e->mr->addr, length, e->mr->lkey};
	struct roci_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

	wr.opcode = rand() % 3 ? ROCI_WR_RDMA_WRITE : ROCI_WR_RDMA_READ;
	wr.send_flags = ROCI_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = peer->addr;
	wr.wr.rdma.rkey = peer->rkey;
	must(!roci_post_send(e->qp, &wr, NULL), "post");
}

static void exchange(const void *own, int to, void *peer, int from, size_t len)
{
	if (write(to, own, len) != (ssize_t)len || read(from, peer, len) != (ssize_t)len)
		errx(1, "the other side went away");
}

/* Neither side sends before the other is ready: it would run out of retries. */
static void connect_end(struct end *e, uint8_t port, int to, int from, struct end_address *peer)
{
	struct end_address own = end_address(e, port);
	char ready = 'x';

	exchange(&own, to, peer, from, sizeof(own));
	end_to_rts(e, port, peer, &tuning);
	exchange(&ready, to, &ready, from, 1);
}

/* Writes and reads until the end. */
static void be_the_peer(const char *socket, int to, int from)
{
	struct end_address peer;
	struct end e;

	end_open(&e, socket, SIZE);
	end_to_init(&e, 2);
	connect_end(&e, 2, to, from, &peer);
	for (;;) {
		post(&e, &peer, 0);
		pair_wait(&e);
	}
}

static pid_t start_peer(const char *socket, int *to, int *from)
{
	int down[2], up[2];
	pid_t pid;

	if (pipe(down) || pipe(up))
		err(1, "pipe");
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(down[1]);
		close(up[0]);
		be_the_peer(socket, up[1], down[0]);
	}
	close(down[0]);
	close(up[1]);
	*to = down[1];
	*from = up[0];
	return pid;
}

static struct roci_wc next_completion(struct end *e)
{
	time_t until = time(NULL) + WAIT_S;
	struct roci_wc wc;
	int n;

	while ((n = roci_poll_cq(e->cq, 1, &wc)) == 0) {
		if (time(NULL) > until)
			errx(1, "no completion within %d s of the kill", WAIT_S);
		sched_yield();
	}
	must(n > 0, "poll");
	return wc;
}

static void expect(const struct roci_wc *wc, uint64_t id, enum roci_wc_status status)
{
	if (wc->wr_id != id || wc->status != status)
		errx(1, "request %llu, %s instead of request %llu, %s",
			(unsigned long long)wc->wr_id, roci_wc_status_str(wc->status),
			(unsigned long long)id, roci_wc_status_str(status));
}

/* Keeps the queue full, and kills after @p quota completions. */
static void outlive(struct end *e, const struct end_address *peer, pid_t pid, unsigned quota)
{
	uint64_t posted = 0, done = 0;
	struct roci_wc wc;

	while (done < quota) {
		while (posted - done < DEPTH)
			post(e, peer, posted++);
		wc = next_completion(e);
		expect(&wc, done++, ROCI_WC_SUCCESS);
	}
	if (kill(pid, SIGKILL) || waitpid(pid, NULL, 0) != pid)
		err(1, "kill");
	do { /* what was under way; and more, should that be done before the session ends */
		if (posted - done < DEPTH)
			post(e, peer, posted++);
		wc = next_completion(e);
		if (wc.status == ROCI_WC_SUCCESS)
			expect(&wc, done++, ROCI_WC_SUCCESS);
	} while (wc.status == ROCI_WC_SUCCESS);
	expect(&wc, done++, ROCI_WC_RETRY_EXC_ERR);
	while (done < posted) {
		wc = next_completion(e);
		expect(&wc, done++, ROCI_WC_WR_FLUSH_ERR);
	}
	if (roci_poll_cq(e->cq, 1, &wc))
		errx(1, "a completion too many");
}

int main(int argc, char **argv)
{
	int rounds = argc == 4 ? atoi(argv[3]) : 0;

	if (rounds <= 0)
		errx(2, "use: widow SOCKET SEED ROUNDS");
	srand((unsigned)strtoul(argv[2], NULL, 10));
	for (int i = 0; i < rounds; i++) {
		struct end_address peer;
		struct end e;
		int to, from;
		pid_t pid = start_peer(argv[1], &to, &from);

		end_open(&e, argv[1], SIZE);
		end_to_init(&e, 1);
		connect_end(&e, 1, to, from, &peer);
		outlive(&e, &peer, pid, (unsigned)rand() % 200);
		close(to);
		close(from);
		end_close(&e);
	}
	return 0;
}
