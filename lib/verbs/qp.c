/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: creation, attributes, destruction. */
#include <stdlib.h>
#include <string.h>
#include "verbs.h"

_Static_assert((int)IBV_QPT_RC == ROCI_QPT_RC && (int)IBV_QPT_UD == ROCI_QPT_UD &&
		       (int)IBV_QPT_XRC_SEND == ROCI_QPT_XRC_SEND &&
		       (int)IBV_QPT_XRC_RECV == ROCI_QPT_XRC_RECV,
	"enum ibv_qp_type");
_Static_assert(
	(int)IBV_QPS_SQE == ROCI_QPS_SQE && (int)IBV_QPS_ERR == ROCI_QPS_ERR, "enum ibv_qp_state");
_Static_assert((int)IBV_QP_AV == ROCI_QP_AV && (int)IBV_QP_SQ_PSN == ROCI_QP_SQ_PSN &&
		       (int)IBV_QP_MAX_DEST_RD_ATOMIC == ROCI_QP_MAX_DEST_RD_ATOMIC &&
		       (int)IBV_QP_CAP == ROCI_QP_CAP && (int)IBV_QP_DEST_QPN == ROCI_QP_DEST_QPN,
	"enum ibv_qp_attr_mask");

#define QP_ACCESS                                                                    \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		IBV_ACCESS_REMOTE_ATOMIC | ROCI_ACCESS_FLUSH_GLOBAL |                \
		ROCI_ACCESS_FLUSH_PERSISTENT)

#define SEND_OPS_SEND (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define SEND_OPS_UC                                                                       \
	(SEND_OPS_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
		IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV)
#define SEND_OPS_RC                                                                   \
	(SEND_OPS_UC | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
		IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV |  \
		IBV_QP_EX_WITH_ATOMIC_WRITE)

static uint64_t send_ops_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return SEND_OPS_RC;
	case IBV_QPT_UC:
		return SEND_OPS_UC;
	case IBV_QPT_UD:
		return SEND_OPS_SEND;
	default:
		return 0;
	}
}

static int check(struct ibv_context *c, const struct ibv_qp_init_attr_ex *a)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	if (a->comp_mask & ~known)
		return refused_as(c, "ibv_create_qp_ex", EOPNOTSUPP,
			"comp_mask %#x requests TSO, RSS or something unknown, which is not "
			"supported: leave it out",
			a->comp_mask & ~known);
	if (a->qp_type == IBV_QPT_RAW_PACKET || a->qp_type == IBV_QPT_DRIVER)
		return refused_as(c, "ibv_create_qp", EOPNOTSUPP,
			"QPs of type %d are not supported: use RC, UC, UD or XRC", (int)a->qp_type);
	if (a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && a->create_flags)
		return refused_as(c, "ibv_create_qp_ex", EOPNOTSUPP,
			"create_flags %#x are not supported: leave them out", a->create_flags);
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
		a->send_ops_flags & ~send_ops_of(a->qp_type))
		return refused_as(c, "ibv_create_qp_ex", EOPNOTSUPP,
			"send_ops_flags %#llx has operations that QPs of this type do not support: "
			"leave them out",
			(unsigned long long)a->send_ops_flags);
	if (a->qp_type == IBV_QPT_XRC_RECV)
		return a->comp_mask & IBV_QP_INIT_ATTR_XRCD && a->xrcd ? 0 : EINVAL;
	return a->comp_mask & IBV_QP_INIT_ATTR_PD && a->pd ? 0 : EINVAL;
}

static struct roci_cq *roci_cq_of(struct ibv_cq *cq)
{
	return cq ? cq_of(cq)->roci : NULL;
}

