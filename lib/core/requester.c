/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC requester: takes WQEs from the send queue, cuts messages into packets, obeys window, credits,
 * fences and the limit of outstanding READs. It goes back when the completer says so: rxe's
 * req_retry is go_back() there and requester_seek() here.
 */
#include "completer.h"
#include "mw_wqe.h"
#include "packet.h"
#include "pacing.h"
#include "qp_impl.h"
#include "requester.h"
#include "seq24.h"
#include "timers.h"
#include "txd.h"
#include "uaccess.h"
#include "ud.h"
#include "wqe.h"

/* WQEs in a row, in one turn, that send nothing. */
#define LOCAL_MAX 16u

void requester_start(struct qp *qp, uint32_t psn)
{
	qp->req.psn = psn; /* REQ-03 */
	qp->req.psn_new = psn;
	qp->req.psn_assign = psn;
}

void requester_resume(struct qp *qp)
{
	qp->req.psn = qp->req.psn_new;
	qp->req.psn_assign = qp->req.psn_new;
	qp->req.cur = qp->req.fetched;
	qp->req.sge_wqe = qp->req.cur - 1; /* no WQE has this index */
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
	qp->req.rings = !ring_ready(sq);
	if (qp->req.rings)
		return true;
	atomic_store_explicit(&sq->shared->need_doorbell, 0, memory_order_relaxed);
	return false;
}

/* --- taking a WQE --------------------------------------------------------------------- */

enum wr_kind {
	WR_NONE, /* REQ-17: not an operation */
	WR_DATA, /* SGEs or inline */
	WR_ATOMIC,
	WR_WORD, /* SGEs or inline, exactly one word */
	WR_FLUSH,
	WR_BIND,
	WR_INVALIDATE,
};

/* Services that support it. */
enum wr_service {
	SERVICE_ALL,
	SERVICE_CONNECTED,
	SERVICE_RELIABLE,
};

/* Indexed by enum abi_wr_opcode. */
static const struct wr_op {
	uint8_t kind;	    /* enum wr_kind */
	uint8_t service;    /* enum wr_service */
	uint8_t flags;	    /* WQE_* */
	uint8_t code[2][2]; /* BTH opcode: [first][last] */
} wr_ops[] = {
/* clang-format off */
#define SEND_CODES(last, only)	{{OP_SEND_MIDDLE, last}, {OP_SEND_FIRST, only}}
#define WRITE_CODES(last, only) {{OP_WRITE_MIDDLE, last}, {OP_WRITE_FIRST, only}}
	[ABI_WR_RDMA_WRITE] = {WR_DATA, SERVICE_CONNECTED, 0,
		WRITE_CODES(OP_WRITE_LAST, OP_WRITE_ONLY)},
	[ABI_WR_RDMA_WRITE_WITH_IMM] = {WR_DATA, SERVICE_CONNECTED, WQE_TAKES_RECV,
		WRITE_CODES(OP_WRITE_LAST_WITH_IMM, OP_WRITE_ONLY_WITH_IMM)},
	[ABI_WR_SEND] = {WR_DATA, SERVICE_ALL, WQE_TAKES_RECV,
		SEND_CODES(OP_SEND_LAST, OP_SEND_ONLY)},
	[ABI_WR_SEND_WITH_IMM] = {WR_DATA, SERVICE_ALL, WQE_TAKES_RECV,
		SEND_CODES(OP_SEND_LAST_WITH_IMM, OP_SEND_ONLY_WITH_IMM)},
	[ABI_WR_SEND_WITH_INV] = {WR_DATA, SERVICE_RELIABLE, WQE_TAKES_RECV,
		SEND_CODES(OP_SEND_LAST_WITH_INV, OP_SEND_ONLY_WITH_INV)},
	[ABI_WR_RDMA_READ] = {WR_DATA, SERVICE_RELIABLE, WQE_RESPONSE | WQE_FETCHES, {{0}}},
	[ABI_WR_ATOMIC_CMP_AND_SWP] = {WR_ATOMIC, SERVICE_RELIABLE, WQE_RESPONSE | WQE_FETCHES, {{0}}},
	[ABI_WR_ATOMIC_FETCH_AND_ADD] = {WR_ATOMIC, SERVICE_RELIABLE, WQE_RESPONSE | WQE_FETCHES, {{0}}},
	[ABI_WR_FLUSH] = {WR_FLUSH, SERVICE_RELIABLE, WQE_RESPONSE, {{0}}},
	[ABI_WR_ATOMIC_WRITE] = {WR_WORD, SERVICE_RELIABLE, WQE_RESPONSE, {{0}, {0, OP_ATOMIC_WRITE}}},
	[ABI_WR_BIND_MW] = {WR_BIND, SERVICE_CONNECTED, 0, {{0}}},
	[ABI_WR_LOCAL_INV] = {WR_INVALIDATE, SERVICE_CONNECTED, 0, {{0}}},
	/* clang-format on */
};

