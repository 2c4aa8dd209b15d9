/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"

static void create_qp__asks_and_tells(void **state)
{
	struct rig *r = *state;
	int user;
	struct roci_qp_init_attr init = {
		.size = sizeof(init),
		.user_data = &user,
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.cap = {5, 6, 1, 2, 48},
		.qp_type = ROCI_QPT_RC,
		.sq_sig_all = 7,
	};
	struct roci_qp *qp = roci_create_qp(r->pd, &init);
	const struct abi_create_qp *asked = &r->h->qp[1].asked;

	assert_non_null(qp);
	assert_int_equal(asked->type, ABI_QPT_RC);
	assert_int_equal(asked->max_send_wr, 5);
	assert_int_equal(asked->max_recv_wr, 6);
	assert_int_equal(asked->max_send_sge, 1);
	assert_int_equal(asked->max_recv_sge, 2);
	assert_int_equal(asked->max_inline, 48);
	assert_int_equal(asked->sq_sig_all, 1);
	assert_true(asked->srq == ABI_NO_HANDLE);
	assert_int_equal(init.cap.max_send_wr, 8);
	assert_int_equal(init.cap.max_recv_wr, 8);
	assert_ptr_equal(qp->user_data, &user);
	assert_int_equal(qp->qp_num, r->h->qp[1].told.qpn);
	assert_int_equal(roci_destroy_qp(qp), 0);
}

static void create_qp__refused_before_it_is_asked(void **state)
{
	struct rig *r = *state;
	struct roci_qp_init_attr good = {.size = sizeof(good),
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.cap = {1, 1, 1, 1, 0},
		.qp_type = ROCI_QPT_RC};
	struct roci_qp_init_attr bad = good;
	uint32_t before = r->h->calls[ABI_CREATE_QP];

	bad.size = 0;
	assert_null(roci_create_qp(r->pd, &bad));
	assert_int_equal(errno, EINVAL);
	bad = good;
	bad.send_cq = NULL;
	assert_null(roci_create_qp(r->pd, &bad));
	assert_int_equal(errno, EINVAL);
	bad = good;
	assert_int_equal(r->h->calls[ABI_CREATE_QP], before);
}

/* proves QPS-24, QPS-25 */
static void create_qp__other_types(void **state)
{
	static const int types[] = {5, 6, 7, 8, 255};
	struct rig *r = *state;
	struct roci_qp_init_attr init = {
		.size = sizeof(init), .send_cq = r->cq, .recv_cq = r->cq, .cap = {1, 1, 1, 1, 0}};
	uint32_t before = r->h->calls[ABI_CREATE_QP];

	assert_null(roci_create_qp(r->pd, &init)); /* 0, or forgotten */
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(roci_last_error(), "QP0"));
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		init.qp_type = (enum roci_qp_type)types[i];
		assert_null(roci_create_qp(r->pd, &init));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	assert_int_equal(r->h->calls[ABI_CREATE_QP], before);
}

static void create_qp__ring_outside_the_region(void **state)
{
	struct rig *r = *state;
	struct roci_qp_init_attr init = {.size = sizeof(init),
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.cap = {1, 1, 1, 1, 0},
		.qp_type = ROCI_QPT_RC};
	static const uint32_t lies[] = {1u << 20, 512 + 64 + 1, UINT32_MAX - 63, 512 + 128};

	for (unsigned i = 0; i < 4; i++) {
		r->h->lie_ring_off = lies[i];
		assert_null(roci_create_qp(r->pd, &init));
		assert_int_equal(errno, EPROTO);
	}
	assert_int_equal(r->h->calls[ABI_DESTROY_QP], 4);
	r->h->lie_ring_off = 0;
}

static void create_qp__no_receive_queue(void **state)
{
	struct rig *r = *state;
	struct roci_qp_init_attr init = {.size = sizeof(init),
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.cap = {1, 0, 1, 0, 0},
		.qp_type = ROCI_QPT_RC};
	struct roci_qp *qp = roci_create_qp(r->pd, &init);
	struct roci_recv_wr wr = {.num_sge = 0};

	assert_non_null(qp);
	rig_modify(qp, ROCI_QPS_RTS);
	assert_int_equal(roci_post_recv(qp, &wr, NULL), ENOMEM);
	assert_int_equal(roci_destroy_qp(qp), 0);
}

static void create_qp__many(void **state)
{
	struct rig *r = *state;
	struct roci_qp *qp[HARNESS_QPS - 1];
	struct roci_wc wc;

	for (unsigned i = 0; i < HARNESS_QPS - 1; i++)
		qp[i] = rig_qp(r, 1, 0);
	for (unsigned i = 1; i < HARNESS_QPS; i++) {
		harness_complete(r->h, 0, i % 3, i, i, ABI_WC_RECV, ABI_WC_SUCCESS);
		assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 1);
		assert_int_equal(wc.qp_num, qp[i - 1]->qp_num);
	}
	for (unsigned i = 0; i < HARNESS_QPS - 1; i++)
		assert_int_equal(roci_destroy_qp(qp[i]), 0);
}

