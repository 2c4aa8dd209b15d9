/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of every kind that a program may have is registered, and a peer reads and writes it; or
 * the registration is refused with the errno that Linux has, and a sentence.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>
#include "memory_kinds.h"

struct end e[2];
const char *row;

struct roci_mr *reg(void *addr, size_t len, int access)
{
	struct roci_mr *mr = roci_reg_mr(e[0].pd, addr, len, access);

	if (!mr)
		errx(1, "%s: %s", row, roci_last_error());
	return mr;
}

void dereg(struct roci_mr *mr)
{
	must(roci_dereg_mr(mr) == 0, row);
}

void refused(void *addr, size_t len, int access, int err)
{
	struct roci_mr *mr = roci_reg_mr(e[0].pd, addr, len, access);
	int got = errno;

	if (mr)
		errx(1, "%s: registered", row);
	if (got != err)
		errx(1, "%s: %s instead of %s (%s)", row, strerrorname_np(got),
			strerrorname_np(err), roci_last_error());
	if (strlen(roci_last_error()) < 20)
		errx(1, "%s: no sentence", row);
}

void fill(void *p, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		((volatile uint8_t *)p)[i] = pattern(seed, i);
}

void check(const void *p, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		if (((const volatile uint8_t *)p)[i] != pattern(seed, i))
			errx(1, "%s: byte %zu of %zu differs", row, i, len);
}

void use(void *p, size_t len)
{
	struct roci_mr *mr;

	fill(p, len, 3);
	mr = reg(p, len, ALL);
	check(p, len, 3);
	both_ways(e, mr, p, len, 40);
	dereg(mr);
	check(p, len, 41);
}

void *anon(size_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	return p;
}

/* --- private memory --------------------------------------------------------------------- */

static void heap(void)
{
	char *p = malloc(20000), *q;

	use(p, 20000);
	q = realloc(p, 90000);
	check(q, 20000, 41);
	use(q, 90000);
	free(q);
}

static void brk_heap(void)
{
	uint8_t *p = sbrk(3 * MB);

	use(p + 100, MB);
	if (sbrk(MB) != p + 3 * MB)
		errx(1, "sbrk");
	check(p + 100, MB, 41);
	use(p + MB / 2, 3 * MB);
	sbrk(-(intptr_t)(2 * MB));
	check(p + MB / 2, MB, 41);
	sbrk(MB);
	for (size_t i = 2 * MB; i < 3 * MB; i++)
		if (p[i])
			errx(1, "brk: memory is not fresh");
	sbrk(-(intptr_t)(3 * MB));
}

static void large(void)
{
	uint8_t *p = malloc(10 * MB);

	use(p, 10 * MB);
	p = realloc(p, 30 * MB);
	check(p, 10 * MB, 41);
	use(p, 30 * MB);
	free(p);
}

static void unaligned(void)
{
	uint8_t *p = anon(8 * PAGE, PROT_READ | PROT_WRITE);

	p[PAGE + 16] = 77;
	use(p + PAGE + 17, 5 * PAGE + 3);
	if (p[PAGE + 16] != 77)
		errx(1, "unaligned: a neighbour changed");
	munmap(p, 8 * PAGE);
}

static void absent(void)
{
	uint8_t *p = anon(64 * MB, PROT_READ | PROT_WRITE);
	struct roci_mr *mr;

	p[5 * MB] = 9;
	mr = reg(p, 64 * MB, ALL);
	peer_reads(e, mr, p + 5 * MB, 1);
	peer_writes(e, mr, p + 60 * MB, PAGE, 8);
	dereg(mr);
	munmap(p, 64 * MB);
}

static void thp(void)
{
	uint8_t *p = anon(8 * MB, PROT_READ | PROT_WRITE);

	madvise(p, 8 * MB, MADV_HUGEPAGE);
	fill(p, 8 * MB, 5);
	use(p + 3 * MB + 5, MB);
	check(p, 3 * MB, 5);
	munmap(p, 8 * MB);
}

static uint8_t bss[3 * PAGE];
static uint8_t data[3 * PAGE] = {1, 2, 3};

static void bss_data(void)
{
	use(bss, sizeof(bss));
	use(data, sizeof(data));
}

