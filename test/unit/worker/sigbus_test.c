/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "core_memory.h"
#include "eal_test.h"
#include "rig.h"
#include "sigbus.h"
#include "uaccess.h"

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
	id = 0;
	sigbus_notify(-1);
	rig_down(&r);
	return 0;
}

static int guard_area(volatile uint8_t *p, size_t size, size_t page, enum sigbus_kind kind)
{
	struct sigbus_area a = {
		.base = (void *)p, .size = size, .page = page, .kind = kind, .owner = &r};

	return sigbus_guard(&a);
}

static void guard(volatile uint8_t *p, enum sigbus_kind kind)
{
	id = guard_area(p, PAGES * PAGE, PAGE, kind);
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

/* As the transport sees it: the access says that it faulted. */
static void uaccess__fault_is_reported(void **state)
{
	volatile uint8_t *p = make_hole();
	struct core *c = &r.dp->worker[0]->core;
	uint8_t buf[64] = {1, 2, 3};

	handle();
	guard(p, SIGBUS_PAYLOAD);
	assert_true(uaccess_place(core_memory(c), (void *)(p + 200), buf, sizeof(buf)));
	assert_false(uaccess_place(core_memory(c), (void *)(p + 2 * PAGE), buf, sizeof(buf)));
	assert_true(uaccess_place(core_memory(c), (void *)(p + 2 * PAGE), buf, sizeof(buf)));
	munmap((void *)p, PAGES * PAGE);
}

/* Runs `f` in a child.  Returns the signal that ended it, or its exit status, negative. */
static int dies(void (*f)(volatile uint8_t *), volatile uint8_t *p)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		f(p);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
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
	id = guard_area(p, 2 * PAGE, PAGE, SIGBUS_PAYLOAD);
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
	enum sigbus_kind kind = SIGBUS_RING;

	handle();
	told = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(told >= 0);
	sigbus_notify(told);
	guard(p, SIGBUS_PAYLOAD);
	assert_false(notified());
	assert_null(sigbus_take(&kind));
	touch(p);
	assert_true(notified());
	assert_ptr_equal(sigbus_take(&kind), &r);
	assert_int_equal(kind, SIGBUS_PAYLOAD);
	assert_null(sigbus_take(&kind));
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
		ids[i] = guard_area(&memory[i], 1, 1, SIGBUS_PAYLOAD);
		assert_true(ids[i] > 0);
	}
	for (unsigned i = 0; i < MANY; i += 2)
		sigbus_unguard(ids[i]);
	for (unsigned i = 0; i < MANY; i += 2) { /* freed ones are used again */
		ids[i] = guard_area(&memory[i], 1, 1, SIGBUS_PAYLOAD);
		assert_true(ids[i] <= MANY + 1);
	}
	guard(p, SIGBUS_PAYLOAD);
	touch(p);
	assert_int_equal(r.dp->worker[0]->faults, 1);
	for (unsigned i = 0; i < MANY; i++)
		sigbus_unguard(ids[i]);
	munmap((void *)p, PAGES * PAGE);
}

/* The CPU time of this thread. */
static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t cost_of_faults(volatile uint8_t *p)
{
	int fd = memfd_create("empty", MFD_CLOEXEC);
	uint64_t begin = cpu_ns();

	for (unsigned i = 0; i < 500; i++) {
		touch(p);
		assert_ptr_not_equal(mmap((void *)(p + 2 * PAGE), PAGE, PROT_READ | PROT_WRITE,
					     MAP_SHARED | MAP_FIXED, fd, 0),
			MAP_FAILED);
	}
	close(fd);
	return cpu_ns() - begin;
}

/* A fault costs as much with as many guards as a host's programs can have as with a few: to look at
 * all of them takes longer by far than all else. */
static void on_sigbus__finds_one_among_many(void **state)
{
	enum {
		MANY = 250000
	};
	static int ids[MANY];
	static uint8_t memory[MANY];
	volatile uint8_t *p = make_hole();
	uint64_t few;

	handle();
	guard(p, SIGBUS_PAYLOAD);
	few = cost_of_faults(p);
	sigbus_unguard(id);
	for (unsigned i = 0; i < MANY; i++)
		ids[i] = guard_area(&memory[i], 1, 1, SIGBUS_PAYLOAD);
	guard(p, SIGBUS_PAYLOAD);
	assert_true(cost_of_faults(p) < 10 * few);
	for (unsigned i = 0; i < MANY; i++)
		sigbus_unguard(ids[i]);
	munmap((void *)p, PAGES * PAGE);
}

