/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: create, modify, query, destroy. rocid enforces the rules for states. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include "client.h"

_Static_assert((int)ROCI_QPT_RC == ABI_QPT_RC && (int)ROCI_QPT_UC == ABI_QPT_UC &&
		       (int)ROCI_QPT_UD == ABI_QPT_UD && (int)ROCI_QPT_GSI == ABI_QPT_GSI &&
		       (int)ROCI_QPT_XRC_SEND == ABI_QPT_XRC_SEND &&
		       (int)ROCI_QPT_XRC_RECV == ABI_QPT_XRC_RECV,
	"enum roci_qp_type");
_Static_assert(
	(int)ROCI_QPS_RTR == ABI_QPS_RTR && (int)ROCI_QPS_ERR == ABI_QPS_ERR, "enum roci_qp_state");
_Static_assert((int)ROCI_QP_STATE == ABI_QP_STATE && (int)ROCI_QP_AV == ABI_QP_AV &&
		       (int)ROCI_QP_RQ_PSN == ABI_QP_RQ_PSN &&
		       (int)ROCI_QP_MIN_RNR_TIMER == ABI_QP_MIN_RNR_TIMER &&
		       (int)ROCI_QP_SQ_PSN == ABI_QP_SQ_PSN &&
		       (int)ROCI_QP_DEST_QPN == ABI_QP_DEST_QPN,
	"enum roci_qp_attr_mask");

#define MASK_KNOWN                                                                                 \
	(ROCI_QP_STATE | ROCI_QP_CUR_STATE | ROCI_QP_EN_SQD_ASYNC_NOTIFY | ROCI_QP_ACCESS_FLAGS |  \
		ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_QKEY | ROCI_QP_AV | ROCI_QP_PATH_MTU | \
		ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY | ROCI_QP_RQ_PSN |         \
		ROCI_QP_MAX_QP_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER | ROCI_QP_SQ_PSN |                \
		ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_DEST_QPN)

/* --- create ----------------------------------------------------------------------------- */

static bool ring_fits(const struct region *r, uint32_t queue_off, uint32_t ring_off, uint32_t depth,
	uint32_t stride, uint64_t entry)
{
	if (!region_has(r, queue_off, sizeof(struct abi_queue), ABI_LINE))
		return false;
	if (depth == 0)
		return true; /* such a queue is always full */
	return (depth & (depth - 1)) == 0 && stride >= entry && stride % ABI_ENTRY == 0 &&
	       region_has(r, ring_off, (uint64_t)depth * stride, ABI_ENTRY);
}

static bool reply_fits(
	const struct context *ctx, const struct region *r, const struct abi_create_qp_reply *p)
{
	uint64_t send = (uint64_t)p->max_send_sge * sizeof(struct abi_sge);
	uint64_t recv = (uint64_t)p->max_recv_sge * sizeof(struct abi_sge);

	if (send < p->max_inline)
		send = p->max_inline;
	return p->worker < ctx->workers && p->doorbell < ABI_DB_MAX &&
	       p->max_send_sge <= UINT16_MAX && p->max_inline <= UINT16_MAX &&
	       p->max_recv_sge <= UINT16_MAX &&
	       ring_fits(r, p->sq_queue_off, p->sq_ring_off, p->sq_depth, p->sq_stride,
		       ABI_WQE_HDR + send) &&
	       ring_fits(r, p->rq_queue_off, p->rq_ring_off, p->rq_depth, p->rq_stride,
		       ABI_RECV_WQE_HDR + recv);
}

static void queue_init(struct queue *q, const struct region *r, uint32_t queue_off,
	uint32_t ring_off, uint32_t depth, uint32_t stride, uint32_t max_sge)
{
	spin_init(&q->lock);
	q->shared = (struct abi_queue *)(r->base + queue_off);
	q->entries = r->base + ring_off;
	q->depth = depth;
	q->stride = stride;
	q->max_sge = max_sge;
}

