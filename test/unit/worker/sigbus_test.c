/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "eal_test.h"
#include "rig.h"
#include "sigbus.h"

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
static int id; /* of what is guarded */
static int told = -1;

static int up(void **state)
{
	rig_up(&r, 1);
	return 0;
}

/* In the test itself: cmocka installs its own handler before each. */
static void handle(void)
{
	assert_int_equal(sigbus_install(), 0);
	sigbus_bind(r.dp->worker[0]);
}

static int down(void **state)
{
	sigbus_bind(NULL);
	sigbus_unguard(id);
	sigbus_notify(-1);
	rig_down(&r);
	return 0;
}

static void guard(volatile uint8_t *p, enum sigbus_kind kind)
{
	id = sigbus_guard((void *)p, PAGES * PAGE, kind, &r);
	assert_true(id > 0);
}

static bool notified(void)
{
	uint64_t count;

	return read(told, &count, sizeof(count)) == sizeof(count);
}

static void on_sigbus__registered_memory_reads_as_zeroes_and_counts(void **state)
{
	volatile uint8_t *p = make_hole();
	struct worker *w = r.dp->worker[0];

	handle();
	guard(p, SIGBUS_PAYLOAD);
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
	guard(p, SIGBUS_PAYLOAD);
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

static void touch_outside(volatile uint8_t *p)
{
	sigbus_unguard(id);
	id = sigbus_guard((void *)p, 2 * PAGE, SIGBUS_PAYLOAD, &r);
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
	guard(p, SIGBUS_PAYLOAD);
	assert_int_equal(dies(touch, p), 0);
	assert_int_equal(dies(touch_unbound, p), 0); /* the control thread's own */
	assert_int_equal(dies(touch_outside, p), SIGBUS);
	assert_int_equal(dies(send_it, p), SIGBUS);
	munmap((void *)p, PAGES * PAGE);
}

static void sigbus_take__names_each_owner_once(void **state)
{
	volatile uint8_t *p = make_hole();
	void *base = NULL;

	handle();
	told = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(told >= 0);
	sigbus_notify(told);
	guard(p, SIGBUS_PAYLOAD);
	assert_false(notified());
	assert_null(sigbus_take(&base));
	touch(p);
	assert_true(notified());
	assert_ptr_equal(sigbus_take(&base), &r);
	assert_ptr_equal(base, p);
	assert_null(sigbus_take(&base));
	close(told);
	munmap((void *)p, PAGES * PAGE);
}

/* Nobody looks whether a ring faulted: the handler counts. */
static void on_sigbus__counts_faults_in_rings(void **state)
{
	volatile uint8_t *p = make_hole();
	struct worker *w = r.dp->worker[0];

	handle();
	guard(p, SIGBUS_RING);
	touch(p);
	assert_int_equal(w->core.count.access_faults, 1);
	sigbus_unguard(id);
	munmap((void *)p, PAGES * PAGE);
	p = make_hole();
	guard(p, SIGBUS_PAYLOAD);
	touch(p);
	assert_int_equal(w->core.count.access_faults, 1); /* uaccess's caller counts that one */
	munmap((void *)p, PAGES * PAGE);
}

/* More than one piece of the table, with gaps. */
static void sigbus_guard__many(void **state)
{
	enum {
		MANY = 3000
	};
	static int ids[MANY];
	static uint8_t memory[MANY];
	volatile uint8_t *p = make_hole();

	handle();
	for (unsigned i = 0; i < MANY; i++) {
		ids[i] = sigbus_guard(&memory[i], 1, SIGBUS_PAYLOAD, &r);
		assert_true(ids[i] > 0);
	}
	for (unsigned i = 0; i < MANY; i += 2)
		sigbus_unguard(ids[i]);
	for (unsigned i = 0; i < MANY; i += 2) { /* freed ones are used again */
		ids[i] = sigbus_guard(&memory[i], 1, SIGBUS_PAYLOAD, &r);
		assert_true(ids[i] <= MANY + 1);
	}
	guard(p, SIGBUS_PAYLOAD);
	touch(p);
	assert_int_equal(r.dp->worker[0]->faults, 1);
	for (unsigned i = 0; i < MANY; i++)
		sigbus_unguard(ids[i]);
	munmap((void *)p, PAGES * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			on_sigbus__registered_memory_reads_as_zeroes_and_counts, up, down),
		cmocka_unit_test_setup_teardown(uaccess__fault_is_reported, up, down),
		cmocka_unit_test_setup_teardown(on_sigbus__other_memory_ends_the_process, up, down),
		cmocka_unit_test_setup_teardown(sigbus_take__names_each_owner_once, up, down),
		cmocka_unit_test_setup_teardown(on_sigbus__counts_faults_in_rings, up, down),
		cmocka_unit_test_setup_teardown(sigbus_guard__many, up, down),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
