/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path of direct.c: a run of plain SENDs, WRITEs and READs of RC, each of one SGE or
 * inline, and of DIRECT_PIECE bytes at most. Each is executed from its entry in the shared ring, of
 * which there is no private copy, since a message that succeeds is never sent again; cursors, PSNs,
 * MSN and counters move once for all of them. A message that does not simply succeed is left in the
 * ring: direct.c decides about it, as if there were no runs.
 */
#include "direct.h"
#include "abi_ctl.h"
#include "abi_wqe.h"
#include "complete.h"
#include "completer.h"
#include "core.h"
#include "core_memory.h"
#include "mr.h"
#include "qp.h"
#include "qp_impl.h"
#include "recv.h"
#include "seq24.h"
#include "uaccess.h"
#include "wqe.h"

typedef uint64_t entry_part __attribute__((vector_size(16), may_alias));

/* The parts of an entry that a plain message uses: header and first SGE. */
union entry {
	entry_part part[4];
	struct abi_wqe wqe;
};

/** Messages that were executed, but are not yet in the state of the two QPs. */
struct run {
	struct qp *qp; /* requester */
	struct qp *peer;
	uint32_t messages;
	uint32_t packets;
	uint32_t acked; /* packets up to the last SEND or WRITE */
	uint32_t bytes;
	uint32_t sends, writes, reads;
	uint32_t cqes; /* of the requester */
};

/* --- one message ------------------------------------------------------------------------ */

/** A plain message. */
struct plain {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t len;
	uint8_t *memory; /* of the requester */
	uint8_t opcode;	 /* enum abi_wr_opcode */
	bool solicited;
	bool signaled;
};

/* The source of a SEND or WRITE, the target of a READ (REQ-18, REQ-45). */
static ALWAYS_INLINE bool own_memory(const struct core *c, const struct qp *qp,
	const struct abi_wqe *e, const uint8_t *slot, struct plain *m)
{
	uint32_t count = ABI_WQE_COUNT(e->ctl);
	bool reads = m->opcode == ABI_WR_RDMA_READ;

	if (e->ctl & ABI_WQE_INLINE) { /* REQ-15, REQ-16 */
		m->len = count;
		m->memory = (uint8_t *)slot + ABI_WQE_HDR;
		return !reads && count && count <= qp->max_inline && count <= DIRECT_PIECE;
	}
	m->len = e->sge[0].length;
	return count == 1 && qp->sq.max_sge && m->len && m->len <= DIRECT_PIECE &&
	       mr_resolve(c->cfg.mrs, e->sge[0].lkey, qp->pd, reads ? ABI_ACCESS_LOCAL_WRITE : 0,
		       e->sge[0].addr, m->len, &m->memory) == MR_OK;
}

/* Copies the next entry of @p qp, once.  @return false when there is none, or it is not plain. */
static ALWAYS_INLINE bool plain_read(const struct core *c, const struct qp *qp, struct plain *m)
{
	const unsigned opcodes =
		1u << ABI_WR_RDMA_WRITE | 1u << ABI_WR_SEND | 1u << ABI_WR_RDMA_READ;
	const uint8_t *slot = ring_slot(&qp->sq);
	const volatile entry_part *shared = (const volatile entry_part *)slot;
	union entry e __attribute__((aligned(16)));

	if (!ring_ready(&qp->sq))
		return false;
	e.part[0] = shared[0];
	e.part[1] = shared[1];
	e.part[2] = shared[2];
	m->opcode = (uint8_t)ABI_WQE_OPCODE(e.wqe.ctl);
	if (m->opcode > ABI_WR_RDMA_READ || !(opcodes >> m->opcode & 1))
		return false;
	m->wr_id = e.wqe.wr_id;
	m->remote_addr = e.wqe.remote_addr;
	m->rkey = e.wqe.rkey;
	m->solicited = e.wqe.ctl & ABI_WQE_SOLICITED;
	m->signaled = qp->sq_sig_all || (e.wqe.ctl & ABI_WQE_SIGNALED); /* REQ-14 */
	return own_memory(c, qp, &e.wqe, slot, m);
}

/* The memory of the peer, checked as for a packet (RSP-08, RSP-13). The key of a window is left to
 * direct.c. */
static ALWAYS_INLINE bool peers_memory(const struct core *c, const struct qp *peer,
	const struct plain *m, uint32_t access, uint8_t **at)
{
	return (peer->attr.access_flags & access) &&
	       mr_resolve(c->cfg.mrs, m->rkey, peer->pd, access, m->remote_addr, m->len, at) ==
		       MR_OK;
}

static ALWAYS_INLINE bool write_done(struct core *c, struct run *r, const struct plain *m)
{
	uint8_t *to;

	if (!peers_memory(c, r->peer, m, ABI_ACCESS_REMOTE_WRITE, &to) ||
		!uaccess_place(core_memory(c), to, m->memory, m->len))
		return false;
	r->writes++;
	return true;
}

