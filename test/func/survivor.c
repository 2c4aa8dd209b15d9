/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * survivor SOCKET: two queue pairs exchange WRITEs, READs and SENDs and compare every byte,
 * whatever happens around them. A line of input is answered by the number of rounds so far; the end
 * of the input ends it. Any failure ends it with a sentence.
 */
#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "pair.h"

#define SIZE  65536u
#define HALF  (SIZE / 2)
#define BATCH 16 /* rounds between two looks at the input */

static void compare(const struct end e[2], uint32_t offset, uint32_t length, const char *what)
{
	if (memcmp((char *)e[0].mr->addr + offset, (char *)e[1].mr->addr + offset, length))
		errx(1, "a %s of %u bytes brought others", what, length);
}

static void fill(const struct end *e, uint32_t offset, uint32_t length, unsigned seed)
{
	uint8_t *p = (uint8_t *)e->mr->addr + offset;

	for (uint32_t i = 0; i < length; i++)
		p[i] = (uint8_t)(seed + i * 31 + (i >> 8));
}

static void post_recv(struct end *e, uint32_t offset, uint32_t length)
{
	struct roci_sge sge = {(uintptr_t)e->mr->addr + offset, length, e->mr->lkey};
	struct roci_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	if (roci_post_recv(e->qp, &wr, NULL))
		errx(1, "receive: %s", roci_last_error());
}

static void round_trip(struct end e[2], unsigned n)
{
	uint32_t length = 1 + (uint32_t)rand() % 8192;

	fill(&e[0], 0, length, n);
	pair_post(&e[0], &e[1], ROCI_WR_RDMA_WRITE, 0, length);
	pair_wait(&e[0]);
	compare(e, 0, length, "WRITE");
	fill(&e[1], HALF, length, n + 1);
	pair_post(&e[0], &e[1], ROCI_WR_RDMA_READ, HALF, length);
	pair_wait(&e[0]);
	compare(e, HALF, length, "READ");
	fill(&e[1], 0, length, n + 2);
	post_recv(&e[0], 0, length);
	pair_post(&e[1], &e[0], ROCI_WR_SEND, 0, length);
	pair_wait(&e[0]);
	pair_wait(&e[1]);
	compare(e, 0, length, "SEND");
}

int main(int argc, char **argv)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	struct end e[2];
	unsigned rounds = 0;
	char line[16];

	if (argc != 2)
		errx(2, "use: survivor SOCKET");
	pair_open(e, argv[1], SIZE, ROCI_MTU_1024);
	puts("ready");
	fflush(stdout);
	for (;;) {
		for (unsigned i = 0; i < BATCH; i++)
			round_trip(e, rounds++);
		if (poll(&input, 1, 0) != 1)
			continue;
		if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
			break;
		printf("%u\n", rounds);
		fflush(stdout);
	}
	pair_close(e);
	return 0;
}