static void private_file(void)
{
	char path[] = "/var/tmp/roci-memory-XXXXXX";
	int fd = mkstemp(path);
	uint8_t *p, byte;
	char line[PAGE];

	memset(line, 'x', sizeof(line));
	for (int i = 0; i < 8; i++)
		if (write(fd, line, sizeof(line)) != sizeof(line))
			err(1, "write");
	p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	p[PAGE] = 'y';
	{
		struct roci_mr *mr = reg(p, 8 * PAGE, ALL);

		if (p[0] != 'x' || p[PAGE] != 'y' || p[8 * PAGE - 1] != 'x')
			errx(1, "private file: bytes differ");
		peer_reads(e, mr, p, 8 * PAGE);
		dereg(mr);
	}
	use(p, 8 * PAGE);
	if (pread(fd, &byte, 1, 0) != 1 || byte != 'x')
		errx(1, "private file: the file changed");
	munmap(p, 8 * PAGE);
	close(fd);
	unlink(path);
}

static void main_stack(void)
{
	uint8_t p[5 * PAGE];

	use(p, sizeof(p));
	use(p + 100, 50);
}

void deep(int n)
{
	volatile uint8_t pad[PAGE];

	pad[0] = (uint8_t)n;
	if (n)
		deep(n - 1);
	pad[1] = pad[0];
}

static void *on_stack(void *arg)
{
	uint8_t p[5 * PAGE];

	(void)arg;
	use(p, sizeof(p));
	deep(20);
	return NULL;
}

static void thread_stack(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, on_stack, NULL))
		err(1, "pthread_create");
	pthread_join(t, NULL);
	deep(40);
}

static void read_only(void)
{
	uint8_t *p = anon(4 * PAGE, PROT_READ | PROT_WRITE);
	struct roci_mr *mr;

	fill(p, 4 * PAGE, 6);
	mprotect(p, 4 * PAGE, PROT_READ);
	refused(p, 4 * PAGE, ALL, EFAULT);
	mr = reg(p, 4 * PAGE, ROCI_ACCESS_REMOTE_READ);
	peer_reads(e, mr, p, 4 * PAGE);
	dereg(mr);
	mprotect(p, 4 * PAGE, PROT_READ | PROT_WRITE);
	use(p, 4 * PAGE);
	munmap(p, 4 * PAGE);
}

/* --- a control block -------------------------------------------------------------------- */

static _Atomic int leave;
static void *block;

static void *linger(void *arg)
{
	(void)arg;
	block = (void *)((uintptr_t)pthread_self() & ~(PAGE - 1));
	atomic_store(&leave, 1);
	while (leave != 2)
		usleep(1000);
	return NULL;
}

static void *join(void *t)
{
	pthread_join(*(pthread_t *)t, NULL);
	return NULL;
}

static void control_block(void)
{
	pthread_t t, joiner;

	pthread_create(&t, NULL, linger, NULL);
	while (leave != 1)
		usleep(1000);
	pthread_create(&joiner, NULL, join, &t);
	usleep(50000);
	dereg(reg(block, PAGE, ALL));
	leave = 2;
	pthread_join(joiner, NULL); /* hangs if its key is that of the old page */
}

#define SPINNERS 32
#define STACK	 (64ul << 10)

static void *spin(void *arg)
{
	while (leave != 2)
		sched_yield();
	return arg;
}

/* The kernel writes to the block of a thread whenever it has taken its CPU away (rseq). */
static void control_blocks_in_use(void)
{
	uint8_t *stacks = anon(SPINNERS * STACK, PROT_READ | PROT_WRITE);
	pthread_t t[SPINNERS];
	pthread_attr_t a;

	leave = 1;
	fill(stacks, SPINNERS * STACK, 1);
	pthread_attr_init(&a);
	for (unsigned i = 0; i < SPINNERS; i++) {
		pthread_attr_setstack(&a, stacks + i * STACK, STACK);
		pthread_create(&t[i], &a, spin, NULL);
	}
	pthread_attr_destroy(&a);
	dereg(reg(stacks, SPINNERS * STACK, ALL));
	leave = 2;
	for (unsigned i = 0; i < SPINNERS; i++)
		pthread_join(t[i], NULL);
	munmap(stacks, SPINNERS * STACK);
}

/* --- shared memory ---------------------------------------------------------------------- */

static void shared(void *p, void *elsewhere, size_t len)
{
	struct roci_mr *mr = reg(p, len, ALL);

	both_ways(e, mr, p, len, 60);
	check(elsewhere, len, 61);
	fill(elsewhere, len, 62);
	peer_reads(e, mr, p, len);
	check(p, len, 62);
	dereg(mr);
}

