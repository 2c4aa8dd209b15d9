/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a flow: some are always posted, as if by a program that is never late. */
#include <stdlib.h>
#include <string.h>
#include "arrivals.h"
#include "endpoint.h"
#include "host.h"
#include "lab.h"
#include "lab_flow.h"
#include "lab_host.h"
#include "nic.h"
#include "packet.h"
#include "pacing.h"
#include "scenario.h"
#include "seq24.h"
#include "txd.h"
#include "verbs.h"

/* --- messages -------------------------------------------------------------------------- */

static struct lab_qp *posting(struct lab_flow *f)
{
	return f->line->op == FLOW_READ ? &f->sink : &f->source;
}

static bool is_poisson(const struct lab_flow *f)
{
	return !f->line->size;
}

/* Bytes of message number @p i. */
static uint64_t size_of(const struct lab_flow *f, uint64_t i)
{
	return is_poisson(f) ? arrivals_at(&f->arrivals, i)->size : f->line->size;
}

uint64_t flow_size(const struct lab_flow *f)
{
	return size_of(f, f->messages);
}

static void post(struct lab_flow *f, uint64_t now)
{
	uint64_t size = size_of(f, f->posted);
	uint64_t mtu = f->from->lab->s->mtu;
	struct lab_host *peer = f->poster == f->from ? f->to : f->from;
	struct lab_qp *q = posting(f);
	uint32_t stride = abi_sq_stride(1, 0);
	uint8_t *slot = q->sq_ring + (size_t)(q->posted & (AHEAD - 1)) * stride;
	struct abi_wqe *w = (struct abi_wqe *)slot;
	static const uint32_t code[FLOW_OPS] = {[FLOW_WRITE] = ABI_WR_RDMA_WRITE,
		[FLOW_READ] = ABI_WR_RDMA_READ,
		[FLOW_SEND] = ABI_WR_SEND,
		[FLOW_UD] = ABI_WR_SEND};

	w->wr_id = (uint64_t)(f - f->from->lab->flow);
	if (f->line->op == FLOW_UD) {
		endpoint_address(f, w);
	} else {
		w->remote_addr = peer->mr.iova;
		w->rkey = peer->mr.key;
	}
	w->sge[0] = (struct abi_sge){
		.addr = f->poster->mr.iova, .length = (uint32_t)size, .lkey = f->poster->mr.key};
	f->posted++;
	f->bytes += size;
	f->full += (size + mtu - 1) / mtu;
	if (verbs_publish(slot, ABI_WQE_CTL(code[f->line->op], 1, ABI_WQE_SIGNALED), q->posted++,
		    AHEAD, q->sq_shared))
		core_doorbell(&f->poster->host->core, q->qp, now);
}

/* How many messages may have been posted so far: those that have arrived, one more after each gap,
 * or all. */
static uint64_t allowed(const struct lab_flow *f)
{
	if (is_poisson(f))
		return f->arrivals.came;
	if (f->line->gap)
		return f->allowed;
	return f->line->count ? f->line->count : UINT64_MAX;
}

/* When the oldest message that is not complete began. */
static uint64_t began(const struct lab_flow *f, uint64_t now)
{
	return is_poisson(f) && f->messages != f->arrivals.came
		       ? arrivals_at(&f->arrivals, f->messages)->at
		       : now;
}

static void post_more(struct lab_flow *f, uint64_t now)
{
	if (f->posted == f->messages)
		f->since = began(f, now);
	while (!f->failed && f->posted < allowed(f) && f->posted - f->messages < AHEAD)
		post(f, now);
}

void flow_post(struct lab_flow *f, uint64_t now)
{
	post_more(f, now);
	nic_wake(&f->poster->nic, now);
}

/* Keeps the slowdown of a message that is within the measurement. */
static void judge(struct lab *l, const struct lab_flow *f, uint64_t now)
{
	if (f->since < LAB_START + l->s->from)
		return;
	if (l->slowdowns == l->slowdown_room) {
		size_t room = l->slowdown_room ? 2 * l->slowdown_room : 4096;
		float *more = realloc(l->slowdown, room * sizeof(*more));

		if (!more)
			return;
		l->slowdown = more;
		l->slowdown_room = room;
	}
	l->slowdown[l->slowdowns++] = (float)flow_slowdown(f, now);
}

