/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "daemon.h"
#include "qp.h"
#include "qp_table.h"
#include "worker_impl.h"

static void create_qp__layout(void **state)
{
	struct test_daemon *d = *state;
	struct abi_create_qp in;
	struct abi_create_qp_reply out;
	struct abi_queue *sq, *rq;
	struct client c;
	struct answer a;
	struct qp *qp;
	uint8_t *p;

	client_open(d, &c);
	in = client_qp_request(client_pd(&c), client_cq(&c, ABI_NO_HANDLE));
	in.max_send_sge = 5;
	in.max_recv_sge = 4;
	in.max_inline = 100;
	assert_int_equal(client_call(c.sock, ABI_CREATE_QP, &in, sizeof(in), -1, &a), 0);
	memcpy(&out, a.body, sizeof(out));
	assert_int_equal(out.sq_depth, 16);
	assert_int_equal(out.rq_depth, 8);
	assert_int_equal(out.sq_stride, abi_sq_stride(5, 100));
	assert_int_equal(out.rq_stride, abi_rq_stride(4));
	assert_true(out.max_send_sge >= 5 && out.max_recv_sge >= 4 && out.max_inline >= 100);
	assert_true(out.max_inline + ABI_WQE_HDR <= out.sq_stride);
	assert_int_equal(out.sq_ring_off % ABI_LINE, 0);
	assert_true(out.sq_ring_off + out.sq_depth * out.sq_stride <= out.rq_ring_off);
	assert_true(out.rq_ring_off + out.rq_depth * out.rq_stride <= out.region_size);
	p = mmap(NULL, out.region_size, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd[0], 0);
	assert_true(p != MAP_FAILED);
	sq = (struct abi_queue *)(p + out.sq_queue_off);
	rq = (struct abi_queue *)(p + out.rq_queue_off);
	assert_int_equal(atomic_load(&sq->need_doorbell), 1);
	assert_int_equal(atomic_load(&rq->need_doorbell), 0);
	qp = atomic_load(&d->dp->qps->slot[QPN_SLOT(out.qpn)]);
	assert_non_null(qp);
	assert_int_equal(qp->qpn, out.qpn);
	assert_int_equal(qp->state, ABI_QPS_RESET);
	p[out.rq_ring_off] = 42; /* the same memory */
	assert_int_equal(qp->rq.entries[0], 42);
	munmap(p, out.region_size);
	answer_close(&a);
	client_close(&c);
}

/* Type, sizes and handles out of range, one at a time. */
static void create_qp__refusals(void **state)
{
	struct test_daemon *d = *state;
	struct abi_create_qp good, bad[16];
	const int want[] = {-EOPNOTSUPP, -EINVAL, -EOPNOTSUPP, -EINVAL, -EINVAL, -EINVAL, -EINVAL,
		-EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL};
	struct client c;
	struct answer a;

	client_open(d, &c);
	good = client_qp_request(client_pd(&c), client_cq(&c, ABI_NO_HANDLE));
	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		bad[i] = good;
	bad[0].type = ABI_QPT_RAW_PACKET;
	bad[1].type = ABI_QPT_XRC_RECV; /* without a domain */
	bad[2].type = UINT32_MAX;
	bad[3].max_send_wr = WR_MAX + 1;
	bad[4].max_recv_wr = UINT32_MAX;
	bad[5].max_send_sge = SGE_MAX + 1;
	bad[6].max_recv_sge = 1u << 31;
	bad[7].max_inline = INLINE_MAX + 1;
	bad[8].pd += 1;
	bad[9].send_cq = ABI_NO_HANDLE;
	bad[10].recv_cq = 0;
	bad[11].srq = 1;
	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(
			client_call(c.sock, ABI_CREATE_QP, &bad[i], sizeof(bad[i]), -1, &a),
			want[i]);
	assert_int_equal(client_call(c.sock, ABI_CREATE_QP, &good, sizeof(good), -1, &a), 0);
	answer_close(&a);
	client_close(&c);
}

/* proves QPS-24, QPS-25, VRB-02: QP0 and raw datagrams, and what to do instead. */
static void create_qp__types_that_roce_has_not(void **state)
{
	static const struct {
		uint32_t type;
		int want;
		const char *says;
	} row[] = {
		{0, -EINVAL, "QP0"},	 /* IB_QPT_SMI */
		{1, -EINVAL, "port 0"},	 /* IB_QPT_GSI: of which port? */
		{5, -EOPNOTSUPP, "raw"}, /* IB_QPT_RAW_IPV6 */
		{6, -EOPNOTSUPP, "raw"}, /* IB_QPT_RAW_ETHERTYPE */
		{8, -EOPNOTSUPP, "raw"}, /* IB_QPT_RAW_PACKET */
		{7, -EOPNOTSUPP, "RC"},
	};
	struct test_daemon *d = *state;
	struct abi_create_qp in;
	struct client c;
	struct answer a;

	client_open(d, &c);
	in = client_qp_request(client_pd(&c), client_cq(&c, ABI_NO_HANDLE));
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		in.type = row[i].type;
		assert_int_equal(
			client_call(c.sock, ABI_CREATE_QP, &in, sizeof(in), -1, &a), row[i].want);
		assert_non_null(strstr((char *)a.body, row[i].says));
	}
	for (uint32_t i = 0; i < QP_MAX; i++)
		assert_null(atomic_load(&d->dp->qps->slot[i]));
	client_close(&c);
}

