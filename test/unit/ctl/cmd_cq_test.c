/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "daemon.h"

/* CQ-02 */
static void create_cq__layout(void **state)
{
	struct abi_create_cq in = {.depth = 100, .channel = ABI_NO_HANDLE};
	struct abi_create_cq_reply out;
	struct client c;
	struct answer a;
	uint8_t *p;

	client_open(*state, &c);
	assert_int_equal(client_call(c.sock, ABI_CREATE_CQ, &in, sizeof(in), -1, &a), 0);
	memcpy(&out, a.body, sizeof(out));
	assert_int_equal(a.nfds, 1);
	assert_int_equal(out.depth, 128); /* at least, and a power of two */
	assert_int_equal(out.lanes, TEST_WORKERS);
	assert_int_equal(out.lane_off % ABI_LINE, 0);
	assert_int_equal(out.lane_stride % ABI_LINE, 0);
	assert_true(out.lane_off >= sizeof(struct abi_cq));
	assert_true(out.lane_stride >= sizeof(struct abi_cq_lane) + 128 * ABI_ENTRY);
	assert_true(out.lane_off + out.lanes * out.lane_stride <= out.region_size);
	p = mmap(NULL, out.region_size, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd[0], 0);
	assert_true(p != MAP_FAILED);
	for (uint32_t i = 0; i < out.region_size; i++)
		assert_int_equal(p[i], 0); /* no lap, not armed */
	munmap(p, out.region_size);
	answer_close(&a);
	client_close(&c);
}

/* CQ-02 */
static void create_cq__depth_out_of_range(void **state)
{
	struct abi_create_cq in = {.channel = ABI_NO_HANDLE};
	const uint32_t depth[] = {0, CQE_MAX + 1, UINT32_MAX};
	struct client c;
	struct answer a;

	client_open(*state, &c);
	for (int i = 0; i < 3; i++) {
		in.depth = depth[i];
		assert_int_equal(
			client_call(c.sock, ABI_CREATE_CQ, &in, sizeof(in), -1, &a), -EINVAL);
	}
	in.depth = CQE_MAX;
	assert_int_equal(client_call(c.sock, ABI_CREATE_CQ, &in, sizeof(in), -1, &a), 0);
	answer_close(&a);
	client_close(&c);
}

static void create_cq__shared_memory_quota(void **state)
{
	struct abi_create_cq in = {.depth = CQE_MAX, .channel = ABI_NO_HANDLE};
	uint64_t each = (uint64_t)TEST_WORKERS * CQE_MAX * ABI_ENTRY;
	struct client c;
	struct answer a;
	uint64_t n = 0;

	client_open(*state, &c);
	while (!client_call(c.sock, ABI_CREATE_CQ, &in, sizeof(in), -1, &a)) {
		answer_close(&a);
		n++;
	}
	assert_int_equal(a.msg.status, -EDQUOT);
	assert_in_range(n, SESSION_BYTES_MAX / each - 1, SESSION_BYTES_MAX / each);
	client_close(&c);
}

/* CQ-12 */
static void destroy_cq__busy(void **state)
{
	struct abi_create_qp_reply qp;
	struct abi_handle h, hq;
	struct client c;
	struct answer a;

	client_open(*state, &c);
	h.handle = client_cq(&c, ABI_NO_HANDLE);
	qp = client_qp(&c, client_pd(&c), h.handle);
	hq.handle = qp.handle;
	assert_int_equal(client_call(c.sock, ABI_DESTROY_CQ, &h, sizeof(h), -1, &a), -EBUSY);
	client_must(c.sock, ABI_DESTROY_QP, &hq, sizeof(hq), NULL, 0);
	client_must(c.sock, ABI_DESTROY_CQ, &h, sizeof(h), NULL, 0);
	assert_int_equal(client_call(c.sock, ABI_DESTROY_CQ, &h, sizeof(h), -1, &a), -EINVAL);
	client_close(&c);
}

static void destroy_channel__busy(void **state)
{
	struct abi_handle h, hc;
	struct client c;
	struct answer a;
	char byte;

	client_open(*state, &c);
	assert_int_equal(client_call(c.sock, ABI_CREATE_CHANNEL, NULL, 0, -1, &a), 0);
	assert_int_equal(a.nfds, 1);
	memcpy(&h, a.body, sizeof(h));
	hc.handle = client_cq(&c, h.handle);
	{
		int fd = a.fd[0];

		assert_int_equal(
			client_call(c.sock, ABI_DESTROY_CHANNEL, &h, sizeof(h), -1, &a), -EBUSY);
		client_must(c.sock, ABI_DESTROY_CQ, &hc, sizeof(hc), NULL, 0);
		client_must(c.sock, ABI_DESTROY_CHANNEL, &h, sizeof(h), NULL, 0);
		assert_int_equal(read(fd, &byte, 1), 0); /* EOF */
		close(fd);
	}
	client_close(&c);
}

static void create_cq__unknown_channel(void **state)
{
	struct abi_create_cq in = {.depth = 8, .channel = 5};
	struct client c;
	struct answer a;

	client_open(*state, &c);
	assert_int_equal(client_call(c.sock, ABI_CREATE_CQ, &in, sizeof(in), -1, &a), -EINVAL);
	client_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(create_cq__layout, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			create_cq__depth_out_of_range, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			create_cq__shared_memory_quota, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(destroy_cq__busy, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			destroy_channel__busy, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			create_cq__unknown_channel, daemon_setup, daemon_teardown),
	};

	return cmocka_run_group_tests_name(
		"cmd_cq", tests, daemon_group_setup, daemon_group_teardown);
}
