/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * victim SOCKET PHASE SEED: does the same thing over and over until it is killed: one phase of a
 * client's life, so that a kill at a random moment hits it.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pair.h"

#define QPS  8
#define SIZE 65536u

static const char *path;

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static struct roci_context *open_session(void)
{
	struct roci_context *ctx = roci_open(path);

	must(ctx != NULL, "rocid");
	return ctx;
}

static void hello(void)
{
	must(!roci_close(open_session()), "close");
}

/* PDs, channels, CQs and QPs come and go. */
static void create(void)
{
	struct roci_qp_init_attr init = {.size = sizeof(init), .qp_type = ROCI_QPT_RC};
	struct roci_context *ctx = open_session();
	struct roci_qp *qp[QPS];

	init.cap = (struct roci_qp_cap){64, 64, 2, 2, 64};
	for (;;) {
		struct roci_pd *pd = roci_alloc_pd(ctx);
		struct roci_channel *ch = roci_create_channel(ctx);
		struct roci_cq *cq = roci_create_cq(ctx, 64, NULL, ch, 0);

		must(pd && ch && cq, "objects");
		init.send_cq = init.recv_cq = cq;
		for (int i = 0; i < QPS; i++)
			must((qp[i] = roci_create_qp(pd, &init)) != NULL, "QP");
		must(!roci_resize_cq(cq, 200), "resize");
		for (int i = 0; i < QPS; i++)
			must(!roci_destroy_qp(qp[i]), "destroy the QP");
		must(!roci_destroy_cq(cq), "destroy the CQ");
		must(!roci_destroy_channel(ch), "destroy the channel");
		must(!roci_dealloc_pd(pd), "free the PD");
	}
}

static void regions(void)
{
	struct roci_context *ctx = open_session();
	struct roci_pd *pd = roci_alloc_pd(ctx);
	struct roci_mr *mr[QPS] = {0};

	must(pd != NULL, "PD");
	for (;;) {
		int i = rand() % QPS;

		if (mr[i])
			must(!roci_dereg_mr(mr[i]), "deregister");
		mr[i] = roci_alloc_mr(pd, 1 + (size_t)rand() % (1 << 20),
			ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE);
		must(mr[i] != NULL, "memory");
	}
}

static void modify(void)
{
	struct roci_qp_attr reset = {.size = sizeof(reset), .qp_state = ROCI_QPS_RESET};
	struct end e[2];

	pair_open(e, path, SIZE, ROCI_MTU_1024);
	for (;;) {
		for (int i = 0; i < 2; i++)
			must(!roci_modify_qp(e[i].qp, &reset, ROCI_QP_STATE), "RESET");
		pair_connect(e, ROCI_MTU_1024);
	}
}

/* Several of each outstanding, the last of them READs. */
static void post_all(struct end e[2])
{
	for (uint32_t i = 0; i < QPS; i++) {
		pair_post(&e[0], &e[1], ROCI_WR_RDMA_WRITE, 0, SIZE / 2);
		pair_post(&e[1], &e[0], ROCI_WR_RDMA_WRITE, SIZE / 2, SIZE / 2);
		pair_post(&e[0], &e[1], ROCI_WR_RDMA_READ, 0, SIZE / 4);
	}
}

static void traffic(void)
{
	struct end e[2];

	pair_open(e, path, SIZE, ROCI_MTU_1024);
	for (;;) {
		post_all(e);
		for (int i = 0; i < 2 * QPS; i++)
			pair_wait(&e[0]);
		for (int i = 0; i < QPS; i++)
			pair_wait(&e[1]);
	}
}

static void post_shared(struct roci_srq *srq, struct end *e)
{
	struct roci_sge sge = {(uintptr_t)e->mr->addr, SIZE / 4, e->mr->lkey};
	struct roci_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	must(!roci_post_srq_recv(srq, &wr, NULL), "receive");
}

/* Messages of two QPs into a shared receive queue, which has a limit and changes its size. */
static void shared(void)
{
	struct roci_srq_init_attr init = {.size = sizeof(init), .max_wr = 2 * QPS, .max_sge = 1};
	struct roci_srq_attr attr = {.size = sizeof(attr)};
	struct end e[2], more[2];
	struct roci_srq *srq;

	pair_open(e, path, SIZE, ROCI_MTU_1024);
	must((srq = roci_create_srq(e[1].pd, &init)) != NULL, "SRQ");
	pair_share_srq(more, e, srq, 4 * QPS, ROCI_MTU_1024);
	pair_share_srq(e, e, srq, 4 * QPS, ROCI_MTU_1024);
	for (uint32_t round = 0;; round++) {
		attr.max_wr = round % 2 ? 2 * QPS : 8 * QPS;
		attr.srq_limit = QPS;
		must(!roci_modify_srq(srq, &attr, ROCI_SRQ_MAX_WR | ROCI_SRQ_LIMIT), "SRQ");
		for (int i = 0; i < 2 * QPS; i++)
			post_shared(srq, &e[1]);
		for (int i = 0; i < QPS; i++) {
			pair_post(&e[0], &e[1], ROCI_WR_SEND, 0, SIZE / 4);
			pair_post(&more[0], &more[1], ROCI_WR_SEND, 0, SIZE / 4);
		}
		for (int i = 0; i < 2 * QPS; i++) {
			pair_wait(i % 2 ? &e[0] : &more[0]);
			pair_wait(i % 2 ? &e[1] : &more[1]);
		}
	}
}

/* All that was posted is outstanding when everything is destroyed. */
static void destroy(void)
{
	struct end e[2];

	pair_open(e, path, SIZE, ROCI_MTU_1024);
	post_all(e);
	pair_close(e);
}

static const struct {
	const char *name;
	void (*live)(void);
} phase[] = {
	{"hello", hello},
	{"create", create},
	{"regions", regions},
	{"modify", modify},
	{"traffic", traffic},
	{"shared", shared},
	{"destroy", destroy},
};
#define PHASES (sizeof(phase) / sizeof(phase[0]))

int main(int argc, char **argv)
{
	if (argc == 4) {
		path = argv[1];
		srand((unsigned)strtoul(argv[3], NULL, 10));
		for (size_t i = 0; i < PHASES; i++)
			while (!strcmp(phase[i].name, argv[2]))
				phase[i].live();
	}
	errx(2, "use: victim SOCKET hello|create|regions|modify|traffic|shared|destroy SEED");
}
