/* SPDX-License-Identifier: BSD-3-Clause */
/* Which means holds writers: the best that there is, and signals for what it cannot protect. */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <cmocka.h>
#include "hold.h"
#include "patience.h"
#include "source.h"
#include "thread.h"

#define ONLY(means) (1u << (means))

static void open_with(unsigned means)
{
	arena_means = means;
	hold_open(-1);
}

static void chosen__best_first(void **state)
{
	(void)state;
	open_with(ONLY(ARENA_WRITERS_UFFD_ROCID) | ONLY(ARENA_WRITERS_SIGNALS));
	assert_int_equal(hold_best(), ARENA_WRITERS_SIGNALS); /* no device was passed */
	hold_close();
	open_with(0);
	assert_int_equal(hold_best(), ARENA_WRITERS_NONE);
	hold_close();
	open_with(ONLY(ARENA_WRITERS_UFFD_USER) | ONLY(ARENA_WRITERS_SIGNALS));
	if (hold_best() != ARENA_WRITERS_UFFD_USER) {
		hold_close();
		skip(); /* this kernel or its filters have none */
	}
	hold_close();
	open_with(~0u);
	assert_in_range(hold_best(), ARENA_WRITERS_UFFD, ARENA_WRITERS_UFFD_USER);
	hold_close();
}

static _Atomic int stop;
static _Atomic unsigned long turns;

static void *run(void *arg)
{
	while (!stop) {
		atomic_fetch_add(&turns, 1);
		if (arg)
			*(volatile uint8_t *)arg = 1;
	}
	return NULL;
}

static void chosen__nothing_alone(void **state)
{
	uint8_t *p = anon(PAGE);
	struct hold h = {.at = (uintptr_t)p, .len = PAGE, .alone = hold_alone(1)};

	(void)state;
	open_with(~0u);
	assert_true(h.alone);
	assert_int_equal(hold_begin(&h), 0);
	assert_int_equal(h.by, ARENA_WRITERS_NONE);
	hold_end(&h, false);
	hold_close();
	munmap(p, PAGE);
}

static void chosen__no_means(void **state)
{
	uint8_t *p = anon(PAGE);
	struct hold h = {.at = (uintptr_t)p, .len = PAGE};

	(void)state;
	open_with(0);
	assert_int_equal(hold_begin(&h), -EOPNOTSUPP);
	hold_close();
	munmap(p, PAGE);
}

static void stands_still(void)
{
	unsigned long before = atomic_load(&turns);

	usleep(20000);
	assert_true(atomic_load(&turns) <= before + 1); /* one that was on its way */
}

static void runs_on(void)
{
	unsigned long before = atomic_load(&turns);

	while (atomic_load(&turns) == before)
		usleep(100); /* the test's limit of time ends this */
}

static uint8_t *map_file(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	close(fd);
	return p;
}

static void held(unsigned means, enum arena_writers by, bool blocks, bool file)
{
	uint8_t *p = file ? map_file() : anon(PAGE);
	struct hold h = {.at = (uintptr_t)p, .len = PAGE, .blocks = blocks};
	pthread_t t;

	open_with(means);
	stop = 0;
	assert_int_equal(pthread_create(&t, NULL, run, p), 0);
	assert_false(hold_alone(1));
	runs_on();
	assert_int_equal(hold_begin(&h), 0);
	assert_int_equal(h.by, by);
	stands_still();
	hold_end(&h, false);
	runs_on();
	stop = 1;
	pthread_join(t, NULL);
	hold_close();
	munmap(p, PAGE);
}

static void held__by_signals(void **state)
{
	(void)state;
	held(ONLY(ARENA_WRITERS_SIGNALS), ARENA_WRITERS_SIGNALS, false, false);
}

static void held__by_userfaultfd(void **state)
{
	enum arena_writers best;

	(void)state;
	open_with(~0u);
	best = hold_best();
	hold_close();
	if (best == ARENA_WRITERS_SIGNALS)
		skip();
	held(~0u, best, false, false);
}

/* userfaultfd in user mode would have the kernel kill the process. */
static void held__control_blocks_in_user_mode(void **state)
{
	unsigned means = ONLY(ARENA_WRITERS_UFFD_USER) | ONLY(ARENA_WRITERS_SIGNALS);

	(void)state;
	held(means, ARENA_WRITERS_SIGNALS, true, false);
}

/* userfaultfd cannot protect private mappings of files. */
static void held__private_file(void **state)
{
	(void)state;
	held(~0u, ARENA_WRITERS_SIGNALS, false, true);
}