static bool opcode_supported(const struct qp *qp, unsigned opcode) /* REQ-17, UC-01, UD-01 */
{
	if (opcode >= ARRAY_SIZE(wr_ops))
		return false;
	if (likely(qp->reliable)) /* supports all of them */
		return true;
	return wr_ops[opcode].service == SERVICE_ALL ||
	       (wr_ops[opcode].service == SERVICE_CONNECTED && qp->opc != OPC_UD);
}

static NOINLINE uint8_t refuse_sge(
	const struct core *c, struct qp *qp, struct send_wqe *w, uint32_t culprit)
{
	cause_refuse_sge(c, qp, qp->req.fetched - 1, culprit);
	return wqe_refuse(w, ABI_WC_LOC_PROT_ERR, CAUSE_POST_KEY, culprit);
}

/* Checks the SGEs of a copied WQE and adds up their lengths.  @return a status, 0 when they are
 * good. Inlined for SEND, WRITE and READ. */
static ALWAYS_INLINE uint8_t check_sges(
	struct core *c, struct qp *qp, struct send_wqe *w, const struct abi_sge *sge, unsigned n)
{
	uint32_t access = wqe_local_access(w);
	uint64_t length = 0;

	if (n > qp->sq.max_sge) /* REQ-17 */
		return wqe_refuse(w, ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_SGES, n);
	for (unsigned i = 0; i < n; i++) {
		wqe_sge(w)[i] = sge[i];
		length += sge[i].length;
		if (sge[i].length && mr_resolve(c->cfg.mrs, sge[i].lkey, qp->pd, access,
					     sge[i].addr, sge[i].length, NULL) != MR_OK)
			return refuse_sge(c, qp, w, i); /* REQ-18 */
	}
	if (length > MSG_LEN_MAX)
		return wqe_refuse(w, ABI_WC_LOC_LEN_ERR, CAUSE_POST_LENGTH, n); /* REQ-07 */
	w->num_sge = (uint8_t)n;
	w->length = (uint32_t)length;
	return 0;
}

static NOINLINE uint8_t check_inline(
	struct qp *qp, struct send_wqe *w, const uint8_t *data, unsigned n)
{
	if (n > qp->max_inline || (w->flags & WQE_FETCHES)) /* REQ-16 */
		return wqe_refuse(w, ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_INLINE, n);
	memcpy(wqe_inline(w), data, n); /* REQ-15: a copy; the lkey is ignored */
	w->num_sge = 0;
	w->length = n;
	return 0;
}

/* The operands precede the only SGE, which receives the original value. */
static uint8_t check_atomic(
	struct core *c, struct qp *qp, struct send_wqe *w, const struct abi_wqe *e, unsigned n)
{
	uint8_t status;

