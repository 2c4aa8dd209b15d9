/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"
#include <dirent.h>

#define QKEY 0x11111111
#define PSN  77

static struct ibv_context *open_first(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_device **again = ibv_get_device_list(NULL);
	struct ibv_context *c;

	CHECK(list && n == 1 && list[0] && !list[1]);
	/* librdmacm takes another object for another device. */
	CHECK(again && again[0] == list[0]);
	ibv_free_device_list(again);
	c = ibv_open_device(list[0]);
	CHECK(c);
	ibv_free_device_list(list);
	return c;
}

static uint64_t all_ops(enum ibv_qp_type type)
{
	const uint64_t send = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	const uint64_t uc = send | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;

	if (type == IBV_QPT_UD)
		return send;
	if (type == IBV_QPT_UC)
		return uc;
	return uc | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
	       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
	       IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE;
}

static void create_cq(struct end *e, const struct recipe *r)
{
	struct ibv_cq_init_attr_ex ex = {.cqe = 256,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};

	if (r->cq_ex) {
		ex.channel = e->channel = ibv_create_comp_channel(e->context);
		CHECK(e->channel);
		e->cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(e->context, &ex));
	} else {
		e->cq = ibv_create_cq(e->context, 256, e, NULL, 0);
	}
	CHECK(e->cq);
}

static void create_qp(struct end *e, const struct recipe *r)
{
	struct ibv_qp_init_attr_ex a = {
		.qp_context = e,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = r->depth ? r->depth : 64,
			.max_recv_wr = 64,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 128},
		.qp_type = r->type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = e->pd,
	};

	if (r->extended) {
		a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		a.send_ops_flags = all_ops(r->type);
	}
	e->qp = ibv_create_qp_ex(e->context, &a);
	CHECK(e->qp && e->qp->qp_context == e && e->qp->state == IBV_QPS_RESET);
	CHECK(a.cap.max_inline_data >= 128 && a.cap.max_send_sge >= 4);
	e->ex = ibv_qp_to_qp_ex(e->qp);
	CHECK(!e->ex == !r->extended);
}

static struct ibv_ah_attr path(struct end *e, const struct end *peer)
{
	struct ibv_ah_attr a = {
		.is_global = 1, .port_num = e->port, .grh = {.sgid_index = 0, .hop_limit = 1}};

	CHECK(!ibv_query_gid(peer->context, peer->port, 0, &a.grh.dgid));
	return a;
}

static void to_init(struct end *e, struct ibv_qp *qp, bool datagrams)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
		.port_num = e->port,
		.qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC};

	if (qp->qp_type == IBV_QPT_UC)
		a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	CHECK(!ibv_modify_qp(qp, &a,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			(datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
}

void to_rts(struct end *e, struct ibv_qp *qp, uint32_t peer_qpn, const struct end *peer)
{
	bool datagrams = qp->qp_type == IBV_QPT_UD;
	bool reliable = !datagrams && qp->qp_type != IBV_QPT_UC;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer_qpn,
		.rq_psn = PSN,
		.sq_psn = PSN,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = e->timeout ? e->timeout : 20,
		.retry_cnt = 7,
		.rnr_retry = 7};
	int rtr = IBV_QP_STATE, rts = IBV_QP_STATE | IBV_QP_SQ_PSN;

	to_init(e, qp, datagrams);
	if (!datagrams) {
		a.ah_attr = path(e, peer);
		rtr |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (reliable) {
		rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC;
	}
	CHECK(!ibv_modify_qp(qp, &a, rtr));
	a.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &a, rts));
	CHECK(qp->state == IBV_QPS_RTS);
}

void pair_open(struct end e[2], const struct recipe *r)
{
	memset(e, 0, 2 * sizeof(*e));
	for (int i = 0; i < 2; i++) {
		e[i].context = open_first();
		e[i].port = (uint8_t)(i + 1);
		e[i].pd = ibv_alloc_pd(e[i].context);
		CHECK(e[i].pd);
		create_cq(&e[i], r);
		e[i].buf = calloc(1, BUF_SIZE);
		CHECK(e[i].buf);
		e[i].mr = ibv_reg_mr(e[i].pd, e[i].buf, BUF_SIZE, ALL_ACCESS);
		CHECK(e[i].mr && e[i].mr->addr == e[i].buf);
		create_qp(&e[i], r);
	}
	for (int i = 0; i < 2; i++)
		to_rts(&e[i], e[i].qp, e[!i].qp->qp_num, &e[!i]);
}

void pair_close(struct end e[2])
{
	for (int i = 0; i < 2; i++) {
		CHECK(!ibv_destroy_qp(e[i].qp));
		CHECK(!ibv_destroy_cq(e[i].cq));
		CHECK(!e[i].channel || !ibv_destroy_comp_channel(e[i].channel));
		CHECK(!ibv_dereg_mr(e[i].mr));
		CHECK(!ibv_dealloc_pd(e[i].pd));
		CHECK(!ibv_close_device(e[i].context));
		free(e[i].buf);
	}
}

struct ibv_wc poll_one(struct end *e)
{
	struct ibv_wc wc = {0};
	int n;

	while ((n = ibv_poll_cq(e->cq, 1, &wc)) == 0)
		;
	CHECK(n == 1);
	if (wc.status != IBV_WC_SUCCESS)
		fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
	CHECK(wc.status == IBV_WC_SUCCESS);
	return wc;
}

void post_recv(struct end *e, uint64_t wr_id)
{
	struct ibv_sge sge = {.addr = (uintptr_t)e->buf, .length = BUF_SIZE, .lkey = e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	CHECK(!ibv_post_recv(e->qp, &wr, &bad));
}

struct ibv_ah *address(struct end *e, const struct end *peer)
{
	struct ibv_ah_attr a = path(e, peer);
	struct ibv_ah *ah = ibv_create_ah(e->pd, &a);

	CHECK(ah);
	return ah;
}

unsigned count_entries(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}