static struct roci_qp *make(struct ibv_context *c, struct qp *qp, struct ibv_qp_init_attr_ex *a)
{
	struct roci_qp_init_attr r = {
		.size = sizeof(r),
		.user_data = qp,
		.send_cq = roci_cq_of(a->send_cq),
		.recv_cq = roci_cq_of(a->recv_cq),
		.cap =
			{
				.max_send_wr = a->cap.max_send_wr ? a->cap.max_send_wr : 1,
				.max_recv_wr = a->cap.max_recv_wr,
				.max_send_sge = a->cap.max_send_sge,
				.max_recv_sge = a->cap.max_recv_sge,
				.max_inline_data = a->cap.max_inline_data,
			},
		.qp_type = (enum roci_qp_type)a->qp_type,
		.sq_sig_all = a->sq_sig_all,
		.srq = a->srq ? srq_of(a->srq)->roci : NULL,
		.xrcd = a->comp_mask & IBV_QP_INIT_ATTR_XRCD && a->xrcd
				? ((struct xrcd *)a->xrcd)->roci
				: NULL,
	};
	struct roci_pd *pd = a->qp_type == IBV_QPT_XRC_RECV ? roci_no_pd(context_of(c)->roci)
							    : pd_of(a->pd)->roci;
	struct roci_qp *roci = roci_create_qp(pd, &r);

	if (!roci)
		return refused_null(c, "ibv_create_qp", errno);
	a->cap = (struct ibv_qp_cap){
		.max_send_wr = r.cap.max_send_wr,
		.max_recv_wr = a->srq ? 0 : r.cap.max_recv_wr,
		.max_send_sge = r.cap.max_send_sge,
		.max_recv_sge = r.cap.max_recv_sge,
		.max_inline_data = r.cap.max_inline_data,
	};
	return roci;
}

static void set_up(struct ibv_context *c, struct qp *qp, const struct ibv_qp_init_attr_ex *a)
{
	qp->pub.context = c;
	qp->pub.qp_context = a->qp_context;
	qp->pub.pd = a->comp_mask & IBV_QP_INIT_ATTR_PD ? a->pd : NULL;
	qp->pub.send_cq = a->send_cq;
	qp->pub.recv_cq = a->recv_cq;
	qp->pub.srq = a->srq;
	qp->pub.handle = qp->roci->qp_num;
	qp->pub.qp_num = qp->roci->qp_num;
	qp->pub.state = IBV_QPS_RESET;
	qp->pub.qp_type = a->qp_type;
	pthread_mutex_init(&qp->pub.mutex, NULL);
	pthread_cond_init(&qp->pub.cond, NULL);
	qp->sq_sig_all = a->sq_sig_all;
	qp->ctl = a->sq_sig_all ? ABI_WQE_SIGNALED : 0;
	qp->cap = a->cap;
	if (a->qp_type == IBV_QPT_XRC_RECV)
		return;
	if (a->qp_type == IBV_QPT_UD && a->recv_cq)
		atomic_store(&cq_of(a->recv_cq)->datagrams, true);
	roci_build_init(qp->roci, &qp->builder);
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		qp->extended = true;
		qp_ex_set_ops(&qp->ex, a->send_ops_flags);
	}
}

struct ibv_qp *verbs_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *a)
{
	int err = check(c, a);
	struct qp *qp;

	if (err) {
		errno = err;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (qp)
		qp->roci = make(c, qp, a);
	if (!qp || !qp->roci) {
		free(qp);
		return NULL;
	}
	set_up(c, qp, a);
	object_enter(c, OBJECT_QP, &qp->object);
	return &qp->pub;
}

VERBS_API struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex a = {0};
	struct ibv_qp *qp;

	memcpy(&a, attr, offsetof(struct ibv_qp_init_attr_ex, comp_mask)); /* without its padding */
	a.comp_mask = IBV_QP_INIT_ATTR_PD;
	a.pd = pd;
	qp = verbs_create_qp_ex(pd->context, &a);
	if (qp)
		attr->cap = a.cap;
	return qp;
}

VERBS_API struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return qp_of(qp)->extended ? &qp_of(qp)->ex : NULL;
}

struct ibv_qp *verbs_open_qp(struct ibv_context *c, struct ibv_qp_open_attr *attr)
{
	(void)attr;
	errno = refused_as(c, "ibv_open_qp", EOPNOTSUPP,
		"XRC targets cannot be shared: use the one that ibv_create_qp_ex() returned");
	return NULL;
}