static void modify_qp__every_attribute(void **state)
{
	struct rig *r = *state;
	struct roci_qp_attr a = {
		.size = sizeof(a),
		.qp_state = ROCI_QPS_RTS,
		.cur_qp_state = ROCI_QPS_RTR,
		.path_mtu = ROCI_MTU_2048,
		.qkey = 1,
		.rq_psn = 2,
		.sq_psn = 3,
		.dest_qp_num = 4,
		.qp_access_flags = ROCI_ACCESS_REMOTE_READ,
		.pkey_index = 5,
		.en_sqd_async_notify = 1,
		.max_rd_atomic = 6,
		.max_dest_rd_atomic = 7,
		.min_rnr_timer = 8,
		.port_num = 9,
		.timeout = 10,
		.retry_cnt = 11,
		.rnr_retry = 12,
		.ah_attr = {.grh = {.dgid = {.raw = {1, [15] = 2}},
				    .flow_label = 13,
				    .sgid_index = 14,
				    .hop_limit = 15,
				    .traffic_class = 16},
			.sl = 17,
			.is_global = 1,
			.port_num = 18},
	};
	const struct abi_qp_attr *m = &r->h->qp[0].modified;
	int mask = ROCI_QP_STATE | ROCI_QP_PATH_MTU | ROCI_QP_AV;

	assert_int_equal(roci_modify_qp(r->qp, &a, mask), 0);
	assert_int_equal(r->h->qp[0].modify_mask, mask);
	assert_int_equal(m->qp_state, ABI_QPS_RTS);
	assert_int_equal(m->cur_qp_state, ABI_QPS_RTR);
	assert_int_equal(m->path_mtu, 2048);
	assert_int_equal(m->qkey, 1);
	assert_int_equal(m->rq_psn, 2);
	assert_int_equal(m->sq_psn, 3);
	assert_int_equal(m->dest_qpn, 4);
	assert_int_equal(m->access_flags, ABI_ACCESS_REMOTE_READ);
	assert_int_equal(m->pkey_index, 5);
	assert_int_equal(m->en_sqd_async_notify, 1);
	assert_int_equal(m->max_rd_atomic, 6);
	assert_int_equal(m->max_dest_rd_atomic, 7);
	assert_int_equal(m->min_rnr_timer, 8);
	assert_int_equal(m->port, 9);
	assert_int_equal(m->timeout, 10);
	assert_int_equal(m->retry_cnt, 11);
	assert_int_equal(m->rnr_retry, 12);
	assert_memory_equal(m->ah.dgid, a.ah_attr.grh.dgid.raw, 16);
	assert_int_equal(m->ah.flow_label, 13);
	assert_int_equal(m->ah.sgid_index, 14);
	assert_int_equal(m->ah.hop_limit, 15);
	assert_int_equal(m->ah.traffic_class, 16);
	assert_int_equal(m->ah.sl, 17);
	assert_int_equal(m->ah.is_global, 1);
	assert_int_equal(m->ah.port, 18);
	for (int i = 0; i < 6; i++)
		assert_int_equal(m->ah.dmac[i], 0xff);
}

static void modify_qp__bad_values(void **state)
{
	struct rig *r = *state;
	struct roci_qp_attr a = {.size = sizeof(a)};
	uint32_t before = r->h->calls[ABI_MODIFY_QP];

	a.path_mtu = (enum roci_mtu)1024; /* bytes */
	assert_int_equal(roci_modify_qp(r->qp, &a, ROCI_QP_PATH_MTU), EINVAL);
	a.path_mtu = (enum roci_mtu)0;
	assert_int_equal(roci_modify_qp(r->qp, &a, ROCI_QP_PATH_MTU), EINVAL);
	a.qp_state = (enum roci_qp_state)259; /* would be cut to 3 */
	assert_int_equal(roci_modify_qp(r->qp, &a, ROCI_QP_STATE), EINVAL);
	assert_int_equal(roci_modify_qp(r->qp, &a, 1 << 25), EINVAL);
	a.size = 4;
	assert_int_equal(roci_modify_qp(r->qp, &a, 0), EINVAL);
	assert_int_equal(r->h->calls[ABI_MODIFY_QP], before);
}

static bool refuse(struct harness *h, const struct abi_msg *msg, const void *body, size_t len)
{
	if (msg->type != ABI_MODIFY_QP)
		return false;
	harness_reply(h, msg, -EINVAL, "no", 3, NULL, 0);
	return true;
}

