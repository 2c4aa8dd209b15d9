/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stops threads by a real-time signal, for memory that userfaultfd cannot protect (private mappings
 * of files), or where there is no userfaultfd. Their poll() and nanosleep() fail with EINTR.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include "hold.h"
#include "raw.h"
#include "thread.h"

#define THREADS_MAX 4096u
#define PAUSE_NS    20000
#define LOOK_NS	    5000000 /* minimum wait before examining why a thread is late */

/* Give up on a thread that sleeps with the signal blocked after this many looks, but wait longer
 * for one that lacks a CPU, perhaps within pthread_create() or fork(). */
#define LOOKS_MAX   50u
#define PATIENCE_NS 30000000000ull
#define STILL_NS    300000000ull /* a mere look can be repeated later */

/* TO_SLEEP_NS: more CPU time than a thread needs to go to sleep on a futex. NUDGE_LOOKS: how often
 * to check, over all threads, whether each has had that time. */
#define TO_SLEEP_NS 10000u
#define NUDGE_LOOKS 100u
#define CPU_CLOCK   6 /* CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED of the kernel */

/* Signal handlers use the arrays, so these are static and written before the signal is sent. */
static struct {
	int sig;
	_Atomic bool parking;
	_Atomic uint32_t round; /* futex: a new round ends the previous one */
	_Atomic unsigned n;
	pid_t tid[THREADS_MAX];
	_Atomic uint32_t parked[THREADS_MAX]; /* the last round in which it was parked */
	bool sleeps[THREADS_MAX];	      /* it sleeps and was not disturbed, */
	uint64_t switches[THREADS_MAX];	      /* after leaving its CPU this many times */
} lot;

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
	syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* @return false for a thread that is not in the lot yet: this signal is late, from an earlier
 * round. Parking here would block this round's own signal, which is still to come. */
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

/* --- the signal --------------------------------------------------------------------------- */

/* A program with a handler for every signal (Go's runtime) leaves none unused. Then ours replaces
 * the handler of a signal, and passes on the signals that others send. */
static struct {
	struct sigaction before[NSIG]; /* the program's actions that ours replaced */
	uint64_t lost;		       /* signals, as bits, that the program has taken back */
} taken;

static bool handles(const struct sigaction *a)
{
	return a->sa_flags & SA_SIGINFO || (a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN);
}

static void pass_on(int sig, siginfo_t *info, void *context)
{
	const struct sigaction *a = &taken.before[sig];

	if (!handles(a))
		return;
	if (a->sa_flags & SA_SIGINFO)
		a->sa_sigaction(sig, info, context);
	else
		a->sa_handler(sig);
}

/* Other handlers of the program must not run meanwhile, as they may write to memory. Blocks their
 * signals by the system call, because libc's functions exclude its own signals. */
static void stay_parked(void)
{
	/* Read first: if the round ends meanwhile, the mark is void. */
	uint32_t round = atomic_load(&lot.round);
	uint64_t all = ~0ull, before;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof(all));
	if (atomic_load(&lot.parking) && mark_parked((pid_t)syscall(SYS_gettid), round))
		while (atomic_load(&lot.parking) && atomic_load(&lot.round) == round)
			futex(&lot.round, FUTEX_WAIT, round);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	if (info->si_code != SI_QUEUE || info->si_value.sival_ptr != &lot)
		pass_on(sig, info, context);
	else
		stay_parked();
	errno = saved;
}

/* Not tgkill(), which the program may use for the same signal.  @return 0 or -1 with errno. */
static long send_signal(pid_t pid, pid_t tid)
{
	siginfo_t info = {.si_signo = lot.sig, .si_code = SI_QUEUE};

	info.si_pid = pid;
	info.si_value.sival_ptr = &lot;
	return syscall(SYS_rt_tgsigqueueinfo, pid, tid, lot.sig, &info);
}

static bool is_ours(const struct sigaction *a)
{
	return a->sa_flags & SA_SIGINFO && a->sa_sigaction == on_signal;
}

#define COSTS 4

/* @return how much it disturbs the program if @p sig, with action @p a, is taken: less than COSTS
 * if that is possible. */
static unsigned cost_of(int sig, const struct sigaction *a)
{
	if (is_ours(a) || (!(a->sa_flags & SA_SIGINFO) && a->sa_handler == SIG_DFL))
		return 0;
	if (a->sa_flags & SA_RESETHAND || taken.lost >> (sig - 1) & 1)
		return COSTS;
	if (!handles(a))
		return 1; /* ignored */
	return a->sa_flags & SA_RESTART ? 2 : 3;
}

