/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues and XRC domains as the control thread makes, changes and takes them back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>
#include "abi_wqe.h"
#include "daemon.h"

#define DEPTH 16u

static struct client c;
static struct answer a;
static uint32_t pd;

static int setup(void **state)
{
	daemon_setup(state);
	client_open(*state, &c);
	pd = client_pd(&c);
	return 0;
}

static int teardown(void **state)
{
	client_close(&c);
	return daemon_teardown(state);
}

static struct abi_create_srq request(void)
{
	return (struct abi_create_srq){.pd = pd,
		.max_wr = DEPTH,
		.max_sge = 2,
		.xrcd = ABI_NO_HANDLE,
		.cq = ABI_NO_HANDLE};
}

/* An SRQ whose region is mapped. */
struct mapped {
	struct abi_create_srq_reply told;
	struct abi_queue *queue;
	uint8_t *entries;
};

static uint8_t *map(const struct abi_create_srq_reply *told)
{
	uint8_t *p;

	assert_int_equal(a.nfds, 1);
	p = mmap(NULL, told->region_size, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd[0], 0);
	assert_true(p != MAP_FAILED);
	return p;
}

static struct mapped make(const struct abi_create_srq *in)
{
	struct mapped m;
	uint8_t *p;

	assert_int_equal(client_call(c.sock, ABI_CREATE_SRQ, in, sizeof(*in), -1, &a), 0);
	memcpy(&m.told, a.body, sizeof(m.told));
	p = map(&m.told);
	m.queue = (struct abi_queue *)p;
	m.entries = p + m.told.ring_off;
	answer_close(&a);
	return m;
}

static int modify(const struct mapped *m, uint32_t mask, uint32_t max_wr, uint32_t limit)
{
	struct abi_modify_srq in = {m->told.handle, mask, max_wr, limit};
	int status = client_call(c.sock, ABI_MODIFY_SRQ, &in, sizeof(in), -1, &a);

	return status;
}

static struct abi_srq_attr query(const struct mapped *m)
{
	struct abi_handle h = {m->told.handle};
	struct abi_srq_attr out;

	client_must(c.sock, ABI_QUERY_SRQ, &h, sizeof(h), &out, sizeof(out));
	return out;
}

static int destroy(uint32_t type, uint32_t handle)
{
	struct abi_handle h = {handle};

	return client_call(c.sock, type, &h, sizeof(h), -1, &a);
}

/* As an application does; the entries are those of @p told. */
static void post(struct abi_queue *queue, uint8_t *entries, const struct abi_create_srq_reply *told,
	uint32_t i)
{
	struct abi_recv_wqe *w =
		(struct abi_recv_wqe *)(entries + (i & (told->max_wr - 1)) * told->stride);

	w->wr_id = 100 + i;
	w->ctl = ABI_WQE_CTL(0, 1, 0) | abi_phase(i, told->max_wr);
	atomic_store(&queue->producer, i + 1);
}

static void create_srq__layout(void **state)
{
	struct abi_create_srq in = request();
	struct abi_srq_attr attr;
	struct mapped m;

	in.max_wr = 100;
	in.limit = 7;
	m = make(&in);
	assert_int_equal(m.told.max_wr, 128); /* at least, and a power of two */
	assert_true(m.told.ring_off >= sizeof(struct abi_queue));
	assert_int_equal(m.told.ring_off % ABI_LINE, 0);
	assert_true(m.told.stride >= ABI_RECV_WQE_HDR + 2 * sizeof(struct abi_sge));
	assert_true(m.told.ring_off + 128 * m.told.stride <= m.told.region_size);
	for (uint32_t i = 0; i < 128 * m.told.stride; i++)
		assert_int_equal(m.entries[i], 0); /* no lap */
	attr = query(&m);
	assert_int_equal(attr.max_wr, 128);
	assert_int_equal(attr.max_sge, 2);
	assert_int_equal(attr.limit, 7);
	assert_int_equal(attr.waiting, 0);
	assert_int_equal(destroy(ABI_DESTROY_SRQ, m.told.handle), 0);
	assert_int_equal(destroy(ABI_DESTROY_SRQ, m.told.handle), -EINVAL);
	assert_int_equal(destroy(ABI_QUERY_SRQ, m.told.handle), -EINVAL);
}