/* proves QPS-14 */
static void modify_qp__refused_leaves_the_state(void **state)
{
	struct rig *r = *state;
	struct roci_send_wr wr = {.opcode = ROCI_WR_SEND};

	atomic_store(&r->h->hook, refuse);
	assert_int_equal(rig_modify(r->qp, ROCI_QPS_RESET), EINVAL);
	assert_int_equal(roci_post_send(r->qp, &wr, NULL), 0);
}

/* proves QPS-21 */
static void query_qp__tells_all(void **state)
{
	struct rig *r = *state;
	struct roci_qp_attr a = {.size = sizeof(a)};
	struct roci_qp_init_attr init = {.size = sizeof(init)};

	r->h->qp[0].attr = (struct abi_qp_attr){
		.qp_state = ABI_QPS_ERR,
		.path_mtu = 4096,
		.rq_psn = 2,
		.sq_psn = 3,
		.dest_qpn = 4,
		.access_flags = 2,
		.timeout = 14,
		.pkey_index = 15,
		.port = 16,
		.retry_cnt = 5,
		.rnr_retry = 6,
		.min_rnr_timer = 17,
		.max_rd_atomic = 18,
		.max_dest_rd_atomic = 19,
		.en_sqd_async_notify = 1,
		.sq_draining = 1,
		.ah = {.dgid = {7},
			.sgid_index = 8,
			.is_global = 1,
			.flow_label = 9,
			.hop_limit = 10,
			.traffic_class = 11,
			.sl = 12,
			.port = 13},
	};
	assert_int_equal(roci_query_qp(r->qp, &a, ROCI_QP_STATE, &init), 0);
	assert_int_equal(a.qp_state, ROCI_QPS_ERR);
	assert_int_equal(a.path_mtu, ROCI_MTU_4096);
	assert_int_equal(a.rq_psn, 2);
	assert_int_equal(a.sq_psn, 3);
	assert_int_equal(a.dest_qp_num, 4);
	assert_int_equal(a.qp_access_flags, ROCI_ACCESS_REMOTE_WRITE);
	assert_int_equal(a.timeout, 14);
	assert_int_equal(a.ah_attr.grh.dgid.raw[0], 7);
	assert_int_equal(a.ah_attr.grh.sgid_index, 8);
	assert_int_equal(a.pkey_index, 15);
	assert_int_equal(a.port_num, 16);
	assert_int_equal(a.retry_cnt, 5);
	assert_int_equal(a.rnr_retry, 6);
	assert_int_equal(a.min_rnr_timer, 17);
	assert_int_equal(a.max_rd_atomic, 18);
	assert_int_equal(a.max_dest_rd_atomic, 19);
	assert_int_equal(a.en_sqd_async_notify, 1);
	assert_int_equal(a.sq_draining, 1);
	assert_int_equal(a.ah_attr.grh.flow_label, 9);
	assert_int_equal(a.ah_attr.grh.hop_limit, 10);
	assert_int_equal(a.ah_attr.grh.traffic_class, 11);
	assert_int_equal(a.ah_attr.sl, 12);
	assert_int_equal(a.ah_attr.port_num, 13);
	assert_int_equal(a.ah_attr.is_global, 1);
	assert_int_equal(a.cap.max_send_wr, 4);
	assert_int_equal(a.cap.max_inline_data, 64);
	assert_ptr_equal(init.send_cq, r->cq);
	assert_int_equal(init.cap.max_recv_sge, 2);
	assert_int_equal(roci_query_qp(r->qp, NULL, 0, NULL), 0);
}

/* proves QPS-21: what happened without us counts from then on. */
static void query_qp__refreshes_the_state(void **state)
{
	struct rig *r = *state;
	struct roci_qp_attr a = {.size = sizeof(a)};
	struct roci_send_wr wr = {.opcode = ROCI_WR_SEND};

	r->h->qp[0].attr.qp_state = ABI_QPS_INIT;
	assert_int_equal(roci_query_qp(r->qp, &a, 0, NULL), 0);
	assert_int_equal(roci_post_send(r->qp, &wr, NULL), EINVAL);
}

static void dealloc_pd__and_destroy(void **state)
{
	struct rig *r = *state;
	uint32_t before = r->h->calls[ABI_DEALLOC_PD];
	struct roci_pd *pd = roci_alloc_pd(r->ctx);

	assert_int_equal(roci_dealloc_pd(pd), 0);
	assert_int_equal(r->h->calls[ABI_DEALLOC_PD], before + 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(create_qp__asks_and_tells),
		T(create_qp__refused_before_it_is_asked),
		T(create_qp__other_types),
		T(create_qp__ring_outside_the_region),
		T(create_qp__no_receive_queue),
		T(create_qp__many),
		T(modify_qp__every_attribute),
		T(modify_qp__bad_values),
		T(modify_qp__refused_leaves_the_state),
		T(query_qp__tells_all),
		T(query_qp__refreshes_the_state),
		T(dealloc_pd__and_destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
