/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "daemon.h"

static void reg_mr__workers_see_the_memory(void **state)
{
	struct test_daemon *d = *state;
	struct abi_reg_mr in = {.access = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE,
		.iova = 0x7000123,
		.length = 5000,
		.fd_off = 0x123};
	struct abi_reg_mr_reply out;
	uint8_t *mine, *theirs = NULL;
	struct client c;
	struct answer a;
	struct mr *mr;
	int fd = client_memfd(8192);

	mine = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	client_open(d, &c);
	in.pd = client_pd(&c);
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &in, sizeof(in), fd, &a), 0);
	out = *(struct abi_reg_mr_reply *)a.body;
	assert_int_equal(out.lkey, out.rkey);
	mr = mr_find(d->dp->mrs, out.rkey);
	assert_non_null(mr);
	assert_int_equal(mr_resolve(d->dp->mrs, out.rkey, mr->pd, ABI_ACCESS_REMOTE_WRITE,
				 0x7000123 + 10, 4990, &theirs),
		MR_OK);
	theirs[0] = 99;
	assert_int_equal(mine[0x123 + 10], 99);
	assert_int_equal(
		mr_resolve(d->dp->mrs, out.rkey, mr->pd, 0, 0x7000123, 5001, &theirs), MR_RANGE);
	munmap(mine, 8192);
	close(fd);
	client_close(&c);
}

/* proves MR-02, MR-07 */
static void reg_mr__refusals(void **state)
{
	struct abi_reg_mr in = {.access = ABI_ACCESS_LOCAL_WRITE, .length = 4096};
	int fd = client_memfd(4096), other;
	struct abi_reg_mr bad;
	struct client c;
	struct answer a;

	client_open(*state, &c);
	in.pd = client_pd(&c);
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &in, sizeof(in), -1, &a), -EINVAL);
	bad = in;
	bad.pd ^= 0x10000;
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &bad, sizeof(bad), fd, &a), -EINVAL);
	bad = in;
	bad.access = ABI_ACCESS_REMOTE_WRITE; /* MR-02 */
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &bad, sizeof(bad), fd, &a), -EINVAL);
	bad = in;
	bad.iova = UINT64_MAX - 100;
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &bad, sizeof(bad), fd, &a), -EINVAL);
	bad = in;
	bad.length = 4097;
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &bad, sizeof(bad), fd, &a), -EINVAL);
	other = dup(c.sock);
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &in, sizeof(in), other, &a), -EPERM);
	close(other);
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &in, sizeof(in), fd, &a), 0);
	close(fd);
	client_close(&c);
}

/* proves MR-01: the key of a deregistered region names nothing, its slot may be used again. */
static void dereg_mr__stale_key(void **state)
{
	struct test_daemon *d = *state;
	int fd = client_memfd(4096);
	struct abi_reg_mr_reply mr;
	struct abi_handle h;
	struct client c;
	struct answer a;
	uint32_t pd;

	client_open(d, &c);
	pd = client_pd(&c);
	for (int i = 0; i < 300; i++) {
		mr = client_mr(&c, pd, fd, 4096);
		assert_non_null(mr_find(d->dp->mrs, mr.lkey));
		h.handle = mr.handle;
		client_must(c.sock, ABI_DEREG_MR, &h, sizeof(h), NULL, 0);
		assert_null(mr_find(d->dp->mrs, mr.lkey));
	}
	assert_int_equal(client_call(c.sock, ABI_DEREG_MR, &h, sizeof(h), -1, &a), -EINVAL);
	close(fd);
	client_close(&c);
}

static void dealloc_pd__busy(void **state)
{
	int fd = client_memfd(4096);
	struct abi_reg_mr_reply mr;
	struct abi_handle h, hm;
	struct client c;
	struct answer a;

	client_open(*state, &c);
	h.handle = client_pd(&c);
	mr = client_mr(&c, h.handle, fd, 4096);
	hm.handle = mr.handle;
	assert_int_equal(client_call(c.sock, ABI_DEALLOC_PD, &h, sizeof(h), -1, &a), -EBUSY);
	client_must(c.sock, ABI_DEREG_MR, &hm, sizeof(hm), NULL, 0);
	client_must(c.sock, ABI_DEALLOC_PD, &h, sizeof(h), NULL, 0);
	assert_int_equal(client_call(c.sock, ABI_DEALLOC_PD, &h, sizeof(h), -1, &a), -EINVAL);
	close(fd);
	client_close(&c);
}

/* proves MR-06: handles are of one session: another's name nothing, and PDs never coincide. */
static void sessions__share_nothing(void **state)
{
	struct test_daemon *d = *state;
	int fd = client_memfd(4096);
	struct abi_reg_mr_reply m1, m2;
	struct client one, two;
	uint32_t pd1, pd2;

	client_open(d, &one);
	client_open(d, &two);
	pd1 = client_pd(&one);
	pd2 = client_pd(&two);
	m1 = client_mr(&one, pd1, fd, 4096);
	m2 = client_mr(&two, pd2, fd, 4096);
	assert_int_not_equal(mr_find(d->dp->mrs, m1.lkey)->pd, mr_find(d->dp->mrs, m2.lkey)->pd);
	close(fd);
	client_close(&one);
	client_close(&two);
}

static void alloc_pd__quota(void **state)
{
	struct client c;
	struct answer a;
	uint32_t n = 0;

	client_open(*state, &c);
	while (!client_call(c.sock, ABI_ALLOC_PD, NULL, 0, -1, &a))
		n++;
	assert_int_equal(n, SESSION_PD_MAX);
	assert_int_equal(a.msg.status, -EDQUOT);
	client_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			reg_mr__workers_see_the_memory, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(reg_mr__refusals, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(dereg_mr__stale_key, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(dealloc_pd__busy, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			sessions__share_nothing, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(alloc_pd__quota, daemon_setup, daemon_teardown),
	};

	return cmocka_run_group_tests_name(
		"cmd_mr", tests, daemon_group_setup, daemon_group_teardown);
}
