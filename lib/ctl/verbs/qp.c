/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: creation, query, destruction. MODIFY_QP is in verbs/qp_modify.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "abi_ctl.h"
#include "abi_ring.h"
#include "abi_wqe.h"
#include "bits.h"
#include "config/ctl_parts.h"
#include "core.h"
#include "flow.h"
#include "loop/reaper.h"
#include "memory/alloc.h"
#include "memory/numa.h"
#include "net/gids.h"
#include "net/neigh.h"
#include "net/net.h"
#include "qp.h"
#include "qp_table.h"
#include "refuse.h"
#include "session/bells.h"
#include "session/failures.h"
#include "session/ids.h"
#include "session/quota.h"
#include "session/rings.h"
#include "session/session.h"
#include "session/sessions.h"
#include "text/sentence.h"
#include "verbs/command.h"
#include "verbs/cq_obj.h"
#include "verbs/dest.h"
#include "verbs/fault.h"
#include "verbs/mr_obj.h"
#include "verbs/mw_obj.h"
#include "verbs/objects.h"
#include "verbs/qp_cc.h"
#include "verbs/qp_obj.h"
#include "verbs/srq_obj.h"
#include "verbs/xrcd.h"
#include "worker.h"

/* Size of a QP's private memory, in bytes, above which freeing it takes the kernel long. */
#define LARGE_QP (256u << 10)

/* The sizes of a QP's region and the offsets of its parts. */
struct layout {
	uint32_t sq_depth, sq_stride;
	uint32_t rq_depth, rq_stride;
	uint32_t send_sge, recv_sge, max_inline;
	uint32_t sq_queue, rq_queue, sq_ring, rq_ring;
	uint32_t size;
};

/* VRB-03. QP1 handles management traffic for the port: it is for one program at a time, of root or
 * of rocid's own user (doc/decisions/0091-gsi.md). */
static int check_gsi(struct session *s, const struct abi_create_qp *in, struct reply *r)
{
	struct ctl *ctl = s->ctl;

	if (!session_privileged(s))
		return refuse(r->why, -EPERM,
			"QP1 handles management traffic for the whole port: only root and the user "
			"that runs rocid may create it");
	if (in->port < 1 || in->port > ctl->net->nports)
		return refuse(r->why, -EINVAL, "there is no port %u: this rocid has 1 to %u",
			in->port, ctl->net->nports);
	if (atomic_load_explicit(&ctl->dp->qps->gsi[in->port - 1], memory_order_relaxed))
		return refuse(r->why, -EBUSY,
			"another program has QP1 of port %u: end that program first", in->port);
	return 0;
}

static int check_type(struct session *s, const struct abi_create_qp *in, struct reply *r)
{
	switch (in->type) {
	case ABI_QPT_RC:
	case ABI_QPT_UC:
	case ABI_QPT_UD:
	case ABI_QPT_XRC_SEND:
	case ABI_QPT_XRC_RECV:
		return 0;
	case ABI_QPT_GSI:
		return check_gsi(s, in, r);
	case ABI_QPT_SMI: /* QPS-24 */
		return refuse(r->why, -EINVAL,
			"invalid special QP type: RoCE has no QP0 (type 0); use RC (2)");
	case ABI_QPT_RAW_IPV6: /* QPS-25 */
	case ABI_QPT_RAW_ETHERTYPE:
	case ABI_QPT_RAW_PACKET:
		return refuse(r->why, -EOPNOTSUPP,
			"RoCE has no raw datagrams (QP type %u): use RC (2)", in->type);
	default:
		return refuse(r->why, -EOPNOTSUPP, "there is no QP type %u: use RC (2)", in->type);
	}
}

static int check_caps(const struct abi_create_qp *in, struct reply *r)
{
	if (in->max_send_wr > WR_MAX || in->max_recv_wr > WR_MAX)
		return refuse(r->why, -EINVAL,
			"queues of %u and %u work requests are too long: %u is the maximum",
			in->max_send_wr, in->max_recv_wr, WR_MAX);
	if (in->max_send_sge > SGE_MAX || in->max_recv_sge > SGE_MAX)
		return refuse(r->why, -EINVAL,
			"%u and %u SGEs per work request are too many: %u is the maximum",
			in->max_send_sge, in->max_recv_sge, SGE_MAX);
	if (in->max_inline > INLINE_MAX)
		return refuse(r->why, -EINVAL, "%u inline bytes are too many: %u is the maximum",
			in->max_inline, INLINE_MAX);
	return 0;
}

