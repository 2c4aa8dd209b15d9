/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include "aside.h"
#include "patience.h"

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

/* --- no byte of the stack --------------------------------------------------------------------- */

#define STACK (1ul << 20)
#define SPAN  (32ul << 10)
#define PAGE  4096ul

static uint8_t *stack;

/* The caller's futex and stack pointer, by what the kernel says of a thread that sleeps. */
static bool find(pid_t tid, uintptr_t *futex, uintptr_t *sp)
{
	char path[64], line[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	f = fopen(path, "r");
	if (f && !fgets(line, sizeof(line), f))
		line[0] = 0;
	if (f)
		fclose(f);
	return sscanf(line, "%*d 0x%" SCNxPTR " %*s %*s %*s %*s %*s 0x%" SCNxPTR, futex, sp) == 2;
}

/* Wakes the caller early, often, while it cannot access its stack. */
static int without_stack(void *arg)
{
	uintptr_t futex, sp;
	uint8_t *at;
	int found = 0;

	for (time_t end = patience_begin(); !find(*(pid_t *)arg, &futex, &sp);) /* it runs still */
		if (patience_over(end))
			return -1;
	at = (uint8_t *)(sp & ~(PAGE - 1)) - PAGE;
	if (at < stack || at + 2 * PAGE > stack + STACK)
		return -2;
	mprotect(at, 2 * PAGE, PROT_NONE);
	for (unsigned i = 0; i < 100; i++) {
		found += syscall(SYS_futex, futex, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1;
		usleep(1000);
	}
	mprotect(at, 2 * PAGE, PROT_READ | PROT_WRITE);
	return found;
}

static void *on_small_stack(void *arg)
{
	volatile uint8_t apart[SPAN]; /* from the thread's block, which the kernel writes to */
	pid_t own = (pid_t)syscall(SYS_gettid);

	apart[0] = apart[SPAN - 1] = 0;
	*(int *)arg = aside(without_stack, &own, sizeof(own));
	return arg;
}

static void aside__caller_does_not_touch_its_stack(void **state)
{
	pthread_attr_t attr;
	int found = 0;
	pthread_t t;

	(void)state;
	if (getenv("MESON_EXE_WRAPPER"))
		skip(); /* an emulator's stack is not the kernel's */
	stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(stack, MAP_FAILED);
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstack(&attr, stack, STACK), 0);
	assert_int_equal(pthread_create(&t, &attr, on_small_stack, &found), 0);
	pthread_attr_destroy(&attr);
	pthread_join(t, NULL);
	munmap(stack, STACK);
	assert_in_range(found, 1, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aside__begins_when_the_caller_waits),
		cmocka_unit_test(aside__blocks_all_signals),
		cmocka_unit_test(aside__caller_does_not_touch_its_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
