/* SPDX-License-Identifier: BSD-3-Clause */
#include "direct.h"
#include "completer.h"
#include "core_memory.h"
#include "headers.h"
#include "mw.h"
#include "mw_wqe.h"
#include "opcode.h"
#include "pieces.h"
#include "qp_impl.h"
#include "qp_table.h"
#include "recv.h"
#include "requester.h"
#include "responder.h"
#include "seq24.h"
#include "txd.h"
#include "uaccess.h"
#include "wqe.h"

/* A turn takes no longer than one of QUANTUM frames whose payloads are in no cache. */
#define TURN_BYTES (DIRECT_ROUND / 2)

/** A part of a message: as many packets of it as may be copied now. */
struct part {
	struct qp *qp; /* requester */
	struct qp *peer;
	struct send_wqe *wqe;
	uint8_t kind; /* enum opcode_kind */
	bool first;
	bool last;
	bool ends;    /* the last of its request; a long READ is several (REQ-39) */
	uint32_t off; /* in the message */
	uint32_t len;
	uint32_t packets;
	uint64_t orig; /* ATOMIC: the word before the operation */
};

/* --- the two QPs ------------------------------------------------------------------------ */

/* Nothing of @p qp is under way, and nothing is to be sent again. */
static bool is_at_rest(const struct qp *qp)
{
	const struct qp_req *r = &qp->req;

	return qp->state == ABI_QPS_RTS && r->psn == r->psn_new && qp->comp.una == r->psn &&
	       qp->comp.head == r->cur && !qp->comp.rnr_wait;
}

/* Whether each QP accepts the addresses of the other one's path (VAL-12, VAL-13, ETH-07), which
 * path_matches() checks for each packet. */
static bool is_mirrored(const struct path *ours, const struct path *peer)
{
	const uint8_t *a = ours->hdr + ours->l3_off, *b = peer->hdr + peer->l3_off;

	if (ours->net != peer->net || ours->vid != peer->vid || ours->port != peer->port)
		return false;
	if (ours->net == NET_IPV4)
		return !memcmp(a + IP4_SRC, b + IP4_DST, 4) && !memcmp(a + IP4_DST, b + IP4_SRC, 4);
	return !memcmp(a + IP6_SRC, b + IP6_DST, 16) && !memcmp(a + IP6_DST, b + IP6_SRC, 16);
}

/* The checks of classify.c before the responder sees a packet. */
static bool is_peer(const struct qp *qp, const struct qp *peer)
{
	const unsigned receiving = 1u << ABI_QPS_RTR | 1u << ABI_QPS_RTS | 1u << ABI_QPS_SQD;

	return peer->opc == qp->opc && peer->type != ABI_QPT_XRC_SEND &&
	       (receiving >> peer->state & 1) &&				       /* RSP-47 */
	       peer->attr.dest_qpn == qp->qpn && peer->path.local &&		       /* SEC-03 */
	       peer->mtu_shift == qp->mtu_shift && pkey_match(qp->pkey, peer->pkey) && /* VAL-08 */
	       is_mirrored(&qp->path, &peer->path);
}

/* The peer, when it is a QP of this core that owes nothing and expects the next PSN of @p qp. */
static struct qp *ready_peer(const struct core *c, const struct qp *qp)
{
	uint32_t qpn = qp->attr.dest_qpn;
	struct qp *peer =
		atomic_load_explicit(&c->cfg.qps->slot[QPN_SLOT(qpn)], memory_order_acquire);
	const struct qp_resp *r;

	if (!peer || peer->qpn != qpn || qp_owner(peer) != c->cfg.worker)
		return NULL;
	r = &peer->resp;
	if (r->epsn != qp->req.psn || r->owed != OWE_NOTHING || r->nak_sent || r->rnr_sent ||
		responder_pending(&peer->resp))
		return NULL;
	return is_peer(qp, peer) ? peer : NULL;
}

/* --- the next part ---------------------------------------------------------------------- */