static void set_up(struct qp *qp, const struct abi_create_qp_reply *r)
{
	qp->handle = r->handle;
	qp->number = r->qpn;
	qp->pub.qp_num = qp->pub.qp_type == ROCI_QPT_GSI ? 1 : r->qpn;
	qp->max_inline = r->max_inline;
	qp->slot = r->doorbell;
	qp->worker = r->worker;
	qp->cap = (struct roci_qp_cap){
		.max_send_wr = r->sq_depth,
		.max_recv_wr = r->rq_depth,
		.max_send_sge = r->max_send_sge,
		.max_recv_sge = r->max_recv_sge,
		.max_inline_data = r->max_inline,
	};
	queue_init(&qp->sq, &qp->region, r->sq_queue_off, r->sq_ring_off, r->sq_depth, r->sq_stride,
		r->max_send_sge);
	queue_init(&qp->rq, &qp->region, r->rq_queue_off, r->rq_ring_off, r->rq_depth, r->rq_stride,
		r->max_recv_sge);
	atomic_init(&qp->state, ROCI_QPS_RESET);
}

/* Creates the QP in rocid and maps its rings. */
static int make_qp(struct context *ctx, struct qp *qp, const struct abi_create_qp *body)
{
	struct abi_create_qp_reply r;
	int fd;
	int err = call_for_fd(ctx, ABI_CREATE_QP, body, sizeof(*body), &r, sizeof(r), &fd);

	if (err)
		return err;
	err = region_map(&qp->region, fd, r.region_size);
	if (!err && !reply_fits(ctx, &qp->region, &r))
		err = fail_const(EPROTO, "rocid's reply describes an invalid queue pair: use rocid "
					 "and libroci of the same version");
	if (err) {
		call_destroy(ctx, ABI_DESTROY_QP, r.handle);
		return err;
	}
	set_up(qp, &r);
	return 0;
}

/* Adds @p step to the number of users of the QP's CQs and SRQ; context.lock is held. */
static void use_parts(struct qp *qp, int step)
{
	if (qp->pub.send_cq) {
		((struct cq *)qp->pub.send_cq)->users += (uint32_t)step;
		((struct cq *)qp->pub.recv_cq)->users += (uint32_t)step;
	}
	if (qp->pub.srq)
		((struct srq *)qp->pub.srq)->users += (uint32_t)step;
}

/* Adds the QP to the maps through which completions and events find it. */
static int enter(struct context *ctx, struct qp *qp)
{
	int err = cq_attach_qp(qp);
	bool known;

	if (err)
		return err;
	pthread_mutex_lock(&ctx->lock);
	known = map_put(&ctx->qps, &qp->by_handle, qp->handle);
	if (known) {
		use_parts(qp, 1);
	}
	pthread_mutex_unlock(&ctx->lock);
	if (known)
		return 0;
	cq_detach_qp(qp);
	return fail_const(ENOMEM, "out of memory for a queue pair: free some memory and try again");
}

static void free_qp(struct qp *qp)
{
	region_unmap(&qp->region);
	pthread_mutex_destroy(&qp->modify_lock);
	free(qp);
}

/* XRC-02: an initiator has one CQ, a target none. */
static int normalize_xrc(struct roci_qp_init_attr *a)
{
	if (a->qp_type == ROCI_QPT_XRC_SEND)
		a->recv_cq = a->send_cq;
	if (a->qp_type != ROCI_QPT_XRC_RECV)
		return 0;
	a->send_cq = a->recv_cq = NULL;
	return a->xrcd ? 0 : fail_const(EINVAL, "a QP of type XRC_RECV needs an XRC domain");
}

static int check_init(const struct roci_pd *pd, const struct roci_qp_init_attr *a)
{
	if (a->qp_type == ROCI_QPT_XRC_RECV)
		return a->xrcd->context == pd->context
			       ? 0
			       : fail_const(EINVAL,
					 "the XRC domain of a QP must belong to its PD's "
					 "context");
	if (!a->send_cq || !a->recv_cq)
		return fail_const(
			EINVAL, "a QP needs a send_cq and a recv_cq; they may be the same");
	if (a->send_cq->context != pd->context || a->recv_cq->context != pd->context)
		return fail_const(EINVAL, "the CQs of a QP must belong to its PD's context");
	if (a->srq && a->srq->context != pd->context)
		return fail_const(EINVAL, "the SRQ of a QP must belong to its PD's context");
	if ((uint32_t)a->qp_type == ABI_QPT_SMI) /* QPS-24; perhaps qp_type was never set */
		return fail_const(EINVAL,
			"qp_type is 0, the type of QP0, which does not exist on RoCE: set "
			"ROCI_QPT_RC");
	if (a->qp_type != ROCI_QPT_RC && a->qp_type != ROCI_QPT_UC && a->qp_type != ROCI_QPT_UD &&
		a->qp_type != ROCI_QPT_GSI && a->qp_type != ROCI_QPT_XRC_SEND) /* QPS-25 */
		return fail(EOPNOTSUPP,
			"QP type %d is not supported: use ROCI_QPT_RC, ROCI_QPT_UC, ROCI_QPT_UD, "
			"or an XRC type",
			a->qp_type);
	return 0;
}

