/* SPDX-License-Identifier: BSD-3-Clause */
/* REG_MR of huge pages, of which this test makes ordinary ones: the reply comes when all pages are
 * there. */
#include <errno.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "daemon.h"
#include "memory/shm.h"
#include "mr.h"
#include "patience.h"

#define PAGE 4096u

static sem_t arrived, go;
static int fail; /* errno of the next touch */

bool __wrap_shm_is_huge(const struct shm *m);
int __real_madvise(void *addr, size_t len, int advice);
int __wrap_madvise(void *addr, size_t len, int advice);

bool __wrap_shm_is_huge(const struct shm *m)
{
	return m->base;
}

int __wrap_madvise(void *addr, size_t len, int advice)
{
	sem_post(&arrived);
	sem_wait(&go);
	if (!fail)
		return __real_madvise(addr, len, advice);
	errno = fail;
	return -1;
}

static int up(void **state)
{
	fail = 0;
	sem_init(&arrived, 0, 0);
	sem_init(&go, 0, 0);
	return daemon_setup(state);
}

static void ask(struct client *c, uint32_t pd, int fd, uint32_t seq)
{
	struct abi_reg_mr in = {.pd = pd, .access = ABI_ACCESS_LOCAL_WRITE, .length = PAGE};
	struct abi_msg msg = {.type = ABI_REG_MR, .seq = seq};
	uint8_t buf[sizeof(msg) + sizeof(in)];

	memcpy(buf, &msg, sizeof(msg));
	memcpy(buf + sizeof(msg), &in, sizeof(in));
	client_send(c->sock, buf, sizeof(buf), &fd, 1);
}

static unsigned published(const struct test_daemon *d)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < MR_MAX; i++)
		n += atomic_load(&d->dp->mrs->slot[i]) != NULL;
	return n;
}

static void reg_mr__replies_when_all_pages_are_there(void **state)
{
	struct test_daemon *d = *state;
	int fd = client_memfd(PAGE);
	struct abi_reg_mr_reply *mr;
	struct client c, other;
	struct abi_handle h;
	struct answer a;

	client_open(d, &c);
	client_open(d, &other);
	h.handle = client_pd(&c);
	ask(&c, h.handle, fd, 7);
	sem_wait(&arrived);
	assert_int_equal(published(d), 0);
	/* Others are served meanwhile, and so is the program itself. */
	assert_int_equal(client_call(other.sock, ABI_QUERY_DEVICE, NULL, 0, -1, &a), 0);
	assert_int_equal(client_call(c.sock, ABI_DEALLOC_PD, &h, sizeof(h), -1, &a), -EBUSY);
	ask(&c, h.handle, fd, 8); /* one at a time */
	assert_true(client_receive(c.sock, &a));
	assert_int_equal(a.msg.seq, 8);
	assert_int_equal(a.msg.status, -EBUSY);
	sem_post(&go);
	assert_true(client_receive(c.sock, &a));
	assert_int_equal(a.msg.seq, 7);
	assert_int_equal(a.msg.status, 0);
	mr = (struct abi_reg_mr_reply *)a.body;
	assert_non_null(mr_find(d->dp->mrs, mr->rkey));
	h.handle = mr->handle;
	assert_int_equal(client_call(c.sock, ABI_DEREG_MR, &h, sizeof(h), -1, &a), 0);
	client_close(&c);
	client_close(&other);
	close(fd);
}

static void reg_mr__without_pages(void **state)
{
	struct test_daemon *d = *state;
	int fd = client_memfd(PAGE);
	struct client c;
	struct answer a;
	struct abi_handle h;

	client_open(d, &c);
	h.handle = client_pd(&c);
	for (unsigned i = 0; i < 2; i++) {
		fail = i ? EINVAL : EFAULT;
		ask(&c, h.handle, fd, i);
		sem_post(&go);
		assert_true(client_receive(c.sock, &a));
		assert_int_equal(a.msg.status, i ? -ENOSYS : -ENOMEM);
		assert_non_null(strstr((char *)a.body, i ? "userfaultfd" : "vm.nr_hugepages"));
	}
	assert_int_equal(published(d), 0);
	assert_int_equal(client_call(c.sock, ABI_DEALLOC_PD, &h, sizeof(h), -1, &a), 0);
	client_close(&c);
	close(fd);
}

/* The session's end takes it back, while the thread is at its page. */
static void session_end__while_pages_are_touched(void **state)
{
	struct test_daemon *d = *state;
	int fd = client_memfd(PAGE);
	struct client c, other;
	struct answer a;

	client_open(d, &other);
	client_open(d, &c);
	ask(&c, client_pd(&c), fd, 1);
	sem_wait(&arrived);
	client_close(&c);
	sem_post(&go);
	assert_int_equal(client_call(other.sock, ABI_QUERY_DEVICE, NULL, 0, -1, &a), 0);
	assert_int_equal(published(d), 0);
	client_close(&other);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			reg_mr__replies_when_all_pages_are_there, up, daemon_teardown),
		cmocka_unit_test_setup_teardown(reg_mr__without_pages, up, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_end__while_pages_are_touched, up, daemon_teardown),
	};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