/* @return the WQE at the cursor, or NULL: there is none. */
static struct send_wqe *next_wqe(struct core *c, struct qp *qp)
{
	if (qp->req.cur == qp->req.fetched) {
		if (!ring_ready(&qp->sq) && requester_idle(qp))
			return NULL;
		if (!requester_fetch(c, qp))
			return NULL;
	}
	return qp_wqe(qp, qp->req.cur);
}

/* Executes @p w if it sends nothing (REQ-11).
 *  @return whether it was executed, and its QP can continue without frames. */
static bool pass_local(struct core *c, struct qp *qp, struct send_wqe *w, uint64_t now)
{
	if (w->status < WQE_LOCAL || !mw_wqe_work(c, qp, w))
		return false; /* the requester fails it, or waits */
	qp->req.cur++;
	completer_settle(c, qp, now);
	return is_at_rest(qp);
}

static uint8_t kind_of(const struct send_wqe *w)
{
	switch (w->opcode) {
	case ABI_WR_SEND:
	case ABI_WR_SEND_WITH_IMM:
	case ABI_WR_SEND_WITH_INV:
		return KIND_SEND;
	case ABI_WR_RDMA_WRITE:
	case ABI_WR_RDMA_WRITE_WITH_IMM:
		return KIND_WRITE;
	case ABI_WR_RDMA_READ:
		return KIND_READ;
	case ABI_WR_ATOMIC_CMP_AND_SWP:
	case ABI_WR_ATOMIC_FETCH_AND_ADD:
		return KIND_ATOMIC;
	case ABI_WR_ATOMIC_WRITE:
		return KIND_ATOMIC_WRITE;
	default:
		return KIND_FLUSH;
	}
}

/* No part belongs to two requests. */
static void part_of_read(struct part *p)
{
	const struct qp *qp = p->qp;
	uint32_t rest = (uint32_t)seq24_diff(read_last_psn(p->wqe, qp->req.psn), qp->req.psn) + 1;

	p->ends = p->packets >= rest;
	if (likely(p->packets <= rest))
		return;
	p->packets = rest;
	p->len = rest << qp->mtu_shift;
	p->last = false;
}

/* Cuts @p room bytes, or all that is left, off the message at the cursor.
 * @return false when the peer is in the middle of another one. */
static bool part_cut(struct part *p, uint32_t room)
{
	const struct qp *qp = p->qp;
	const struct send_wqe *w = p->wqe;
	uint32_t mtu = 1u << qp->mtu_shift;
	uint32_t left;

	p->kind = kind_of(w);
	p->first = qp->req.psn == w->first_psn;
	p->off = (uint32_t)seq24_diff(qp->req.psn, w->first_psn) << qp->mtu_shift;
	left = w->length - p->off;
	if (room < mtu)
		room = mtu;
	p->last = left <= room;
	p->len = p->last ? left : room & ~(mtu - 1);
	p->packets = qp_packets(qp, p->len);
	p->ends = p->last;
	if (p->kind == KIND_READ)
		part_of_read(p);
	/* RSP-05, RSP-07: the rest of a READ is a request of its own (REQ-39). */
	return p->peer->resp.open == (p->first || p->kind == KIND_READ ? KIND_NONE : p->kind);
}

/* --- execution -------------------------------------------------------------------------- */

/* Lists where the payload of @p p lies.  @return false when a key went away. */
static bool gather(struct core *c, const struct part *p, struct txd *t)
{
	t->nsegs = 0;
	return requester_payload(c, p->qp, p->wqe, t, p->off, p->len);
}

/* XRC-04: what xrc_request() does for each packet.  @return false when it would refuse it. */
static bool name_srq(struct core *c, const struct part *p)
{
	if (likely(p->peer->opc != OPC_XRC))
		return true;
	recv_name(c, p->peer, *wqe_srqn(p->qp, p->wqe));
	return !recv_srq_gone(c, p->peer);
}

