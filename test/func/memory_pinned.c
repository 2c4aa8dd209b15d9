/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages that the kernel has pinned, to write to them later. If memory moves into the arena what is
 * written then is lost, so registration is refused as long as they are; pins of system calls that
 * end by themselves are waited for.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "memory.h"

#define PAGE	4096ul
#define LEN	(64 * PAGE)
#define SKIPPED 77

static struct end e[2];

static uint8_t *fresh(void)
{
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	memset(p, 0x11, LEN);
	return p;
}

static void both_ways_once(uint8_t *p)
{
	struct roci_mr *mr = roci_reg_mr(e[0].pd, p, LEN, ALL);

	must(mr != NULL, "register");
	both_ways(e, mr, p, LEN, 3);
	must(roci_dereg_mr(mr) == 0, "deregister");
}

/* --- fixed buffers of io_uring ------------------------------------------------------------ */

static int ring_with(uint8_t *p, size_t len)
{
	struct io_uring_params params = {0};
	struct iovec v = {p, len};
	int ring = (int)syscall(SYS_io_uring_setup, 4, &params);

	if (ring < 0 || syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &v, 1)) {
		printf("io_uring: %s\n", strerror(errno));
		exit(SKIPPED);
	}
	return ring;
}

static void fixed_buffers_are_refused(void)
{
	uint8_t *p = fresh();
	int ring = ring_with(p + 3 * PAGE, 2 * PAGE);
	struct roci_mr *mr = roci_reg_mr(e[0].pd, p, LEN, ALL);

	if (mr || errno != EBUSY || !strstr(roci_last_error(), "pinned"))
		errx(1, "pinned pages are registered: %s", roci_last_error());
	for (size_t i = 0; i < LEN; i++)
		if (p[i] != 0x11)
			errx(1, "byte %zu is lost", i);
	/* Pages beside them are not refused, and they are not when they are free again. */
	mr = roci_reg_mr(e[0].pd, p, 3 * PAGE, ALL);
	must(mr != NULL, "the pages before");
	must(roci_dereg_mr(mr) == 0, "deregister");
	if (syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0))
		err(1, "unregister");
	close(ring);
	both_ways_once(p);
	munmap(p, LEN);
}

/* The kernel cannot part a huge page of which one is pinned, so none of its pages can be taken
 * away: they are refused as well, and stay as they are. Where there are no huge pages they are
 * moved. */
static void huge_page_with_a_pinned_one(void)
{
	const size_t huge = 2ul << 20;
	uint8_t *all =
		mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *p = (uint8_t *)(((uintptr_t)all + huge - 1) & ~(huge - 1));
	struct iovec v = {p, PAGE};
	struct roci_mr *mr;
	uint8_t out[PAGE];
	int pipes[2];

	madvise(p, huge, MADV_HUGEPAGE);
	memset(p, 0x11, huge);
	if (pipe(pipes) || vmsplice(pipes[1], &v, 1, 0) != (ssize_t)PAGE)
		err(1, "vmsplice");
	mr = roci_reg_mr(e[0].pd, p + huge / 2, LEN, ALL);
	if (!mr && (errno != EBUSY || !strstr(roci_last_error(), "huge page")))
		errx(1, "beside a pinned page: %s", roci_last_error());
	printf("a huge page with a pinned one: %s\n",
		mr ? "registered, as it is none here" : "refused");
	must(!mr || !roci_dereg_mr(mr), "deregister");
	for (size_t i = 0; i < huge; i++)
		if (p[i] != 0x11)
			errx(1, "byte %zu of a huge page is lost", i);
	if (read(pipes[0], out, PAGE) != (ssize_t)PAGE || memcmp(out, p, PAGE))
		errx(1, "vmsplice: bytes are lost");
	both_ways_once(p + huge / 2);
	close(pipes[0]);
	close(pipes[1]);
	munmap(all, 2 * huge);
}

/* The order that works. */
static void registered_first(void)
{
	uint8_t *p = fresh();
	struct roci_mr *mr = roci_reg_mr(e[0].pd, p, LEN, ALL);
	int ring;

	must(mr != NULL, "register");
	ring = ring_with(p, LEN);
	both_ways(e, mr, p, LEN, 5);
	must(roci_dereg_mr(mr) == 0, "deregister");
	both_ways_once(p);
	close(ring);
	munmap(p, LEN);
}

/* --- pages of a child --------------------------------------------------------------------- */

static void shared_with_a_child(void)
{
	uint8_t *p = fresh();
	int wait[2];
	pid_t pid;
	char byte;

	if (pipe(wait))
		err(1, "pipe");
	pid = fork();
	if (!pid) {
		close(wait[1]);
		(void)!read(wait[0], &byte, 1);
		_exit(p[LEN - 1] == 0x11 ? 0 : 1);
	}
	both_ways_once(p);
	close(wait[0]);
	close(wait[1]);
	if (waitpid(pid, &(int){0}, 0) != pid)
		err(1, "waitpid");
	munmap(p, LEN);
}

/* --- O_DIRECT ----------------------------------------------------------------------------- */

static _Atomic(uint8_t *) target;
static _Atomic int stop;
static _Atomic unsigned reads;
static int file;

static void *read_directly(void *arg)
{
	uint8_t *out = aligned_alloc(PAGE, LEN);

	(void)arg;
	for (unsigned k = 1; !stop; k++) {
		uint8_t *p = target;

		memset(out, (int)k, LEN);
		if (pwrite(file, out, LEN, 0) != (ssize_t)LEN ||
			pread(file, p, LEN, 0) != (ssize_t)LEN)
			err(1, "O_DIRECT");
		if (memcmp(p, out, LEN))
			errx(1, "read %u: bytes are lost", k);
		reads++;
	}
	free(out);
	return NULL;
}

static void direct_reads_are_waited_for(unsigned rounds)
{
	char name[] = "/var/tmp/roci-pinned-XXXXXX";
	int plain = mkstemp(name);
	pthread_t t;

	file = plain < 0 ? -1 : open(name, O_RDWR | O_DIRECT);
	unlink(name);
	if (file < 0) {
		printf("O_DIRECT: %s\n", strerror(errno));
		return;
	}
	target = fresh();
	pthread_create(&t, NULL, read_directly, NULL);
	for (unsigned i = 0; i < rounds; i++) {
		uint8_t *p = fresh();
		unsigned before = reads;
		struct roci_mr *mr;

		target = p;
		while (reads < before + 1)
			usleep(50);
		mr = roci_reg_mr(e[0].pd, p, LEN, ALL);
		must(mr != NULL, "register");
		before = reads;
		while (reads < before + 2)
			usleep(50);
		must(roci_dereg_mr(mr) == 0, "deregister");
	}
	stop = 1;
	pthread_join(t, NULL);
	close(file);
	close(plain);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		errx(1, "usage: memory_pinned SOCKET");
	peer_open(e, argv[1], LEN);
	registered_first();
	shared_with_a_child();
	fixed_buffers_are_refused();
	huge_page_with_a_pinned_one();
	direct_reads_are_waited_for(30);
	pair_close(e);
	return 0;
}
