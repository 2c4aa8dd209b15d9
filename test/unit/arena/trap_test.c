/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "trap.h"

static unsigned *calls; /* shared with children: before, after in the parent, and in the child */
static pid_t caller;

static void before(bool fork)
{
	calls[0] += fork;
	caller = (pid_t)syscall(SYS_getpid);
}

static void after(bool child)
{
	calls[child ? 2 : 1]++;
}

static int set_up(void **state)
{
	(void)state;
	calls = mmap(
		NULL, sizeof(*calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return calls == MAP_FAILED;
}

static void start(void)
{
	memset(calls, 0, 3 * sizeof(*calls));
	caller = 0;
	signal(SIGSYS, SIG_DFL); /* cmocka has a handler */
	if (!trap_fork(before, after))
		skip();
}

/* The child sees all that the parent has done before. */
static void trap_fork__once_before_and_after(void **state)
{
	pid_t parent = getpid(), pid;
	int status;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		start();
		pid = fork();
		trap_end();
		if (!pid)
			_exit(caller == parent && calls[0] == 1 && calls[2] == 1 ? 0 : 1);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(calls[0], 1);
		assert_int_equal(calls[1], 1);
		assert_int_equal(calls[2], 1);
	}
}

static void trap_fork__other_calls_are_made(void **state)
{
	char byte = 0;
	int fd[2];

	(void)state;
	start();
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(write(fd[1], "x", 1), 1);
	assert_int_equal(read(fd[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	assert_int_equal(close(fd[0]), 0);
	assert_int_equal(close(fd[1]), 0);
	assert_int_equal(close(fd[1]), -1);
	assert_int_equal(errno, EBADF);
	assert_ptr_not_equal(
		mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
	trap_end();
	assert_int_equal(calls[0], 0);
}

static unsigned signals;

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

/* libc blocks signals around the system call, and reads which were. */
static void trap_fork__signals_wait(void **state)
{
	sigset_t set, old, before;

	(void)state;
	signal(SIGUSR1, on_signal);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	start();
	sigfillset(&set);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &set, &old), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
	assert_int_equal(getppid() > 0, 1);
	assert_int_equal(signals, 0);
	trap_end();
	assert_int_equal(signals, 1);
	pthread_sigmask(SIG_SETMASK, NULL, &old);
	assert_memory_equal(&old, &before, 8);
}

static void trap_fork__the_program_has_sigsys(void **state)
{
	struct sigaction now;

	(void)state;
	start();
	trap_end();
	assert_int_equal(sigaction(SIGSYS, NULL, &now), 0);
	assert_ptr_equal(now.sa_handler, SIG_DFL);
	signal(SIGSYS, on_signal);
	assert_false(trap_fork(before, after));
	trap_end();
	assert_int_equal(sigaction(SIGSYS, NULL, &now), 0);
	assert_ptr_equal(now.sa_handler, on_signal);
	signal(SIGSYS, SIG_DFL);
}

/* One that is pending would end the program, were it let in. */
static void trap_fork__sigsys_is_pending(void **state)
{
	sigset_t sys;

	(void)state;
	sigemptyset(&sys);
	sigaddset(&sys, SIGSYS);
	pthread_sigmask(SIG_BLOCK, &sys, NULL);
	raise(SIGSYS);
	assert_false(trap_fork(before, after));
	trap_end();
	assert_int_equal(sigwaitinfo(&sys, NULL), SIGSYS);
	pthread_sigmask(SIG_UNBLOCK, &sys, NULL);
}

/* As another thread may, meanwhile. */
static void trap_end__leaves_a_new_action(void **state)
{
	struct sigaction now, new = {.sa_handler = on_signal};

	(void)state;
	start();
	assert_int_equal(sigaction(SIGSYS, &new, NULL), 0);
	trap_end();
	assert_int_equal(sigaction(SIGSYS, NULL, &now), 0);
	assert_ptr_equal(now.sa_handler, on_signal);
	signal(SIGSYS, SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trap_fork__once_before_and_after),
		cmocka_unit_test(trap_fork__other_calls_are_made),
		cmocka_unit_test(trap_fork__signals_wait),
		cmocka_unit_test(trap_fork__the_program_has_sigsys),
		cmocka_unit_test(trap_fork__sigsys_is_pending),
		cmocka_unit_test(trap_end__leaves_a_new_action),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
