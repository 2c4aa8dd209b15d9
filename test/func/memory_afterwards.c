/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that was registered is moved, unmapped, inherited and registered again; advice; and
 * threads that cannot be held meanwhile. */
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "memory_kinds.h"

static void overlap(void)
{
	uint8_t *p = anon(MB, PROT_READ | PROT_WRITE);
	struct roci_mr *a, *b, *c;

	fill(p, MB, 9);
	a = reg(p + 100, MB / 2, ALL);
	b = reg(p + MB / 4, MB / 2, ALL);
	c = reg(p, MB, ALL);
	check(p, MB, 9);
	both_ways(e, a, p + 100, MB / 2, 10);
	both_ways(e, b, p + MB / 4, MB / 2, 12);
	both_ways(e, c, p, MB, 14);
	peer_reads(e, a, p + 100, MB / 2);
	peer_reads(e, b, p + MB / 4, MB / 2);
	dereg(a);
	dereg(b);
	both_ways(e, c, p, MB, 16);
	dereg(c);
	munmap(p, MB);
}

/* Memory that mremap() moves keeps its bytes, and its old place is no longer the region's. */
static void moved(void)
{
	uint8_t *p = anon(MB, PROT_READ | PROT_WRITE);
	uint8_t *to = anon(4 * MB, PROT_NONE), *q;
	struct roci_mr *a, *b;

	fill(p, MB, 20);
	a = reg(p, MB, ALL);
	q = mremap(p, MB, 3 * MB, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	if (q != to)
		err(1, "mremap");
	if (mmap(p, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
		p)
		err(1, "mmap");
	fill(p, MB, 21);
	b = reg(p, MB, ALL);
	both_ways(e, b, p, MB, 22);
	check(q, MB, 20);
	for (size_t i = MB; i < 3 * MB; i++)
		if (q[i])
			errx(1, "moved: the extension is not fresh");
	fill(q, 3 * MB, 24);
	check(p, MB, 23);
	{
		struct roci_mr *c = reg(q, 3 * MB, ALL);

		both_ways(e, c, q, 3 * MB, 26);
		dereg(c);
	}
	check(p, MB, 23);
	dereg(a);
	dereg(b);
	munmap(p, MB);
	munmap(q, 3 * MB);
}

/* A block grows while its neighbour is registered, too. */
static void neighbours(void)
{
	uint8_t *p = anon(3 * MB, PROT_READ | PROT_WRITE), *q;
	struct roci_mr *a, *b;

	fill(p, MB, 30);
	fill(p + MB, MB, 31);
	a = reg(p, MB, ALL);
	b = reg(p + MB, MB, ALL);
	q = mremap(p, MB, 2 * MB, MREMAP_MAYMOVE);
	if (q == MAP_FAILED)
		err(1, "mremap");
	check(q, MB, 30);
	memset(q + MB, 0xEE, MB);
	check(p + MB, MB, 31);
	both_ways(e, b, p + MB, MB, 32);
	for (size_t i = MB; i < 2 * MB; i++)
		if (q[i] != 0xEE)
			errx(1, "neighbours: they share memory");
	dereg(a);
	dereg(b);
	munmap(q, 2 * MB);
	munmap(p + MB, 2 * MB);
}

/* Memory that was unmapped while registered, and mapped again. */
static void remapped(void)
{
	uint8_t *p = anon(MB, PROT_READ | PROT_WRITE);
	struct roci_mr *a, *b;

	fill(p, MB, 33);
	a = reg(p, MB, ALL);
	munmap(p, MB);
	if (mmap(p, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
		p)
		err(1, "mmap");
	for (size_t i = 0; i < MB; i++)
		if (p[i])
			errx(1, "remapped: memory is not fresh");
	fill(p, MB, 34);
	b = reg(p, MB, ALL);
	both_ways(e, b, p, MB, 35);
	dereg(a);
	both_ways(e, b, p, MB, 37);
	dereg(b);
	munmap(p, MB);
}

static size_t locked_kb(void)
{
	FILE *f = fopen("/proc/thread-self/status", "r");
	char line[128];
	size_t kb = 0;

	while (fgets(line, sizeof(line), f))
		sscanf(line, "VmLck: %zu", &kb);
	fclose(f);
	return kb;
}

static int has_flag(const void *p, const char *flag)
{
	FILE *f = fopen("/proc/thread-self/smaps", "r");
	unsigned long s, end;
	int here = 0, found = 0;
	char line[512];

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &s, &end) == 2)
			here = (uintptr_t)p >= s && (uintptr_t)p < end;
		if (here && !strncmp(line, "VmFlags:", 8))
			found = !!strstr(line, flag);
	}
	fclose(f);
	return found;
}