/* A fault that was not noticed before the end of the guard is nobody's later. */
static void sigbus_take__forgets_who_has_gone(void **state)
{
	volatile uint8_t *p = make_hole();
	enum sigbus_kind kind;
	int first;

	handle();
	guard(p, SIGBUS_PAYLOAD);
	first = id;
	touch(p);
	sigbus_unguard(id);
	id = guard_area(p, PAGES * PAGE, PAGE, SIGBUS_RING);
	assert_int_not_equal(id, first); /* that one is not yet reported */
	assert_int_equal(p[3 * PAGE], 0);
	assert_ptr_equal(sigbus_take(&kind), &r); /* and the one after it is reported */
	assert_int_equal(kind, SIGBUS_RING);
	assert_null(sigbus_take(&kind));
	munmap((void *)p, PAGES * PAGE);
}

/* The table of regions has it no longer when the access ends. */
static void on_sigbus__withdraws_the_region(void **state)
{
	volatile uint8_t *p = make_hole();
	struct mr mr = {.key = 7 << 8}, next = {.key = 7 << 8};
	struct mr_list list = {.first = NULL};
	struct sigbus_area a = {.base = (void *)p,
		.size = PAGES * PAGE,
		.page = PAGE,
		.kind = SIGBUS_PAYLOAD,
		.owner = &r,
		.list = &list,
		.mrs = r.dp->mrs};

	handle();
	mr_list_add(&list, &mr);
	atomic_store(&r.dp->mrs->slot[7], &mr);
	id = sigbus_guard(&a);
	touch(p);
	assert_null(atomic_load(&r.dp->mrs->slot[7]));
	atomic_store(&r.dp->mrs->slot[7], &next); /* has the slot now */
	assert_int_equal(p[3 * PAGE], 0);
	assert_ptr_equal(atomic_load(&r.dp->mrs->slot[7]), &next);
	atomic_store(&r.dp->mrs->slot[7], NULL);
	munmap((void *)p, PAGES * PAGE);
}

/* --- guards that change meanwhile --------------------------------------------------------- */

static volatile uint8_t *hole; /* its third page is always missing */
static int empty;	       /* what it is mapped from */
static unsigned steps;

static void touch_hole(int sig)
{
	touch(hole);
	if (mmap((void *)(hole + 2 * PAGE), PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		    empty, 0) == MAP_FAILED)
		_exit(1);
	steps++;
}

/* From here on a SIGTRAP follows each instruction, or none any more. The red zone stays. */
#ifdef __x86_64__
#define set_trap(change)                                                               \
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\t" change "\n\tpopfq\n\t" \
			 "lea 128(%%rsp), %%rsp" ::                                    \
				 : "memory", "cc")
#define trap_on()  set_trap("orq $0x100, (%%rsp)")
#define trap_off() set_trap("andq $~0x100, (%%rsp)")
#else
#define trap_on()  skip()
#define trap_off() skip()
#endif

/* Guards @p a and the hole, whose guard is looked at later.  @return the id of the first. */
static int guard_before(const struct sigbus_area *a)
{
	int first = sigbus_guard(a);

	guard(hole, SIGBUS_PAYLOAD);
	if (first > id) { /* freed ones are used again in the other order */
		sigbus_unguard(first);
		sigbus_unguard(id);
		first = sigbus_guard(a);
		guard(hole, SIGBUS_PAYLOAD);
	}
	assert_in_range(first, 1, id - 1);
	return first;
}

/* The base that a guard has now and the size that it had are no range of its: who faults while it
 * changes is not taken for its owner. Here somebody does after each instruction of what changes it.
 */
static void on_sigbus__guard_that_changes_is_not_the_one(void **state)
{
	/* Above all that is mapped; of this size from 0 on it would have everything. */
	const struct sigbus_area other = {.base = (void *)(((uintptr_t)1 << 47) - PAGE),
		.size = (uintptr_t)1 << 47,
		.page = PAGE,
		.kind = SIGBUS_RING};
	struct sigaction sa = {.sa_handler = touch_hole};
	struct worker *w = r.dp->worker[0];
	enum sigbus_kind kind;

	hole = make_hole();
	empty = memfd_create("empty", MFD_CLOEXEC);
	handle();
	assert_int_equal(sigaction(SIGTRAP, &sa, NULL), 0);
	sigbus_unguard(guard_before(&other));
	steps = 0;
	trap_on();
	sigbus_unguard(sigbus_guard(&other));
	trap_off();
	assert_true(steps > 20);
	assert_int_equal(w->faults, steps);
	assert_int_equal(w->core.count.access_faults, 0); /* none in a ring */
	assert_ptr_equal(sigbus_take(&kind), &r);
	assert_null(sigbus_take(&kind));
	close(empty);
	munmap((void *)hole, PAGES * PAGE);
}

/* Pages may be larger than 4 KiB, and larger than the one that the handler gets: memory
 * beside them stays, also when it is not at a multiple of two pages. */