/* The opcodes of @p type, a bit each, that are plain where a request may have an SGE. */
static uint8_t plain_ops(enum roci_qp_type type, uint32_t max_sge)
{
	uint8_t both = 1u << ROCI_WR_SEND | 1u << ROCI_WR_RDMA_WRITE;

	if (!max_sge)
		return 0;
	if (type == ROCI_QPT_RC)
		return both | 1u << ROCI_WR_RDMA_READ;
	return type == ROCI_QPT_UC ? both : 0;
}

static int create_qp(struct roci_pd *pd, const struct roci_qp_init_attr *a, struct qp *qp)
{
	struct context *ctx = context_of(pd->context);
	struct abi_create_qp body = {
		.pd = ((struct pd *)pd)->handle,
		.type = a->qp_type,
		.send_cq = a->send_cq ? ((struct cq *)a->send_cq)->handle : ABI_NO_HANDLE,
		.recv_cq = a->recv_cq ? ((struct cq *)a->recv_cq)->handle : ABI_NO_HANDLE,
		.srq = a->srq ? ((struct srq *)a->srq)->handle : ABI_NO_HANDLE,
		.max_send_wr = a->cap.max_send_wr,
		.max_recv_wr = a->cap.max_recv_wr,
		.max_send_sge = a->cap.max_send_sge,
		.max_recv_sge = a->cap.max_recv_sge,
		.max_inline = a->cap.max_inline_data,
		.sq_sig_all = a->sq_sig_all != 0,
		.xrcd = a->xrcd ? ((struct xrcd *)a->xrcd)->handle : ABI_NO_HANDLE,
		.port = a->port_num ? a->port_num : 1,
	};
	int err;

	qp->pub = (struct roci_qp){
		.context = pd->context,
		.pd = pd,
		.send_cq = a->send_cq,
		.recv_cq = a->recv_cq,
		.user_data = a->user_data,
		.qp_type = a->qp_type,
		.srq = a->srq,
	};
	qp->datagram = abi_is_datagram(a->qp_type);
	qp->sq_sig_all = a->sq_sig_all != 0;
	pthread_mutex_init(&qp->modify_lock, NULL);
	err = make_qp(ctx, qp, &body);
	if (err)
		return err;
	qp->plain = plain_ops(a->qp_type, qp->sq.max_sge);
	err = enter(ctx, qp);
	if (err)
		call_destroy(ctx, ABI_DESTROY_QP, qp->handle);
	return err;
}

struct roci_qp *roci_create_qp(struct roci_pd *pd, struct roci_qp_init_attr *attr)
{
	struct roci_qp_init_attr a;
	struct qp *qp;
	int err = opts_read(&a, sizeof(a), attr, "roci_qp_init_attr");