/* --- a look ----------------------------------------------------------------------------- */

static _Atomic int interrupted;
static _Atomic pid_t sleeper_tid;
static pid_t sleeper_pid;
static int pipes[2];

static void *sleep_long(void *arg)
{
	char c;

	(void)arg;
	sleeper_tid = gettid();
	if (poll(&(struct pollfd){.fd = pipes[0], .events = POLLIN}, 1, -1) != 1)
		interrupted = 1;
	if (read(pipes[0], &c, 1) != 1)
		interrupted = 1;
	return run(NULL);
}

static void start_sleeper(pthread_t *t)
{
	int dir = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t switches;

	open_with(~0u);
	stop = interrupted = sleeper_tid = 0;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(pthread_create(t, NULL, sleep_long, NULL), 0);
	while (!sleeper_tid || !thread_sleeps(dir, sleeper_tid, &switches))
		usleep(100);
	close(dir);
}

/* A look does not wait long for threads that lack a CPU: then there is another one. */
static void begin_look(bool gently)
{
	time_t end = patience_begin();
	int err;

	do
		err = still_begin(gently);
	while (err == -EBUSY && !patience_over(end));
	assert_int_equal(err, 0);
}

static void end_sleeper(pthread_t t)
{
	stop = 1;
	pthread_join(t, NULL);
	close(pipes[0]);
	close(pipes[1]);
	hold_close();
}

/* Only threads that run are stopped: poll() of the others does not end. */
static void still__sleepers_go_on_sleeping(void **state)
{
	pthread_t sleeper, runner;

	(void)state;
	start_sleeper(&sleeper);
	assert_int_equal(pthread_create(&runner, NULL, run, NULL), 0);
	runs_on();
	begin_look(true);
	stands_still();
	assert_true(still_end());
	runs_on();
	assert_int_equal(write(pipes[1], "", 1), 1);
	end_sleeper(sleeper);
	pthread_join(runner, NULL);
	assert_false(interrupted);
}

/* One that wakes during the look spoils it. */
static void still__a_thread_woke(void **state)
{
	pthread_t sleeper;

	(void)state;
	start_sleeper(&sleeper);
	begin_look(true);
	assert_int_equal(write(pipes[1], "", 1), 1);
	runs_on();
	assert_false(still_end());
	end_sleeper(sleeper);
}

/* Not gently: all of them. */
static void still__no_thread_can_wake(void **state)
{
	pthread_t sleeper;

	(void)state;
	start_sleeper(&sleeper);
	begin_look(false);
	assert_int_equal(write(pipes[1], "", 1), 1);
	stands_still();
	assert_true(still_end());
	end_sleeper(sleeper);
}

static void *block_signals(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	return run(arg);
}

/* One that always runs, and takes no signal, cannot be held: then nothing is certain. */
static void still__signals_blocked(void **state)
{
	pthread_t t;

	(void)state;
	open_with(~0u);
	stop = 0;
	assert_int_equal(pthread_create(&t, NULL, block_signals, NULL), 0);
	runs_on();
	assert_int_equal(still_begin(true), -EBUSY);
	runs_on();
	stop = 1;
	pthread_join(t, NULL);
	hold_close();
}

/* One failure may be chance; after many there is a sentence, once. */
static void still__says_why_memory_stays(void **state)
{
	int said[2], err = dup(STDERR_FILENO);
	char text[1000];
	ssize_t n;
	pthread_t t;

	(void)state;
	open_with(~0u);
	stop = 0;
	assert_int_equal(pipe2(said, O_NONBLOCK), 0);
	assert_int_equal(pthread_create(&t, NULL, block_signals, NULL), 0);
	runs_on();
	dup2(said[1], STDERR_FILENO);
	for (unsigned i = 0; i < 18; i++)
		sweep_now(&arena.file[ORDINARY]);
	dup2(err, STDERR_FILENO);
	stop = 1;
	pthread_join(t, NULL);
	n = read(said[0], text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = 0;
	assert_non_null(strstr(text, "signals blocked"));
	assert_ptr_equal(strchr(text, '\n'), text + n - 1);
	close(said[0]);
	close(said[1]);
	close(err);
	hold_close();
}

/* --- signals of the program ---------------------------------------------------------------- */

static _Atomic int handled;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

static void handle_all(struct sigaction old[NSIG])
{
	const struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};

	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		sigaction(sig, &sa, &old[sig]);
}