static uint32_t at_least(uint32_t v, uint32_t min)
{
	return v > min ? v : min;
}

/* SRQ-01, XRC-02 */
static bool has_rq(const struct abi_create_qp *in)
{
	return in->srq == ABI_NO_HANDLE && in->type != ABI_QPT_XRC_SEND &&
	       in->type != ABI_QPT_XRC_RECV;
}

/* Grants the request, rounded up where that costs nothing. */
static struct layout make_layout(const struct abi_create_qp *in)
{
	struct layout l = {
		.sq_depth = in->type == ABI_QPT_XRC_RECV ? 0 : round_pow2(in->max_send_wr),
		.rq_depth = has_rq(in) ? round_pow2(in->max_recv_wr) : 0,
		.send_sge = at_least(in->max_send_sge, 1),
		.recv_sge = at_least(in->max_recv_sge, 1),
	};
	uint32_t body = at_least(l.send_sge * (uint32_t)sizeof(struct abi_sge), in->max_inline);

	l.max_inline = body < INLINE_MAX ? body : INLINE_MAX;
	l.sq_stride = abi_sq_stride(l.send_sge, l.max_inline);
	l.rq_stride = abi_rq_stride(l.recv_sge);
	l.sq_queue = 0;
	l.rq_queue = sizeof(struct abi_queue);
	l.sq_ring = 2 * sizeof(struct abi_queue);
	l.rq_ring = l.sq_ring + l.sq_depth * l.sq_stride;
	l.size = l.rq_ring + l.rq_depth * l.rq_stride;
	return l;
}

/* XRC-02: messages to the QP go to SRQs of its domain, and it sends nothing. */
static int find_domain(
	struct session *s, const struct abi_create_qp *in, struct qp_obj *o, struct reply *r)
{
	o->xrcd = handle_get(&s->xrcds, in->xrcd);
	if (!o->xrcd)
		return refuse(r->why, -EINVAL,
			"a QP of type XRC_RECV needs an XRC domain: there is no domain %u",
			in->xrcd);
	if (in->srq != ABI_NO_HANDLE)
		return refuse(r->why, -EINVAL,
			"a QP of type XRC_RECV cannot have an SRQ: each message names one");
	return 0;
}

static int find_parts(
	struct session *s, const struct abi_create_qp *in, struct qp_obj *o, struct reply *r)
{
	bool initiator = in->type == ABI_QPT_XRC_SEND; /* XRC-02: receives nothing */
	bool pdless = in->type == ABI_QPT_XRC_RECV && in->pd == ABI_NO_HANDLE;

	o->pd = pdless ? NULL : object_named(&s->pds, in->pd, "protection domain", r);
	if (!o->pd && !pdless)
		return -EINVAL;
	if (in->type == ABI_QPT_XRC_RECV)
		return find_domain(s, in, o, r);
	o->send_cq = handle_get(&s->cqs, in->send_cq);
	o->recv_cq = initiator ? o->send_cq : handle_get(&s->cqs, in->recv_cq);
	if (!o->send_cq || !o->recv_cq)
		return refuse(r->why, -EINVAL, "there is no CQ %u",
			o->send_cq ? in->recv_cq : in->send_cq);
	if (in->srq == ABI_NO_HANDLE)
		return 0;
	o->srq = object_named(&s->srqs, in->srq, "SRQ", r);
	if (!o->srq)
		return -EINVAL;
	if (initiator || o->srq->xrcd)
		return refuse(r->why, -EINVAL,
			"a QP of type %s cannot take receives from SRQ %u, which is %s",
			qp_type_name((uint8_t)in->type), in->srq,
			o->srq->xrcd ? "for XRC" : "for QPs that receive");
	return 0;
}

/* Counts the QP as a user of its objects, which keeps them alive. */
static void use_parts(struct qp_obj *o, int32_t step)
{
	if (o->pd)
		o->pd->users += (uint32_t)step;
	if (o->send_cq)
		o->send_cq->users += (uint32_t)step;
	if (o->recv_cq)
		o->recv_cq->users += (uint32_t)step;
	if (o->srq)
		o->srq->users += (uint32_t)step;
	if (o->xrcd)
		o->xrcd->users += (uint32_t)step;
}

void qp_count_at_worker(const struct qp_obj *o, int step)
{
	if (!o->session->own)
		o->session->ctl->objects->worker_qps[o->worker] += (uint32_t)step;
}