/* A message of @p f is complete. */
static void finish(struct lab_flow *f, uint64_t now)
{
	struct lab *l = f->from->lab;

	if (f->line->op != FLOW_UD) /* which is complete when it has left */
		judge(l, f, now);
	if (l->complete)
		l->complete(l, f, now);
	f->messages++;
	f->arrivals.gone += is_poisson(f);
	if (f->messages == f->line->count)
		f->done_at = now;
	f->since = began(f, now);
	if (f->line->gap && f->messages != f->line->count)
		engine_at(&l->engine, &f->begin, now + f->line->gap);
	post_more(f, now);
}

void flow_news(struct lab_host *h, uint64_t now)
{
	struct abi_cq_lane *lane = (struct abi_cq_lane *)(h->cq_shared + 1);
	struct core_event events[16];
	struct abi_cqe cqe;

	while (core_events(&h->host->core, events, ARRAY_SIZE(events)))
		continue;
	while (verbs_take(lane, h->cq_depth, &h->cq_taken, &cqe)) {
		struct lab_flow *f = &h->lab->flow[cqe.wr_id & ~ENDPOINT_RECEIVED];

		if (cqe.wr_id & ENDPOINT_RECEIVED)
			endpoint_received(f, cqe.status);
		else if (cqe.status == ABI_WC_SUCCESS)
			finish(f, now);
		else if (!f->failed)
			f->failed = cqe.status;
	}
}

static void begin(struct sim_event *ev, uint64_t now)
{
	struct lab_flow *f = container_of(ev, struct lab_flow, begin);

	f->allowed++;
	flow_post(f, now);
}

void flow_stop(struct lab_flow *f, uint64_t now)
{
	const struct abi_qp_attr a = {.qp_state = ABI_QPS_ERR};

	f->failed = f->failed ? f->failed : ABI_WC_WR_FLUSH_ERR;
	verbs_modify(&f->from->host->core, f->source.qp, ABI_QP_STATE, &a, NULL, now);
	nic_wake(&f->from->nic, now);
}

/* Delivers to the source the CNP that the sink would send. It crosses no cable: where it comes from
 * makes no difference. */
void flow_cnp(struct lab_flow *f, uint64_t now)
{
	struct core *c = &f->to->host->core;
	const struct bth b = {
		.code = OPCODE_CNP, .pkey = f->sink.qp->pkey, .dest_qpn = f->source.qp->qpn};
	uint8_t frame[FRAME_MAX];
	struct txd t = {.frame = frame};
	struct path path = f->sink.qp->path;
	uint8_t *reserved = packet_begin_to(&c->ip_id, f->sink.qp, &path, &t, &b, CNP_RESERVED);

	memset(reserved, 0, CNP_RESERVED);
	t.hdr_len += CNP_RESERVED;
	t.payload_len = 0;
	host_frame(f->from->host, frame, core_seal(c, &t), 0, now);
	nic_wake(&f->from->nic, now);
}

struct cc_view flow_view(const struct lab_flow *f, uint64_t now)
{
	const struct limiter *l = f->source.qp->limiter;
	struct cc_view v = {.rate = f->from->lab->s->cc.line, .target = v.rate};
	struct cc cc = l->cc; /* time advances in a copy: reading must not change the state */

	if (l->ops) {
		l->ops->on_time(&cc, now);
		l->ops->look(&cc, &v);
	}
	return v;
}

/* Where the sink is: all before that has arrived in order. Datagrams have no order. */
static uint32_t psn_of(const struct lab_flow *f)
{
	if (f->line->op == FLOW_UD)
		return f->received & SEQ24_MASK;
	return f->line->op == FLOW_READ ? f->sink.qp->comp.una : f->sink.qp->resp.epsn;
}

void flow_look(struct lab_flow *f)
{
	uint32_t psn = psn_of(f);

	f->packets += (psn - f->psn) & SEQ24_MASK;
	f->psn = psn;
}

/* --- the flow -------------------------------------------------------------------------- */

bool flow_init(struct lab *l, struct lab_flow *f, uint64_t at)
{
	engine_event(&f->begin, begin);
	if (!endpoint_make(f))
		return false;
	f->psn = psn_of(f);
	if (!is_poisson(f))
		engine_at(&l->engine, &f->begin, at);
	return true;
}

void flow_free(struct lab_flow *f)
{
	free(f->arrivals.ring);
}
