/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fair_share SOCKET: a session with a thousand busy queue pairs beside one with a single one. All
 * work is posted at once, so that the worker alone decides who gets on. When the single one is
 * done, the thousand may not have done much more than it, though they had several times as much to
 * do. Their work while this program does not run counts against the single one: then it is tried
 * again, and one that is last in line never gets a fair share.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "pair.h"

#define QPS   1000
#define EACH  4	    /* requests of each of the thousand, */
#define SMALL 16384 /* of so many bytes: 64 MB together */
#define LARGE (1u << 20)
#define ALONE 16 /* requests of the single one: 16 MB */
/* per cent; half is fair. Last in line it would get 20, by QPs 1 in a thousand. */
#define SHARE_MIN 40
/* Requests of the thousand that are left once all is posted: then last in line gets 25 at most. */
#define ENOUGH	   (QPS * EACH / 4 * 3)
#define TRIES	   20
#define PATIENCE_S 180

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

/* Pairs of QPs that belong to one session. */
static void open_many(struct end many[][2], const char *socket)
{
	struct roci_qp_init_attr init = {.size = sizeof(init), .qp_type = ROCI_QPT_RC};
	struct end base;

	end_open(&base, socket, SMALL);
	must((base.cq = roci_create_cq(base.ctx, QPS * EACH, NULL, NULL, 0)) != NULL, "CQ");
	init.send_cq = init.recv_cq = base.cq;
	init.cap = (struct roci_qp_cap){EACH, 1, 1, 1, 0};
	for (int i = 0; i < QPS; i++) {
		for (int side = 0; side < 2; side++) {
			many[i][side] = base;
			many[i][side].qp = roci_create_qp(base.pd, &init);
			must(many[i][side].qp != NULL, "QP");
		}
		pair_connect(many[i], ROCI_MTU_1024);
	}
}

/* Completions that are there. */
static unsigned count(struct end *e)
{
	struct roci_wc wc;
	unsigned n = 0;

	while (roci_poll_cq(e->cq, 1, &wc) == 1)
		n++;
	return n;
}

/* @return the share of the single one in per cent, or less; negative: nothing was measured, as the
 * others were through before it began. */
static double measure(struct end single[2], struct end many[][2])
{
	unsigned meanwhile, left;

	for (int k = 0; k < EACH; k++)
		for (int i = 0; i < QPS; i++)
			pair_post(&many[i][0], &many[i][1], ROCI_WR_RDMA_WRITE, 0, SMALL);
	for (int i = 0; i < ALONE; i++)
		pair_post(&single[0], &single[1], ROCI_WR_RDMA_WRITE, 0, LARGE);
	left = QPS * EACH - count(&many[0][0]);
	for (int i = 0; i < ALONE; i++)
		pair_wait(&single[0]);
	meanwhile = count(&many[0][0]);
	for (unsigned n = left - meanwhile; n; n--)
		pair_wait(&many[0][0]);
	if (left < ENOUGH)
		return -1;
	return 100.0 * ALONE * LARGE / ((double)ALONE * LARGE + (double)meanwhile * SMALL);
}

int main(int argc, char **argv)
{
	static struct end many[QPS][2];
	static struct end single[2];
	time_t end = time(NULL) + PATIENCE_S;
	double share = 0;

	if (argc != 2)
		errx(2, "use: fair_share SOCKET");
	pair_open(single, argv[1], LARGE, ROCI_MTU_1024);
	open_many(many, argv[1]);
	for (int i = 0; i < TRIES && share < SHARE_MIN && time(NULL) < end;) {
		share = measure(single, many);
		i += share >= 0;
		printf("the single queue pair got %.0f%%\n", share);
	}
	if (share < SHARE_MIN)
		errx(1, "a session with one queue pair got %.0f%% beside one with %d", share, QPS);
	return 0;
}