static void restore_all(const struct sigaction old[NSIG])
{
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		sigaction(sig, &old[sig], NULL);
}

/* As in Go's runtime: one is taken, and its handler is called for signals of others. */
static void signal__all_have_handlers(void **state)
{
	static struct sigaction old[NSIG];
	int sent = 0;
	pthread_t t;

	(void)state;
	handle_all(old);
	handled = 0;
	alarm(PATIENCE_S);
	held(ONLY(ARENA_WRITERS_SIGNALS), ARENA_WRITERS_SIGNALS, false, false);
	assert_int_equal(handled, 0); /* the program does not notice ours */
	stop = 0;
	assert_int_equal(pthread_create(&t, NULL, run, NULL), 0);
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		sent += !pthread_kill(t, sig) && !raise(sig) ? 2 : 0;
	runs_on();
	stop = 1;
	pthread_join(t, NULL);
	alarm(0);
	assert_int_equal(handled, sent);
	restore_all(old);
}

/* No handler of the program runs in a thread that is held: it may write to the memory. */
static void signal__waits_while_held(void **state)
{
	const struct sigaction sa = {.sa_handler = handler};
	uint8_t *p = anon(PAGE);
	struct hold h = {.at = (uintptr_t)p, .len = PAGE};
	struct sigaction old;
	pthread_t t;

	(void)state;
	open_with(ONLY(ARENA_WRITERS_SIGNALS));
	sigaction(SIGUSR1, &sa, &old);
	stop = handled = 0;
	assert_int_equal(pthread_create(&t, NULL, run, NULL), 0);
	runs_on();
	assert_int_equal(hold_begin(&h), 0);
	assert_int_equal(pthread_kill(t, SIGUSR1), 0);
	stands_still();
	assert_int_equal(handled, 0);
	hold_end(&h, false);
	while (!handled) /* the test's limit of time ends this */
		usleep(100);
	runs_on();
	stop = 1;
	pthread_join(t, NULL);
	sigaction(SIGUSR1, &old, NULL);
	hold_close();
	munmap(p, PAGE);
}

#define SMALL 1024

static ucontext_t outer, inner;
static uint8_t *area;

static void on_a_small_stack(void)
{
	run(NULL);
}

/* A thread like those of runtimes with small stacks, which have signal stacks. */
static void *fiber(void *arg)
{
	stack_t ss = {.ss_sp = arg, .ss_size = 65536};

	sigaltstack(&ss, NULL);
	getcontext(&inner);
	inner.uc_stack.ss_sp = area + 16 * 1024;
	inner.uc_stack.ss_size = SMALL;
	inner.uc_link = &outer;
	makecontext(&inner, on_a_small_stack, 0);
	swapcontext(&outer, &inner);
	return NULL;
}

static void signal__on_the_signal_stack(void **state)
{
	uint8_t *signals = anon(65536);
	uint8_t *p = anon(PAGE);
	struct hold h = {.at = (uintptr_t)p, .len = PAGE};
	pthread_t t;

	(void)state;
	area = anon(32 * 1024);
	memset(area, 0x5A, 16 * 1024);
	open_with(ONLY(ARENA_WRITERS_SIGNALS));
	stop = 0;
	assert_int_equal(pthread_create(&t, NULL, fiber, signals), 0);
	runs_on();
	assert_int_equal(hold_begin(&h), 0);
	hold_end(&h, false);
	stop = 1;
	pthread_join(t, NULL);
	hold_close();
	for (unsigned i = 0; i < 16 * 1024; i++)
		assert_int_equal(area[i], 0x5A); /* not the room below the stack */
	munmap(area, 32 * 1024);
	munmap(signals, 65536);
	munmap(p, PAGE);
}

/* --- waiters for futexes ------------------------------------------------------------------ */

#define LATER (PAGE / 2) /* where the futex is in its page */

static long futex(uint8_t *at, int op, uint32_t value)
{
	return syscall(SYS_futex, at, op, value, NULL, NULL, 0);
}

static void *wait_there(void *arg)
{
	sleeper_tid = gettid();
	while (!*(volatile uint32_t *)arg)
		futex(arg, FUTEX_WAIT, 0);
	return NULL;
}

static void start_waiter(pthread_t *t, uint8_t *at)
{
	int dir = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	sleeper_tid = 0;
	assert_int_equal(pthread_create(t, NULL, wait_there, at), 0);
	while (!sleeper_tid ||
		thread_waits(dir, sleeper_tid, (uintptr_t)at, (uintptr_t)at + 1) != THREAD_WAITS)
		usleep(100);
	assert_int_equal(thread_waits(dir, sleeper_tid, (uintptr_t)at + 1, (uintptr_t)at + PAGE),
		THREAD_ELSEWHERE);
	close(dir);
}