/* Takes the receive that the message needs.  @return false when there is none that is good. */
static bool take_recv(struct core *c, const struct part *p)
{
	struct qp *peer = p->peer;

	/* A frame in its place would end a message that has its receive (UC-09). */
	if ((!peer->resp.have_wqe && p->qp->opc == OPC_UC && peer->srq) || !name_srq(c, p))
		return false;
	return (peer->resp.have_wqe || recv_wqe_take(c, peer)) && !peer->resp.wqe.invalid;
}

/* The BTH opcode of the message, if it were one packet. */
static uint8_t only_opcode(const struct send_wqe *w)
{
	switch (w->opcode) {
	case ABI_WR_RDMA_WRITE_WITH_IMM:
		return OP_WRITE_ONLY_WITH_IMM;
	case ABI_WR_SEND_WITH_IMM:
		return OP_SEND_ONLY_WITH_IMM;
	case ABI_WR_SEND_WITH_INV:
		return OP_SEND_ONLY_WITH_INV;
	default:
		return OP_SEND_ONLY;
	}
}

/* The message is complete at the peer, with the receive that it took. */
static void complete_recv(struct core *c, const struct part *p, uint64_t now)
{
	const struct send_wqe *w = p->wqe;
	struct pkt pkt = {
		.op = opcode_row(only_opcode(w)),
		.imm = w->imm,
		.rkey = w->imm,			    /* INV-02 */
		.se = w->flags & ABI_WQE_SOLICITED, /* BTH-09 */
	};

	recv_complete(c, p->peer, ABI_WC_SUCCESS, &pkt, now);
}

/* INV-02: before the completion. @return false when the key is not one to invalidate (INV-03). */
static bool invalidated(struct core *c, const struct part *p)
{
	return !p->last || p->wqe->opcode != ABI_WR_SEND_WITH_INV ||
	       mw_qp_invalidate(c, p->peer, p->wqe->imm) == MW_DONE;
}

static bool execute_send(struct core *c, const struct part *p)
{
	struct qp_resp *r = &p->peer->resp;
	struct pieces pieces;
	struct txseg s;
	struct txd t;
	uint32_t at;

	if (!gather(c, p, &t) || !take_recv(c, p))
		return false;
	at = p->first ? 0 : r->recv_off;
	if ((uint64_t)at + p->len > r->wqe.length) /* RSP-20 */
		return false;
	pieces_begin(&pieces, &t, 1u << p->qp->mtu_shift);
	for (; pieces_next(core_memory(c), &pieces, &s); at += s.len)
		if (recv_place_at(c, p->peer, at, s.addr, s.len))
			return false;
	if (pieces.faulted || !invalidated(c, p))
		return false;
	r->recv_off = at;
	c->count.rx_send_requests += p->last;
	return true;
}

/* Finds the memory of the peer that @p p reads or writes. Checks the range of the rest of the
 * message, as for a request (RSP-12, RSP-13).
 *  @return false when access is refused. */
static bool remote(struct core *c, const struct part *p, uint32_t access, uint8_t **ptr)
{
	const struct send_wqe *w = p->wqe;
	struct qp *peer = p->peer;

	if (!(peer->attr.access_flags & access) || !name_srq(c, p)) /* RSP-08 */
		return false;
	return w->length == p->off ||
	       rkey_resolve(c->cfg.mrs, w->rkey, peer->pd, peer->qpn, access,
		       w->remote_addr + p->off, w->length - p->off, ptr) == MR_OK;
}

/* The state of an open WRITE at the responder, so that frames can continue it. */
static void write_opened(struct part *p)
{
	struct qp_resp *r = &p->peer->resp;

	r->rkey = p->wqe->rkey;
	r->write_len = p->wqe->length;
	r->write_left = p->wqe->length - p->off - p->len;
	r->va = p->wqe->remote_addr + p->off + p->len;
}