static ALWAYS_INLINE bool read_done(struct core *c, struct run *r, const struct plain *m)
{
	uint8_t *from;

	if (unlikely(r->peer->limited)) /* its responses wait for their departures (pacing.h) */
		return false;
	if (!r->qp->attr.max_rd_atomic || !r->peer->attr.max_dest_rd_atomic || /* REQ-09, RSP-30 */
		!peers_memory(c, r->peer, m, ABI_ACCESS_REMOTE_READ, &from) ||
		!uaccess_place(core_memory(c), m->memory, from, m->len))
		return false;
	r->reads++;
	return true;
}

/* CQ-01: not where the receive may find its CQ full, or take the last place in it, which is the
 * request's. */
static ALWAYS_INLINE bool send_done(
	struct core *c, struct run *r, const struct plain *m, uint64_t now)
{
	struct cq_lane *lane = r->peer->recv_lane;

	if (lane->overflow || lane == r->qp->send_lane || cq_lane_full(lane) ||
		!recv_whole(c, r->peer, m->memory, m->len, m->solicited, now)) /* BTH-09 */
		return false;
	r->sends++;
	return true;
}

/* CQ-08, CQ-09; there is room. */
static ALWAYS_INLINE void complete(struct run *r, const struct plain *m)
{
	const struct abi_cqe cqe = {
		.wr_id = m->wr_id,
		.byte_len = m->len,
		.qpn = r->qp->qpn,
		.status = ABI_WC_SUCCESS,
		.opcode = m->opcode == ABI_WR_SEND	  ? ABI_WC_SEND
			  : m->opcode == ABI_WR_RDMA_READ ? ABI_WC_RDMA_READ
							  : ABI_WC_RDMA_WRITE,
	};

	cq_put(r->qp->send_lane, &cqe, r->qp->comp.cqes + r->cqes);
	r->cqes++;
}

/* @return false when the next message is left to direct.c. */
static ALWAYS_INLINE bool execute(struct core *c, struct run *r, uint64_t now)
{
	struct qp *qp = r->qp;
	struct plain m;

	if (!plain_read(c, qp, &m) || (m.signaled && unlikely(cq_lane_full(qp->send_lane))))
		return false;
	if (!(m.opcode == ABI_WR_RDMA_WRITE   ? write_done(c, r, &m)
		    : m.opcode == ABI_WR_SEND ? send_done(c, r, &m, now)
					      : read_done(c, r, &m)))
		return false;
	if (m.signaled)
		complete(r, &m);
	qp->sq.next++;
	r->messages++;
	r->packets += qp_packets(qp, m.len);
	if (m.opcode != ABI_WR_RDMA_READ) /* RSP-39: an ACK does not stand for responses */
		r->acked = r->packets;
	r->bytes += m.len;
	return true;
}

/* --- all of them ------------------------------------------------------------------------ */

/* The requester, as after the acknowledgement of all packets (REQ-03, REQ-35, CRD-04). */
static void advance_requester(struct core *c, struct qp *qp, const struct run *r)
{
	qp->req.fetched += r->messages;
	qp->req.cur = qp->req.fetched;
	qp->req.ssn = seq24_add(qp->req.ssn, r->messages);
	qp->req.psn = seq24_add(qp->req.psn, r->packets);
	qp->req.psn_new = qp->req.psn;
	qp->req.psn_assign = qp->req.psn;
	qp->comp.una = qp->req.psn;
	qp->comp.head = qp->req.fetched;
	qp->comp.cqes += r->cqes;
	if (r->cqes && list_empty(&qp->send_lane->touched))
		list_push(&c->touched, &qp->send_lane->touched);
	atomic_store_explicit(&qp->sq.shared->consumer, qp->comp.head, memory_order_release);
}

/* The responder, as after their execution (RSP-01, RSP-25). */
static void advance_responder(struct qp *peer, const struct run *r)
{
	struct qp_resp *s = &peer->resp;

	if (r->acked)
		s->ack_psn = seq24_add(s->epsn, r->acked + SEQ24_MASK);
	s->epsn = seq24_add(s->epsn, r->packets);
	s->msn = seq24_add(s->msn, r->messages);
}

static void count(struct core_counters *n, const struct run *r)
{
	n->rx_send_requests += r->sends;
	n->rx_write_requests += r->writes;
	n->rx_read_requests += r->reads;
	n->direct_messages += r->messages;
	n->direct_bytes += r->bytes;
}

/* The peer is between two messages and has received before (RSP-46); what was fetched goes first,
 * and no completion was lost (CQ-01). */
static bool may_run(const struct core *c, const struct qp *qp, const struct qp *peer)
{
	return c->fast_paths && qp->opc == OPC_RC && qp->req.cur == qp->req.fetched &&
	       peer->resp.open == KIND_NONE && peer->comm_est && !qp->send_lane->overflow;
}

uint32_t direct_run(struct core *c, struct qp *qp, struct qp *peer, uint32_t room, uint64_t now)
{
	struct run r = {.qp = qp, .peer = peer};
	uint32_t cost = 0;

	if (!may_run(c, qp, peer))
		return 0;
	while (cost < room && execute(c, &r, now))
		cost = r.bytes + r.messages * DIRECT_PIECE;
	if (!r.messages)
		return 0;
	advance_responder(peer, &r);
	advance_requester(c, qp, &r);
	count(&c->count, &r);
	return cost;
}
