/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that touches the pages of regions, on ordinary ones: few machines have others. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "memory/huge.h"
#include "sigbus.h"

#define PAGE  4096u
#define PAGES 64u

/* Each touch of a page waits for the test when `gated`. */
static bool gated;
static sem_t arrived, go;
static void *touched[8 * PAGES];
static unsigned ntouched;

int __real_madvise(void *addr, size_t len, int advice);
int __wrap_madvise(void *addr, size_t len, int advice);

int __wrap_madvise(void *addr, size_t len, int advice)
{
	touched[ntouched++] = addr;
	if (gated) {
		sem_post(&arrived);
		sem_wait(&go);
	}
	return __real_madvise(addr, len, advice);
}

struct region {
	struct huge_job job;
	int fd;
};

static struct huge *h;
static int event;

static void make(struct region *r, unsigned pages, uid_t uid, int prot)
{
	r->fd = memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(r->fd >= 0);
	assert_int_equal(ftruncate(r->fd, pages * PAGE), 0);
	r->job = (struct huge_job){.base = mmap(NULL, pages * PAGE, prot, MAP_SHARED, r->fd, 0),
		.size = pages * PAGE,
		.page = PAGE,
		.uid = uid,
		.writable = prot & PROT_WRITE};
	assert_ptr_not_equal(r->job.base, MAP_FAILED);
}

static void drop(struct region *r)
{
	munmap(r->job.base, r->job.size);
	close(r->fd);
}

static struct huge_job *wait_for_one(void)
{
	struct huge_job *job = huge_take(h);

	while (!job) {
		struct pollfd p = {.fd = event, .events = POLLIN};

		assert_int_equal(poll(&p, 1, 120000), 1);
		job = huge_take(h);
	}
	return job;
}

static int up(void **state)
{
	gated = false;
	ntouched = 0;
	sem_init(&arrived, 0, 0);
	sem_init(&go, 0, 0);
	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h = huge_create(event);
	return h ? 0 : -1;
}

static int down(void **state)
{
	huge_destroy(h);
	close(event);
	return 0;
}

static void start(struct region *r)
{
	int err = huge_start(h, &r->job);

	if (err == -ENOSYS)
		skip(); /* no userfaultfd(2) here */
	assert_int_equal(err, 0);
}

static unsigned resident(const struct region *r)
{
	unsigned char there[PAGES];
	unsigned n = 0;

	assert_int_equal(mincore(r->job.base, r->job.size, there), 0);
	for (unsigned i = 0; i < r->job.size / PAGE; i++)
		n += there[i] & 1;
	return n;
}

static void huge_start__touches_all_pages(void **state)
{
	struct region r[2];

	make(&r[0], PAGES, 1, PROT_READ | PROT_WRITE);
	make(&r[1], PAGES, 1, PROT_READ);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(resident(&r[i]), 0);
		start(&r[i]);
		assert_ptr_equal(wait_for_one(), &r[i].job);
		assert_int_equal(r[i].job.err, 0);
		assert_int_equal(resident(&r[i]), PAGES);
		drop(&r[i]);
	}
}

/* A worker never clears a page: one that is missing now is a fault, at a read and a write. */
static void huge_start__holes_fault_afterwards(void **state)
{
	struct sigbus_area a = {.size = PAGES * PAGE, .page = PAGE, .kind = SIGBUS_PAYLOAD};
	enum sigbus_kind kind;
	struct region r;

	make(&r, PAGES, 1, PROT_READ | PROT_WRITE);
	start(&r);
	wait_for_one();
	a.base = r.job.base;
	a.owner = &r;
	assert_int_equal(sigbus_install(), 0);
	int id = sigbus_guard(&a);

	for (unsigned i = 0; i < 2; i++) {
		volatile uint8_t *p = r.job.base + (5 + i) * PAGE;

		assert_int_equal(fallocate(r.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					 (5 + i) * PAGE, PAGE),
			0);
		if (i)
			*p = 1;
		else
			assert_int_equal(*p, 0);
		assert_ptr_equal(sigbus_take(&kind), &r);
	}
	assert_int_equal(lseek(r.fd, 0, SEEK_HOLE), 5 * PAGE); /* nobody filled them */
	assert_int_equal(lseek(r.fd, 5 * PAGE, SEEK_DATA), 7 * PAGE);
	*(volatile uint8_t *)(r.job.base + 4 * PAGE) = 1; /* others are memory */
	assert_null(sigbus_take(&kind));
	sigbus_unguard(id);
	drop(&r);
}