static void create_qp__largest_and_smallest(void **state)
{
	struct abi_create_qp in;
	struct abi_create_qp_reply out;
	struct client c;

	client_open(*state, &c);
	in = client_qp_request(client_pd(&c), client_cq(&c, ABI_NO_HANDLE));
	in.max_send_wr = WR_MAX;
	in.max_recv_wr = WR_MAX;
	in.max_send_sge = SGE_MAX;
	in.max_recv_sge = SGE_MAX;
	in.max_inline = INLINE_MAX;
	client_must(c.sock, ABI_CREATE_QP, &in, sizeof(in), &out, sizeof(out));
	assert_int_equal(out.sq_depth, WR_MAX);
	assert_int_equal(out.max_inline, INLINE_MAX);
	memset(&in.max_send_wr, 0, 5 * sizeof(uint32_t));
	client_must(c.sock, ABI_CREATE_QP, &in, sizeof(in), &out, sizeof(out));
	assert_int_equal(out.sq_depth, 1);
	assert_int_equal(out.rq_depth, 1);
	assert_int_equal(out.max_send_sge, 1);
	client_close(&c);
}

/* Workers share the QPs, doorbell slots are distinct, and lead to the QP. */
static void create_qp__placement(void **state)
{
	struct abi_create_qp_reply out[64];
	struct client c;
	uint32_t pd, cq;

	client_open(*state, &c);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	for (int i = 0; i < 64; i++) {
		out[i] = client_qp(&c, pd, cq);
		assert_int_equal(out[i].worker, QPN_WORKER(out[i].qpn));
		assert_int_equal(out[i].worker, (uint32_t)i % TEST_WORKERS);
		assert_true(out[i].doorbell < ABI_DB_MAX);
		for (int k = 0; k < i; k++)
			assert_false(out[k].worker == out[i].worker &&
				     out[k].doorbell == out[i].doorbell);
	}
	client_close(&c);
}

/* proves QPS-21 */
static void query_qp__state(void **state)
{
	struct abi_create_qp_reply qp;
	struct abi_qp_attr attr;
	struct abi_handle h;
	struct client c;
	struct answer a;

	client_open(*state, &c);
	qp = client_qp(&c, client_pd(&c), client_cq(&c, ABI_NO_HANDLE));
	h.handle = qp.handle;
	client_must(c.sock, ABI_QUERY_QP, &h, sizeof(h), &attr, sizeof(attr));
	assert_int_equal(attr.qp_state, ABI_QPS_RESET);
	/* As an error on the wire would. */
	atomic_load(&((struct test_daemon *)*state)->dp->qps->slot[QPN_SLOT(qp.qpn)])->state =
		ABI_QPS_ERR;
	client_must(c.sock, ABI_QUERY_QP, &h, sizeof(h), &attr, sizeof(attr));
	assert_int_equal(attr.qp_state, ABI_QPS_ERR);
	h.handle++;
	assert_int_equal(client_call(c.sock, ABI_QUERY_QP, &h, sizeof(h), -1, &a), -EINVAL);
	client_close(&c);
}

/* proves QPS-23 */
static void destroy_qp__is_gone(void **state)
{
	struct test_daemon *d = *state;
	struct abi_create_qp_reply qp;
	struct abi_handle h;
	struct client c;
	struct answer a;
	uint32_t pd, cq, last = 0;

	client_open(d, &c);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	for (int i = 0; i < 200; i++) {
		qp = client_qp(&c, pd, cq);
		assert_int_not_equal(QPN_SLOT(qp.qpn), QPN_SLOT(last));
		last = qp.qpn;
		h.handle = qp.handle;
		client_must(c.sock, ABI_DESTROY_QP, &h, sizeof(h), NULL, 0);
		assert_null(atomic_load(&d->dp->qps->slot[QPN_SLOT(qp.qpn)]));
	}
	assert_int_equal(client_call(c.sock, ABI_DESTROY_QP, &h, sizeof(h), -1, &a), -EINVAL);
	h.handle = pd;
	client_must(c.sock, ABI_DEALLOC_PD, &h, sizeof(h), NULL, 0); /* nothing holds it */
	client_close(&c);
}

