/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "verbs.h"

_Static_assert(
	sizeof(struct ibv_wc) == sizeof(struct roci_wc) &&
		offsetof(struct ibv_wc, opcode) == offsetof(struct roci_wc, opcode) &&
		offsetof(struct ibv_wc, vendor_err) == offsetof(struct roci_wc, vendor_err) &&
		offsetof(struct ibv_wc, imm_data) == offsetof(struct roci_wc, imm_data) &&
		offsetof(struct ibv_wc, src_qp) == offsetof(struct roci_wc, src_qp) &&
		offsetof(struct ibv_wc, wc_flags) == offsetof(struct roci_wc, wc_flags) &&
		offsetof(struct ibv_wc, pkey_index) == offsetof(struct roci_wc, pkey_index) &&
		offsetof(struct ibv_wc, sl) == offsetof(struct roci_wc, sl),
	"completions have libroci's layout");
_Static_assert((int)IBV_WC_ATOMIC_WRITE == ROCI_WC_ATOMIC_WRITE &&
		       (int)IBV_WC_RECV_RDMA_WITH_IMM == ROCI_WC_RECV_RDMA_WITH_IMM &&
		       (int)IBV_WC_GENERAL_ERR == ROCI_WC_GENERAL_ERR &&
		       (int)IBV_WC_WITH_INV == ROCI_WC_WITH_INV,
	"and its values");

/** Consecutive empty polls after which poll_cq yields the CPU. */
#define PATIENCE 16

/** Completions of datagrams converted per batch. */
#define BATCH 16

static struct cq *create(struct ibv_context *c, uint32_t cqe, void *user,
	struct ibv_comp_channel *channel, uint32_t vector, unsigned flags)
{
	struct cq *cq;

	if (vector >= (uint32_t)c->num_comp_vectors || cqe > INT32_MAX) {
		errno = refused_as(c, "ibv_create_cq", EINVAL,
			"completion vector %u, %u entries: use vector 0 and at most %d "
			"entries",
			vector, cqe, INT32_MAX);
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (cq)
		cq->roci = roci_create_cq_flags(context_of(c)->roci, (int)cqe, cq,
			channel ? ((struct channel *)channel)->roci : NULL, 0, flags);
	if (!cq || !cq->roci) {
		free(cq);
		return refused_null(c, "ibv_create_cq", errno);
	}
	cq->context = context_of(c);
	cq->pub.context = c;
	cq->pub.channel = channel;
	cq->pub.cq_context = user;
	cq->pub.cqe = cq->roci->cqe;
	pthread_mutex_init(&cq->pub.mutex, NULL);
	pthread_cond_init(&cq->pub.cond, NULL);
	if (channel) {
		pthread_mutex_lock(&c->mutex);
		channel->refcnt++;
		pthread_mutex_unlock(&c->mutex);
	}
	object_enter(c, OBJECT_CQ, &cq->object);
	return cq;
}

VERBS_API struct ibv_cq *ibv_create_cq(struct ibv_context *c, int cqe, void *cq_context,
	struct ibv_comp_channel *channel, int comp_vector)
{
	struct cq *cq = create(c, (uint32_t)cqe, cq_context, channel, (uint32_t)comp_vector, 0);

	return cq ? &cq->pub : NULL;
}

struct ibv_cq_ex *verbs_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *a)
{
	const uint32_t known = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	struct cq *cq;

	if (a->comp_mask & ~known || a->wc_flags & ~(uint64_t)CQ_EX_FLAGS ||
		(a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
			a->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) {
		errno = refused_as(c, "ibv_create_cq_ex", EOPNOTSUPP,
			"comp_mask %#x, wc_flags %#llx or flags %#x has unsupported bits: "
			"leave them out (doc/verbs.md lists them)",
			a->comp_mask, (unsigned long long)a->wc_flags, a->flags);
		return NULL;
	}
	cq = create(c, a->cqe, a->cq_context, a->channel, a->comp_vector,
		a->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP ? ROCI_CQ_TIMESTAMP : 0);
	if (!cq)
		return NULL;
	cq_ex_set_ops(&cq->ex, a->wc_flags);
	return &cq->ex;
}

VERBS_API int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	int err = roci_resize_cq(cq_of(cq)->roci, cqe);

	if (!err)
		cq->cqe = cq_of(cq)->roci->cqe;
	return refused(cq->context, "ibv_resize_cq", err);
}

/* Moderation is not implemented: it would only add delay. */
int verbs_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	if (!attr->attr_mask)
		return 0;
	return refused_as(cq->context, "ibv_modify_cq", EOPNOTSUPP,
		"event moderation is not supported: request an event per completion");
}

VERBS_API int ibv_destroy_cq(struct ibv_cq *p)
{
	struct cq *cq = cq_of(p);
	int err = roci_destroy_cq(cq->roci);

	if (err)
		return explain("ibv_destroy_cq", err);
	if (p->channel) {
		pthread_mutex_lock(&p->context->mutex);
		p->channel->refcnt--;
		pthread_mutex_unlock(&p->context->mutex);
	}
	object_leave(p->context, &cq->object);
	pthread_cond_destroy(&p->cond);
	pthread_mutex_destroy(&p->mutex);
	free(cq);
	return 0;
}

/* --- polling ---------------------------------------------------------------------------- */

void cq_idle(struct cq *cq)
{
	if (++cq->empty < PATIENCE)
		return;
	cq->empty = 0;
	sched_yield();
}

/* Decision 0107. */
static void set_datagram(const struct roci_wc_net *net, struct ibv_wc *wc)
{
	unsigned kind = net->type == ROCI_GID_TYPE_ROCE_V1 ? ABI_NET_ROCEV1
			: net->is_ipv4			   ? ABI_NET_IPV4
							   : ABI_NET_IPV6;

	if (wc->status != IBV_WC_SUCCESS || !(wc->wc_flags & IBV_WC_GRH))
		return;
	wc->dlid_path_bits = wc->sl;
	wc->sl = cq_sl(wc->wc_flags, wc->sl, kind);
}

static int poll_datagrams(struct cq *cq, int num, struct ibv_wc *wc)
{
	struct roci_wc_net net[BATCH];
	int n = 0;

	do {
		int room = num - n < BATCH ? num - n : BATCH;
		int got = roci_poll_cq_net(cq->roci, room, (struct roci_wc *)wc + n, net);

		if (got < 0)
			return n ? n : got;
		for (int i = 0; i < got; i++)
			set_datagram(&net[i], &wc[n + i]);
		n += got;
		if (got < room)
			break;
	} while (n < num);
	return n;
}

int verbs_poll_cq(struct ibv_cq *p, int num, struct ibv_wc *wc)
{
	struct cq *cq = cq_of(p);
	int n;

	if (unlikely(atomic_load_explicit(&cq->datagrams, memory_order_relaxed)))
		n = poll_datagrams(cq, num, wc);
	else
		n = roci_poll_cq(cq->roci, num, (struct roci_wc *)wc);
	if (cq->context->yields) {
		if (n)
			cq->empty = 0;
		else
			cq_idle(cq);
	}
	return n;
}

int verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return roci_req_notify_cq(cq_of(cq)->roci, solicited_only);
}
