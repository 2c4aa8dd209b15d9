/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory whose owner writes to it, reads files and sockets into it, forks, frees and maps, while it
 * is registered: nothing that was written may be lost, and no child may see half of a write.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "memory.h"

#define PAGE	4096ul
#define MB	(1ul << 20)
#define WRITERS 3

static struct end e[2];
static _Atomic int stop;
static int user_mode; /* system calls may fail with EFAULT, or read less than was asked for */

/* --- writers ---------------------------------------------------------------------------- */

struct writer {
	pthread_t thread;
	_Atomic(uint64_t *) words; /* one a page, which counts up; NULL: pause */
	_Atomic uint64_t *seen;	   /* the writer's own count of each */
	_Atomic int busy;
	unsigned n;
};

static void *count_up(void *arg)
{
	struct writer *w = arg;

	while (!stop) {
		uint64_t *words;

		atomic_store(&w->busy, 1);
		words = atomic_load(&w->words);
		for (unsigned i = 0; words && i < w->n; i++) {
			volatile uint64_t *word = words + i * (PAGE / 8);

			*word = *word + 1;
			atomic_fetch_add(&w->seen[i], 1);
		}
		atomic_store(&w->busy, 0);
	}
	return NULL;
}

/* A writer is busy before it looks which words to count up. */
static void pause_writer(struct writer *w)
{
	atomic_store(&w->words, NULL);
	while (atomic_load(&w->busy))
		sched_yield();
}

/* The words of all writers are in the same pages. */
static void no_write_is_lost(unsigned rounds)
{
	const unsigned pages = MB / PAGE;
	struct writer w[WRITERS];

	for (unsigned i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){.n = pages, .seen = calloc(pages, sizeof(*w[i].seen))};
		pthread_create(&w[i].thread, NULL, count_up, &w[i]);
	}
	for (unsigned r = 0; r < rounds; r++) {
		uint8_t *p =
			mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct roci_mr *mr;

		for (unsigned i = 0; i < WRITERS; i++) {
			for (unsigned k = 0; k < pages; k++)
				atomic_store(&w[i].seen[k], 0);
			atomic_store(&w[i].words, (uint64_t *)p + 8 * i);
		}
		usleep(r % 3 * 100);
		mr = roci_reg_mr(e[0].pd, p, MB, ALL);
		must(mr != NULL, "register");
		usleep(200);
		for (unsigned i = 0; i < WRITERS; i++)
			pause_writer(&w[i]);
		for (unsigned i = 0; i < WRITERS; i++)
			for (unsigned k = 0; k < pages; k++)
				if (((uint64_t *)p)[8 * i + k * (PAGE / 8)] != w[i].seen[k])
					errx(1, "round %u: writer %u, page %u: %lu writes of %lu",
						r, i, k,
						(unsigned long)((
							uint64_t *)p)[8 * i + k * (PAGE / 8)],
						(unsigned long)w[i].seen[k]);
		peer_reads(e, mr, p, PAGE);
		must(roci_dereg_mr(mr) == 0, "deregister");
		munmap(p, MB);
	}
	stop = 1;
	for (unsigned i = 0; i < WRITERS; i++) {
		pthread_join(w[i].thread, NULL);
		free((void *)w[i].seen);
	}
	stop = 0;
}

/* --- system calls ----------------------------------------------------------------------- */

struct reader {
	pthread_t thread;
	_Atomic(uint8_t *) to;
	_Atomic unsigned rounds;
	int sock[2];
	int file;
	unsigned faults;
};

/* The rest of a round is no bytes of the next. */
static void drain(int sock, uint8_t *out)
{
	while (recv(sock, out, 16 * PAGE, MSG_DONTWAIT) > 0)
		;
}