static bool execute_write(struct core *c, struct part *p)
{
	bool imm = p->wqe->opcode == ABI_WR_RDMA_WRITE_WITH_IMM;
	struct pieces pieces;
	uint8_t *to = NULL;
	struct txseg s;
	struct txd t;

	/* RSP-19: with its immediate data, so with the last packet. */
	if (!remote(c, p, ABI_ACCESS_REMOTE_WRITE, &to) || !gather(c, p, &t) ||
		(imm && p->last && !take_recv(c, p)))
		return false;
	pieces_begin(&pieces, &t, 1u << p->qp->mtu_shift);
	for (; pieces_next(core_memory(c), &pieces, &s); to += s.len)
		if (!uaccess_place(core_memory(c), to, s.addr, s.len))
			return false;
	if (pieces.faulted)
		return false;
	write_opened(p);
	c->count.rx_write_requests += p->last;
	return true;
}

/* Whether the QPs agreed on requests with a response of their own. None of them waits for one. */
static bool responds(const struct part *p)
{
	return p->qp->attr.max_rd_atomic && p->peer->attr.max_dest_rd_atomic; /* REQ-09, RSP-30 */
}

static bool execute_read(struct core *c, const struct part *p)
{
	uint8_t *from = NULL;

	if (p->peer->limited || !responds(p) || !remote(c, p, ABI_ACCESS_REMOTE_READ, &from))
		return false; /* its responses wait for their departures (pacing.h) */
	if (p->len && completer_place(c, p->qp, p->wqe, p->off, from, p->len))
		return false;
	c->count.rx_read_requests += p->ends;
	return true;
}

/* Where the word of the peer is that @p p operates on.  @return false when access is refused. */
static bool remote_word(struct core *c, const struct part *p, uint32_t access, uint8_t **word)
{
	return responds(p) && remote(c, p, access, word) &&
	       (p->wqe->remote_addr | (uintptr_t)*word) % ATOMIC_LEN == 0; /* RSP-32 */
}

/* RSP-33, RSP-34: executed once. If the requester's memory does not take the original word, frames
 * must not execute it again: completer_fetched(). */
static bool execute_atomic(struct core *c, struct part *p)
{
	const struct send_wqe *w = p->wqe;
	uint8_t *word;
	bool ok;

	if (!remote_word(c, p, ABI_ACCESS_REMOTE_ATOMIC, &word))
		return false;
	if (w->opcode == ABI_WR_ATOMIC_CMP_AND_SWP)
		ok = uaccess_cmp_swap(
			core_memory(c), word, w->atomic.compare_add, w->atomic.swap, &p->orig);
	else
		ok = uaccess_fetch_add(core_memory(c), word, w->atomic.compare_add, &p->orig);
	c->count.rx_atomic_requests += ok;
	return ok;
}

/* FLU-08: one store of eight bytes, which were read once. */
static bool execute_atomic_write(struct core *c, const struct part *p)
{
	uint8_t *word;
	uint64_t copy;
	struct txd t;

	if (!remote_word(c, p, ABI_ACCESS_REMOTE_WRITE, &word) || !gather(c, p, &t) || t.nsegs != 1)
		return false;
	if (!uaccess_place(core_memory(c), &copy, t.seg[0].addr, ATOMIC_LEN) ||
		!uaccess_place(core_memory(c), word, &copy, ATOMIC_LEN))
		return false;
	c->count.rx_atomic_write_requests++;
	return true;
}

static bool execute_flush(struct core *c, const struct part *p)
{
	const struct send_wqe *w = p->wqe;
	const struct pkt pkt = {
		.va = w->remote_addr, .dma_len = w->flush_len, .rkey = w->rkey, .feth = w->imm};

	return responds(p) && name_srq(c, p) && responder_flush(c, p->peer, &pkt) == CAUSE_NONE;
}

static NOINLINE bool execute(struct core *c, struct part *p)
{
	switch (p->kind) {
	case KIND_SEND:
		return execute_send(c, p);
	case KIND_WRITE:
		return execute_write(c, p);
	case KIND_ATOMIC:
		return execute_atomic(c, p);
	case KIND_ATOMIC_WRITE:
		return execute_atomic_write(c, p);
	case KIND_FLUSH:
		return execute_flush(c, p);
	default:
		return execute_read(c, p);
	}
}

