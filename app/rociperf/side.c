/* SPDX-License-Identifier: BSD-3-Clause */
#include "recvs.h"
#include "side.h"
#include "verify.h"

#define IMM 0x1 /* its value is not used */

/* The wr_id of a completion gives its QP, and how many requests it completes: the earlier ones were
 * not signaled. */
static uint64_t wr_id(uint32_t covers, uint32_t flow)
{
	return (uint64_t)covers << 32 | flow;
}

static void aim(const struct end *e, struct roci_send_wr *wr, uint64_t addr)
{
	if (e->op->atomic) {
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.compare_add = 0;
		wr->wr.atomic.swap = 0;
		wr->wr.atomic.rkey = e->peer_rkey;
	} else {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = e->peer_rkey;
	}
}

static void aim_datagram(const struct end *e, const struct flow *f, struct roci_send_wr *wr)
{
	wr->wr.ud.ah = e->ah;
	wr->wr.ud.remote_qpn = f->peer_qpn;
	wr->wr.ud.remote_qkey = END_QKEY;
}

/* Lets a FLUSH, @p flush, of the same range follow @p wr, a WRITE. */
static void add_flush(const struct end *e, struct roci_send_wr *wr, struct roci_send_wr *flush)
{
	*flush = (struct roci_send_wr){.sg_list = wr->sg_list,
		.opcode = ROCI_WR_FLUSH,
		.wr.flush = {.remote_addr = wr->wr.rdma.remote_addr,
			.rkey = e->peer_rkey,
			.length = e->shape.size,
			.type = ROCI_FLUSH_GLOBAL,
			.level = ROCI_FLUSH_RANGE}};
	wr->next = flush;
}

/* Aims one message; @p wr is its first request.  @return its last one, which completes. */
static struct roci_send_wr *prepare(
	struct side *s, struct flow *f, struct roci_send_wr *wr, struct roci_sge *sge, bool flush)
{
	struct end *e = &s->end;
	uint64_t offset = cursor_tx(e, f, &f->sent);
	struct roci_send_wr *last = wr;

	if (e->op->fetches) {
		*sge = (struct roci_sge){(uintptr_t)e->rx + offset, e->shape.size, e->mr->lkey};
		aim(e, wr, e->peer_tx + offset);
	} else {
		if (e->plan->value[PARAM_VERIFY])
			verify_fill(e, f);
		if (s->marks)
			e->tx[offset + e->shape.size - 1] = side_mark(&f->sent);
		*sge = (struct roci_sge){(uintptr_t)e->tx + offset, e->shape.size, e->mr->lkey};
		if (e->ah)
			aim_datagram(e, f, wr);
		else
			aim(e, wr, e->peer_rx + offset);
	}
	wr->send_flags = e->shape.send_flags;
	wr->qp_type.xrc.remote_srqn = e->peer_srqn;
	if (e->op->flushes) {
		last = wr + 1;
		add_flush(e, wr, last);
	}
	f->unsignaled++;
	if (f->unsignaled == e->shape.cq_mod || flush) {
		last->send_flags |= ROCI_SEND_SIGNALED;
		last->wr_id = wr_id(f->unsignaled, (uint32_t)(f - e->flow));
		f->unsignaled = 0;
	}
	cursor_next(&f->sent, e->shape.tx_slots);
	return last;
}

void side_post(struct side *s, struct flow *f, uint32_t count, bool flush)
{
	static struct roci_send_wr wr[LIST_MAX * END_REQUESTS_MAX];
	static struct roci_sge sge[LIST_MAX];
	struct roci_send_wr *at = wr, *last;

	for (uint32_t i = 0; i < count; i++, at = last + 1) {
		at->next = NULL;
		at->sg_list = &sge[i];
		at->num_sge = 1;
		at->opcode = s->end.op->opcode;
		at->imm_data = IMM;
		last = prepare(s, f, at, &sge[i], flush && i + 1 == count);
		if (i + 1 < count)
			last->next = last + 1;
	}
	end_must(!roci_post_send(f->qp, wr, NULL), "post requests");
	f->under_way += count;
	s->under_way += count;
}

void side_flush(struct side *s)
{
	for (uint32_t i = 0; i < s->end.flows; i++)
		if (s->end.flow[i].unsignaled)
			side_post(s, &s->end.flow[i], 1, true);
}

uint32_t side_completed(struct side *s, struct flow *f, const struct roci_wc *wc)
{
	uint32_t covers = (uint32_t)(wc->wr_id >> 32);

	if (s->end.op->fetches && s->end.plan->value[PARAM_VERIFY])
		verify_fetched(&s->end, f, covers);
	f->under_way -= covers;
	s->under_way -= covers;
	return covers;
}

void side_received(struct side *s, struct flow *f, const struct roci_wc *wc)
{
	uint32_t length = wc->byte_len - s->end.shape.rx_header;
	bool verify = s->end.plan->value[PARAM_VERIFY];
	bool late = verify && verify_is_late(&s->end, length);

	if (verify && !late)
		verify_arrived(&s->end, f, length, 0);
	s->arrived += length == s->end.shape.size; /* otherwise of an earlier size */
	recvs_taken(&s->end, f);
	if (late)
		f->taken.seq--; /* it took a receive of this size, but is a message of another
				 * size */
}

int side_poll(struct side *s, struct roci_wc wc[POLL_MAX])
{
	int n = roci_poll_cq(s->end.cq, POLL_MAX, wc);

	end_must(n >= 0, "completions");
	for (int i = 0; i < n; i++)
		if (wc[i].status != ROCI_WC_SUCCESS)
			end_failed(&s->end, &wc[i]);
	return n;
}