VERBS_API int ibv_destroy_qp(struct ibv_qp *p)
{
	struct qp *qp = qp_of(p);
	int err = roci_destroy_qp(qp->roci);

	if (err)
		return explain("ibv_destroy_qp", err);
	object_leave(p->context, &qp->object);
	pthread_cond_destroy(&p->cond);
	pthread_mutex_destroy(&p->mutex);
	free(qp);
	return 0;
}

/* --- attributes ------------------------------------------------------------------------- */

void ah_attr_to_roci(const struct ibv_ah_attr *a, struct roci_ah_attr *r)
{
	*r = (struct roci_ah_attr){
		.grh =
			{
				.flow_label = a->grh.flow_label,
				.sgid_index = a->grh.sgid_index,
				.hop_limit = a->grh.hop_limit,
				.traffic_class = a->grh.traffic_class,
			},
		.sl = a->sl,
		.is_global = a->is_global,
		.port_num = a->port_num,
	};
	memcpy(&r->grh.dgid, &a->grh.dgid, sizeof(r->grh.dgid));
}

void ah_attr_from_roci(const struct roci_ah_attr *r, struct ibv_ah_attr *a)
{
	*a = (struct ibv_ah_attr){
		.grh =
			{
				.flow_label = r->grh.flow_label,
				.sgid_index = r->grh.sgid_index,
				.hop_limit = r->grh.hop_limit,
				.traffic_class = r->grh.traffic_class,
			},
		.sl = r->sl,
		.is_global = r->is_global,
		.port_num = r->port_num,
	};
	memcpy(&a->grh.dgid, &r->grh.dgid, sizeof(a->grh.dgid));
}

static void attr_to_roci(const struct ibv_qp_attr *a, struct roci_qp_attr *r, int mask)
{
	*r = (struct roci_qp_attr){
		.size = sizeof(*r),
		.qp_state = (enum roci_qp_state)a->qp_state,
		.cur_qp_state = (enum roci_qp_state)a->cur_qp_state,
		.path_mtu = (enum roci_mtu)a->path_mtu,
		.qkey = a->qkey,
		.rq_psn = a->rq_psn & 0xFFFFFF,
		.sq_psn = a->sq_psn & 0xFFFFFF,
		.dest_qp_num = a->dest_qp_num,
		.qp_access_flags = (int)(a->qp_access_flags & QP_ACCESS),
		.pkey_index = a->pkey_index,
		.en_sqd_async_notify = a->en_sqd_async_notify,
		.max_rd_atomic = a->max_rd_atomic,
		.max_dest_rd_atomic = a->max_dest_rd_atomic,
		.min_rnr_timer = a->min_rnr_timer,
		.port_num = a->port_num,
		.timeout = a->timeout,
		.retry_cnt = a->retry_cnt,
		.rnr_retry = a->rnr_retry,
	};
	if (mask & IBV_QP_AV)
		ah_attr_to_roci(&a->ah_attr, &r->ah_attr);
}

/* Accepts attributes that a RoCE port lacks if they have the only possible value. As in Linux,
 * attributes that an XRC QP lacks are ignored, because programs use one mask for both ends. */
static int strip(const struct ibv_qp *p, const struct ibv_qp_attr *a, int *mask)
{
	enum ibv_qp_type type = p->qp_type;

	if (type == IBV_QPT_XRC_SEND)
		*mask &= ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (type == IBV_QPT_XRC_RECV)
		*mask &= ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	if (*mask & IBV_QP_PATH_MIG_STATE && a->path_mig_state == IBV_MIG_MIGRATED)
		*mask &= ~IBV_QP_PATH_MIG_STATE;
	if (*mask & (IBV_QP_PATH_MIG_STATE | IBV_QP_ALT_PATH))
		return refused_qp(p, "ibv_modify_qp", EINVAL,
			"automatic path migration is not supported: leave out IBV_QP_ALT_PATH and "
			"IBV_QP_PATH_MIG_STATE");
	if (*mask & IBV_QP_RATE_LIMIT)
		return refused_qp(p, "ibv_modify_qp", EOPNOTSUPP,
			"IBV_QP_RATE_LIMIT is for raw packets, which are not supported: use "
			"ibv_modify_qp_rate_limit()");
	return 0;
}

