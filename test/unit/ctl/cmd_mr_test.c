/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "config/ctl_parts.h"
#include "daemon.h"
#include "mr.h"
#include "session/session.h"
#include "session/sessions.h"

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

static const struct session *session_of(const struct test_daemon *d, const struct client *c)
{
	return d->ctl->sessions->session[c->hello.session % SESSION_MAX];
}

/* Thousands of small regions in a file need a few mappings; the last one unmaps. */
static void reg_mr__regions_share_mappings(void **state)
{
	enum {
		REGIONS = 2000
	};
	static uint32_t handle[REGIONS];
	struct test_daemon *d = *state;
	int fd = client_memfd(REGIONS * 4096ul);
	const struct session *s;
	struct abi_handle h;
	struct client c;
	uint32_t pd;

	client_open(d, &c);
	s = session_of(d, &c);
	pd = client_pd(&c);
	for (uint32_t i = 0; i < REGIONS; i++) {
		struct abi_reg_mr in = {.pd = pd,
			.access = ABI_ACCESS_LOCAL_WRITE,
			.length = 4096,
			.fd_off = i * 4096ul};
		struct answer a;

		assert_int_equal(client_call(c.sock, ABI_REG_MR, &in, sizeof(in), fd, &a), 0);
		handle[i] = ((struct abi_reg_mr_reply *)a.body)->handle;
	}
	assert_true(s->used[CTL_MAPPINGS] < 8);
	assert_int_equal(s->used[CTL_MEMORY], REGIONS * 4096ul);
	for (uint32_t i = 0; i < REGIONS; i++) {
		h.handle = handle[i];
		client_must(c.sock, ABI_DEREG_MR, &h, sizeof(h), NULL, 0);
	}
	assert_int_equal(s->used[CTL_MEMORY], 0);
	assert_int_equal(s->used[CTL_MAPPINGS], 1); /* of the session */
	close(fd);
	client_close(&c);
}

/* Side by side, as the program has them. */
static void reg_mr__pieces(void **state)
{
	struct {
		struct abi_reg_mr in;
		struct abi_piece piece[3];
	} q = {.in = {.access = ABI_ACCESS_LOCAL_WRITE,
		       .iova = 0x1000,
		       .length = 10000,
		       .npieces = 3},
		.piece = {{5 * 4096 + 1096, 3000}, {0, 4096}, {7 * 4096, 2904}}};
	struct test_daemon *d = *state;
	uint8_t *mine, *theirs = NULL;
	int fd = client_memfd(8 * 4096);
	struct abi_reg_mr_reply out;
	struct client c;
	struct answer a;
	struct mr *mr;

	mine = mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	client_open(d, &c);
	q.in.pd = client_pd(&c);
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &q, sizeof(q), fd, &a), 0);
	out = *(struct abi_reg_mr_reply *)a.body;
	mr = mr_find(d->dp->mrs, out.rkey);
	assert_int_equal(
		mr_resolve(d->dp->mrs, out.rkey, mr->pd, 0, 0x1000, 10000, &theirs), MR_OK);
	theirs[0] = 1;
	theirs[2999] = 2;
	theirs[3000] = 3;
	theirs[7095] = 4;
	theirs[7096] = 5;
	assert_int_equal(mine[5 * 4096 + 1096], 1);
	assert_int_equal(mine[6 * 4096 - 1], 2);
	assert_int_equal(mine[0], 3);
	assert_int_equal(mine[4095], 4);
	assert_int_equal(mine[7 * 4096], 5);
	q.piece[1].off = 1; /* not a page */
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &q, sizeof(q), fd, &a), -EINVAL);
	q.piece[1].off = 0;
	q.in.length = 10001;
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &q, sizeof(q), fd, &a), -EINVAL);
	q.in.length = 10000;
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &q, sizeof(q) - 1, fd, &a), -EINVAL);
	munmap(mine, 8 * 4096);
	close(fd);
	client_close(&c);
}

/* Pieces of a file of 2^62 bytes have, modulo 2^64, the length of the region: nothing is mapped
 * over what is beside it. */