static void memfd_shared(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	uint8_t *p, *q;

	if (ftruncate(fd, 8 * PAGE))
		err(1, "ftruncate");
	p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	q = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	shared(p + 10, q + 10, 7 * PAGE);
	munmap(p, 8 * PAGE);
	munmap(q, 8 * PAGE);
	close(fd);
}

static void dev_shm(void)
{
	char name[64];
	uint8_t *p, *q;
	int fd;

	snprintf(name, sizeof(name), "/roci-memory-%d", (int)getpid()); /* tests run in parallel */
	fd = shm_open(name, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 8 * PAGE))
		err(1, "shm_open");
	p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	q = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd); /* it is found by its path */
	shared(p, q, 8 * PAGE);
	munmap(p, 8 * PAGE);
	munmap(q, 8 * PAGE);
	shm_unlink(name);
}

/* Without CAP_CHECKPOINT_RESTORE nobody can open what has neither descriptor nor path. */
static int cannot_be_opened(uint8_t *p)
{
	if (!geteuid())
		return 0;
	fill(p, 8 * PAGE, 64);
	refused(p, 8 * PAGE, ALL, EOPNOTSUPP);
	check(p, 8 * PAGE, 64);
	return 1;
}

static void sysv(void)
{
	int id = shmget(IPC_PRIVATE, 8 * PAGE, 0600 | IPC_CREAT);
	uint8_t *p = shmat(id, NULL, 0), *q = shmat(id, NULL, 0);

	shmctl(id, IPC_RMID, NULL);
	if (!cannot_be_opened(p))
		shared(p, q, 8 * PAGE);
	shmdt(p);
	shmdt(q);
}

static void shared_anonymous(void)
{
	uint8_t *p =
		mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct roci_mr *mr;
	int status;
	pid_t pid;

	if (cannot_be_opened(p))
		return;
	mr = reg(p, 8 * PAGE, ALL);
	both_ways(e, mr, p, 8 * PAGE, 60);
	pid = fork();
	if (!pid) {
		fill(p, 8 * PAGE, 63);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		errx(1, "%s: the child ends with %#x", row, status);
	peer_reads(e, mr, p, 8 * PAGE);
	check(p, 8 * PAGE, 63);
	dereg(mr);
	munmap(p, 8 * PAGE);
}

/* @return NULL if there are none. Those of another test would go away at any moment. */
static uint8_t *map_huge(size_t len, int flags, int fd)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (!getenv("HUGE_PAGES_STAY"))
		errx(1, "%s: start this test by with_rocid --huge", row);
	if (p != MAP_FAILED)
		return p;
	printf("  (no huge pages: not tried)\n");
	return NULL;
}

static void hugetlbfs(void)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	uint8_t *p, *q;

	if (fd < 0 || ftruncate(fd, 2 * MB))
		err(1, "huge memfd");
	p = map_huge(2 * MB, MAP_SHARED, fd);
	if (!p) {
		close(fd);
		return;
	}
	q = mmap(NULL, 2 * MB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	shared(p + 100, q + 100, MB);
	munmap(p, 2 * MB);
	munmap(q, 2 * MB);
	close(fd);
}