static uint32_t choose_worker(const struct ctl *ctl)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < ctl->dp->nworkers; i++)
		if (ctl->objects->worker_qps[i] < ctl->objects->worker_qps[best])
			best = i;
	return best;
}

/* A session has fewer QPs than slots, so one is free. */
static uint32_t take_doorbell(struct bells *b, uint32_t worker)
{
	uint32_t slot = b->hint[worker];

	while (b->taken[slot / 64] >> (slot % 64) & 1)
		slot = (slot + 1) % ABI_DB_MAX;
	b->taken[slot / 64] |= 1ull << (slot % 64);
	b->hint[worker] = slot;
	return slot;
}

/* Gives @p o a QPN, a doorbell slot and a handle. */
static int take_numbers(struct session *s, struct qp_obj *o, struct reply *r)
{
	struct ctl *ctl = s->ctl;
	uint32_t worker = choose_worker(ctl);
	int err = qpn_take(&ctl->objects->qpns, worker, &o->qpn);

	if (!err) {
		o->worker = worker;
		qp_count_at_worker(o, 1);
		o->doorbell = take_doorbell(s->bells, worker);
		notifier_lock(&ctl->sessions->notifier);
		err = handle_add(&s->qps, o, &o->handle);
		event_source_init(&o->async, &s->async, o->handle);
		notifier_unlock(&ctl->sessions->notifier);
	}
	if (err)
		return refuse(r->why, err, "no room for another QP: destroy some");
	return 0;
}

static struct ring make_ring(uint8_t *base, uint32_t ring, uint32_t queue, uint32_t depth,
	uint32_t stride, uint32_t sges)
{
	return (struct ring){
		.entries = base + ring,
		.shared = (struct abi_queue *)(base + queue),
		.depth = depth,
		.stride = stride,
		.max_sge = sges,
	};
}

static struct cq_lane *lane_of(struct cq_obj *cq, uint32_t worker)
{
	return cq ? &cq->cq.lane[worker] : NULL;
}

/* A send queue that nobody can post to. */
struct no_queue {
	struct abi_queue head;
	uint8_t entry[ABI_ENTRY];
};

/* XRC_RECV: the core always reads a send queue, so it gets one that the application cannot write.
 */
static int make_no_queue(struct qp_obj *o, struct ring *sq, struct reply *r)
{
	o->none = object_alloc(sizeof(*o->none));
	if (!o->none)
		return refuse_memory(r->why);
	*sq = (struct ring){.entries = o->none->entry,
		.shared = &o->none->head,
		.depth = 1,
		.stride = ABI_ENTRY,
		.max_sge = 1};
	return 0;
}

static int make_qp(struct session *s, struct qp_obj *o, const struct abi_create_qp *in,
	const struct layout *l, struct reply *r)
{
	uint8_t *base = o->rings.base;
	struct qp_config cfg = {
		.qpn = o->qpn,
		.pd = o->pd ? o->pd->number : 0,
		.handle = o->handle,
		.type = (uint8_t)in->type,
		.sq_sig_all = in->sq_sig_all != 0,
		.session = s->number,
		.send_lane = lane_of(o->send_cq, o->worker),
		.recv_lane = lane_of(o->recv_cq, o->worker),
		.sq = make_ring(
			base, l->sq_ring, l->sq_queue, l->sq_depth, l->sq_stride, l->send_sge),
		.rq = make_ring(
			base, l->rq_ring, l->rq_queue, l->rq_depth, l->rq_stride, l->recv_sge),
		.srq = o->srq ? &o->srq->srq : NULL,
		.xrcd = o->xrcd ? o->xrcd->xrcd->number : 0,
		.max_inline = l->max_inline,
		.window = s->ctl->window,
		.gsi_port = in->type == ABI_QPT_GSI ? (uint8_t)in->port : 0,
	};
	int err = in->type == ABI_QPT_XRC_RECV ? make_no_queue(o, &cfg.sq, r) : 0;
	size_t bytes = qp_size(&cfg);
	void *mem;

	if (!err)
		err = quota_take(s, &(struct charge){CTL_QUEUES, bytes}, 1, r->why);
	if (err)
		return err;
	o->bytes = bytes;
	mem = aligned_alloc(CACHE_LINE, bytes); /* qp_init() writes what it needs */
	if (!mem)
		return refuse(r->why, -ENOMEM,
			"rocid is out of memory: request shorter queues or destroy some QPs");
	/* The first post rings the doorbell; from then on the core decides (abi_ring.h). */
	atomic_store_explicit(&cfg.sq.shared->need_doorbell, 1, memory_order_relaxed);
	o->qp = qp_init(mem, &cfg);
	if (!o->qp) {
		free(mem);
		return refuse(
			r->why, -EINVAL, "a QP needs a send queue: set max_send_wr to 1 or more");
	}
	return 0;
}