	w->atomic.compare_add = e->atomic.compare_add;
	w->atomic.swap = e->atomic.swap;
	if (n != 1)
		return wqe_refuse(w, ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_ATOMIC, n);
	status = check_sges(c, qp, w, &e->atomic.sge, n);
	if (!status && w->length != ATOMIC_LEN)
		status = wqe_refuse(w, ABI_WC_LOC_LEN_ERR, CAUSE_POST_ATOMIC, n);
	return status;
}

/* FLU-08: one word. */
static NOINLINE uint8_t check_word(
	struct core *c, struct qp *qp, struct send_wqe *w, const struct abi_wqe *e, unsigned n)
{
	uint8_t status = w->flags & ABI_WQE_INLINE ? check_inline(qp, w, e->inline_data, n)
						   : check_sges(c, qp, w, e->sge, n);

	if (!status && w->length != ATOMIC_LEN)
		status = wqe_refuse(w, ABI_WC_LOC_LEN_ERR, CAUSE_POST_WORD, n);
	return status;
}

static uint8_t check_flush(struct send_wqe *w, const struct abi_wqe *e)
{
	w->imm = e->feth & (FETH_PLT_MASK | FETH_SEL_MASK);
	w->flush_len = e->flush.length;
	return w->flush_len > MSG_LEN_MAX
		       ? wqe_refuse(w, ABI_WC_LOC_LEN_ERR, CAUSE_POST_LENGTH, 0) /* REQ-07 */
		       : 0;
}

/* Everything else is checked on execution. */
static uint8_t check_bind(struct send_wqe *w, const struct abi_wqe *e)
{
	w->imm = e->bind.mr_lkey;
	w->rkey = e->bind.new_rkey;
	w->remote_addr = e->bind.addr;
	w->bind.mw = e->bind.mw;
	w->bind.access = e->bind.access;
	w->bind.length = e->bind.length;
	return WQE_LOCAL;
}

/* Uncommon WQEs (atomics, FLUSH, invalidate, bind), out of line so that plain SENDs, WRITEs and
 * READs stay short. */
static NOINLINE uint8_t check_operands(
	struct core *c, struct qp *qp, struct send_wqe *w, const struct abi_wqe *e, unsigned n)
{
	switch (wr_ops[w->opcode].kind) {
	case WR_ATOMIC:
		return w->flags & ABI_WQE_INLINE ? check_inline(qp, w, e->inline_data, n)
						 : check_atomic(c, qp, w, e, n);
	case WR_WORD:
		return check_word(c, qp, w, e, n);
	case WR_FLUSH:
		return check_flush(w, e);
	case WR_BIND:
		return check_bind(w, e);
	case WR_INVALIDATE:
		return WQE_LOCAL;
	default:
		return wqe_refuse(w, ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_OPCODE, 0);
	}
}

/* Turns the copy of a shared entry into a private WQE. */
static ALWAYS_INLINE uint8_t wqe_validate(
	struct core *c, struct qp *qp, struct send_wqe *w, const struct abi_wqe *e)
{
	unsigned count = ABI_WQE_COUNT(e->ctl);

	w->wr_id = e->wr_id;
	w->remote_addr = e->remote_addr;
	w->rkey = e->rkey;
	w->imm = e->imm;
	w->opcode = (uint8_t)ABI_WQE_OPCODE(e->ctl);
	w->flags = (uint8_t)(e->ctl & ABI_WQE_FLAGS);
	w->length = 0;
	w->num_sge = 0;
	if (!opcode_supported(qp, w->opcode))
		return wqe_refuse(w, ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_OPCODE, 0);
	w->flags |= wr_ops[w->opcode].flags;
	if (unlikely(wr_ops[w->opcode].kind != WR_DATA))
		return check_operands(c, qp, w, e, count);
	return w->flags & ABI_WQE_INLINE ? check_inline(qp, w, e->inline_data, count)
					 : check_sges(c, qp, w, e->sge, count);
}