/* Each round reads other bytes into the buffer, which must all be there. */
static void *read_in(void *arg)
{
	struct reader *r = arg;
	uint8_t *out = malloc(16 * PAGE);

	for (unsigned k = 0; !stop; k++) {
		uint8_t *to = atomic_load(&r->to);
		ssize_t n;

		memset(out, (int)(k | 1), 16 * PAGE);
		if (k & 1) {
			if (pwrite(r->file, out, 16 * PAGE, 0) != (ssize_t)(16 * PAGE))
				err(1, "pwrite");
			n = pread(r->file, to, 16 * PAGE, 0);
		} else {
			if (send(r->sock[1], out, 16 * PAGE, 0) != (ssize_t)(16 * PAGE))
				err(1, "send");
			n = recv(r->sock[0], to, 16 * PAGE, MSG_WAITALL);
		}
		if (n < 0 && errno == EFAULT && user_mode) {
			r->faults++;
			drain(r->sock[0], out);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		for (ssize_t i = 0; i < n; i++)
			if (((volatile uint8_t *)to)[i] != (uint8_t)(k | 1))
				errx(1, "round %u: byte %zd of %s() is lost", k, i,
					k & 1 ? "pread" : "recv");
		if (n < (ssize_t)(16 * PAGE) && user_mode)
			drain(r->sock[0], out);
		atomic_fetch_add(&r->rounds, 1);
	}
	free(out);
	return NULL;
}

static void no_read_is_lost(unsigned rounds)
{
	struct reader r = {.file = memfd_create("file", MFD_CLOEXEC)};
	uint8_t *p = mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, r.sock))
		err(1, "socketpair");
	atomic_store(&r.to, p);
	pthread_create(&r.thread, NULL, read_in, &r);
	for (unsigned k = 0; k < rounds; k++) {
		/* The memory is private again, at the same place: what is read meanwhile may go to
		 * either, so the reader has another buffer. */
		uint8_t *fresh =
			mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		unsigned before = atomic_load(&r.rounds);
		struct roci_mr *mr;

		atomic_store(&r.to, fresh + 100);
		while (atomic_load(&r.rounds) < before + 2)
			usleep(50);
		mr = roci_reg_mr(e[0].pd, fresh, MB, ALL);
		must(mr != NULL, "register");
		before = atomic_load(&r.rounds);
		while (atomic_load(&r.rounds) < before + 2)
			usleep(50);
		must(roci_dereg_mr(mr) == 0, "deregister");
		/* It stays mapped: the reader may still be at it. */
	}
	stop = 1;
	pthread_join(r.thread, NULL);
	stop = 0;
	printf("  %u rounds of reads, %u faults\n", atomic_load(&r.rounds), r.faults);
}

/* --- signals ---------------------------------------------------------------------------- */

static uint8_t *_Atomic handled;
static _Atomic unsigned handlings, handling; /* ended, running */

static void on_alarm(int sig)
{
	uint8_t *p;

	(void)sig;
	handling++; /* before it looks: see leave_handlers() */
	p = handled;
	for (size_t i = 0; p && i < MB; i += PAGE)
		p[i]++;
	handlings++;
	handling--;
}

/* A handler of the other thread that was interrupted must not write after munmap(). */
static void leave_handlers(void)
{
	handled = NULL;
	while (handling)
		sched_yield();
}

/* A handler that writes to the memory may run in the thread that registers it. */
static void handlers_do_not_wait(unsigned rounds)
{
	const struct itimerval often = {{0, 50}, {0, 50}}, never = {0};
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (unsigned k = 0; k < rounds; k++) {
		uint8_t *p =
			mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct roci_mr *mr;

		handled = p;
		mr = roci_reg_mr(e[0].pd, p, MB, ALL);
		must(mr != NULL, "register");
		leave_handlers();
		must(roci_dereg_mr(mr) == 0, "deregister");
		munmap(p, MB);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
	printf("  %u handlings\n", handlings);
}

static void *sleep_on(void *arg)
{
	(void)arg;
	while (!stop)
		usleep(1000);
	return NULL;
}

static void handlers_with_threads(unsigned rounds)
{
	pthread_t t;

	pthread_create(&t, NULL, sleep_on, NULL);
	handlers_do_not_wait(rounds);
	stop = 1;
	pthread_join(t, NULL);
	stop = 0;
}

/* --- fork ------------------------------------------------------------------------------- */

static uint64_t *pair_of_words;

/* Two words of different pages are equal, or the second is one less. */
static void *pair_up(void *arg)
{
	(void)arg;
	for (uint64_t k = 1; !stop; k++) {
		*(volatile uint64_t *)pair_of_words = k;
		atomic_thread_fence(memory_order_seq_cst);
		*(volatile uint64_t *)(pair_of_words + MB / 8) = k;
	}
	return NULL;
}

/* As a program that migrates or checkpoints others: libroci's userfaultfd cannot protect this
 * memory as well.  @return its descriptor; -1: it may not have one. */
static int watch(void *p, size_t len)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register r = {
		.range = {(uintptr_t)p, len}, .mode = UFFDIO_REGISTER_MODE_MISSING};

	must(fd < 0 || (!ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &r)), "watch");
	return fd;
}