static void assert_refused(const struct abi_create_srq *in, const char *why)
{
	assert_int_equal(client_call(c.sock, ABI_CREATE_SRQ, in, sizeof(*in), -1, &a), -EINVAL);
	assert_int_equal(a.nfds, 0);
	assert_non_null(strstr((const char *)a.body, why));
}

static void create_srq__refusals(void **state)
{
	const struct abi_create_srq good = request();
	struct abi_create_srq bad = good;

	bad.max_wr = 0;
	assert_refused(&bad, "1 to");
	bad.max_wr = SRQ_WR_MAX + 1;
	assert_refused(&bad, "1 to");
	bad.max_wr = UINT32_MAX;
	assert_refused(&bad, "1 to");
	bad = good;
	bad.max_sge = SGE_MAX + 1;
	assert_refused(&bad, "SGEs");
	bad = good;
	bad.limit = DEPTH + 1; /* SRQ-04: always reached */
	assert_refused(&bad, "a limit of 17");
	bad = good;
	bad.pd = 999;
	assert_refused(&bad, "protection domain 999");
	bad = good;
	bad.xrcd = 5;
	assert_refused(&bad, "XRC domain 5");
	assert_int_equal(destroy(ABI_DEALLOC_PD, pd), 0); /* nothing of them is left */
}

/* proves SRQ-04: a query reports the limit, which may be any number that can be reached. */
static void modify_srq__limit(void **state)
{
	struct abi_create_srq in = request();
	struct mapped m = make(&in);

	assert_int_equal(modify(&m, ABI_SRQ_LIMIT, 0, DEPTH), 0);
	assert_int_equal(query(&m).limit, DEPTH);
	assert_int_equal(modify(&m, ABI_SRQ_LIMIT, 0, DEPTH + 1), -EINVAL);
	assert_int_equal(query(&m).limit, DEPTH);
	assert_int_equal(modify(&m, ABI_SRQ_LIMIT, 0, 0), 0);
	assert_int_equal(query(&m).limit, 0);
	assert_int_equal(modify(&m, 4, 0, 0), -EINVAL);
	assert_int_equal(modify(&m, UINT32_MAX, DEPTH, 0), -EINVAL);
	m.told.handle = 999;
	assert_int_equal(modify(&m, ABI_SRQ_LIMIT, 0, 1), -EINVAL);
}

/* proves SRQ-05: what waits is there, in order, in the new ring; fewer than that is refused. */
static void modify_srq__resize(void **state)
{
	struct abi_create_srq in = request();
	struct mapped m = make(&in);
	struct abi_create_srq_reply told;
	uint8_t *ring;

	for (uint32_t i = 0; i < 10; i++)
		post(m.queue, m.entries, &m.told, i);
	assert_int_equal(query(&m).waiting, 10);
	assert_int_equal(modify(&m, ABI_SRQ_MAX_WR, 9, 0), -EINVAL);
	assert_int_equal(modify(&m, ABI_SRQ_MAX_WR, 0, 0), -EINVAL);
	assert_int_equal(modify(&m, ABI_SRQ_MAX_WR, SRQ_WR_MAX + 1, 0), -EINVAL);
	assert_int_equal(query(&m).max_wr, DEPTH);
	assert_int_equal(modify(&m, ABI_SRQ_MAX_WR, 60, 0), 0);
	memcpy(&told, a.body, sizeof(told));
	ring = map(&told) + told.ring_off;
	answer_close(&a);
	assert_int_equal(told.max_wr, 64);
	assert_int_equal(told.handle, m.told.handle);
	assert_int_equal(told.srqn, m.told.srqn);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(((struct abi_recv_wqe *)(ring + i * told.stride))->wr_id, 100 + i);
	assert_int_equal(query(&m).max_wr, 64);
	assert_int_equal(query(&m).waiting, 10); /* the head is that of the first region */
	assert_int_equal(modify(&m, ABI_SRQ_MAX_WR, 10, 0), 0);
	answer_close(&a);
	assert_int_equal(query(&m).max_wr, 16);
	/* A hostile application may say anything. */
	atomic_store(&m.queue->producer, UINT32_MAX);
	assert_int_equal(query(&m).waiting, 16);
	assert_int_equal(modify(&m, ABI_SRQ_MAX_WR, 16, 0), 0);
	answer_close(&a);
}