/* Advances both QPs as after the packets and their acknowledgement; the receive completes first. A
 * full CQ moves its QP to ERR (CQ-01): if that is the peer, it acknowledges nothing, and frames
 * will find no answer. A UC requester succeeds by sending them.
 *  @return whether both QPs are still what is_at_rest() and is_peer() found. */
static bool advance(struct core *c, struct part *p, uint64_t now)
{
	responder_delivered(c, p->peer, p->kind, p->packets, p->ends);
	if (p->last && (p->wqe->flags & WQE_TAKES_RECV))
		complete_recv(c, p, now);
	if (unlikely(p->peer->state == ABI_QPS_ERR))
		return false;
	requester_delivered(p->qp, p->packets, p->last);
	if (p->kind == KIND_ATOMIC)
		completer_fetched(c, p->qp, p->orig, now);
	else
		completer_delivered(c, p->qp, p->last, now);
	c->count.direct_messages += p->last;
	c->count.direct_bytes += p->len;
	return p->qp->state == ABI_QPS_RTS;
}

/* @return what @p p takes of c->direct_room: the memory of each SGE may be in a page that is not
 * present. */
static uint32_t cost_of(const struct part *p)
{
	uint32_t pieces = p->wqe->num_sge;

	if (p->wqe->flags & WQE_TAKES_RECV)
		pieces += p->peer->resp.wqe.num_sge;
	return p->len + (pieces > 2 ? pieces - 1 : 1) * DIRECT_PIECE;
}

static void spend(struct core *c, uint32_t cost)
{
	c->direct_room -= cost < c->direct_room ? cost : c->direct_room;
}

enum way {
	GO_ON,
	ENOUGH, /* the rest is for another turn */
	FRAMES, /* or nothing is posted */
};

static enum way datagram(struct core *c, const struct part *p, uint64_t now)
{
	if (!direct_datagram(c, p->qp, p->wqe, now))
		return FRAMES;
	spend(c, p->wqe->length + (p->wqe->num_sge + 1u) * DIRECT_PIECE);
	requester_delivered(p->qp, 1, true);
	completer_delivered(c, p->qp, true, now);
	return p->qp->state == ABI_QPS_RTS ? GO_ON : ENOUGH;
}

/* A run of messages, or one, or a part of it, of @p room bytes at most. */
static enum way step(struct core *c, struct part *p, uint32_t room, uint64_t now)
{
	uint32_t cost = direct_run(c, p->qp, p->peer, room, now);
	bool done;

	if (cost) {
		spend(c, cost);
		return GO_ON;
	}
	p->wqe = next_wqe(c, p->qp);
	if (!p->wqe)
		return FRAMES;
	if (unlikely(p->wqe->status)) {
		spend(c, DIRECT_PIECE);
		return pass_local(c, p->qp, p->wqe, now) ? GO_ON : FRAMES;
	}
	if (unlikely(p->qp->opc == OPC_UD))
		return datagram(c, p, now);
	if (!part_cut(p, room))
		return FRAMES;
	done = execute(c, p);
	spend(c, cost_of(p)); /* it may fail after its bytes were copied */
	if (!done)
		return FRAMES;
	return advance(c, p, now) ? GO_ON : ENOUGH;
}

bool direct_turn(struct core *c, struct qp *qp, uint64_t now)
{
	struct part p = {.qp = qp};
	uint32_t end = c->direct_room > TURN_BYTES ? c->direct_room - TURN_BYTES : 0;
	enum way way = GO_ON;

	/* Without room only frames can tell by which egress a datagram leaves. */
	if (!c->direct_room || c->careful || !c->direct || qp->limited || qp->req.rings ||
		!is_at_rest(qp))
		return false;
	if (qp->opc != OPC_UD) {
		p.peer = ready_peer(c, qp);
		if (!p.peer)
			return false;
	}
	while (way == GO_ON && c->direct_room > end)
		way = step(c, &p, c->direct_room - end, now);
	return way != FRAMES;
}
