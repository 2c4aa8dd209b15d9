/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues. */
#include <stdlib.h>
#include <string.h>
#include "verbs.h"

static struct ibv_srq *create(
	struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct roci_srq_init_attr *r)
{
	struct srq *srq = calloc(1, sizeof(*srq));

	r->size = sizeof(*r);
	r->user_data = srq;
	r->max_wr = attr->attr.max_wr;
	r->max_sge = attr->attr.max_sge;
	if (srq)
		srq->roci = roci_create_srq(pd_of(pd)->roci, r);
	if (!srq || !srq->roci) {
		free(srq);
		return refused_null(pd->context, "ibv_create_srq", errno);
	}
	attr->attr.max_wr = r->max_wr;
	attr->attr.max_sge = r->max_sge;
	srq->pub.context = pd->context;
	srq->pub.srq_context = attr->srq_context;
	srq->pub.pd = pd;
	srq->pub.handle = srq->roci->srq_num;
	pthread_mutex_init(&srq->pub.mutex, NULL);
	pthread_cond_init(&srq->pub.cond, NULL);
	object_enter(pd->context, OBJECT_SRQ, &srq->object);
	return &srq->pub;
}

VERBS_API struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct roci_srq_init_attr r = {0};

	return create(pd, attr, &r);
}

/* Tag matching is not supported. */
struct ibv_srq *verbs_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *a)
{
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			       IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	enum ibv_srq_type type =
		a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? a->srq_type : IBV_SRQT_BASIC;
	struct roci_srq_init_attr r = {0};

	if (a->comp_mask & ~known || (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC)) {
		errno = refused_as(c, "ibv_create_srq_ex", EOPNOTSUPP,
			"comp_mask %#x or type %d requests tag matching or something unknown, "
			"which is not supported: use IBV_SRQT_BASIC or IBV_SRQT_XRC",
			a->comp_mask, (int)type);
		return NULL;
	}
	if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !a->pd) {
		errno = EINVAL;
		return NULL;
	}
	if (type == IBV_SRQT_XRC) {
		if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !a->xrcd ||
			!(a->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !a->cq) {
			errno = refused_as(c, "ibv_create_srq_ex", EINVAL,
				"an XRC SRQ needs an XRC domain and a CQ");
			return NULL;
		}
		r.xrcd = ((struct xrcd *)a->xrcd)->roci;
		r.cq = cq_of(a->cq)->roci;
	}
	return create(a->pd, (struct ibv_srq_init_attr *)a, &r);
}

VERBS_API int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct roci_srq_attr r = {
		.size = sizeof(r), .max_wr = attr->max_wr, .srq_limit = attr->srq_limit};

	return refused(
		srq->context, "ibv_modify_srq", roci_modify_srq(srq_of(srq)->roci, &r, mask));
}

VERBS_API int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct roci_srq_attr r = {.size = sizeof(r)};
	int err = roci_query_srq(srq_of(srq)->roci, &r);

	if (err)
		return explain("ibv_query_srq", err);
	*attr = (struct ibv_srq_attr){
		.max_wr = r.max_wr, .max_sge = r.max_sge, .srq_limit = r.srq_limit};
	return 0;
}

int verbs_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	*srq_num = srq_of(srq)->roci->srq_num;
	return 0;
}

VERBS_API int ibv_destroy_srq(struct ibv_srq *p)
{
	struct srq *srq = srq_of(p);
	int err = roci_destroy_srq(srq->roci);

	if (err)
		return explain("ibv_destroy_srq", err);
	object_leave(p->context, &srq->object);
	pthread_cond_destroy(&p->cond);
	pthread_mutex_destroy(&p->mutex);
	free(srq);
	return 0;
}
