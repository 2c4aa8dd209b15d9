/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * READ and WRITE while the program keeps writing the very memory that is sent: legal for an
 * application, and poison for a sender that reads it twice, once for the copy and once for the
 * ICRC (design: application memory is read once). The caller looks at the counters afterwards:
 * not one packet may have had a bad ICRC.
 */
#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include "pair.h"

#define SIZE   (64 * 1024)
#define DEPTH  16
#define LENGTH 20000

static atomic_bool stop;
static atomic_ulong rounds;

/* Changes all of the memory, again and again. */
static void *scribble(void *arg)
{
	volatile uint64_t *word = arg;

	for (uint64_t v = 1; !stop; v++) {
		for (size_t i = 0; i < SIZE / sizeof(*word); i++)
			word[i] = v * 0x9E3779B97F4A7C15u + i;
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

static void transfer(struct end e[2], enum roci_wr_opcode opcode, unsigned long count)
{
	/* A READ takes the bytes of the other end, a WRITE those of its own. */
	struct end *from = &e[opcode == ROCI_WR_RDMA_READ];
	struct end *to = &e[opcode != ROCI_WR_RDMA_READ];
	unsigned long posted = 0;

	for (unsigned long done = 0; done < count; done++) {
		while (posted < count && posted < done + DEPTH)
			pair_post(from, to, opcode, posted++ * 64 % (SIZE - LENGTH), LENGTH);
		pair_wait(from);
	}
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 0) : 2000;
	struct end e[2];
	pthread_t writer;

	if (argc < 2)
		errx(2, "use: read_race SOCKET [COUNT]");
	pair_open(e, argv[1], SIZE, ROCI_MTU_4096);
	if (pthread_create(&writer, NULL, scribble, e[0].mr->addr))
		err(1, "cannot start a thread");
	while (!rounds) /* both sides of the race must run */
		;
	transfer(e, ROCI_WR_RDMA_READ, count);
	transfer(e, ROCI_WR_RDMA_WRITE, count);
	stop = true;
	pthread_join(writer, NULL);
	printf("%lu READs and %lu WRITEs of %d bytes, memory rewritten %lu times\n", count, count,
		LENGTH, rounds);
	pair_close(e);
	return 0;
}