static void on_sigbus__replaces_one_page_of_its_size(void **state)
{
	enum {
		LARGE = 4 * PAGE
	};
	int fd = memfd_create("large", MFD_CLOEXEC);
	uint8_t *p;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 5 * LARGE), 0);
	p = mmap(NULL, 6 * LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	p = (uint8_t *)(((uintptr_t)p + LARGE - 1) / LARGE * LARGE);
	assert_ptr_not_equal(
		mmap(p, 5 * LARGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
		MAP_FAILED);
	memset(p, 0xAA, 5 * LARGE);
	assert_int_equal(ftruncate(fd, 2 * LARGE + PAGE), 0); /* of page 2 a part is left */
	handle();
	id = guard_area(p + LARGE, 2 * LARGE, LARGE, SIGBUS_PAYLOAD);
	assert_true(id > 0);
	assert_int_equal(((volatile uint8_t *)p)[2 * LARGE + 2 * PAGE], 0);
	assert_int_equal(p[2 * LARGE], 0);
	assert_int_equal(p[2 * LARGE - 1], 0xAA);
	assert_int_equal(ftruncate(fd, 5 * LARGE), 0);
	assert_int_equal(pwrite(fd, "x", 1, 3 * LARGE), 1);
	assert_int_equal(p[3 * LARGE], 'x');
	assert_int_equal(guard_area(p + PAGE, LARGE, LARGE, SIGBUS_PAYLOAD), -EINVAL);
	assert_int_equal(guard_area(p, LARGE + PAGE, LARGE, SIGBUS_PAYLOAD), -EINVAL);
	close(fd);
	munmap(p, 5 * LARGE);
}

/* --- no mappings left --------------------------------------------------------------------- */

static unsigned map_count_max(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "r");
	unsigned n = 0;

	if (!f || fscanf(f, "%u", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

/* Leaves this process as many mappings as it may have, and not one more. */
static void exhaust_mappings(void)
{
	size_t n = 2 * (size_t)map_count_max();
	uint8_t *p =
		mmap(NULL, n * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		_exit(1);
	for (size_t i = 0; i < n && !mprotect(p + i * PAGE, PAGE, PROT_READ); i += 2)
		;
	while (mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		;
}

static void exhaust_and_touch(volatile uint8_t *p)
{
	exhaust_mappings();
	touch(p);
	for (unsigned i = 0; i < PAGES * PAGE; i++)
		if (p[i] && (p[i] != 0xAA || i >= 2 * PAGE) && i != 2 * PAGE)
			_exit(2);
	if (p[2 * PAGE] != 1)
		_exit(3);
}

enum {
	AREAS = 500
};
static volatile uint8_t *area[AREAS];
static pthread_barrier_t exhausted;

static void *touch_backwards(void *arg)
{
	pthread_barrier_wait(&exhausted);
	for (unsigned i = AREAS; i--;)
		area[i][3 * PAGE] = 1;
	return NULL;
}

/* So many areas that page by page there would be no mappings for them, whatever is kept for the
 * handler; two threads at the same time, and a control thread that takes what can be had. */
static void exhaust_and_touch_many(volatile uint8_t *p)
{
	pthread_t thread;

	for (unsigned i = 0; i < AREAS; i++) {
		area[i] = make_hole();
		if (guard_area(area[i], PAGES * PAGE, PAGE, SIGBUS_RING) < 0)
			_exit(4);
	}
	pthread_barrier_init(&exhausted, NULL, 2);
	if (pthread_create(&thread, NULL, touch_backwards, NULL))
		_exit(5);
	exhaust_mappings();
	pthread_barrier_wait(&exhausted);
	for (unsigned i = 0; i < AREAS; i++) {
		touch(area[i]);
		guard_area(p, PAGE, PAGE, SIGBUS_RING);
	}
	pthread_join(thread, NULL);
}

static void on_sigbus__survives_without_mappings(void **state)
{
	volatile uint8_t *p = make_hole();
	unsigned n = map_count_max();

	if (!n || n > 4u << 20)
		skip(); /* would take long */
	handle();
	guard(p, SIGBUS_PAYLOAD);
	assert_int_equal(dies(exhaust_and_touch, p), 0);
	assert_int_equal(dies(exhaust_and_touch_many, p), 0);
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
		cmocka_unit_test_setup_teardown(on_sigbus__finds_one_among_many, up, down),
		cmocka_unit_test_setup_teardown(sigbus_take__forgets_who_has_gone, up, down),
		cmocka_unit_test_setup_teardown(on_sigbus__withdraws_the_region, up, down),
		cmocka_unit_test_setup_teardown(
			on_sigbus__guard_that_changes_is_not_the_one, up, down),
		cmocka_unit_test_setup_teardown(on_sigbus__replaces_one_page_of_its_size, up, down),
		cmocka_unit_test_setup_teardown(on_sigbus__survives_without_mappings, up, down),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