/* The slot in which packets find the QP: QP1 by its port, others by their QPN. */
static _Atomic(struct qp *) *slot_of(struct qp_table *table, const struct qp_obj *o)
{
	uint8_t port = o->qp->gsi_port;

	return port ? &table->gsi[port - 1] : &table->slot[QPN_SLOT(o->qpn)];
}

/* No command tells the worker: it finds the QP by its doorbell and by packets' QPN. */
static void publish(struct session *s, struct qp_obj *o)
{
	struct dataplane *dp = s->ctl->dp;

	atomic_store_explicit(&s->bells->qp[o->doorbell], o->qp, memory_order_release);
	atomic_store_explicit(slot_of(dp->qps, o), o->qp, memory_order_release);
}

static void reply_created(const struct qp_obj *o, const struct layout *l, struct reply *r)
{
	struct abi_create_qp_reply out = {
		.handle = o->handle,
		.qpn = o->qpn,
		.worker = o->worker,
		.doorbell = o->doorbell,
		.sq_depth = l->sq_depth,
		.sq_stride = l->sq_stride,
		.rq_depth = l->rq_depth,
		.rq_stride = l->rq_stride,
		.max_send_sge = l->send_sge,
		.max_recv_sge = l->recv_sge,
		.max_inline = l->max_inline,
		.sq_queue_off = l->sq_queue,
		.sq_ring_off = l->sq_ring,
		.rq_queue_off = l->rq_queue,
		.rq_ring_off = l->rq_ring,
		.region_size = (uint32_t)o->rings.size,
	};

	reply_body(r, &out, sizeof(out));
}

/* malloc() uses a separate mapping for a large QP. */
static const struct charge qp_charge[] = {{CTL_QPS, 1}, {CTL_MAPPINGS, 1}};

int cmd_create_qp(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_create_qp in;
	struct layout l;
	struct qp_obj *o;
	int err, fd = -1;

	memcpy(&in, q->body, sizeof(in));
	err = check_type(s, &in, r);
	if (!err)
		err = check_caps(&in, r);
	if (err)
		return err;
	o = object_alloc(sizeof(*o));
	if (!o)
		return refuse_memory(r->why);
	err = find_parts(s, &in, o, r);
	if (!err)
		err = quota_take(s, qp_charge, ARRAY_SIZE(qp_charge), r->why);
	if (err) {
		free(o);
		return err;
	}
	o->session = s;
	list_init(&o->members);
	use_parts(o, 1);
	l = make_layout(&in);
	err = rings_create(s, &o->rings, "roci-qp", l.size, &fd, r->why);
	if (!err) {
		reply_fd(r, fd);
		err = take_numbers(s, o, r);
	}
	if (!err) { /* before anything touches the memory */
		place_memory(o->rings.base, o->rings.size, s->ctl->dp->node[o->worker]);
		err = make_qp(s, o, &in, &l, r);
	}
	if (err) {
		qp_release(o);
		return err;
	}
	publish(s, o);
	reply_created(o, &l, r);
	return 0;
}

int cmd_query_qp(struct session *s, const struct request *q, struct reply *r)
{
	struct core_cmd cmd = {.type = CORE_CMD_QUERY_QP};
	struct qp_obj *o = object_of(q, &s->qps, "QP", r);
	int err;

	if (!o)
		return -EINVAL;
	cmd.qp = o->qp;
	err = worker_call(s->ctl->dp->worker[o->worker], &cmd); /* QPS-21 */
	if (err)
		return refuse(r->why, err, "the worker cannot query the QP: %s", strerror(-err));
	reply_body(r, &cmd.attr, sizeof(cmd.attr));
	return 0;
}