	if (!err)
		err = normalize_xrc(&a);
	if (!err)
		err = check_init(pd, &a);
	if (err) {
		errno = err;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	err = qp ? create_qp(pd, &a, qp)
		 : fail_const(ENOMEM,
			   "out of memory for a queue pair: free some memory and try again");
	if (err) {
		if (qp)
			free_qp(qp);
		errno = err;
		return NULL;
	}
	a.cap = qp->cap;
	opts_write(attr, &a, sizeof(a), "roci_qp_init_attr");
	return &qp->pub;
}

int roci_destroy_qp(struct roci_qp *q)
{
	struct qp *qp = qp_of(q);
	struct context *ctx = context_of(q->context);
	int err = call_destroy(ctx, ABI_DESTROY_QP, qp->handle);

	if (err)
		return err;
	cq_forget_qp(qp);
	cq_detach_qp(qp);
	pthread_mutex_lock(&ctx->lock);
	map_remove(&ctx->qps, &qp->by_handle);
	use_parts(qp, -1);
	events_wait(ctx, &qp->events);
	pthread_mutex_unlock(&ctx->lock);
	free_qp(qp);
	return 0;
}

/* --- attributes ------------------------------------------------------------------------- */

void ah_to_abi(const struct roci_ah_attr *a, struct abi_ah_attr *r)
{
	*r = (struct abi_ah_attr){
		.sgid_index = a->grh.sgid_index,
		.traffic_class = a->grh.traffic_class,
		.hop_limit = a->grh.hop_limit,
		.sl = a->sl,
		.port = a->port_num,
		.is_global = a->is_global,
		.flow_label = a->grh.flow_label,
	};
	memcpy(r->dgid, a->grh.dgid.raw, sizeof(r->dgid));
	memset(r->dmac, 0xff, sizeof(r->dmac));
}

static void to_abi(const struct roci_qp_attr *a, struct abi_qp_attr *r)
{
	*r = (struct abi_qp_attr){
		.qp_state = (uint8_t)a->qp_state,
		.cur_qp_state = (uint8_t)a->cur_qp_state,
		.en_sqd_async_notify = a->en_sqd_async_notify,
		.access_flags = (uint32_t)a->qp_access_flags,
		.path_mtu = roci_mtu_bytes(a->path_mtu),
		.qkey = a->qkey,
		.rq_psn = a->rq_psn,
		.sq_psn = a->sq_psn,
		.dest_qpn = a->dest_qp_num,
		.pkey_index = a->pkey_index,
		.port = a->port_num,
		.timeout = a->timeout,
		.retry_cnt = a->retry_cnt,
		.rnr_retry = a->rnr_retry,
		.min_rnr_timer = a->min_rnr_timer,
		.max_rd_atomic = a->max_rd_atomic,
		.max_dest_rd_atomic = a->max_dest_rd_atomic,
	};
	ah_to_abi(&a->ah_attr, &r->ah);
}

static void from_abi(const struct abi_qp_attr *r, struct roci_qp_attr *a)
{
	*a = (struct roci_qp_attr){
		.qp_state = (enum roci_qp_state)r->qp_state,
		.cur_qp_state = (enum roci_qp_state)r->cur_qp_state,
		.path_mtu = (enum roci_mtu)roci_mtu_of_bytes(r->path_mtu),
		.qkey = r->qkey,
		.rq_psn = r->rq_psn,
		.sq_psn = r->sq_psn,
		.dest_qp_num = r->dest_qpn,
		.qp_access_flags = (int)r->access_flags,
		.pkey_index = r->pkey_index,
		.en_sqd_async_notify = r->en_sqd_async_notify,
		.sq_draining = r->sq_draining,
		.max_rd_atomic = r->max_rd_atomic,
		.max_dest_rd_atomic = r->max_dest_rd_atomic,
		.min_rnr_timer = r->min_rnr_timer,
		.port_num = r->port,
		.timeout = r->timeout,
		.retry_cnt = r->retry_cnt,
		.rnr_retry = r->rnr_retry,
		.ah_attr =
			{
				.grh =
					{
						.flow_label = r->ah.flow_label,
						.sgid_index = r->ah.sgid_index,
						.hop_limit = r->ah.hop_limit,
						.traffic_class = r->ah.traffic_class,
					},
				.sl = r->ah.sl,
				.is_global = r->ah.is_global,
				.port_num = r->ah.port,
			},
	};
	memcpy(a->ah_attr.grh.dgid.raw, r->ah.dgid, sizeof(r->ah.dgid));
}

/* Checks values that would be truncated or shifted in abi_qp_attr; rocid checks the rest. */
static int check_attr(const struct roci_qp_attr *a, int mask)
{
	if (mask & ~MASK_KNOWN)
		return fail(EINVAL,
			"the attribute mask %#x has bits that roci_modify_qp() does "
			"not support: %#x",
			(unsigned)mask, (unsigned)(mask & ~MASK_KNOWN));
	if (mask & ROCI_QP_STATE && (unsigned)a->qp_state > ROCI_QPS_ERR)
		return fail(EINVAL, "qp_state %d is not an enum roci_qp_state", (int)a->qp_state);
	if (mask & ROCI_QP_CUR_STATE && (unsigned)a->cur_qp_state > ROCI_QPS_ERR)
		return fail(EINVAL, "cur_qp_state %d is not an enum roci_qp_state",
			(int)a->cur_qp_state);
	if (mask & ROCI_QP_PATH_MTU && (a->path_mtu < ROCI_MTU_256 || a->path_mtu > ROCI_MTU_4096))
		return fail(EINVAL,
			"path_mtu %d is not an enum roci_mtu: use ROCI_MTU_256 .. ROCI_MTU_4096 "
			"(1 .. 5), not bytes",
			(int)a->path_mtu);
	return 0;
}

static int modify(struct qp *qp, const struct roci_qp_attr *a, int mask)
{
	struct abi_modify_qp body = {.handle = qp->handle, .mask = (uint32_t)mask};
	int err;

	to_abi(a, &body.attr);
	if (!(mask & ROCI_QP_PATH_MTU))
		body.attr.path_mtu = 0;
	err = call_plain(context_of(qp->pub.context), ABI_MODIFY_QP, &body, sizeof(body), NULL, 0);
	if (err || !(mask & ROCI_QP_STATE))
		return err;
	atomic_store(&qp->state, (uint32_t)a->qp_state);
	if (a->qp_state == ROCI_QPS_RESET)
		cq_forget_qp(qp);
	return 0;
}

int roci_modify_qp(struct roci_qp *q, const struct roci_qp_attr *attr, int mask)
{
	struct qp *qp = qp_of(q);
	struct roci_qp_attr a;
	int err = opts_read(&a, sizeof(a), attr, "roci_qp_attr");

	if (!err)
		err = check_attr(&a, mask);
	if (err)
		return err;
	pthread_mutex_lock(&qp->modify_lock);
	err = modify(qp, &a, mask);
	pthread_mutex_unlock(&qp->modify_lock);
	return err;
}

int roci_limit_qp(struct roci_qp *q, const struct roci_rate_limit *rate)
{
	struct roci_rate_limit a;
	struct abi_limit_qp body = {.handle = qp_of(q)->handle};
	int err = opts_read(&a, sizeof(a), rate, "roci_rate_limit");

	if (err)
		return err;
	body.rate = a.kbps;
	body.burst = a.burst;
	body.packet = a.packet;
	return call_plain(context_of(q->context), ABI_LIMIT_QP, &body, sizeof(body), NULL, 0);
}

/* QPS-21: the state may have changed without our involvement. */
static int query(struct qp *qp, struct roci_qp_attr *a)
{
	struct abi_handle body = {.handle = qp->handle};
	struct abi_qp_attr r;
	int err;

	pthread_mutex_lock(&qp->modify_lock);
	err = call_plain(
		context_of(qp->pub.context), ABI_QUERY_QP, &body, sizeof(body), &r, sizeof(r));
	if (!err)
		atomic_store(&qp->state, (uint32_t)r.qp_state);
	pthread_mutex_unlock(&qp->modify_lock);
	if (!err) {
		from_abi(&r, a);
		a->cap = qp->cap;
	}
	return err;
}

int roci_query_qp(
	struct roci_qp *q, struct roci_qp_attr *attr, int mask, struct roci_qp_init_attr *init_attr)
{
	struct qp *qp = qp_of(q);
	struct roci_qp_init_attr init = {
		.user_data = q->user_data,
		.send_cq = q->send_cq,
		.recv_cq = q->recv_cq,
		.cap = qp->cap,
		.qp_type = q->qp_type,
		.sq_sig_all = qp->sq_sig_all,
		.srq = q->srq,
	};
	struct roci_qp_attr a;
	int err = 0;

	(void)mask; /* one message carries all attributes anyway */
	if (attr) {
		err = query(qp, &a);
		if (!err)
			err = opts_write(attr, &a, sizeof(a), "roci_qp_attr");
	}
	if (!err && init_attr)
		err = opts_write(init_attr, &init, sizeof(init), "roci_qp_init_attr");
	return err;
}

static _Thread_local char explanation[ABI_WHY_MAX + 32];

const char *roci_qp_error(struct roci_qp *q)
{
	struct abi_handle body = {.handle = qp_of(q)->handle};
	struct abi_explain_qp_reply r;
	int err = call_plain(
		context_of(q->context), ABI_EXPLAIN_QP, &body, sizeof(body), &r, sizeof(r));

	if (err)
		return roci_last_error();
	r.rule[sizeof(r.rule) - 1] = '\0';
	r.sentence[sizeof(r.sentence) - 1] = '\0';
	if (!r.sentence[0])
		return "";
	snprintf(explanation, sizeof(explanation), "%s [%s]", r.sentence, r.rule);
	return explanation;
}
