/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads parked by a real-time signal: for memory that userfaultfd cannot protect (private
 * mappings of files), or where there is none. It costs them EINTR in poll() and nanosleep().
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include "hold.h"
#include "raw.h"
#include "thread.h"

#define THREADS_MAX 4096u
#define PAUSE_NS    20000
#define LOOK_NS	    5000000 /* until then nobody asks why a thread does not come */

/* A thread that sleeps with the signal blocked is not waited for longer than this many looks; one
 * that only lacks a CPU, within pthread_create() or fork() perhaps, is. */
#define LOOKS_MAX   50u
#define PATIENCE_NS 30000000000ull

/* The arrays are used by handlers, so they are static and written before the signal is sent. */
static struct {
	int sig;
	_Atomic bool parking;
	_Atomic uint32_t round; /* futex: a new round ends the last one */
	_Atomic unsigned n;
	pid_t tid[THREADS_MAX];
	_Atomic uint32_t parked[THREADS_MAX]; /* the round in which it was */
} lot;

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
	syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* @return false for a thread that is not in the lot yet: this signal is an earlier one that came
 * late, and the round's own, which it would block, is still to come. */
static bool mark_parked(pid_t own, uint32_t round)
{
	unsigned n = atomic_load(&lot.n);

	for (unsigned i = 0; i < n; i++)
		if (lot.tid[i] == own) {
			atomic_store(&lot.parked[i], round);
			return true;
		}
	return false;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	int saved = errno;
	/* First: a mark of an earlier round counts for nothing. */
	uint32_t round = atomic_load(&lot.round);
	pid_t own = (pid_t)syscall(SYS_gettid);

	(void)sig;
	(void)context;
	if (info->si_code == SI_TKILL && atomic_load(&lot.parking) && mark_parked(own, round))
		while (atomic_load(&lot.parking) && atomic_load(&lot.round) == round)
			futex(&lot.round, FUTEX_WAIT, round);
	errno = saved;
}

/* The highest that nobody uses. */
static int choose(void)
{
	const struct sigaction sa = {
		.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction old;

	for (int sig = SIGRTMAX; sig > SIGRTMIN; sig--) {
		if (sigaction(sig, NULL, &old))
			continue;
		if (old.sa_flags & SA_SIGINFO ? old.sa_sigaction == on_signal
					      : old.sa_handler == SIG_DFL) {
			if (!sigaction(sig, &sa, NULL))
				return sig;
		}
	}
	return 0;
}

bool park_possible(void)
{
	return arena_means & 1u << ARENA_WRITERS_SIGNALS;
}

static bool ours(void)
{
	struct sigaction now;

	if (lot.sig && !sigaction(lot.sig, NULL, &now) && now.sa_flags & SA_SIGINFO &&
		now.sa_sigaction == on_signal)
		return true;
	lot.sig = choose();
	return lot.sig;
}

/* Calls @p each for all threads of the process. No allocation: some may be parked already. */
static int each_thread(int dir, int (*each)(pid_t tid, void *arg), void *arg)
{
	char buf[4096] __attribute__((aligned(8)));
	long n;

	if (lseek(dir, 0, SEEK_SET))
		return -EAGAIN;
	while ((n = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			const struct dirent64 *d = (const void *)(buf + at);
			pid_t tid = 0;
			int err;

			for (const char *s = d->d_name; *s >= '0' && *s <= '9'; s++)
				tid = tid * 10 + (*s - '0');
			at += d->d_reclen;
			err = tid ? each(tid, arg) : 0;
			if (err)
				return err;
		}
	}
	return n < 0 ? -EAGAIN : 0;
}

struct crowd {
	pid_t pid, own, waiter;
	bool grew;
};

static int stop_one(pid_t tid, void *arg)
{
	struct crowd *c = arg;

	if (tid == c->own || tid == c->waiter)
		return 0;
	for (unsigned i = 0; i < lot.n; i++)
		if (lot.tid[i] == tid)
			return 0;
	if (lot.n == THREADS_MAX)
		return -EBUSY;
	lot.tid[lot.n] = tid;
	atomic_store(&lot.parked[lot.n], atomic_load(&lot.round) - 1);
	lot.n++;
	c->grew = true;
	if (syscall(SYS_tgkill, c->pid, tid, lot.sig) && errno != ESRCH)
		return -EAGAIN;
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* @return the first thread of the lot, from @p i on, that is neither parked nor has ended. */
static unsigned next_absent(unsigned i, pid_t pid)
{
	uint32_t round = atomic_load(&lot.round);

	while (i < lot.n &&
		(atomic_load(&lot.parked[i]) == round || syscall(SYS_tgkill, pid, lot.tid[i], 0)))
		i++;
	return i;
}

/* @return the worst of the threads that are not parked. */
static enum thread_absence worst(int dir, pid_t pid)
{
	enum thread_absence most = THREAD_ENDED;

	for (unsigned i = 0; (i = next_absent(i, pid)) < lot.n; i++) {
		enum thread_absence why = thread_absence(dir, lot.tid[i], lot.sig);

		if (why > most)
			most = why;
	}
	return most;
}

static int wait_parked(int dir, pid_t pid, uint64_t since)
{
	struct timespec pause = {.tv_nsec = PAUSE_NS};
	unsigned blocks = 0;

	while (next_absent(0, pid) < lot.n) {
		uint64_t waited = now_ns() - since;

		if (waited > LOOK_NS) {
			enum thread_absence why = worst(dir, pid);

			blocks += why == THREAD_BLOCKS;
			if (why == THREAD_ENDED)
				return 0;
			if (blocks > LOOKS_MAX || waited > PATIENCE_NS)
				return -EBUSY;
			pause.tv_nsec = LOOK_NS;
		}
		nanosleep(&pause, NULL);
	}
	return 0;
}

int park(pid_t waiter, bool anyway)
{
	struct crowd c = {.pid = (pid_t)syscall(SYS_getpid),
		.own = (pid_t)syscall(SYS_gettid),
		.waiter = waiter};
	uint64_t since = now_ns();
	int dir = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = dir < 0 || !ours() ? -EAGAIN : 0;

	lot.n = 0;
	atomic_store(&lot.parking, true);
	do { /* a thread that was not parked yet may have made another one */
		c.grew = false;
		if (!err)
			err = each_thread(dir, stop_one, &c);
		if (!err)
			err = wait_parked(dir, c.pid, since);
		if (err == -EBUSY && anyway)
			err = 0;
	} while (!err && c.grew);
	if (dir >= 0)
		close(dir);
	if (err)
		unpark();
	return err;
}

void unpark(void)
{
	atomic_store(&lot.parking, false);
	atomic_fetch_add(&lot.round, 1);
	futex(&lot.round, FUTEX_WAKE, THREADS_MAX);
}

static int nudge_one(pid_t tid, void *arg)
{
	const struct crowd *c = arg;

	if (tid != c->own)
		syscall(SYS_tgkill, c->pid, tid, lot.sig);
	return 0;
}

void nudge(void)
{
	struct crowd c = {.pid = (pid_t)syscall(SYS_getpid), .own = (pid_t)syscall(SYS_gettid)};
	int dir = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return;
	if (ours())
		each_thread(dir, nudge_one, &c);
	close(dir);
}
