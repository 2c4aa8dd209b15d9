/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC requester: takes WQEs from the send queue, cuts messages into packets, obeys window,
 * credits, fences and the limit of outstanding READs. It goes back when the completer says so:
 * rxe's req_retry is go_back() there and requester_seek() here.
 */
#include "completer.h"
#include "packet.h"
#include "requester.h"
#include "seq24.h"
#include "timers.h"

void requester_start(struct qp *qp, uint32_t psn)
{
	qp->req.psn = psn; /* REQ-03 */
	qp->req.psn_new = psn;
	qp->req.psn_assign = psn;
}

void requester_reset(struct qp *qp)
{
	memset(&qp->req, 0, sizeof(qp->req));
	qp->req.fetched = qp->sq.next;
	qp->req.cur = qp->sq.next;
}

uint32_t requester_discard(struct qp *qp, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && ring_ready(&qp->sq)) {
		qp->sq.next++;
		n++;
	}
	atomic_store_explicit(&qp->sq.shared->consumer, qp->sq.next, memory_order_release);
	return n;
}

bool requester_idle(struct qp *qp)
{
	struct ring *sq = &qp->sq;

	atomic_store_explicit(&sq->shared->need_doorbell, 1, memory_order_relaxed);
	/* Pairs with the application's fence between its mark and its look at need_doorbell. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!ring_ready(sq))
		return true;
	atomic_store_explicit(&sq->shared->need_doorbell, 0, memory_order_relaxed);
	return false;
}

/* --- taking a WQE --------------------------------------------------------------------- */

static bool opcode_supported(unsigned opcode) /* REQ-17 */
{
	switch (opcode) {
	case ABI_WR_RDMA_WRITE:
	case ABI_WR_RDMA_WRITE_WITH_IMM:
	case ABI_WR_SEND:
	case ABI_WR_SEND_WITH_IMM:
	case ABI_WR_RDMA_READ:
		return true;
	default:
		return false;
	}
}

static bool takes_recv_wqe(unsigned opcode) /* CRD-05 */
{
	return opcode == ABI_WR_SEND || opcode == ABI_WR_SEND_WITH_IMM ||
	       opcode == ABI_WR_RDMA_WRITE_WITH_IMM;
}

/* Checks the SGEs of a copied WQE and sums them up.  @return a status, 0 when they are good. */
static uint8_t check_sges(
	struct core *c, struct qp *qp, struct send_wqe *w, const struct abi_sge *sge, unsigned n)
{
	uint32_t access = wqe_is_read(w) ? ABI_ACCESS_LOCAL_WRITE : 0; /* REQ-45 */
	uint64_t length = 0;

	if (n > qp->sq.max_sge) /* REQ-17 */
		return ABI_WC_LOC_QP_OP_ERR;
	for (unsigned i = 0; i < n; i++) {
		wqe_sge(w)[i] = sge[i];
		length += sge[i].length;
		if (sge[i].length && mr_resolve(c->cfg.mrs, sge[i].lkey, qp->pd, access,
					     sge[i].addr, sge[i].length, NULL) != MR_OK)
			return ABI_WC_LOC_PROT_ERR; /* REQ-18 */
	}
	if (length > MSG_LEN_MAX)
		return ABI_WC_LOC_LEN_ERR; /* REQ-07 */
	w->num_sge = (uint8_t)n;
	w->length = (uint32_t)length;
	return 0;
}

static uint8_t check_inline(struct qp *qp, struct send_wqe *w, const uint8_t *data, unsigned n)
{
	if (n > qp->max_inline || wqe_is_read(w)) /* REQ-16 */
		return ABI_WC_LOC_QP_OP_ERR;
	memcpy(wqe_inline(w), data, n); /* REQ-15: a copy; no lkey is looked at */
	w->num_sge = 0;
	w->length = n;
	return 0;
}

/* Turns the copy of a shared entry into a private WQE. */
static uint8_t wqe_validate(
	struct core *c, struct qp *qp, struct send_wqe *w, const struct abi_wqe *e)
{
	unsigned count = ABI_WQE_COUNT(e->ctl);

	w->wr_id = e->wr_id;
	w->remote_addr = e->remote_addr;
	w->rkey = e->rkey;
	w->imm = e->imm;
	w->opcode = (uint8_t)ABI_WQE_OPCODE(e->ctl);
	w->flags = (uint8_t)(e->ctl & 0xFF);
	w->length = 0;
	w->num_sge = 0;
	if (!opcode_supported(w->opcode))
		return ABI_WC_LOC_QP_OP_ERR;
	if (w->flags & ABI_WQE_INLINE)
		return check_inline(qp, w, e->inline_data, count);
	return check_sges(c, qp, w, e->sge, count);
}

bool requester_fetch(struct core *c, struct qp *qp)
{
	struct ring *sq = &qp->sq;
	/* The longest stride: sixteen SGEs or the inline limit, behind the header. */
	union {
		struct abi_wqe wqe;
		uint8_t bytes[1024];
	} copy CACHE_ALIGNED;
	struct send_wqe *w;

	_Static_assert(ABI_WQE_HDR + INLINE_MAX <= sizeof(copy), "a WQE fits its copy");
	if (!ring_ready(sq))
		return false;
	uaccess_wqe(&copy, ring_slot(sq), sq->stride);
	sq->next++;
	w = qp_wqe(qp, qp->req.fetched++);
	w->status = wqe_validate(c, qp, w, &copy.wqe);
	w->first_psn = qp->req.psn_assign;
	w->last_psn = seq24_add(w->first_psn, qp_packets(qp, w->length) - 1); /* REQ-01, REQ-04 */
	/* CRD-04: in the peer's MSN each request of a long READ is a message. */
	qp->req.ssn = seq24_add(qp->req.ssn, wqe_is_read(w) ? read_part(w, w->last_psn) + 1 : 1);
	w->ssn = qp->req.ssn;
	qp->req.psn_assign = seq24_add(w->last_psn, 1);
	return true;
}

/* --- may it go? ----------------------------------------------------------------------- */

void requester_seek(struct qp *qp)
{
	qp->req.cur = qp->comp.head;
	qp->req.psn = qp->comp.una;
	qp->req.sent = qp->comp.acked;
	qp->req.rd_started = qp->comp.rd_done;
	qp->req.since_ackreq = 0;
	/* No WQE has this index while the cursor is at one that is smaller or equal. */
	qp->req.sge_wqe = qp->req.cur - 1;
}

/* The application posted more than the queue holds, and everything of that is in flight. */
static bool private_ring_full(const struct qp *qp)
{
	return qp->req.fetched - qp->comp.head == qp->sq.depth;
}

static uint32_t in_flight(const struct qp *qp)
{
	return qp->req.sent - qp->comp.acked;
}

/* Credits hold a message back (CRD-04, CRD-05) while an ACK is on its way; else one packet may
 * always go, or a peer that says "no credits" would never be asked again (CRD-09). */
static bool credit_blocks(const struct qp *qp, const struct send_wqe *w)
{
	bool asked = in_flight(qp) && !qp->req.since_ackreq;

	/* CRD-06: only what takes a receive WQE */
	return qp->comp.limited && takes_recv_wqe(w->opcode) && asked &&
	       seq24_lt(qp->comp.limit, w->ssn);
}

/* BTH-16: never 2^23 PSNs outstanding; single packets behind a long READ count as well. */
static bool psn_window_blocks(const struct qp *qp, const struct send_wqe *w)
{
	uint32_t last = wqe_is_read(w) ? read_last_psn(w, qp->req.psn) : qp->req.psn;

	return ((last - qp->comp.una) & SEQ24_MASK) >= (1u << 23) - 1;
}

static bool may_send(const struct qp *qp, const struct send_wqe *w)
{
	if ((w->flags & ABI_WQE_FENCE) && qp->req.psn == w->first_psn &&
		qp->req.rd_started != qp->comp.rd_done)
		return false; /* REQ-10 */
	if (psn_window_blocks(qp, w))
		return false;
	if (wqe_is_read(w)) /* REQ-08; what is behind waits too, for order */
		return qp->req.rd_started - qp->comp.rd_done < qp->attr.max_rd_atomic;
	return in_flight(qp) < qp->win.size && !credit_blocks(qp, w);
}

/* --- building it ---------------------------------------------------------------------- */

static uint8_t request_opcode(const struct send_wqe *w, bool first, bool last)
{
	static const uint8_t part[2][2] = {/* [first][last] of SEND; WRITE lies 6 higher */
		{OP_SEND_MIDDLE, OP_SEND_LAST}, {OP_SEND_FIRST, OP_SEND_ONLY}};
	uint8_t op = part[first][last];

	if (w->opcode == ABI_WR_RDMA_WRITE || w->opcode == ABI_WR_RDMA_WRITE_WITH_IMM)
		op += OP_WRITE_FIRST - OP_SEND_FIRST;
	if (last && (w->opcode == ABI_WR_SEND_WITH_IMM || w->opcode == ABI_WR_RDMA_WRITE_WITH_IMM))
		op++;
	return OPC_RC | op;
}

/* Puts the SGE cursor on message offset @p off. */
static void cursor_seek(struct qp *qp, struct send_wqe *w, uint32_t off)
{
	struct qp_req *r = &qp->req;

	if (r->sge_wqe == r->cur && r->sge_psn == r->psn)
		return;
	r->sge = 0;
	r->sge_off = off;
	r->sge_wqe = r->cur;
	while (r->sge < w->num_sge && r->sge_off >= wqe_sge(w)[r->sge].length)
		r->sge_off -= wqe_sge(w)[r->sge++].length;
}

/* Lists the @p len bytes at the cursor as pieces of memory and moves the cursor behind them.
 * The keys are looked up again for each packet (MR-06).  @return false when one fails. */
static bool gather(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t, uint32_t len)
{
	struct qp_req *r = &qp->req;

	while (len) {
		struct abi_sge *sge = &wqe_sge(w)[r->sge];
		uint32_t part = sge->length - r->sge_off;
		uint8_t *ptr;

		if (part > len)
			part = len;
		if (part) {
			if (mr_resolve(c->cfg.mrs, sge->lkey, qp->pd, 0, sge->addr + r->sge_off,
				    part, &ptr) != MR_OK)
				return false;
			packet_payload(t, ptr, part);
		}
		len -= part;
		r->sge_off += part;
		if (r->sge_off == sge->length) {
			r->sge++;
			r->sge_off = 0;
		}
	}
	r->sge_psn = seq24_add(r->psn, 1);
	return true;
}

static void write_reth(uint8_t *reth, uint64_t va, uint32_t rkey, uint32_t len)
{
	put_be64(reth, va);
	put_be32(reth + 8, rkey);
	put_be32(reth + 12, len);
}

/* AckReq: on the last packet of a message (BTH-13), at least each quarter of the window, and
 * before the window closes (REQ-51). */
static bool want_ack(struct qp *qp, bool last)
{
	qp->req.since_ackreq++;
	if (!last && qp->req.since_ackreq < qp->win.size / 4 && in_flight(qp) + 1 < qp->win.size &&
		!qp->comp.limited)
		return false;
	qp->req.since_ackreq = 0;
	return true;
}

/* From the private WQE alone, so it is the same each time it is sent (REQ-48). */
static bool build_send_write(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t)
{
	uint32_t psn = qp->req.psn;
	bool first = psn == w->first_psn; /* REQ-49: also of a packet sent again */
	bool last = psn == w->last_psn;
	uint32_t off = (uint32_t)seq24_diff(psn, w->first_psn) << qp->mtu_shift;
	uint32_t len = last ? w->length - off : 1u << qp->mtu_shift; /* REQ-01 */
	uint8_t code = request_opcode(w, first, last);
	const struct opcode *op = opcode_row(code);
	/* BTH-09: only where the receiver gets a completion */
	bool se = (w->flags & ABI_WQE_SOLICITED) && last && takes_recv_wqe(w->opcode);
	uint8_t *eth = packet_begin(c, qp, t, code, se ? BTH_SE : 0, want_ack(qp, last), psn, len);

	if (op->reth) {
		write_reth(eth, w->remote_addr, w->rkey, w->length); /* REQ-06 */
		eth += RETH_LEN;
	}
	if (op->immdt)
		memcpy(eth, &w->imm, IMMDT_LEN); /* BTH-26 */
	if (w->flags & ABI_WQE_INLINE) {
		if (len)
			packet_payload(t, wqe_inline(w) + off, len);
		return true;
	}
	cursor_seek(qp, w, off);
	return gather(c, qp, w, t, len);
}

/* A READ request for what is missing: all of it, or the rest after a loss (REQ-39). */
static void build_read(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t)
{
	uint32_t psn = qp->req.psn;
	uint32_t end = seq24_add(read_last_psn(w, psn), 1);
	uint64_t off = (uint64_t)seq24_diff(psn, w->first_psn) << qp->mtu_shift;
	uint64_t to = (uint64_t)((end - w->first_psn) & SEQ24_MASK) << qp->mtu_shift;
	uint8_t *eth = packet_begin(c, qp, t, OPC_RC | OP_READ_REQUEST, 0, true, psn, 0);

	if (to > w->length)
		to = w->length;
	write_reth(eth, w->remote_addr + off, w->rkey, (uint32_t)(to - off));
	w->read_psn[read_part(w, psn)] = psn;
	qp->req.rd_started++;
	qp->req.since_ackreq = 0;
}

/* The packet at req.psn is built: what is next? */
static void advance(struct core *c, struct qp *qp, const struct send_wqe *w, uint64_t now)
{
	struct qp_req *r = &qp->req;

	r->sent++;
	if (r->psn != r->psn_new)
		c->count.retransmits++;
	/* REQ-03, REQ-04 */
	r->psn = seq24_add(wqe_is_read(w) ? read_last_psn(w, r->psn) : r->psn, 1);
	if (seq24_lt(r->psn_new, r->psn))
		r->psn_new = r->psn;
	if (seq24_lt(w->last_psn, r->psn))
		r->cur++;
	timers_request_sent(c, qp, now);
}

/* Nothing before RTS (REQ-21). SQD finishes what was started, and starts nothing (REQ-50, QPS-19);
 * the rest stays queued (REQ-20). */
static bool may_run(const struct qp *qp)
{
	if (qp->comp.rnr_wait)
		return false; /* REQ-29 */
	if (qp->state == ABI_QPS_RTS)
		return true; /* QPS-18: not before */
	return qp->state == ABI_QPS_SQD && qp->req.psn != qp->req.psn_assign &&
	       (qp->req.psn != qp_wqe(qp, qp->req.cur)->first_psn ||
		       seq24_lt(qp->req.psn, qp->req.psn_new));
}

/* Once more when something was posted just before the doorbell was armed; not for ever, should an
 * application play with the mark. */
static bool next_wqe(struct core *c, struct qp *qp)
{
	if (private_ring_full(qp))
		return false;
	return requester_fetch(c, qp) || (!requester_idle(qp) && requester_fetch(c, qp));
}

bool requester_next(struct core *c, struct qp *qp, struct txd *t, uint64_t now)
{
	struct send_wqe *w;

	if (!may_run(qp))
		return false;
	if (qp->req.cur == qp->req.fetched && !next_wqe(c, qp))
		return false;
	w = qp_wqe(qp, qp->req.cur);
	if (wqe_is_read(w) && !qp->attr.max_rd_atomic)
		w->status = ABI_WC_LOC_QP_OP_ERR; /* REQ-09: now, since SQD may change it */
	if (w->status) {
		completer_local_error(c, qp, now);
		return false;
	}
	if (!may_send(qp, w))
		return false;
	if (wqe_is_read(w)) {
		build_read(c, qp, w, t);
	} else if (!build_send_write(c, qp, w, t)) {
		w->status = ABI_WC_LOC_PROT_ERR; /* the region went away meanwhile */
		completer_local_error(c, qp, now);
		return false;
	}
	advance(c, qp, w, now);
	return true;
}