int cmd_explain_qp(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_explain_qp_reply out = {0};
	const struct failure *e;
	struct qp_obj *o = object_of(q, &s->qps, "QP", r);

	if (!o)
		return -EINVAL;
	e = failure_of_qp(s->ctl, o);
	if (e) {
		snprintf(out.rule, sizeof(out.rule), "%s", e->rule);
		snprintf(out.cause, sizeof(out.cause), "%s", e->cause);
		snprintf(out.sentence, sizeof(out.sentence), "%s", e->text);
	}
	reply_body(r, &out, sizeof(out));
	return 0;
}

void qp_note_gone(const struct qp_obj *o)
{
	const struct session *s = o->session;
	struct gone_qp gone = {
		.qpn = o->qpn, .uid = s->peer.uid, .how = s->closing ? "ended" : "destroyed it"};

	memcpy(gone.program, s->program, sizeof(gone.program));
	failure_keep(s->ctl, o);
	failures_qp_gone(s->ctl->failures, &gone);
}

void qp_unpublish(struct qp_obj *o)
{
	struct ctl *ctl = o->session->ctl;
	struct bells *bells = o->session->bells;
	struct qp_table *table = ctl->dp->qps;

	if (o->resolving) {
		neigh_cancel(&o->query);
		quota_give_one(o->session, CTL_LOOKUPS);
	}
	qp_note_gone(o);
	dest_leave(o);
	flow_remove(ctl->dp->flows, &o->flow);
	atomic_store_explicit(slot_of(table, o), NULL, memory_order_release);
	atomic_store_explicit(&bells->qp[o->doorbell], NULL, memory_order_release);
}

/* Like qp_unpublish(), and makes its worker drop @p o. */
static void qp_detach(struct qp_obj *o)
{
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_QP, .qp = o->qp};

	qp_unpublish(o);
	/* QPS-22: the worker no longer finds the QP; now it drops it. */
	worker_call(o->session->ctl->dp->worker[o->worker], &cmd);
}

void qps_call(struct ctl *ctl, const struct core_cmd *cmd, struct qp_obj *const o[], uint32_t n)
{
	struct qp *qps[QPS_CALL_MAX];
	struct core_cmd part = *cmd;

	part.qps = qps;
	for (uint32_t w = 0; w < ctl->dp->nworkers; w++) {
		part.n = 0;
		part.progress = 0;
		for (uint32_t i = 0; i < n; i++)
			if (o[i]->worker == w)
				qps[part.n++] = o[i]->qp;
		if (part.n)
			worker_call(ctl->dp->worker[w], &part);
	}
}

void qp_release(struct qp_obj *o)
{
	struct session *s = o->session;
	struct ctl *ctl = s->ctl;

	fault_qp_gone(ctl, o);
	qp_cc_release(o);
	if (o->qpn) { /* take_numbers() had succeeded */
		notifier_lock(&ctl->sessions->notifier);
		handle_del(&s->qps, o->handle);
		event_source_withdraw(&o->async);
		notifier_unlock(&ctl->sessions->notifier);
		s->bells->taken[o->doorbell / 64] &= ~(1ull << (o->doorbell % 64));
		qp_count_at_worker(o, -1);
		if (o->qp && o->qp->windows)
			mws_of_qp_release(s, o->qpn);
		qpn_release(&ctl->objects->qpns, o->qpn); /* QPS-23 */
	}
	gid_hold_set(&o->hold, NULL, 0);
	gid_hold_set(&o->wanted, NULL, 0);
	use_parts(o, -1);
	rings_free(s, &o->rings);
	quota_give(s, &(struct charge){CTL_QUEUES, o->bytes}, 1);
	quota_give(s, qp_charge, ARRAY_SIZE(qp_charge));
	if (o->bytes >= LARGE_QP)
		reap_heap(ctl->sessions->unmapper, o->qp);
	else
		free(o->qp);
	free(o->none);
	free(o);
}

int cmd_destroy_qp(struct session *s, const struct request *q, struct reply *r)
{
	struct qp_obj *o = object_of(q, &s->qps, "QP", r);

	if (!o)
		return -EINVAL;
	if (o->nmembers) /* MC-06 */
		return refuse(r->why, -EBUSY,
			"the QP is attached to %u multicast groups: detach it from them first",
			o->nmembers);
	if (o->resolving) {
		struct reply late = {0};
		int err = refuse(late.why, -ECANCELED, "the QP has been destroyed meanwhile");

		session_reply(s, &o->request, err, &late);
	}
	qp_detach(o);
	worker_grace(s->ctl->dp); /* QPS-22 */
	qp_release(o);
	return 0;
}