static ALWAYS_INLINE bool fetch(struct core *c, struct qp *qp)
{
	struct ring *sq = &qp->sq;
	/* The longest stride: the header and sixteen SGEs, or the inline limit. */
	union {
		struct abi_wqe wqe;
		uint8_t bytes[1024];
	} copy __attribute__((aligned(16))); /* for uaccess_wqe() */
	struct send_wqe *w;

	_Static_assert(ABI_WQE_HDR + INLINE_MAX <= sizeof(copy), "a WQE fits its copy");
	if (!ring_ready(sq))
		return false;
	uaccess_wqe(&copy, ring_slot(sq), sq->stride);
	sq->next++;
	w = qp_wqe(qp, qp->req.fetched++);
	w->status = wqe_validate(c, qp, w, &copy.wqe);
	if (unlikely(qp->opc == OPC_XRC))
		*wqe_srqn(qp, w) = copy.wqe.srqn & SEQ24_MASK;
	if (unlikely(qp->opc == OPC_UD) && !w->status)
		ud_address(c, qp, w, &copy.wqe);
	w->first_psn = qp->req.psn_assign;
	if (unlikely(w->status == WQE_LOCAL)) { /* takes no PSN */
		w->last_psn = seq24_add(w->first_psn, SEQ24_MASK);
		return true;
	}
	/* REQ-01, REQ-04; REQ-05: an ATOMIC is shorter than any MTU, and a FLUSH has no length */
	w->last_psn = seq24_add(w->first_psn, qp_packets(qp, w->length) - 1);
	/* CRD-04: each request of a long READ counts as a message in the peer's MSN. */
	qp->req.ssn = seq24_add(qp->req.ssn, wqe_is_read(w) ? read_part(w, w->last_psn) + 1 : 1);
	w->ssn = qp->req.ssn;
	qp->req.psn_assign = seq24_add(w->last_psn, 1);
	return true;
}

NOINLINE bool requester_fetch(struct core *c, struct qp *qp)
{
	return fetch(c, qp);
}

void requester_delivered(struct qp *qp, uint32_t packets, bool complete)
{
	struct qp_req *r = &qp->req;

	r->psn = seq24_add(r->psn, packets);
	r->psn_new = r->psn;
	r->cur += complete;
}

/* --- may it be sent? --------------------------------------------------------------------- */

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

static uint32_t in_flight(const struct qp *qp)
{
	return qp->req.sent - qp->comp.acked;
}

/* Credits hold a message back (CRD-04, CRD-05) while an ACK is expected; otherwise one packet may
 * always be sent, or a peer that reports no credits would never be asked again (CRD-09). */
static bool credit_blocks(const struct qp *qp, const struct send_wqe *w)
{
	bool asked = in_flight(qp) && !qp->req.since_ackreq;

	/* CRD-06: only requests that consume a receive WQE */
	return qp->comp.limited && (w->flags & WQE_TAKES_RECV) && asked &&
	       seq24_lt(qp->comp.limit, w->ssn);
}

/* BTH-16: never 2^23 PSNs outstanding; single packets after a long READ count as well. */
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
	if (wqe_has_response(w)) /* REQ-08; later WQEs wait too, to keep the order */
		return qp->req.rd_started - qp->comp.rd_done < qp->attr.max_rd_atomic;
	/* A packet that asks for an ACK may always follow those that did not: a window that shrank
	 * has no room left, and no ACK would be expected (REQ-51). */
	return (in_flight(qp) < qp->win.size || qp->req.since_ackreq) && !credit_blocks(qp, w);
}

/* --- building it ---------------------------------------------------------------------- */

static uint8_t request_opcode(const struct send_wqe *w, bool first, bool last)
{
	return wr_ops[w->opcode].code[first][last];
}

/* Moves the SGE cursor to message offset @p off. */
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

/* Lists the @p len bytes at the cursor as pieces of memory and advances the cursor. The keys are
 * looked up again for each packet (MR-06).  @return false when one fails. */