static void children_have_their_own(unsigned rounds, bool watched)
{
	uint8_t *p = mmap(NULL, 2 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct roci_mr *mr = roci_reg_mr(e[0].pd, p, 2 * MB, ALL);
	int own = -1;
	pthread_t t;

	must(mr != NULL, "register");
	memset(p, 0, 2 * MB);
	if (watched)
		own = watch(p, 2 * MB);
	if (watched && own < 0)
		printf("no userfaultfd of the program's own here: not tested beside one\n");
	pair_of_words = (uint64_t *)p;
	pthread_create(&t, NULL, pair_up, NULL);
	for (unsigned k = 0; k < rounds; k++) {
		char *heap = malloc(1000); /* malloc's locks are taken by fork(), too */
		pid_t pid = fork();
		int status;

		if (pid < 0)
			err(1, "fork");
		if (!pid) {
			uint64_t a = pair_of_words[0], b = pair_of_words[MB / 8];

			for (int i = 0; i < 50; i++)
				if (pair_of_words[0] != a || pair_of_words[MB / 8] != b)
					_exit(2); /* the parent's writes arrive */
			if (a != b && a != b + 1)
				_exit(3);	      /* torn */
			memset(p + 8192, 0x77, 8192); /* must not reach the parent */
			_exit(0);
		}
		free(heap);
		if (waitpid(pid, &status, 0) != pid)
			err(1, "waitpid");
		if (status)
			errx(1, "child %u: status %#x", k, status);
		for (unsigned i = 8192; i < 16384; i++)
			if (p[i])
				errx(1, "child %u: its write reached the parent", k);
	}
	stop = 1;
	pthread_join(t, NULL);
	stop = 0;
	peer_reads(e, mr, p, 2 * MB);
	must(roci_dereg_mr(mr) == 0, "deregister");
	munmap(p, 2 * MB);
	if (own >= 0)
		close(own);
}

/* --- all at once ------------------------------------------------------------------------ */

static void *churn(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	uint8_t *p = NULL;
	size_t len = 0;

	while (!stop) {
		size_t more = 1000u + (size_t)(rand_r(&seed) % 400000);
		uint8_t *q = rand_r(&seed) % 3 ? realloc(p, more) : NULL;

		if (!q) {
			free(p);
			q = malloc(more);
			len = 0;
		}
		p = q;
		for (size_t i = 0; i < len && i < more; i += 511)
			if (p[i] != (uint8_t)(i + (uintptr_t)arg))
				errx(1, "churn: byte %zu of %zu differs", i, more);
		for (size_t i = 0; i < more; i++)
			p[i] = (uint8_t)(i + (uintptr_t)arg);
		len = more;
		if (rand_r(&seed) % 2) {
			struct roci_mr *mr = roci_reg_mr(e[0].pd, p, more, ALL);

			must(mr != NULL, "churn");
			for (size_t i = 0; i < more; i += 511)
				if (p[i] != (uint8_t)(i + (uintptr_t)arg))
					errx(1, "churn: registered byte %zu differs", i);
			must(roci_dereg_mr(mr) == 0, "churn");
		}
	}
	free(p);
	return NULL;
}

static void all_at_once(unsigned seconds)
{
	time_t until = time(NULL) + seconds;
	pthread_t t[WRITERS];
	unsigned forks = 0;

	for (uintptr_t i = 0; i < WRITERS; i++)
		pthread_create(&t[i], NULL, churn, (void *)(i + 1));
	for (; time(NULL) < until; forks++) {
		pid_t pid = fork();
		int status;

		if (!pid) {
			char *p = malloc(100000);

			memset(p, 1, 100000);
			free(p);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			errx(1, "all at once: fork");
	}
	stop = 1;
	for (int i = 0; i < WRITERS; i++)
		pthread_join(t[i], NULL);
	stop = 0;
	printf("  %u forks\n", forks);
}

int main(int argc, char **argv)
{
	const char *means = getenv("ROCI_WRITERS"), *count = getenv("RACE_ROUNDS");
	unsigned rounds = count ? (unsigned)atoi(count) : 30;

	setvbuf(stdout, NULL, _IOLBF, 0);
	user_mode = means && !strcmp(means, "user");
	peer_open(e, argv[1], MB);
	printf("writers\n");
	no_write_is_lost(rounds);
	printf("system calls\n");
	no_read_is_lost(rounds);
	printf("handlers\n");
	handlers_with_threads(rounds * 3);
	printf("children\n");
	children_have_their_own(rounds * 3 / 2, false);
	children_have_their_own(rounds * 3 / 2, true);
	printf("all at once\n");
	fflush(stdout);
	all_at_once(rounds / 6);
	pair_close(e);
	return 0;
}