VERBS_API int ibv_modify_qp(struct ibv_qp *p, struct ibv_qp_attr *attr, int mask)
{
	struct roci_qp_attr r;
	int err = strip(p, attr, &mask);

	if (err)
		return err;
	attr_to_roci(attr, &r, mask);
	err = roci_modify_qp(qp_of(p)->roci, &r, mask);
	if (!err && mask & IBV_QP_STATE)
		p->state = attr->qp_state;
	return refused_qp(p, "ibv_modify_qp", err, "%s", roci_last_error());
}

int verbs_modify_qp_rate_limit(struct ibv_qp *p, struct ibv_qp_rate_limit_attr *a)
{
	struct roci_rate_limit r = {.size = sizeof(r),
		.kbps = a->rate_limit,
		.burst = a->max_burst_sz,
		.packet = a->typical_pkt_sz};
	int err;

	if (a->comp_mask || (!a->rate_limit && (a->max_burst_sz || a->typical_pkt_sz)))
		return refused_qp(p, "ibv_modify_qp_rate_limit", EINVAL,
			"comp_mask must be 0; without a rate_limit, max_burst_sz and "
			"typical_pkt_sz must be 0, too");
	err = roci_limit_qp(qp_of(p)->roci, &r);
	return refused_qp(p, "ibv_modify_qp_rate_limit", err, "%s", roci_last_error());
}

static void attr_from_roci(const struct roci_qp_attr *r, struct ibv_qp_attr *a)
{
	*a = (struct ibv_qp_attr){
		.qp_state = (enum ibv_qp_state)r->qp_state,
		.cur_qp_state = (enum ibv_qp_state)r->cur_qp_state,
		.path_mtu = (enum ibv_mtu)r->path_mtu,
		.path_mig_state = IBV_MIG_MIGRATED,
		.qkey = r->qkey,
		.rq_psn = r->rq_psn,
		.sq_psn = r->sq_psn,
		.dest_qp_num = r->dest_qp_num,
		.qp_access_flags = (unsigned)r->qp_access_flags,
		.pkey_index = r->pkey_index,
		.en_sqd_async_notify = r->en_sqd_async_notify,
		.sq_draining = r->sq_draining,
		.max_rd_atomic = r->max_rd_atomic,
		.max_dest_rd_atomic = r->max_dest_rd_atomic,
		.min_rnr_timer = r->min_rnr_timer,
		.port_num = r->port_num,
		.timeout = r->timeout,
		.retry_cnt = r->retry_cnt,
		.rnr_retry = r->rnr_retry,
	};
	ah_attr_from_roci(&r->ah_attr, &a->ah_attr);
}

VERBS_API int ibv_query_qp(
	struct ibv_qp *p, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init_attr)
{
	struct qp *qp = qp_of(p);
	struct roci_qp_attr r = {.size = sizeof(r)};
	int err = roci_query_qp(qp->roci, &r, mask, NULL);

	if (err)
		return explain("ibv_query_qp", err);
	attr_from_roci(&r, attr);
	attr->cap = qp->cap;
	p->state = attr->qp_state;
	*init_attr = (struct ibv_qp_init_attr){
		.qp_context = p->qp_context,
		.send_cq = p->send_cq,
		.recv_cq = p->recv_cq,
		.srq = p->srq,
		.cap = qp->cap,
		.qp_type = p->qp_type,
		.sq_sig_all = qp->sq_sig_all,
	};
	return 0;
}

/* Payload is placed in ascending order, but programs must not rely on it. */
VERBS_API int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp, (void)op, (void)flags;
	return 0;
}
