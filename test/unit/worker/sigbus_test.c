/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <cmocka.h>
#include "eal_test.h"
#include "rig.h"

#define PAGE  4096u
#define PAGES 4u

/* Mapped memory whose second half does not exist. */
static volatile uint8_t *make_hole(void)
{
	int fd = memfd_create("hole", MFD_CLOEXEC);
	uint8_t *p;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, PAGES * PAGE), 0);
	p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, 0xAA, PAGES * PAGE);
	assert_int_equal(ftruncate(fd, PAGES * PAGE / 2), 0);
	close(fd);
	return p;
}

static struct rig r;
static struct mr mr;

static int up(void **state)
{
	rig_up(&r, 1);
	return 0;
}

/* In the test itself: cmocka installs its own handler before each. */
static void handle(void)
{
	assert_int_equal(worker_install_sigbus(), 0);
	sigbus_bind(r.dp->worker[0]);
}

static int down(void **state)
{
	sigbus_bind(NULL);
	atomic_store(&r.dp->mrs->slot[MR_MAX - 1], NULL);
	rig_down(&r);
	return 0;
}

static void publish(volatile uint8_t *p)
{
	mr = (struct mr){.key = 1, .base = (uint8_t *)p + 100, .length = PAGES * PAGE - 200};
	atomic_store(&r.dp->mrs->slot[MR_MAX - 1], &mr);
}

static void on_sigbus__registered_memory_reads_as_zeroes_and_counts(void **state)
{
	volatile uint8_t *p = make_hole();
	struct worker *w = r.dp->worker[0];

	handle();
	publish(p);
	assert_int_equal(p[PAGE], 0xAA);
	assert_int_equal(w->faults, 0);
	assert_int_equal(p[2 * PAGE + 5], 0);
	assert_int_equal(w->faults, 1);
	p[3 * PAGE + 7] = 9;
	assert_int_equal(w->faults, 2);
	assert_int_equal(p[3 * PAGE + 7], 9);
	assert_int_equal(p[2 * PAGE], 0);
	assert_int_equal(w->faults, 2);	 /* a page faults once */
	assert_int_equal(p[PAGE], 0xAA); /* its neighbours stay */
	munmap((void *)p, PAGES * PAGE);
}

/* What the transport makes of it: the access says that it faulted. */
static void uaccess__fault_is_reported(void **state)
{
	volatile uint8_t *p = make_hole();
	struct core *c = &r.dp->worker[0]->core;
	uint8_t buf[64] = {1, 2, 3};

	handle();
	publish(p);
	assert_true(uaccess_place(&c->ua, (void *)(p + 200), buf, sizeof(buf)));
	assert_false(uaccess_place(&c->ua, (void *)(p + 2 * PAGE), buf, sizeof(buf)));
	assert_true(uaccess_place(&c->ua, (void *)(p + 2 * PAGE), buf, sizeof(buf)));
	munmap((void *)p, PAGES * PAGE);
}

/* Runs `f` in a child.  Returns the signal that ended it, 0 for none. */
static int dies(void (*f)(volatile uint8_t *), volatile uint8_t *p)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		f(p);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void touch(volatile uint8_t *p)
{
	p[2 * PAGE] = 1;
}

static void touch_unbound(volatile uint8_t *p)
{
	sigbus_bind(NULL);
	touch(p);
}

static void send_it(volatile uint8_t *p)
{
	raise(SIGBUS);
}

static void on_sigbus__other_memory_ends_the_process(void **state)
{
	volatile uint8_t *p = make_hole();

	handle();
	assert_int_equal(dies(touch, p), SIGBUS);
	publish(p);
	assert_int_equal(dies(touch, p), 0);
	assert_int_equal(dies(touch_unbound, p), SIGBUS);
	assert_int_equal(dies(send_it, p), SIGBUS);
	munmap((void *)p, PAGES * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			on_sigbus__registered_memory_reads_as_zeroes_and_counts, up, down),
		cmocka_unit_test_setup_teardown(uaccess__fault_is_reported, up, down),
		cmocka_unit_test_setup_teardown(on_sigbus__other_memory_ends_the_process, up, down),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