static void advice(void)
{
	uint8_t *p = anon(MB, PROT_READ | PROT_WRITE);
	size_t before;

	mlock(p, MB);
	before = locked_kb();
	use(p, MB / 2);
	if (locked_kb() != before)
		errx(1, "mlock: %zu kB locked, before %zu", locked_kb(), before);
	munlock(p, MB);
	munmap(p, MB);
	p = anon(MB, PROT_READ | PROT_WRITE);
	madvise(p, MB, MADV_DONTFORK);
	madvise(p, MB, MADV_DONTDUMP);
	use(p, MB / 2);
	if (!has_flag(p, " dc") || !has_flag(p, " dd"))
		errx(1, "DONTFORK or DONTDUMP is lost");
	munmap(p, MB);
	p = anon(PAGE, PROT_READ | PROT_WRITE);
	madvise(p, PAGE, MADV_DONTDUMP);
	use(p, PAGE);
	if (!has_flag(p, " dd") || has_flag(p, " dc"))
		errx(1, "DONTDUMP of a page is lost");
	munmap(p, PAGE);
}

/* With the library that roci-run loads first. */
static void discarded(void)
{
	uint8_t *p = anon(4 * MB, PROT_READ | PROT_WRITE);
	struct roci_mr *mr;
	const char *preload = getenv("LD_PRELOAD");

	if (!preload || !strstr(preload, "roci-preload"))
		return;
	fill(p, 4 * MB, 90);
	mr = reg(p + MB, MB, ALL);
	if (madvise(p, 2 * MB, MADV_DONTNEED))
		err(1, "madvise");
	for (size_t i = 0; i < 2 * MB; i++)
		if (p[i])
			errx(1, "discarded: byte %zu is %#x", i, p[i]);
	both_ways(e, mr, p + MB, MB, 91);
	if (madvise(p + MB + PAGE, 3 * MB - PAGE, MADV_FREE))
		err(1, "madvise");
	for (size_t i = PAGE; i < MB; i++)
		if (p[MB + i])
			errx(1, "discarded: byte %zu is %#x", i, p[MB + i]);
	check(p + MB, PAGE, 92);
	dereg(mr);
	if (!madvise(p + 1, PAGE, MADV_DONTNEED) || errno != EINVAL)
		errx(1, "discarded: an odd address");
	munmap(p + 2 * MB, PAGE);
	if (!madvise(p + MB, 2 * MB, MADV_DONTNEED) || errno != ENOMEM)
		errx(1, "discarded: a hole");
	for (size_t i = MB; i < 2 * MB; i++)
		if (p[i])
			errx(1, "discarded: byte %zu below a hole is %#x", i, p[i]);
	munmap(p, 4 * MB);
}

/* --- threads that do not take the signal -------------------------------------------------- */

static _Atomic int ready, leave;

static void *blocks_signals(void *arg)
{
	sigset_t all;

	(void)arg;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (ready = 1; !leave;)
		usleep(1000);
	return NULL;
}