/* SA_ONSTACK: a thread with a signal stack may run on a stack that has no room for the handler. */
static bool take_signal(int sig, const struct sigaction *old)
{
	struct sigaction sa = {
		.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

	if (is_ours(old))
		return true;
	if (handles(old)) {
		sa.sa_flags = SA_SIGINFO | SA_RESTART | (old->sa_flags & (SA_ONSTACK | SA_NODEFER));
		sa.sa_mask = old->sa_mask;
	}
	taken.before[sig] = *old;
	return !sigaction(sig, &sa, NULL);
}

/* @return the highest real-time signal that is unused, or else one whose handler can be called by
 * ours; 0: none. */
static int choose(void)
{
	struct sigaction old;

	for (unsigned cost = 0; cost < COSTS; cost++)
		for (int sig = SIGRTMAX; sig > SIGRTMIN; sig--)
			if (!sigaction(sig, NULL, &old) && cost_of(sig, &old) == cost &&
				take_signal(sig, &old))
				return sig;
	return 0;
}

bool park_possible(void)
{
	return arena_means & 1u << ARENA_WRITERS_SIGNALS;
}

static bool ours(void)
{
	struct sigaction now;

	if (lot.sig && !sigaction(lot.sig, NULL, &now) && is_ours(&now))
		return true;
	if (lot.sig)
		taken.lost |= 1ull << (lot.sig - 1);
	lot.sig = choose();
	return lot.sig;
}

/* Calls @p each for all threads of the process. Must not allocate: some may be parked already. */
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

struct stop_scan {
	pid_t pid, own, waiter;
	int dir;
	bool sleepers; /* accept threads that sleep with the signal blocked */
	bool gently;   /* send no signal to sleeping threads */
	uint64_t since, patience;
	bool grew;
};

static int stop_one(pid_t tid, void *arg)
{
	struct stop_scan *c = arg;

	if (tid == c->own || tid == c->waiter)
		return 0;
	for (unsigned i = 0; i < lot.n; i++)
		if (lot.tid[i] == tid)
			return 0;
	if (lot.n == THREADS_MAX)
		return -EBUSY;
	lot.tid[lot.n] = tid;
	atomic_store(&lot.parked[lot.n], atomic_load(&lot.round) - 1);
	lot.sleeps[lot.n] = c->gently && thread_sleeps(c->dir, tid, &lot.switches[lot.n]);
	lot.n++;
	c->grew = true;
	if (!lot.sleeps[lot.n - 1] && send_signal(c->pid, tid) && errno != ESRCH)
		return -EAGAIN;
	return 0;
}

/* A list of threads in /proc may omit one while another ends.  @return whether that happened. */
static bool missed_one(const struct stop_scan *c)
{
	unsigned known = 1 + !!c->waiter;
	struct stat st;

	for (unsigned i = 0; i < lot.n; i++)
		known += !syscall(SYS_tgkill, c->pid, lot.tid[i], 0);
	return fstat(c->dir, &st) || st.st_nlink > 2 + known; /* two links, and one per thread */
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* @return the index of the first thread, from @p i on, that is neither parked, asleep nor gone. */
static unsigned next_absent(unsigned i, pid_t pid)
{
	uint32_t round = atomic_load(&lot.round);

	while (i < lot.n && (lot.sleeps[i] || atomic_load(&lot.parked[i]) == round ||
				    syscall(SYS_tgkill, pid, lot.tid[i], 0)))
		i++;
	return i;
}

/* @return the most serious reason among the threads that are not parked. */
static enum thread_absence worst(const struct stop_scan *c)
{
	enum thread_absence most = THREAD_ENDED;

	for (unsigned i = 0; (i = next_absent(i, c->pid)) < lot.n; i++) {
		enum thread_absence why = thread_absence(c->dir, lot.tid[i], lot.sig);

		/* A thread that blocks the signal may be asleep by now. */
		lot.sleeps[i] = c->sleepers && thread_sleeps(c->dir, lot.tid[i], &lot.switches[i]);
		if (why > most && !lot.sleeps[i])
			most = why;
	}
	return most;
}

static int wait_parked(const struct stop_scan *c)
{
	struct timespec pause = {.tv_nsec = PAUSE_NS};
	unsigned blocks = 0;

	while (next_absent(0, c->pid) < lot.n) {
		uint64_t waited = now_ns() - c->since;

		if (waited > LOOK_NS) {
			enum thread_absence why = worst(c);

			blocks += why == THREAD_BLOCKS;
			if (why == THREAD_ENDED)
				return 0;
			if (blocks > LOOKS_MAX || waited > c->patience)
				return -EBUSY;
			pause.tv_nsec = LOOK_NS;
		}
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int gather(struct stop_scan *c, bool anyway)
{
	int err = c->dir < 0 || !ours() ? -EAGAIN : 0;
	bool more = true;

	lot.n = 0;
	atomic_store(&lot.parking, true);
	while (!err && more) { /* a thread not parked yet may have created another one */
		c->grew = false;
		err = each_thread(c->dir, stop_one, c);
		if (!err)
			err = wait_parked(c);
		more = c->grew || missed_one(c);
		if (!err && more && !c->grew && now_ns() - c->since > c->patience)
			err = -EBUSY;
		if (err == -EBUSY && anyway) {
			err = 0;
			more = c->grew;
		}
	}
	return err;
}

static struct stop_scan stop_scan(pid_t waiter)
{
	return (struct stop_scan){
		.pid = (pid_t)syscall(SYS_getpid),
		.own = (pid_t)syscall(SYS_gettid),
		.waiter = waiter,
		.dir = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.since = now_ns(),
		.patience = PATIENCE_NS,
	};
}

int park(pid_t waiter, bool anyway)
{
	struct stop_scan c = stop_scan(waiter);
	int err = gather(&c, anyway);

	if (c.dir >= 0)
		close(c.dir);
	if (err)
		unpark();
	return err;
}

/* --- stopping for a look ------------------------------------------------------------------- */

static struct {
	int dir;
	sigset_t mask;
} still;

int still_begin(bool gently)
{
	struct stop_scan c = park_possible() ? stop_scan(0) : (struct stop_scan){.dir = -1};
	sigset_t all;
	int err;

	c.sleepers = true;
	c.gently = gently;
	c.patience = STILL_NS;
	still.dir = c.dir;
	sigfillset(&all); /* a handler in this thread would disturb as much as another thread */
	pthread_sigmask(SIG_BLOCK, &all, &still.mask);
	err = c.dir < 0 ? -EAGAIN : gather(&c, false);
	if (err)
		still_end();
	return err;
}

bool still_end(void)
{
	uint64_t now;
	bool ok = true;

	for (unsigned i = 0; i < lot.n && ok; i++)
		ok = !lot.sleeps[i] ||
		     (thread_sleeps(still.dir, lot.tid[i], &now) && now == lot.switches[i]);
	unpark();
	if (still.dir >= 0)
		close(still.dir);
	pthread_sigmask(SIG_SETMASK, &still.mask, NULL);
	return ok;
}

/* ---------------------------------------------------------------------------------------- */

void unpark(void)
{
	atomic_store(&lot.parking, false);
	atomic_fetch_add(&lot.round, 1);
	futex(&lot.round, FUTEX_WAKE, THREADS_MAX);
}

/* --- waiters for futexes ------------------------------------------------------------------- */

struct range {
	pid_t pid, own;
	int dir;
	uintptr_t s, e;
	unsigned looks; /* at threads that ran at the first look */
};

/* @return how long the thread has run. */
static uint64_t cpu_ns(pid_t tid)
{
	struct timespec t = {0};

	clock_gettime((clockid_t)(~(unsigned)tid << 3 | CPU_CLOCK), &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Checks a running thread until it sleeps, or has run for so long that it cannot be on its way to
 * sleep.  @return as thread_waits(); THREAD_RUNS: neither happened within NUDGE_LOOKS checks. */
static enum thread_wait look_again(struct range *r, pid_t tid)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t since = cpu_ns(tid);
	enum thread_wait how = THREAD_RUNS;

	while (how == THREAD_RUNS && r->looks < NUDGE_LOOKS) {
		if (r->looks++ > 2)
			nanosleep(&pause, NULL);
		if (cpu_ns(tid) - since > TO_SLEEP_NS)
			return THREAD_ELSEWHERE;
		how = thread_waits(r->dir, tid, r->s, r->e);
	}
	return how;
}

/* A thread may have found the old page, and be on its way to sleep. One that still runs after a
 * while of its own time is not: it gets no signal, as that could end a call such as poll(). */
static int nudge_one(pid_t tid, void *arg)
{
	struct range *r = arg;
	enum thread_wait how = THREAD_ELSEWHERE;

	if (tid != r->own)
		how = thread_waits(r->dir, tid, r->s, r->e);
	if (how == THREAD_RUNS)
		how = look_again(r, tid);
	if (how != THREAD_ELSEWHERE)
		send_signal(r->pid, tid);
	return 0;
}

void nudge(uintptr_t s, uintptr_t e)
{
	struct range r = {
		.pid = (pid_t)syscall(SYS_getpid),
		.own = (pid_t)syscall(SYS_gettid),
		.dir = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.s = s,
		.e = e,
	};

	if (r.dir < 0)
		return;
	if (ours())
		each_thread(r.dir, nudge_one, &r);
	close(r.dir);
}