/* proves QPS-22: what the worker had in hand of it is taken from it. */
static void destroy_qp__leaves_the_worker_nothing(void **state)
{
	struct test_daemon *d = *state;
	struct abi_create_qp_reply qp;
	struct abi_handle h;
	struct worker *w;
	struct client c;

	client_open(d, &c);
	qp = client_qp(&c, client_pd(&c), client_cq(&c, ABI_NO_HANDLE));
	w = d->dp->worker[qp.worker]; /* it does not run: we may */
	core_doorbell(&w->core, atomic_load(&d->dp->qps->slot[QPN_SLOT(qp.qpn)]), 0);
	assert_false(list_empty(&w->core.ready));
	h.handle = qp.handle;
	client_must(c.sock, ABI_DESTROY_QP, &h, sizeof(h), NULL, 0);
	assert_true(list_empty(&w->core.ready));
	client_close(&c);
}

/* proves QPS-22: a worker that is about to use the QP finishes first. */
static void destroy_qp__waits_for_the_workers(void **state)
{
	struct test_daemon *d = *state;
	struct abi_msg msg = {.type = ABI_DESTROY_QP, .seq = 77};
	struct abi_create_qp_reply qp;
	struct pollfd reply = {.events = POLLIN};
	struct abi_handle h;
	uint8_t bytes[sizeof(msg) + sizeof(h)];
	struct client c;
	struct answer a;
	int early;

	client_open(d, &c);
	qp = client_qp(&c, client_pd(&c), client_cq(&c, ABI_NO_HANDLE));
	h.handle = qp.handle;
	memcpy(bytes, &msg, sizeof(msg));
	memcpy(bytes + sizeof(msg), &h, sizeof(h));
	reply.fd = c.sock;
	rte_rcu_qsbr_thread_register(d->dp->qsbr, 1); /* we are worker 1, in the midst of a round */
	rte_rcu_qsbr_thread_online(d->dp->qsbr, 1);
	client_send(c.sock, bytes, sizeof(bytes), NULL, 0);
	early = poll(&reply, 1, 200);
	rte_rcu_qsbr_quiescent(d->dp->qsbr, 1);
	rte_rcu_qsbr_thread_offline(d->dp->qsbr, 1); /* before a failure ends us in its midst */
	rte_rcu_qsbr_thread_unregister(d->dp->qsbr, 1);
	assert_int_equal(early, 0);
	assert_true(client_receive(c.sock, &a));
	assert_int_equal(a.msg.seq, 77);
	assert_int_equal(a.msg.status, 0);
	client_close(&c);
}

/* The promises of limits.h, and the end of one session's share. */
static void create_qp__ten_thousand_and_the_quota(void **state)
{
	struct abi_create_qp in;
	struct client c, other;
	struct answer a;
	uint32_t n = 0;

	client_open(*state, &c);
	client_open(*state, &other);
	in = client_qp_request(client_pd(&c), client_cq(&c, ABI_NO_HANDLE));
	while (!client_call(c.sock, ABI_CREATE_QP, &in, sizeof(in), -1, &a)) {
		answer_close(&a);
		n++;
	}
	assert_int_equal(a.msg.status, -EDQUOT);
	assert_true(n >= 10000);
	assert_int_equal(n, SESSION_QP_MAX);
	client_qp(&other, client_pd(&other), client_cq(&other, ABI_NO_HANDLE));
	client_close(&c);
	client_close(&other);
}

/* Rings that fit the account, and rocid's own part of the QP, which does not: nothing stays. */
static void create_qp__quota_of_the_private_part(void **state)
{
	struct test_daemon *d = *state;
	uint32_t granted[2] = {0};
	struct abi_create_qp in;
	struct client c;
	struct answer a;

	daemon_stop(d);
	daemon_config(d);
	d->cfg.limits.session[CTL_QUEUES] = 1;
	daemon_run(d);
	client_open(d, &c);
	in = client_qp_request(client_pd(&c), client_cq(&c, ABI_NO_HANDLE));
	for (unsigned round = 0; round < 2; round++)
		for (in.max_send_wr = WR_MAX; in.max_send_wr; in.max_send_wr /= 2) {
			struct abi_create_qp_reply out;

			if (client_call(c.sock, ABI_CREATE_QP, &in, sizeof(in), -1, &a)) {
				assert_int_equal(a.msg.status, -EDQUOT);
				continue;
			}
			memcpy(&out, a.body, sizeof(out));
			answer_close(&a);
			granted[round]++;
			client_must(c.sock, ABI_DESTROY_QP, &out.handle, 4, NULL, 0);
		}
	assert_true(granted[0] > 0);
	assert_int_equal(granted[0], granted[1]);
	client_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(create_qp__layout, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(create_qp__refusals, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			create_qp__largest_and_smallest, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			create_qp__placement, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(query_qp__state, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			create_qp__ten_thousand_and_the_quota, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			create_qp__quota_of_the_private_part, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(destroy_qp__is_gone, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			create_qp__types_that_roce_has_not, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			destroy_qp__leaves_the_worker_nothing, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			destroy_qp__waits_for_the_workers, daemon_setup, daemon_teardown),
	};

	return cmocka_run_group_tests_name(
		"cmd_qp", tests, daemon_group_setup, daemon_group_teardown);
}