/* Private huge pages move to a file of huge pages; parts of them, too. */
static void huge_pages(void)
{
	uint8_t *p = map_huge(6 * MB, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
	struct roci_mr *a, *b;
	int status;
	pid_t pid;

	if (!p)
		return;
	use(p + 100, MB);
	fill(p, 4 * MB, 70);
	a = reg(p + MB, 2 * MB + 5, ALL); /* the third page is absent */
	b = reg(p, 6 * MB, ALL);
	check(p, 4 * MB, 70);
	for (size_t i = 4 * MB; i < 6 * MB; i++)
		if (p[i])
			errx(1, "huge pages: an absent page is not zero");
	both_ways(e, b, p, 6 * MB, 71);
	both_ways(e, a, p + MB, 2 * MB + 5, 73);
	dereg(a);
	dereg(b);
	pid = fork();
	if (!pid) {
		fill(p, 6 * MB, 75);
		_exit(0);
	}
	/* It may need more huge pages for its copy. */
	if (waitpid(pid, &status, 0) != pid || (status && WTERMSIG(status) != SIGBUS))
		errx(1, "%s: the child ends with %#x", row, status);
	check(p + MB, 2 * MB + 5, 74);
	munmap(p, 6 * MB);
}

/* --- refused ---------------------------------------------------------------------------- */

static void no_access(void)
{
	uint8_t *p = anon(8 * PAGE, PROT_READ | PROT_WRITE);

	fill(p, 8 * PAGE, 7);
	mprotect(p + 4 * PAGE, PAGE, PROT_NONE);
	refused(p, 8 * PAGE, ALL, EFAULT);
	mprotect(p + 4 * PAGE, PAGE, PROT_READ | PROT_WRITE);
	check(p, 8 * PAGE, 7);
	munmap(p + 4 * PAGE, PAGE);
	refused(p, 8 * PAGE, ALL, EFAULT);
	refused(p, 8 * PAGE, 0, EFAULT);
	check(p, 4 * PAGE, 7);
	munmap(p, 8 * PAGE);
	refused(p, 8 * PAGE, ALL, EFAULT);
}

#ifndef SYS_mseal
#define SYS_mseal 462
#endif

static void sealed(void)
{
	uint8_t *p = anon(4 * PAGE, PROT_READ | PROT_WRITE);

	fill(p, 4 * PAGE, 7);
	if (syscall(SYS_mseal, p, 4 * PAGE, 0)) {
		printf("  (no mseal: not tried)\n");
		return;
	}
	refused(p, 4 * PAGE, ALL, EPERM);
	check(p, 4 * PAGE, 7);
	fill(p, 4 * PAGE, 8);
}

static void disk_file(void)
{
	char path[] = "/var/tmp/roci-memory-XXXXXX";
	int fd = mkstemp(path);
	uint8_t *p;

	if (ftruncate(fd, 4 * PAGE))
		err(1, "ftruncate");
	p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	refused(p, 4 * PAGE, ALL, EOPNOTSUPP);
	munmap(p, 4 * PAGE);
	close(fd);
	unlink(path);
}

static const struct row kinds[] = {
	ROW(heap),
	ROW(brk_heap),
	ROW(large),
	ROW(unaligned),
	ROW(absent),
	ROW(thp),
	ROW(bss_data),
	ROW(private_file),
	ROW(main_stack),
	ROW(thread_stack),
	ROW(read_only),
	ROW(control_block),
	ROW(control_blocks_in_use),
	ROW(memfd_shared),
	ROW(dev_shm),
	ROW(sysv),
	ROW(shared_anonymous),
	ROW(hugetlbfs),
	ROW(huge_pages),
	ROW(no_access),
	ROW(sealed),
	ROW(disk_file),
	{NULL, NULL},
};

static _Atomic int stop;

/* A program with one thread needs nothing to hold writers. */
static void *second(void *arg)
{
	(void)arg;
	while (!stop)
		usleep(1000);
	return NULL;
}

/* @return whether this process has a userfaultfd. */
static int has_userfaultfd(void)
{
	char path[64], to[64] = "";
	int found = 0;

	for (int fd = 0; fd < 1024; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
		n = readlink(path, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = 0;
		found |= !strcmp(to, "anon_inode:[userfaultfd]");
	}
	return found;
}

static void run_table(const struct row *r, const char *only)
{
	for (; r->name; r++) {
		if (only && strcmp(only, r->name))
			continue;
		row = r->name;
		printf("%s\n", row);
		fflush(stdout);
		r->run();
	}
}

static char **args;

static void *run_rows(void *only)
{
	pthread_t t;
	bool threads = args[2] && !strcmp(args[2], "threads");

	peer_open(e, args[1], MB);
	if (threads)
		pthread_create(&t, NULL, second, NULL);
	run_table(kinds, only);
	run_table(memory_afterwards, only);
	if (getenv("EXPECT_USERFAULTFD") && has_userfaultfd() != atoi(getenv("EXPECT_USERFAULTFD")))
		errx(1, "this tier holds writers by other means than it should");
	if (threads) {
		stop = 1;
		pthread_join(t, NULL);
	}
	pair_close(e);
	exit(0);
}

/* memory_kinds SOCKET [threads|first-ends [ROW]] */
int main(int argc, char **argv)
{
	pthread_t t;

	args = argv;
	if (argc < 3 || strcmp(argv[2], "first-ends"))
		run_rows(argc > 3 ? argv[3] : NULL);
	/* A zombie remains, which takes no signal. */
	if (pthread_create(&t, NULL, run_rows, NULL))
		err(1, "pthread_create");
	pthread_exit(NULL);
}