/* The kernel refuses to look after what nobody may write: there are no holes. */
static void huge_start__sealed(void **state)
{
	struct region r;

	make(&r, PAGES, 1, PROT_READ);
	munmap(r.job.base, r.job.size);
	assert_int_equal(fcntl(r.fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	r.job.base = mmap(NULL, r.job.size, PROT_READ, MAP_SHARED, r.fd, 0);
	r.job.whole = true;
	start(&r);
	assert_ptr_equal(wait_for_one(), &r.job);
	assert_int_equal(r.job.err, 0);
	assert_int_equal(resident(&r), PAGES);
	drop(&r);
}

static void huge_start__pages_that_are_not_there(void **state)
{
	struct region r;

	make(&r, PAGES, 1, PROT_READ | PROT_WRITE);
	assert_int_equal(ftruncate(r.fd, 3 * PAGE), 0);
	start(&r);
	assert_ptr_equal(wait_for_one(), &r.job);
	assert_int_equal(r.job.err, -ENOMEM);
	assert_int_equal(r.job.done, 3 * PAGE);
	drop(&r);
}

/* A page each; who has many regions gets no more turns than who has one. */
static void huge_start__users_have_turns(void **state)
{
	struct region a[3], b;

	gated = true;
	for (unsigned i = 0; i < 3; i++)
		make(&a[i], 2, 1, PROT_READ | PROT_WRITE);
	make(&b, 2, 2, PROT_READ | PROT_WRITE);
	for (unsigned i = 0; i < 3; i++)
		start(&a[i]);
	start(&b);
	for (unsigned i = 0; i < 8; i++) {
		sem_wait(&arrived);
		sem_post(&go);
	}
	for (unsigned i = 0; i < 4; i++)
		wait_for_one();
	assert_int_equal(ntouched, 8);
	assert_ptr_equal(touched[0], a[0].job.base);
	assert_ptr_equal(touched[1], b.job.base);
	assert_ptr_equal(touched[2], a[1].job.base);
	assert_ptr_equal(touched[3], b.job.base + PAGE);
	for (unsigned i = 0; i < 3; i++)
		drop(&a[i]);
	drop(&b);
}

/* While it waits, while the thread is at it, after its end. */
static void huge_cancel__at_any_moment(void **state)
{
	struct region r[3];

	gated = true;
	for (unsigned i = 0; i < 3; i++)
		make(&r[i], 1 + (i == 1), 1, PROT_READ | PROT_WRITE);
	start(&r[0]);
	sem_wait(&arrived);
	start(&r[1]);
	start(&r[2]);
	huge_cancel(h, &r[2].job); /* waits */
	drop(&r[2]);
	sem_post(&go);
	sem_wait(&arrived); /* at r[1] */
	sem_post(&go);
	sem_post(&go); /* should it begin with the second page before it is cancelled */
	huge_cancel(h, &r[1].job);
	drop(&r[1]);
	huge_cancel(h, &r[0].job); /* has ended */
	assert_null(huge_take(h));
	drop(&r[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(huge_start__touches_all_pages, up, down),
		cmocka_unit_test_setup_teardown(huge_start__holes_fault_afterwards, up, down),
		cmocka_unit_test_setup_teardown(huge_start__sealed, up, down),
		cmocka_unit_test_setup_teardown(huge_start__pages_that_are_not_there, up, down),
		cmocka_unit_test_setup_teardown(huge_start__users_have_turns, up, down),
		cmocka_unit_test_setup_teardown(huge_cancel__at_any_moment, up, down),
	};

	return cmocka_run_group_tests_name("huge", tests, NULL, NULL);
}