static void reg_mr__pieces_beyond_64_bits(void **state)
{
	enum {
		BESIDE = 1 << 16
	};
	struct {
		struct abi_reg_mr in;
		struct abi_piece piece[6];
	} q = {.in = {.access = ABI_ACCESS_LOCAL_WRITE, .length = 4096, .npieces = 6},
		.piece = {{0, 4096}, {0, BESIDE}, {0, ABI_ARENA_SIZE}, {0, ABI_ARENA_SIZE},
			{0, ABI_ARENA_SIZE}, {0, ABI_ARENA_SIZE - BESIDE}}};
	struct test_daemon *d = *state;
	int fd = client_memfd(ABI_ARENA_SIZE);
	struct client c;
	struct answer a;

	client_open(d, &c);
	q.in.pd = client_pd(&c);
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &q, sizeof(q), fd, &a), -EINVAL);
	q.in.length = 4096 - 1; /* the first is too long already */
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &q, sizeof(q), fd, &a), -EINVAL);
	/* Nor does the end of the mapping wrap. */
	q.piece[0] = (struct abi_piece){ABI_ARENA_SIZE - 4096, 4096};
	q.piece[1].length = q.piece[5].length = 4096;
	q.in.length = 3 * ABI_ARENA_SIZE + 3 * 4096;
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &q, sizeof(q), fd, &a), -EINVAL);
	close(fd);
	client_close(&c);
}

/* Handle and keys stay; memory, rights and domain are new. */
static void rereg_mr__keeps_the_keys(void **state)
{
	struct test_daemon *d = *state;
	int fd = client_memfd(8192), other = client_memfd(8192);
	struct abi_rereg_mr in = {
		.reg = {.access = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE,
			.iova = 0x5000,
			.length = 4096,
			.fd_off = 4096}};
	struct abi_reg_mr_reply mr;
	uint8_t *mine, *theirs = NULL;
	struct client c;
	struct answer a;
	struct abi_handle h;
	uint32_t pd;

	mine = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
	client_open(d, &c);
	pd = client_pd(&c);
	mr = client_mr(&c, pd, fd, 8192);
	in.handle = mr.handle;
	in.reg.pd = client_pd(&c);
	assert_int_equal(client_call(c.sock, ABI_REREG_MR, &in, sizeof(in), other, &a), 0);
	assert_int_equal(((struct abi_reg_mr_reply *)a.body)->rkey, mr.rkey);
	assert_int_equal(mr_resolve(d->dp->mrs, mr.rkey, mr_find(d->dp->mrs, mr.rkey)->pd,
				 ABI_ACCESS_REMOTE_WRITE, 0x5000, 4096, &theirs),
		MR_OK);
	theirs[0] = 42;
	assert_int_equal(mine[4096], 42);
	h.handle = pd; /* the old domain has no user any more */
	client_must(c.sock, ABI_DEALLOC_PD, &h, sizeof(h), NULL, 0);
	in.reg.length = 1 << 20;
	assert_int_equal(client_call(c.sock, ABI_REREG_MR, &in, sizeof(in), other, &a), -EINVAL);
	assert_non_null(mr_find(d->dp->mrs, mr.rkey)); /* as before */
	h.handle = mr.handle;
	client_must(c.sock, ABI_DEREG_MR, &h, sizeof(h), NULL, 0);
	assert_int_equal(session_of(d, &c)->used[CTL_MEMORY], 0);
	munmap(mine, 8192);
	close(fd);
	close(other);
	client_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			reg_mr__workers_see_the_memory, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(reg_mr__refusals, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(dereg_mr__stale_key, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			reg_mr__regions_share_mappings, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(reg_mr__pieces, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			reg_mr__pieces_beyond_64_bits, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			rereg_mr__keeps_the_keys, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(dealloc_pd__busy, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			sessions__share_nothing, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(alloc_pd__quota, daemon_setup, daemon_teardown),
	};

	return cmocka_run_group_tests_name(
		"cmd_mr", tests, daemon_group_setup, daemon_group_teardown);
}
