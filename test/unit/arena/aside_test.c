/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include "aside.h"

static atomic_bool returned; /* from pthread_create() */

int __real_pthread_create(
	pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg);
int __wrap_pthread_create(
	pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg);

/* As on a busy machine: the new thread runs first. */
int __wrap_pthread_create(
	pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg)
{
	int err = __real_pthread_create(t, attr, run, arg);

	usleep(50000);
	atomic_store(&returned, true);
	return err;
}

struct look {
	int value;
	bool returned;
};

static int look(void *arg)
{
	struct look *l = arg;

	l->value++;
	l->returned = atomic_load(&returned);
	return -l->value;
}

static void aside__begins_when_the_caller_waits(void **state)
{
	(void)state;
	for (int i = 1; i < 4; i++) {
		struct look l = {.value = i};

		atomic_store(&returned, false);
		assert_int_equal(aside(look, &l, sizeof(l)), -(i + 1));
		assert_int_equal(l.value, i + 1);
		assert_true(l.returned);
	}
}

static int blocked(void *arg)
{
	char path[64], line[128];
	uint64_t mask = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", *(pid_t *)arg);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "SigBlk: %" SCNx64, &mask);
	if (f)
		fclose(f);
	/* no thread can block these two */
	return (mask | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1)) == UINT64_MAX;
}

static void aside__blocks_all_signals(void **state)
{
	pid_t own = (pid_t)syscall(SYS_gettid);
	uint64_t before = 0, after = 0;

	(void)state;
	if (getenv("MESON_EXE_WRAPPER"))
		skip(); /* an emulator has a signal mask of its own */
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &before, sizeof(before));
	assert_int_equal(aside(blocked, &own, sizeof(own)), 1);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &after, sizeof(after));
	assert_int_equal(after, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aside__begins_when_the_caller_waits),
		cmocka_unit_test(aside__blocks_all_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
