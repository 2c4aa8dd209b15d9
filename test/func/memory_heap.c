/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heap in memory that is registered, while threads allocate and free: a child of fork() must
 * find it whole, as what malloc() knows of it is partly in those pages and partly elsewhere. And
 * what fork() does in the child must not reach the parent.
 *
 *   HEAP_FORKS=200 memory_heap SOCKET
 *   memory_heap SOCKET many		one heap per thread
 */
#include <err.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "memory.h"

#define CHUNKS	  4000u
#define THREADS	  3
#define LEAST	  1100u /* larger than what a thread keeps for itself */
#define VARIETY	  2000u
#define IN_CHILD  3000u
#define ALLOCATED 64u
#define HEAPS	  300u
#define BLOCKS	  8u
#define LARGE	  (200ul << 10)

static struct end e[2];
static _Atomic int stop;

static void allocate(unsigned *random, uint8_t **p, unsigned n)
{
	unsigned i = (unsigned)rand_r(random) % n;

	free(p[i]);
	p[i] = malloc(LEAST + (unsigned)rand_r(random) % VARIETY);
	if (!p[i])
		err(1, "malloc");
	memset(p[i], (int)i, LEAST);
}

static void *churn(void *arg)
{
	unsigned random = (unsigned)(uintptr_t)arg;
	uint8_t *p[ALLOCATED] = {0};

	while (!stop)
		allocate(&random, p, ALLOCATED);
	for (unsigned i = 0; i < ALLOCATED; i++)
		free(p[i]);
	return NULL;
}

/* glibc aborts when its lists are not as they should be. */
static void child(unsigned seed)
{
	uint8_t *p[ALLOCATED] = {0};

	for (unsigned i = 0; i < IN_CHILD; i++)
		allocate(&seed, p, ALLOCATED);
	_exit(0);
}

/* Every second chunk is freed, so that the threads use registered pages. */
static void fill(struct roci_mr **mr)
{
	static uint8_t *p[CHUNKS];

	for (unsigned i = 0; i < CHUNKS; i++)
		p[i] = malloc(LEAST);
	*mr = roci_reg_mr(e[0].pd, p[0], (size_t)(p[CHUNKS - 1] - p[0]), ALL);
	must(*mr != NULL, "register");
	for (unsigned i = 0; i < CHUNKS; i += 2)
		free(p[i]);
}

/* --- blocks side by side ---------------------------------------------------------------- */

/* Large blocks are mappings that the kernel merges. realloc() extends one of which parts were
 * registered. */
static void blocks_side_by_side(void)
{
	uint8_t *p[BLOCKS];

	for (unsigned i = 0; i < BLOCKS; i++) {
		p[i] = malloc(LARGE);
		memset(p[i], (int)i, LARGE);
	}
	for (unsigned i = BLOCKS - 1; i-- > 0;) /* upwards, but not the lowest one */
		for (size_t at = 0; at < LARGE; at += LARGE / 5) {
			struct roci_mr *mr = roci_reg_mr(e[0].pd, p[i] + at, LARGE / 5, ALL);

			must(mr != NULL, "register");
			must(roci_dereg_mr(mr) == 0, "deregister");
		}
	for (unsigned i = 0; i < BLOCKS; i++) {
		p[i] = realloc(p[i], 2 * LARGE);
		memset(p[i] + LARGE, (int)i, LARGE);
	}
	for (unsigned i = 0; i < BLOCKS; i++) {
		for (size_t at = 0; at < 2 * LARGE; at++)
			if (p[i][at] != i)
				errx(1, "block %u: byte %zu is of block %u", i, at, p[i][at]);
		free(p[i]);
	}
}

/* --- FILEs ------------------------------------------------------------------------------ */

static pthread_barrier_t both;

static void *print(void *f)
{
	flockfile(f);
	pthread_barrier_wait(&both);
	pthread_barrier_wait(&both);
	funlockfile(f);
	return NULL;
}

/* fork() resets the locks of the child's FILEs, which must not be the parent's. */
static void file_stays_locked(void)
{
	FILE *f = fopen("/dev/null", "w");
	struct roci_mr *mr = roci_reg_mr(e[0].pd, f, sizeof(*f) + 256, ALL);
	pthread_t t;
	pid_t pid;

	must(mr != NULL, "register");
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&t, NULL, print, f);
	pthread_barrier_wait(&both);
	pid = fork();
	if (!pid)
		_exit(0);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		err(1, "fork");
	if (!ftrylockfile(f))
		errx(1, "a child has unlocked a FILE of its parent");
	pthread_barrier_wait(&both);
	pthread_join(t, NULL);
	if (ftrylockfile(f))
		errx(1, "a FILE stays locked");
	funlockfile(f);
	must(roci_dereg_mr(mr) == 0, "deregister");
	fclose(f);
}

/* --- many heaps ------------------------------------------------------------------------- */

static void *own_heap(void *arg)
{
	uint8_t *p = malloc(LEAST);
	struct roci_mr *mr;

	memset(p, (int)(uintptr_t)arg, LEAST);
	mr = roci_reg_mr(e[0].pd, p, LEAST, ALL);
	must(mr != NULL, "register");
	pthread_barrier_wait(&both);
	pthread_barrier_wait(&both);
	must(roci_dereg_mr(mr) == 0, "deregister");
	for (unsigned i = 0; i < LEAST; i++)
		if (p[i] != (uint8_t)(uintptr_t)arg)
			errx(1, "heap %zu: byte %u is %u", (size_t)(uintptr_t)arg, i, p[i]);
	free(p);
	return NULL;
}

/* As a program with hundreds of threads on a machine with as many CPUs. */
static int many_heaps(const char *socket)
{
	pthread_t t[HEAPS];
	int status = 0;
	pid_t pid;

	mallopt(M_ARENA_MAX, HEAPS + 1);
	peer_open(e, socket, 1 << 20);
	pthread_barrier_init(&both, NULL, HEAPS + 1);
	for (uintptr_t i = 0; i < HEAPS; i++)
		if (pthread_create(&t[i], NULL, own_heap, (void *)i))
			errx(1, "thread %zu cannot be created", (size_t)i);
	pthread_barrier_wait(&both);
	pid = fork();
	if (!pid)
		child(0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		errx(1, "child beside %u heaps: status %#x", HEAPS, status);
	pthread_barrier_wait(&both);
	for (unsigned i = 0; i < HEAPS; i++)
		pthread_join(t[i], NULL);
	pair_close(e);
	return 0;
}

int main(int argc, char **argv)
{
	const char *count = getenv("HEAP_FORKS");
	unsigned forks = count ? (unsigned)atoi(count) : 200;
	pthread_t t[THREADS];
	struct roci_mr *mr;

	if (argc < 2)
		errx(1, "usage: memory_heap SOCKET [many]");
	if (argc > 2)
		return many_heaps(argv[1]);
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	peer_open(e, argv[1], 1 << 20);
	blocks_side_by_side();
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	file_stays_locked();
	fill(&mr);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, churn, (void *)(i + 1));
	for (unsigned k = 0; k < forks; k++) {
		pid_t pid = fork();
		int status = 0;

		if (!pid)
			child(k);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			errx(1, "child %u: status %#x", k, status);
	}
	stop = 1;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	must(roci_dereg_mr(mr) == 0, "deregister");
	pair_close(e);
	return 0;
}