/* The kernel looks for the waiter at the page that is now there; threads that wait for something
 * else are left alone. */
static void nudge__waiters_for_the_page(void **state)
{
	uint8_t *p = anon(PAGE);
	int fd = make_file(NULL, false);
	pthread_t sleeper, waiter;

	(void)state;
	start_sleeper(&sleeper);
	start_waiter(&waiter, p + LATER);
	assert_ptr_equal(mmap(p, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), p);
	nudge((uintptr_t)p, (uintptr_t)p + PAGE);
	*(volatile uint32_t *)(p + LATER) = 1;
	futex(p + LATER, FUTEX_WAKE, 1);
	alarm(PATIENCE_S); /* for a wait for the old page */
	pthread_join(waiter, NULL);
	alarm(0);
	assert_int_equal(write(pipes[1], "", 1), 1);
	end_sleeper(sleeper);
	assert_false(interrupted);
	munmap(p, PAGE);
	close(fd);
}

static void *wait_an_hour(void *arg)
{
	const struct timespec hour = {.tv_sec = 3600};

	sleeper_tid = gettid();
	while (!*(volatile uint32_t *)arg)
		syscall(SYS_futex, arg, FUTEX_WAIT, 0, &hour, NULL, 0);
	return NULL;
}

static bool shows(pid_t tid, const char *file, const char *what)
{
	char text[512] = "";
	int fd;

	snprintf(text, sizeof(text), "/proc/%d/task/%d/%s", sleeper_pid, tid, file);
	fd = open(text, O_RDONLY | O_CLOEXEC);
	memset(text, 0, sizeof(text));
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		_exit(1);
	close(fd);
	return strstr(text, what);
}

/* Stops this process, by a child, until its thread @p tid has stopped. */
static void stop_until_stopped(pid_t tid)
{
	pid_t pid = fork();

	if (!pid) {
		kill(sleeper_pid, SIGSTOP);
		while (!shows(tid, "stat", ") T"))
			usleep(100);
		kill(sleeper_pid, SIGCONT);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The kernel continues some calls by another one, whose arguments do not show the futex. */
static void nudge__waiters_that_were_stopped(void **state)
{
	int dir = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint8_t *p = anon(PAGE);
	uintptr_t at = (uintptr_t)p;
	char call[16];
	pthread_t t;

	(void)state;
	sleeper_pid = getpid();
	sleeper_tid = 0;
	assert_int_equal(pthread_create(&t, NULL, wait_an_hour, p), 0);
	while (!sleeper_tid || thread_waits(dir, sleeper_tid, at, at + 1) != THREAD_WAITS)
		usleep(100);
	stop_until_stopped(sleeper_tid);
	snprintf(call, sizeof(call), "%d 0x", SYS_restart_syscall);
	alarm(PATIENCE_S);
	while (!shows(sleeper_tid, "syscall", call))
		usleep(100);
	alarm(0);
	assert_int_equal(thread_waits(dir, sleeper_tid, at, at + 1), THREAD_WAITS);
	*(volatile uint32_t *)p = 1;
	futex(p, FUTEX_WAKE, 1);
	pthread_join(t, NULL);
	close(dir);
	munmap(p, PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chosen__best_first),
		cmocka_unit_test(chosen__nothing_alone),
		cmocka_unit_test(chosen__no_means),
		cmocka_unit_test(held__by_signals),
		cmocka_unit_test(held__by_userfaultfd),
		cmocka_unit_test(held__control_blocks_in_user_mode),
		cmocka_unit_test(held__private_file),
		cmocka_unit_test(still__sleepers_go_on_sleeping),
		cmocka_unit_test(still__a_thread_woke),
		cmocka_unit_test(still__no_thread_can_wake),
		cmocka_unit_test(still__signals_blocked),
		cmocka_unit_test(still__says_why_memory_stays),
		cmocka_unit_test(signal__all_have_handlers),
		cmocka_unit_test(signal__waits_while_held),
		cmocka_unit_test(signal__on_the_signal_stack),
		cmocka_unit_test(nudge__waiters_for_the_page),
		cmocka_unit_test(nudge__waiters_that_were_stopped),
	};

	if (getenv("MESON_EXE_WRAPPER"))
		return 77; /* an emulator stops no threads */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