static ALWAYS_INLINE bool gather(
	struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t, uint32_t len)
{
	struct qp_req *r = &qp->req;

	while (len) {
		struct abi_sge *sge = &wqe_sge(w)[r->sge];
		uint32_t part = sge->length - r->sge_off;
		uint8_t *ptr;

		if (unlikely(r->sge == w->num_sge))
			return false; /* never: what follows is another WQE */
		if (part > len)
			part = len;
		if (part) {
			if (mr_resolve(c->cfg.mrs, sge->lkey, qp->pd, 0, sge->addr + r->sge_off,
				    part, &ptr) != MR_OK) {
				/* A message that does not go directly is tried again. */
				r->sge_wqe = r->cur - 1;
				return false;
			}
			packet_payload(t, ptr, part, sge->lkey);
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

static ALWAYS_INLINE bool payload(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t,
	uint32_t off, uint32_t len)
{
	if (w->flags & ABI_WQE_INLINE) {
		if (len)
			packet_payload(t, wqe_inline(w) + off, len, 0);
		return true;
	}
	cursor_seek(qp, w, off);
	return gather(c, qp, w, t, len);
}

bool requester_payload(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t,
	uint32_t off, uint32_t len)
{
	return payload(c, qp, w, t, off, len);
}

/* AckReq: on the last packet of a message (BTH-13), at least once per quarter of the window, and
 * before the window closes (REQ-51). */
static bool want_ack(struct qp *qp, bool last)
{
	qp->req.since_ackreq++; /* unreliable: counts all packets, so may_send() never blocks */
	if (unlikely(!qp->reliable))
		return false; /* UC-02 */
	if (!last && qp->req.since_ackreq < qp->win.size / 4 && in_flight(qp) + 1 < qp->win.size &&
		!qp->comp.limited && !(unlikely(qp->limited) && pacing_wants_ack(qp)))
		return false;
	qp->req.since_ackreq = 0;
	return true;
}

/* Built from the private WQE alone, so every retransmission is identical (REQ-48). */
static ALWAYS_INLINE bool build_send_write(
	struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t)
{
	uint32_t psn = qp->req.psn;
	bool first = psn == w->first_psn; /* REQ-49: for retransmitted packets too */
	bool last = psn == w->last_psn;
	uint32_t off = (uint32_t)seq24_diff(psn, w->first_psn) << qp->mtu_shift;
	uint32_t len = last ? w->length - off : 1u << qp->mtu_shift; /* REQ-01 */
	uint8_t code = qp->opc | request_opcode(w, first, last);
	const struct opcode *op = opcode_row(code);
	/* BTH-09: only where the receiver gets a completion */
	bool se = (w->flags & ABI_WQE_SOLICITED) && last && (w->flags & WQE_TAKES_RECV);
	uint8_t *eth =
		packet_begin(&c->ip_id, qp, t, code, se ? BTH_SE : 0, want_ack(qp, last), psn, len);

	if (op->reth) {
		packet_reth(eth, w->remote_addr, w->rkey, w->length); /* REQ-06 */
		eth += RETH_LEN;
	}
	if (op->immdt)
		memcpy(eth, &w->imm, IMMDT_LEN); /* BTH-26 */
	else if (unlikely(op->ieth))
		put_be32(eth, w->imm); /* INV-01 */
	return payload(c, qp, w, t, off, len);
}

/* A READ request for the missing data: all of it, or the rest after a loss (REQ-39). */
static ALWAYS_INLINE void build_read(
	struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t)
{
	uint32_t psn = qp->req.psn;
	uint32_t end = seq24_add(read_last_psn(w, psn), 1);
	uint64_t off = (uint64_t)seq24_diff(psn, w->first_psn) << qp->mtu_shift;
	uint64_t to = (uint64_t)((end - w->first_psn) & SEQ24_MASK) << qp->mtu_shift;
	uint8_t *eth = packet_begin(&c->ip_id, qp, t, qp->opc | OP_READ_REQUEST, 0, true, psn, 0);

	if (to > w->length)
		to = w->length;
	packet_reth(eth, w->remote_addr + off, w->rkey, (uint32_t)(to - off));
	w->read_psn[read_part(w, psn)] = psn;
	qp->req.rd_started++;
	qp->req.since_ackreq = 0;
}

/* REQ-48: built from the private WQE alone. */
static void build_atomic(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t)
{
	bool swap = w->opcode == ABI_WR_ATOMIC_CMP_AND_SWP;
	uint8_t code = qp->opc | (swap ? OP_CMP_SWAP : OP_FETCH_ADD);
	uint8_t *eth = packet_begin(&c->ip_id, qp, t, code, 0, true, qp->req.psn, 0);

	put_be64(eth, w->remote_addr); /* RSP-33: operands are big-endian on the wire */
	put_be32(eth + 8, w->rkey);
	put_be64(eth + 12, swap ? w->atomic.swap : w->atomic.compare_add);
	put_be64(eth + 20, swap ? w->atomic.compare_add : 0);
	qp->req.rd_started++;
	qp->req.since_ackreq = 0;
}

static void build_flush(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t)
{
	uint8_t *eth = packet_begin(&c->ip_id, qp, t, qp->opc | OP_FLUSH, 0, true, qp->req.psn, 0);

	put_be32(eth, w->imm); /* FLU-01, BTH-23 */
	packet_reth(eth + FETH_LEN, w->remote_addr, w->rkey, w->flush_len);
	qp->req.rd_started++;
	qp->req.since_ackreq = 0;
}

/* FLU-08: like a WRITE, but acknowledged like a READ. */
static bool build_atomic_write(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t)
{
	if (!build_send_write(c, qp, w, t))
		return false;
	qp->req.rd_started++;
	return true;
}

/* A request for one word or for none.  @return false when its memory was deregistered. */
static NOINLINE bool build_word(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t)
{
	if (wqe_is_atomic(w))
		build_atomic(c, qp, w, t);
	else if (wqe_is_flush(w))
		build_flush(c, qp, w, t);
	else
		return build_atomic_write(c, qp, w, t);
	return true;
}

/* The packet at req.psn is built: advances the cursor. */
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

/* Nothing is sent before RTS (REQ-21). SQD finishes what was started, and starts nothing (REQ-50,
 * QPS-19); the rest stays queued (REQ-20). */
static bool may_run(const struct qp *qp)
{
	if (qp->comp.rnr_wait)
		return false; /* REQ-29 */
	if (qp->state == ABI_QPS_RTS)
		return true; /* QPS-18: not before */
	if (qp->state != ABI_QPS_SQD || qp->req.cur == qp->req.fetched)
		return false;
	return qp->req.psn != qp_wqe(qp, qp->req.cur)->first_psn ||
	       seq24_lt(qp->req.psn, qp->req.psn_new) || mw_wqe_waits(qp);
}

/* Tries once more when something was posted just before the doorbell was armed; not for ever, in
 * case an application plays with the mark. */
static ALWAYS_INLINE bool next_wqe(struct core *c, struct qp *qp)
{
	if (requester_full(qp))
		return false;
	if (unlikely(!ring_ready(&qp->sq)) && requester_idle(qp))
		return false;
	return fetch(c, qp);
}

/* The WQE at the cursor, or NULL: none can be sent now. Those that send nothing are executed on the
 * way. */
static ALWAYS_INLINE struct send_wqe *current_wqe(struct core *c, struct qp *qp, uint64_t now)
{
	for (unsigned n = 0; n < LOCAL_MAX; n++) {
		struct send_wqe *w;

		if (qp->req.cur == qp->req.fetched && !next_wqe(c, qp))
			return NULL;
		w = qp_wqe(qp, qp->req.cur);
		if (likely(!w->status))
			return w;
		if (!mw_wqe_work(c, qp, w)) {
			completer_settle(c, qp, now);
			return NULL;
		}
		qp->req.cur++;
		completer_settle(c, qp, now);
		if (!may_run(qp))
			return NULL;
	}
	qp_make_ready(c, qp);
	return NULL;
}

/* Builds the packet at the cursor.  @return false when a key of its memory fails, or the egress of
 * a datagram is closed. */
static ALWAYS_INLINE bool build(struct core *c, struct qp *qp, struct send_wqe *w, struct txd *t)
{
	if (wqe_is_read(w)) {
		build_read(c, qp, w, t);
		return true;
	}
	if (unlikely(wqe_has_response(w)))
		return build_word(c, qp, w, t);
	if (unlikely(qp->opc == OPC_UD))
		return ud_build(c, qp, w, t);
	return build_send_write(c, qp, w, t);
}

static ALWAYS_INLINE bool requester_next(struct core *c, struct qp *qp, struct txd *t, uint64_t now)
{
	struct send_wqe *w;

	if (requester_waits_for_bell(qp) || !may_run(qp))
		return false;
	w = current_wqe(c, qp, now);
	if (!w)
		return false;
	if (wqe_has_response(w) && !qp->attr.max_rd_atomic) {
		/* REQ-09: checked now, since SQD may change it */
		w->status = wqe_refuse(w, ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_NO_READS, 0);
		completer_settle(c, qp, now);
		return false;
	}
	if (!may_send(qp, w))
		return false;
	if (!build(c, qp, w, t)) {
		if (qp->opc == OPC_UD && !egress_is_open(c, ud_egress(c, qp))) {
			qp_make_ready(c, qp); /* each datagram has its own path */
			return false;
		}
		/* the region was deregistered meanwhile */
		cause_refuse_sge(c, qp, qp->req.cur, qp->req.sge);
		w->status = wqe_refuse(w, ABI_WC_LOC_PROT_ERR, CAUSE_KEY_GONE, qp->req.sge);
		completer_settle(c, qp, now);
		return false;
	}
	advance(c, qp, w, now);
	return true;
}

NOINLINE bool requester_waits(struct core *c, struct qp *qp, uint64_t now)
{
	struct send_wqe *w;

	if (requester_waits_for_bell(qp) || !may_run(qp))
		return false;
	w = current_wqe(c, qp, now);
	return w && may_send(qp, w);
}

/* Whether there may be something to fetch, without a look at the ring. */
static bool may_fetch(const struct qp *qp)
{
	return !qp->req.rings && !requester_full(qp);
}

bool requester_has_work(struct qp *qp)
{
	if (qp->req.cur != qp->req.fetched)
		return may_run(qp) && may_send(qp, qp_wqe(qp, qp->req.cur));
	return may_fetch(qp) && (ring_ready(&qp->sq) || !requester_idle(qp));
}

bool requester_next_is_local(const struct qp *qp)
{
	uint32_t ctl;
	unsigned kind;

	if (qp->req.cur != qp->req.fetched)
		return qp_wqe(qp, qp->req.cur)->status;
	if (!may_fetch(qp) || !ring_ready(&qp->sq))
		return false;
	ctl = atomic_load_explicit((_Atomic uint32_t *)ring_slot(&qp->sq), memory_order_relaxed);
	if (ABI_WQE_OPCODE(ctl) >= ARRAY_SIZE(wr_ops))
		return false;
	kind = wr_ops[ABI_WQE_OPCODE(ctl)].kind;
	return kind == WR_BIND || kind == WR_INVALIDATE;
}

unsigned requester_tx(struct core *c, struct qp *qp, struct txd out[], unsigned n, uint64_t now)
{
	unsigned got;

	if (requester_waits_for_bell(qp))
		return 0;
	got = requester_run(c, qp, out, n, now);
	while (got < n && requester_next(c, qp, &out[got], now)) {
		got++;
		/* A READ that had to wait for others may be in front of a run. */
		if (qp->req.cur == qp->req.fetched && wqe_is_read(qp_wqe(qp, qp->req.cur - 1)))
			got += requester_run(c, qp, &out[got], n - got, now);
	}
	return got;
}