/* The kernel holds a thread in vfork() until its child has ended, whatever signals it has. */
static void *waits_in_kernel(void *arg)
{
	(void)arg;
	ready = 1;
	if (!vfork()) {
		const struct timespec t = {.tv_sec = 1};

		nanosleep(&t, NULL);
		_exit(0);
	}
	wait(NULL);
	return NULL;
}

static void while_thread(void *(*run)(void *), int err)
{
	const char *means = getenv("ROCI_WRITERS");
	uint8_t *p = anon(MB, PROT_READ | PROT_WRITE);
	pthread_t t;

	if (!means || strcmp(means, "signals"))
		return;
	ready = leave = 0;
	pthread_create(&t, NULL, run, NULL);
	while (!ready)
		usleep(1000);
	usleep(10000);
	if (err)
		refused(p, MB, ALL, err);
	else
		use(p, MB);
	leave = 1;
	pthread_join(t, NULL);
	use(p, MB);
	munmap(p, MB);
}

static void blocked_signal(void)
{
	while_thread(blocks_signals, EBUSY);
}

static void late_signal(void)
{
	while_thread(waits_in_kernel, 0);
}

static void *forks_on_its_stack(void *arg)
{
	uint8_t p[5 * PAGE];
	pthread_t t;
	int status;
	pid_t pid;

	use(p, sizeof(p));
	ready = leave = 0;
	pthread_create(&t, NULL, arg, NULL);
	while (!ready)
		usleep(1000);
	usleep(10000);
	pid = fork();
	if (!pid) {
		fill(p, sizeof(p), 80);
		deep(20);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		errx(1, "%s: the child ends with %#x", row, status);
	check(p, sizeof(p), 41);
	leave = 1;
	pthread_join(t, NULL);
	return NULL;
}

/* The child has its own stack, also where a thread cannot be held. */
static void fork_on_moved_stack(void)
{
	pthread_t t;

	pthread_create(&t, NULL, forks_on_its_stack, blocks_signals);
	pthread_join(t, NULL);
}

static void *moves_its_stack(void *arg)
{
	pthread_attr_t a;
	void *base;
	size_t size;

	(void)arg;
	pthread_getattr_np(pthread_self(), &a);
	pthread_attr_getstack(&a, &base, &size);
	pthread_attr_destroy(&a);
	dereg(reg((uint8_t *)base + size - 16 * PAGE, 16 * PAGE, ALL));
	return NULL;
}

static void *writes_on(void *arg)
{
	for (unsigned k = 0; !leave; k++)
		((uint8_t *)arg)[k % MB] = (uint8_t)k;
	return NULL;
}

/* libc gives the stack of a thread that has ended to the next one, be it a thread of libroci: it
 * must not wait for itself. With SIGSYS taken the copy is of before fork() itself. */
static void fork_after_moved_stack(void)
{
	uint8_t *p = anon(MB, PROT_READ | PROT_WRITE);
	struct roci_mr *mr = reg(p, MB, ALL);
	pthread_t other, t;
	int status;
	pid_t pid;

	leave = 0;
	signal(SIGSYS, SIG_IGN);
	pthread_create(&other, NULL, writes_on, p);
	pthread_create(&t, NULL, moves_its_stack, NULL);
	pthread_join(t, NULL);
	for (unsigned k = 0; k < 20; k++) {
		pid = fork();
		if (!pid)
			_exit(0);
		if (waitpid(pid, &status, 0) != pid || status)
			errx(1, "%s: the child ends with %#x", row, status);
	}
	signal(SIGSYS, SIG_DFL);
	leave = 1;
	pthread_join(other, NULL);
	dereg(mr);
	munmap(p, MB);
}

const struct row memory_afterwards[] = {
	ROW(overlap),
	ROW(moved),
	ROW(neighbours),
	ROW(remapped),
	ROW(advice),
	ROW(discarded),
	ROW(blocked_signal),
	ROW(late_signal),
	ROW(fork_on_moved_stack),
	ROW(fork_after_moved_stack),
	{NULL, NULL},
};
