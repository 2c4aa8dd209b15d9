/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything at once that could lose a write to registered memory: threads that write all the time
 * while their memory is registered, whole and in slices, moved by mremap() and realloc(), freed (so
 * that the arena is swept), while the process forks, reads files into it, and another process
 * writes to it (process_vm_writev). Each writer counts what it has written.
 *
 *   STORM_ROUNDS=20 memory_storm SOCKET
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "memory.h"

#define PAGE   4096ul
#define BLOCK  (256ul << 10)
#define PAGES  (BLOCK / PAGE)
#define SLICE  (32ul << 10)
#define CHURNS 2
#define MOVERS 2
#define APART  (1ul << 40)
#define FIRST  ((uint8_t *)0x200000000000) /* far below what mmap() chooses */
#define OTHER  0xA5			   /* of a child */

static struct end e[2];
static unsigned rounds = 20;
static bool user_mode; /* system calls may fail with EFAULT */
static bool signals;   /* other processes' writes are not held */
static _Atomic unsigned running;

static struct roci_mr *reg(void *p, size_t len)
{
	struct roci_mr *mr = roci_reg_mr(e[0].pd, p, len, ALL);

	must(mr != NULL, "register");
	return mr;
}

static void dereg(struct roci_mr *mr)
{
	must(roci_dereg_mr(mr) == 0, "deregister");
}

/* --- malloc() --------------------------------------------------------------------------- */

static void check_bytes(const uint8_t *p, size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != (uint8_t)(i + seed))
			errx(1, "malloc: byte %zu of %zu differs", i, len);
}

/* Slices that begin and end with pages, as a program registers parts of a buffer: realloc() extends
 * the whole. */
static void reg_slices(uint8_t *p, size_t len)
{
	for (uint8_t *s = p, *e; s < p + len; s = e) {
		e = (uint8_t *)(((uintptr_t)s + SLICE) & ~(SLICE - 1));
		if (e > p + len)
			e = p + len;
		dereg(reg(s, (size_t)(e - s)));
	}
}

static void *churn(void *arg)
{
	uint8_t seed = (uint8_t)(uintptr_t)arg;
	unsigned random = seed;
	uint8_t *p = NULL;
	size_t len = 0;

	for (unsigned k = 0; k < rounds; k++) {
		size_t more = 1000u + (size_t)(rand_r(&random) % 400000);

		if (rand_r(&random) % 3 == 0) {
			free(p);
			p = NULL;
			len = 0;
		}
		p = realloc(p, more);
		if (!p)
			err(1, "realloc");
		check_bytes(p, len < more ? len : more, seed);
		for (size_t i = 0; i < more; i++)
			p[i] = (uint8_t)(i + seed);
		len = more;
		if (rand_r(&random) % 2)
			dereg(reg(p, len));
		else
			reg_slices(p, len);
	}
	check_bytes(p, len, seed);
	free(p);
	atomic_fetch_sub(&running, 1);
	return NULL;
}

/* --- mremap() --------------------------------------------------------------------------- */

struct mover {
	uint8_t *low, *high;
	uint64_t count[PAGES]; /* of writes to each page */
	unsigned registered;
	pthread_t thread, writer;
	_Atomic(uint8_t *) block; /* where the writer writes; NULL: it pauses */
	_Atomic bool paused, stop;
};
static struct mover mover[MOVERS];

