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
#include "config/ctl_parts.h"
#include "daemon.h"
#include "session/handles.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/cq_obj.h"

#define QUEUE_BYTES ((uint64_t)SESSION_QUEUE_MB << 20)

/* proves CQ-02 */
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

/* proves CQ-02 */
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
	assert_in_range(n, QUEUE_BYTES / each - 1, QUEUE_BYTES / each);
	client_close(&c);
}

/* proves CQ-12 */
static void destroy_cq__busy(void **state)
{
	struct abi_create_qp_reply qp;
	struct abi_create_qp in;
	struct abi_handle h[2], hq;
	struct client c;
	struct answer a;

	client_open(*state, &c);
	for (unsigned i = 0; i < 2; i++)
		h[i].handle = client_cq(&c, ABI_NO_HANDLE);
	in = client_qp_request(client_pd(&c), h[0].handle);
	in.recv_cq = h[1].handle;
	client_must(c.sock, ABI_CREATE_QP, &in, sizeof(in), &qp, sizeof(qp));
	hq.handle = qp.handle;
	for (unsigned i = 0; i < 2; i++) /* of its sends, of its receives */
		assert_int_equal(
			client_call(c.sock, ABI_DESTROY_CQ, &h[i], sizeof(h[i]), -1, &a), -EBUSY);
	client_must(c.sock, ABI_DESTROY_QP, &hq, sizeof(hq), NULL, 0);
	for (unsigned i = 0; i < 2; i++) {
		client_must(c.sock, ABI_DESTROY_CQ, &h[i], sizeof(h[i]), NULL, 0);
		assert_int_equal(
			client_call(c.sock, ABI_DESTROY_CQ, &h[i], sizeof(h[i]), -1, &a), -EINVAL);
	}
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

static void create_cq__unknown_vector(void **state)
{
	struct abi_create_cq in = {.depth = 8, .channel = ABI_NO_HANDLE, .vector = 1};
	struct client c;
	struct answer a;

	client_open(*state, &c);
	assert_int_equal(client_call(c.sock, ABI_CREATE_CQ, &in, sizeof(in), -1, &a), -EINVAL);
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

/* The CQ of @p handle of the only session, as workers see it; they do not run. */
static struct cq *cq_of(const struct test_daemon *d, uint32_t handle)
{
	struct cq_obj *o = handle_get(&d->ctl->sessions->session[0]->cqs, handle);

	assert_non_null(o);
	return &o->cq;
}

static bool complete(struct cq *cq, unsigned lane, uint64_t wr_id)
{
	return cq_push(&cq->lane[lane], &(struct abi_cqe){.wr_id = wr_id}, 0);
}

static int resize(struct client *c, uint32_t handle, uint32_t depth, struct answer *a)
{
	struct abi_resize_cq in = {.handle = handle, .depth = depth};

	return client_call(c->sock, ABI_RESIZE_CQ, &in, sizeof(in), -1, a);
}

/* proves CQ-11: completions go on in a new ring; the old one and its arm word stay where they are.
 */
static void resize_cq__new_ring(void **state)
{
	struct abi_create_cq in = {.depth = 4, .channel = ABI_NO_HANDLE};
	struct abi_create_cq_reply was, out;
	struct client c;
	struct answer a;
	uint8_t *old, *new;
	struct cq *cq;

	client_open(*state, &c);
	assert_int_equal(client_call(c.sock, ABI_CREATE_CQ, &in, sizeof(in), -1, &a), 0);
	memcpy(&was, a.body, sizeof(was));
	old = mmap(NULL, was.region_size, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd[0], 0);
	answer_close(&a);
	cq = cq_of(*state, was.handle);
	for (uint64_t i = 0; i < 4; i++)
		assert_true(complete(cq, 1, i)); /* full */
	assert_int_equal(resize(&c, was.handle, 100, &a), 0);
	memcpy(&out, a.body, sizeof(out));
	assert_int_equal(a.nfds, 1);
	new = mmap(NULL, out.region_size, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd[0], 0);
	answer_close(&a);
	assert_int_equal(out.handle, was.handle);
	assert_int_equal(out.depth, 128);
	assert_int_equal(out.lanes, was.lanes);
	assert_true(out.lane_off + out.lanes * out.lane_stride <= out.region_size);
	assert_int_equal(atomic_load(&((struct abi_cq *)old)->resizes), 1);
	assert_ptr_equal(cq->arm, cq_of(*state, was.handle)->arm);
	atomic_store(&((struct abi_cq *)old)->arm, ABI_CQ_ARM_ANY);
	for (uint64_t i = 4; i < 132; i++)
		assert_true(complete(cq, 1, i));
	assert_false(complete(cq, 1, 132));
	assert_true(cq_notify_wanted(&cq->lane[1]));
	for (unsigned i = 0; i < 132; i++) {
		struct abi_create_cq_reply *r = i < 4 ? &was : &out;
		uint8_t *lane = (i < 4 ? old : new) + r->lane_off + r->lane_stride;
		struct abi_cqe *e = (struct abi_cqe *)(lane + sizeof(struct abi_cq_lane));

		assert_int_equal(e[i < 4 ? i : i - 4].wr_id, i);
	}
	munmap(old, was.region_size);
	munmap(new, out.region_size);
	client_close(&c);
}

/* proves CQ-11 (CQ-02) */
static void resize_cq__refusals(void **state)
{
	const uint32_t depth[] = {0, CQE_MAX + 1, UINT32_MAX, 6};
	struct client c;
	struct answer a;
	struct cq *cq;
	uint32_t h;

	client_open(*state, &c);
	h = client_cq(&c, ABI_NO_HANDLE);
	cq = cq_of(*state, h);
	for (uint64_t i = 0; i < 7; i++)
		assert_true(complete(cq, i % TEST_WORKERS, i));
	for (int i = 0; i < 4; i++)
		assert_int_equal(resize(&c, h, depth[i], &a), -EINVAL);
	assert_non_null(strstr((char *)a.body, "7 completions"));
	assert_int_equal(cq->lane[0].depth, 16); /* as before */
	assert_int_equal(cq->lane[0].head, 4);
	assert_int_equal(resize(&c, h ^ 0x10000, 16, &a), -EINVAL);
	assert_int_equal(resize(&c, h, 7, &a), 0);
	answer_close(&a);
	assert_int_equal(cq->lane[0].depth, 8);
	client_close(&c);
}

/* The memory of a ring returns to the session's share. */
static void resize_cq__quota(void **state)
{
	struct abi_handle h;
	struct client c;
	struct answer a;

	client_open(*state, &c);
	h.handle = client_cq(&c, ABI_NO_HANDLE);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(resize(&c, h.handle, i % 2 ? 8 : CQE_MAX, &a), 0);
		answer_close(&a);
	}
	client_must(c.sock, ABI_DESTROY_CQ, &h, sizeof(h), NULL, 0);
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
		cmocka_unit_test_setup_teardown(resize_cq__new_ring, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(resize_cq__refusals, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(resize_cq__quota, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			destroy_channel__busy, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			create_cq__unknown_vector, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			create_cq__unknown_channel, daemon_setup, daemon_teardown),
	};

	return cmocka_run_group_tests_name(
		"cmd_cq", tests, daemon_group_setup, daemon_group_teardown);
}
