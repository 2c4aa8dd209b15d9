/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lives PHASE SEED: a program on the verbs API that does one thing over and over until it is
 * killed; it prints a line after each time.
 */
#include <sys/wait.h>
#include <unistd.h>
#include "fixture.h"

#define QPS	       1000
#define REGION_MAX     (4u << 20)
#define WRITES	       64
#define FIRST_LIVES    20 /* until caches are warm */
#define MAPPINGS_SLACK 8  /* where malloc() has its memory */

static const struct recipe rc = {.type = IBV_QPT_RC};

/* Set-up and tear-down of all that a program has, and nothing is left of it in the program. */
static void set_up(void)
{
	static unsigned lives, descriptors, mappings;
	struct end e[2];

	pair_open(e, &rc);
	pair_close(e);
	if (++lives == FIRST_LIVES) {
		descriptors = count_entries("/proc/self/fd");
		mappings = count_entries("/proc/self/map_files");
	} else if (lives % FIRST_LIVES == 0) {
		CHECK(count_entries("/proc/self/fd") == descriptors);
		CHECK(count_entries("/proc/self/map_files") <= mappings + MAPPINGS_SLACK);
	}
}

static void write_all(struct end *from, const struct end *to)
{
	struct ibv_sge sge = {(uintptr_t)from->buf, BUF_SIZE, from->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {(uintptr_t)to->buf, to->mr->rkey}};
	struct ibv_send_wr *bad;

	CHECK(!ibv_post_send(from->qp, &wr, &bad));
	poll_one(from);
}

/* Memory that a peer writes. */
static void is_written(void)
{
	struct end e[2];

	pair_open(e, &rc);
	for (int i = 0; i < WRITES; i++)
		write_all(&e[0], &e[1]);
	pair_close(e);
}

/* Memory moves to the arena, and is swept from it. */
static void registers(void)
{
	struct end e[2];

	pair_open(e, &rc);
	for (int i = 0; i < WRITES; i++) {
		size_t size = 1 + (size_t)random() % REGION_MAX;
		uint8_t *p = malloc(size);
		struct ibv_mr *mr;

		CHECK(p);
		memset(p, i, size);
		mr = ibv_reg_mr(e[0].pd, p, size, ALL_ACCESS);
		CHECK(mr && p[size - 1] == (uint8_t)i);
		CHECK(!ibv_dereg_mr(mr));
		free(p);
	}
	pair_close(e);
}

/* A child has its own copy of registered memory, while a peer writes the parent's. */
static void forks(void)
{
	struct end e[2];
	int status;
	pid_t child;

	pair_open(e, &rc);
	write_all(&e[0], &e[1]);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		memset(e[1].buf, 1, BUF_SIZE);
		_exit(0);
	}
	write_all(&e[0], &e[1]);
	CHECK(waitpid(child, &status, 0) == child && !status);
	pair_close(e);
}

static void has_many(void)
{
	static struct ibv_qp *qp[QPS];
	struct end e[2];

	pair_open(e, &rc);
	for (int i = 0; i < QPS; i++) {
		struct ibv_qp_init_attr attr = {.send_cq = e[0].cq,
			.recv_cq = e[0].cq,
			.qp_type = IBV_QPT_RC,
			.cap = {.max_send_wr = 4,
				.max_recv_wr = 4,
				.max_send_sge = 1,
				.max_recv_sge = 1}};

		qp[i] = ibv_create_qp(e[0].pd, &attr);
		CHECK(qp[i]);
	}
	for (int i = 0; i < QPS; i++)
		CHECK(!ibv_destroy_qp(qp[i]));
	pair_close(e);
}

int main(int argc, char *argv[])
{
	static const struct {
		const char *name;
		void (*live)(void);
	} phases[] = {{"sets-up", set_up}, {"is-written", is_written}, {"registers", registers},
		{"forks", forks}, {"has-many", has_many}};

	if (argc < 3) {
		fputs("usage: lives PHASE SEED\n", stderr);
		return 2;
	}
	srandom((unsigned)atoi(argv[2]));
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
		while (!strcmp(phases[i].name, argv[1])) {
			phases[i].live();
			CHECK(write(STDOUT_FILENO, "\n", 1) == 1);
		}
	return 2;
}
