/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "ah.h"
#include "endpoint.h"
#include "host.h"
#include "lab.h"
#include "lab_flow.h"
#include "lab_host.h"
#include "memory.h"
#include "packet.h"
#include "qp_table.h"
#include "scenario.h"
#include "verbs.h"

#define PD	LAB_PD
#define SESSION 1u
#define QKEY	0x11111111u

static bool is_ud(const struct lab_flow *f)
{
	return f->line->op == FLOW_UD;
}

static bool receives(const struct lab_flow *f)
{
	return f->line->op == FLOW_SEND || is_ud(f);
}

static enum host_gid gid_of(const struct lab *l)
{
	return l->s->ip6 ? HOST_GID_IPV6 : HOST_GID_IPV4;
}

/* --- making ----------------------------------------------------------------------------- */

static bool qp_make(const struct lab_flow *f, struct lab_host *h, struct lab_qp *q)
{
	uint32_t slot = 2 + h->qps; /* 0 and 1 are reserved */
	struct qp_config cfg = {
		.qpn = QPN_MAKE(1, 0, slot),
		.pd = PD,
		.handle = slot,
		.type = is_ud(f) ? ABI_QPT_UD : ABI_QPT_RC,
		.session = SESSION,
		.send_lane = &h->cq.lane[0],
		.recv_lane = &h->cq.lane[0],
		.window = (uint32_t)h->lab->s->window,
	};
	struct memory *m = &h->lab->memory;

	if (slot >= QP_MAX)
		return false;
	cfg.sq = (struct ring){.depth = AHEAD, .stride = abi_sq_stride(1, 0), .max_sge = 1};
	cfg.rq = (struct ring){.depth = receives(f) && q == &f->sink ? RECEIVES : 1,
		.stride = abi_rq_stride(1),
		.max_sge = 1};
	q->sq_shared = cfg.sq.shared = memory_take(m, sizeof(*q->sq_shared));
	q->rq_shared = cfg.rq.shared = memory_take(m, sizeof(*q->rq_shared));
	q->sq_ring = cfg.sq.entries = memory_take(m, (size_t)cfg.sq.stride * cfg.sq.depth);
	q->rq_ring = cfg.rq.entries = memory_take(m, (size_t)cfg.rq.stride * cfg.rq.depth);
	q->qp = memory_take(m, qp_size(&cfg));
	if (!q->sq_shared || !q->rq_shared || !q->sq_ring || !q->rq_ring || !q->qp)
		return false;
	qp_init(q->qp, &cfg);
	atomic_store(&h->host->qps.slot[slot], q->qp);
	h->qps++;
	return true;
}

/* Creates the address handle of a flow, in the slot that the handle of its source QP names. */
static bool handle_make(struct lab_flow *f)
{
	uint32_t slot = f->source.qp->handle;
	struct path_spec path = host_path(f->from->host, f->to->host, 0, gid_of(f->from->lab));

	f->ah = slot < AH_MAX ? memory_take(&f->from->lab->memory, sizeof(*f->ah)) : NULL;
	if (!f->ah)
		return false;
	*f->ah = (struct ah){.id = AH_MAX + slot, .pd = PD, .hashed = true};
	path_init(&f->ah->path, &path);
	atomic_store(&f->from->host->ahs.slot[slot], f->ah);
	return true;
}

static void qp_start(const struct lab_flow *f, struct lab_host *h, struct lab_qp *q,
	const struct lab_host *peer, const struct lab_qp *other)
{
	const struct scenario *s = h->lab->s;
	uint64_t now = h->lab->engine.now;
	struct core *c = &h->host->core;
	struct path_spec path = host_path(h->host, peer->host, 0, gid_of(h->lab));
	struct abi_qp_attr a = {
		.access_flags =
			ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ,
		.path_mtu = (uint32_t)s->mtu,
		.dest_qpn = other->qp->qpn,
		.qkey = QKEY,
		.port = 1,
		.timeout = (uint8_t)s->timeout,
		.retry_cnt = (uint8_t)s->retries,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
	};

	verbs_to_init(c, q->qp, &a, now);
	verbs_to_rtr(c, q->qp, &a, is_ud(f) ? NULL : &path, now);
	verbs_to_rts(c, q->qp, &a, now);
	if (s->fastcnp && core_flow(&q->flow, q->qp))
		flow_add(&h->host->flows, &q->flow);
}

static void receive(struct lab_flow *f)
{
	struct lab_qp *q = &f->sink;
	uint8_t *slot = q->rq_ring + (size_t)(q->received & (RECEIVES - 1)) * abi_rq_stride(1);
	struct abi_recv_wqe *w = (struct abi_recv_wqe *)slot;

	w->wr_id = (uint64_t)(f - f->from->lab->flow) | ENDPOINT_RECEIVED;
	w->sge[0] = (struct abi_sge){.addr = f->to->mr.iova,
		.length = (uint32_t)f->to->mr.length,
		.lkey = f->to->mr.key};
	verbs_publish(slot, ABI_WQE_CTL(0, 1, 0), q->received++, RECEIVES, q->rq_shared);
}

bool endpoint_make(struct lab_flow *f)
{
	if (!qp_make(f, f->from, &f->source) || !qp_make(f, f->to, &f->sink))
		return false;
	if (is_ud(f) && !handle_make(f))
		return false;
	for (unsigned i = 0; receives(f) && i < RECEIVES; i++)
		receive(f);
	qp_start(f, f->from, &f->source, f->to, &f->sink);
	qp_start(f, f->to, &f->sink, f->from, &f->source);
	return true;
}

/* --- messages --------------------------------------------------------------------------- */

void endpoint_address(const struct lab_flow *f, struct abi_wqe *w)
{
	w->ud.ah = f->ah->id;
	w->ud.remote_qpn = f->sink.qp->qpn;
	w->ud.remote_qkey = QKEY;
	w->ud.pkey_index = 0;
}

void endpoint_received(struct lab_flow *f, uint8_t status)
{
	if (status != ABI_WC_SUCCESS)
		return; /* the QP has failed, or was stopped */
	f->received++;
	receive(f);
}