static uint8_t *map(uint8_t *at, size_t len)
{
	uint8_t *p = mmap(
		at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (p != at)
		err(1, "mmap");
	return p;
}

static void check_block(const struct mover *m, const uint8_t *p)
{
	for (unsigned i = 0; i < PAGES; i++)
		if (*(const volatile uint64_t *)(p + i * PAGE) != m->count[i])
			errx(1, "mremap: page %u has %lu writes of %lu", i,
				(unsigned long)*(const uint64_t *)(p + i * PAGE),
				(unsigned long)m->count[i]);
}

static void count_pages(struct mover *m, uint8_t *p)
{
	for (unsigned i = 0; i < PAGES; i++) {
		*(volatile uint64_t *)(p + i * PAGE) += 1;
		m->count[i]++;
	}
}

static void *write_pages(void *arg)
{
	struct mover *m = arg;

	while (!m->stop) {
		uint8_t *p = atomic_load(&m->block);

		m->paused = !p;
		if (p)
			count_pages(m, p);
	}
	return NULL;
}

static void pause_writer(struct mover *m)
{
	atomic_store(&m->block, NULL);
	m->paused = false;
	while (!m->paused)
		usleep(10);
}

static uint8_t *move(const struct mover *m, uint8_t *p)
{
	uint8_t *to = p == m->low ? m->high : m->low;

	if (mremap(p, BLOCK, BLOCK, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		err(1, "mremap");
	return to;
}

/* A block is written while it is registered the first time, and lives on by moving. */
static void *move_blocks(void *arg)
{
	struct mover *m = arg;
	uint8_t *p = map(m->high, BLOCK);
	unsigned random = (unsigned)(m - mover) + 1;

	for (unsigned k = 0; k < rounds; k++) {
		if (rand_r(&random) % 4 == 0) {
			munmap(p, BLOCK);
			p = map(m->high, BLOCK);
			memset(m->count, 0, sizeof(m->count));
		}
		atomic_store(&m->block, p);
		if (rand_r(&random) % 2)
			dereg(reg(p, BLOCK));
		pause_writer(m);
		for (unsigned i = 0; i < 20; i++) {
			check_block(m, p);
			p = move(m, p);
			count_pages(m, p);
		}
		check_block(m, p);
	}
	m->stop = true;
	pthread_join(m->writer, NULL);
	munmap(p, BLOCK);
	atomic_fetch_sub(&running, 1);
	return NULL;
}

static void start_mover(struct mover *m)
{
	m->low = FIRST + (size_t)(m - mover) * APART;
	m->high = m->low + APART / 2;
	pthread_create(&m->writer, NULL, write_pages, m);
	pthread_create(&m->thread, NULL, move_blocks, m);
}

/* --- system calls ----------------------------------------------------------------------- */

static void *read_in(void *arg)
{
	int file = memfd_create("file", MFD_CLOEXEC);
	uint8_t *out = malloc(BLOCK);

	(void)arg;
	for (unsigned k = 0; k < rounds; k++) {
		uint8_t *p = mmap(
			NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct roci_mr *mr = k % 2 ? reg(p, BLOCK) : NULL;

		for (unsigned i = 0; i < 4; i++) {
			ssize_t n;

			memset(out, (int)(k + i) | 1, BLOCK);
			if (pwrite(file, out, BLOCK, 0) != (ssize_t)BLOCK)
				err(1, "pwrite");
			n = pread(file, p, BLOCK, 0);
			if (n < 0 && !(user_mode && errno == EFAULT))
				err(1, "pread");
			if (n > 0 && memcmp(out, p, (size_t)n))
				errx(1, "round %u: bytes of pread() are lost", k);
		}
		if (mr)
			dereg(mr);
		munmap(p, BLOCK);
	}
	free(out);
	close(file);
	atomic_fetch_sub(&running, 1);
	return NULL;
}

/* --- another process -------------------------------------------------------------------- */

/* Shared with it. */
static struct order {
	_Atomic uintptr_t at;	/* where to write; 0: pause */
	_Atomic uint64_t turns; /* it has made */
	_Atomic bool stop, denied;
	uint64_t wrote[PAGES];
} * order;
static pid_t outsider;

static void write_outside(pid_t to, uintptr_t at)
{
	for (unsigned i = 0; i < PAGES; i++) {
		uint64_t value = order->wrote[i] + 1;
		struct iovec from = {&value, sizeof(value)},
			     there = {(void *)(at + i * PAGE), sizeof(value)};
		ssize_t n = process_vm_writev(to, &from, 1, &there, 1, 0);

		if (n < 0 && (errno == EPERM || errno == ENOSYS))
			order->denied = true;
		if (n == sizeof(value))
			order->wrote[i] = value;
	}
}

static void start_outsider(void)
{
	pid_t parent = getpid();

	order = mmap(
		NULL, sizeof(*order), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	outsider = fork();
	if (outsider < 0)
		err(1, "fork");
	if (outsider) {
		prctl(PR_SET_PTRACER, outsider); /* where Yama asks for it */
		return;
	}
	while (!order->stop && getppid() == parent) {
		uintptr_t at = atomic_load(&order->at);

		if (at)
			write_outside(parent, at);
		else
			usleep(10);
		atomic_fetch_add(&order->turns, 1);
	}
	_exit(0);
}

static void turns_of_outsider(unsigned n)
{
	for (uint64_t from = order->turns; order->turns < from + n;)
		usleep(10);
}

static void *written_outside(void *arg)
{
	(void)arg;
	for (unsigned k = 0; k < rounds && !order->denied; k++) {
		uint8_t *p = mmap(
			NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		memset(order->wrote, 0, sizeof(order->wrote));
		atomic_store(&order->at, (uintptr_t)p);
		turns_of_outsider(1 + k % 3);
		dereg(reg(p, BLOCK));
		turns_of_outsider(1);
		atomic_store(&order->at, 0);
		turns_of_outsider(2);
		for (unsigned i = 0; i < PAGES; i++)
			if (*(uint64_t *)(p + i * PAGE) != order->wrote[i])
				errx(1, "another process: page %u has %lu writes of %lu", i,
					(unsigned long)*(uint64_t *)(p + i * PAGE),
					(unsigned long)order->wrote[i]);
		munmap(p, BLOCK);
	}
	atomic_fetch_sub(&running, 1);
	return NULL;
}

/* --- fork() ----------------------------------------------------------------------------- */

static bool readable(const void *p)
{
	unsigned char in_core;

	return !mincore((void *)p, PAGE, &in_core);
}

/* A child's writes are its own, wherever the memory was at that moment. */
static void child(void)
{
	for (struct mover *m = mover; m < mover + MOVERS; m++) {
		if (readable(m->low))
			memset(m->low, OTHER, BLOCK);
		if (readable(m->high))
			memset(m->high, OTHER, BLOCK);
	}
	free(malloc(100000));
	_exit(0);
}

static unsigned fork_until_all_have_ended(void)
{
	unsigned forks = 0;

	for (; running; forks++) {
		pid_t pid = fork();
		int status;

		if (!pid)
			child();
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			errx(1, "fork");
	}
	return forks;
}

int main(int argc, char **argv)
{
	const char *means = getenv("ROCI_WRITERS"), *count = getenv("STORM_ROUNDS");
	pthread_t t[CHURNS + 2];
	unsigned n = 0;

	user_mode = !means || !strcmp(means, "user");
	signals = !means || !strcmp(means, "signals");
	if (count)
		rounds = (unsigned)atoi(count);
	if (argc < 2)
		errx(1, "usage: memory_storm SOCKET");
	start_outsider();
	peer_open(e, argv[1], BLOCK);
	running = CHURNS + MOVERS + 1 + !signals;
	for (; n < CHURNS; n++)
		pthread_create(&t[n], NULL, churn, (void *)(uintptr_t)(n + 1));
	pthread_create(&t[n++], NULL, read_in, NULL);
	if (!signals)
		pthread_create(&t[n++], NULL, written_outside, NULL);
	for (struct mover *m = mover; m < mover + MOVERS; m++)
		start_mover(m);
	printf("%u forks", fork_until_all_have_ended());
	for (struct mover *m = mover; m < mover + MOVERS; m++)
		pthread_join(m->thread, NULL);
	while (n)
		pthread_join(t[--n], NULL);
	order->stop = true;
	waitpid(outsider, NULL, 0);
	printf(", %lu turns of another process%s\n", (unsigned long)order->turns,
		order->denied ? ", which may not write here" : "");
	pair_close(e);
	return 0;
}