/* proves SRQ-04, SRQ-05: a limit that stays armed must be one that may not be reached. */
static void modify_srq__smaller_than_its_limit(void **state)
{
	struct abi_create_srq in = request();
	struct mapped m;

	in.limit = DEPTH;
	m = make(&in);
	assert_int_equal(modify(&m, ABI_SRQ_MAX_WR, DEPTH / 2, 0), -EINVAL);
	assert_non_null(strstr((const char *)a.body, "armed limit of 16"));
	assert_int_equal(query(&m).max_wr, DEPTH);
	assert_int_equal(
		modify(&m, ABI_SRQ_MAX_WR | ABI_SRQ_LIMIT, DEPTH / 2, DEPTH / 2 + 1), -EINVAL);
	assert_int_equal(query(&m).limit, DEPTH);
	assert_int_equal(modify(&m, ABI_SRQ_MAX_WR | ABI_SRQ_LIMIT, DEPTH / 2, DEPTH / 2), 0);
	answer_close(&a);
	assert_int_equal(query(&m).max_wr, DEPTH / 2);
	assert_int_equal(query(&m).limit, DEPTH / 2);
	assert_int_equal(modify(&m, ABI_SRQ_LIMIT, 0, 0), 0);
	assert_int_equal(modify(&m, ABI_SRQ_MAX_WR, 1, 0), 0);
	answer_close(&a);
}

/* Rings that were replaced are given back. */
static void modify_srq__quota(void **state)
{
	struct abi_create_srq in = request();
	struct mapped m = make(&in);

	for (unsigned i = 0; i < 400; i++) {
		assert_int_equal(modify(&m, ABI_SRQ_MAX_WR, i % 2 ? 8 : SRQ_WR_MAX, 0), 0);
		answer_close(&a);
	}
	assert_int_equal(destroy(ABI_DESTROY_SRQ, m.told.handle), 0);
}

/* proves SRQ-09 */
static void destroy_srq__busy(void **state)
{
	struct abi_create_srq in = request();
	struct mapped m = make(&in);
	struct abi_create_qp q = client_qp_request(pd, client_cq(&c, ABI_NO_HANDLE));
	struct abi_create_qp_reply qp[2];

	q.srq = m.told.handle;
	q.max_recv_wr = 0;
	for (unsigned i = 0; i < 2; i++)
		client_must(c.sock, ABI_CREATE_QP, &q, sizeof(q), &qp[i], sizeof(qp[i]));
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(destroy(ABI_DESTROY_SRQ, m.told.handle), -EBUSY);
		assert_int_equal(destroy(ABI_DESTROY_QP, qp[i].handle), 0);
	}
	assert_int_equal(destroy(ABI_DEALLOC_PD, pd), -EBUSY);
	assert_int_equal(destroy(ABI_DESTROY_SRQ, m.told.handle), 0);
	assert_int_equal(destroy(ABI_DEALLOC_PD, pd), 0);
}

/* proves XRC-05: an XRC SRQ has a CQ, and both it and the domain stay while it is there. */
static void create_srq__of_an_xrc_domain(void **state)
{
	struct abi_open_xrcd open = {.flags = ABI_XRCD_CREATE};
	struct abi_create_srq in = request();
	struct abi_handle_reply xrcd;
	struct mapped m;

	client_must(c.sock, ABI_OPEN_XRCD, &open, sizeof(open), &xrcd, sizeof(xrcd));
	in.xrcd = xrcd.handle;
	assert_refused(&in, "an XRC SRQ needs a CQ");
	in.cq = client_cq(&c, ABI_NO_HANDLE);
	m = make(&in);
	assert_int_equal(destroy(ABI_DESTROY_CQ, in.cq), -EBUSY);
	assert_int_equal(destroy(ABI_CLOSE_XRCD, xrcd.handle), -EBUSY);
	assert_int_equal(destroy(ABI_DESTROY_SRQ, m.told.handle), 0);
	assert_int_equal(destroy(ABI_DESTROY_CQ, in.cq), 0);
	assert_int_equal(destroy(ABI_CLOSE_XRCD, xrcd.handle), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(create_srq__layout),
		T(create_srq__refusals),
		T(modify_srq__limit),
		T(modify_srq__resize),
		T(modify_srq__smaller_than_its_limit),
		T(modify_srq__quota),
		T(destroy_srq__busy),
		T(create_srq__of_an_xrc_domain),
	};

	return cmocka_run_group_tests_name(
		"cmd_srq", tests, daemon_group_setup, daemon_group_teardown);
}
