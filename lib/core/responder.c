/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC responder, receive side. A request passes through the checks in the order of responder_rx();
 * each check is one function and decides whether the packet passes.
 */
#include "core.h"
#include "core_memory.h"
#include "mr.h"
#include "mw.h"
#include "named.h"
#include "packet.h"
#include "packet_length.h"
#include "qp_impl.h"
#include "recv.h"
#include "responder.h"
#include "responder_impl.h"
#include "seq24.h"
#include "uaccess.h"
#include "wqe.h"
#include "write_place.h"

void responder_start(struct qp *qp, uint32_t psn)
{
	qp->resp.epsn = psn; /* RSP-01 */
	qp->resp.msn = 0;    /* RSP-25 */
	qp->resp.ack_psn = seq24_add(psn, SEQ24_MASK);
}

void responder_reset(struct qp *qp)
{
	struct resp_res *res = qp->resp.res;

	memset(&qp->resp, 0, sizeof(qp->resp));
	qp->resp.res = res;
	if (qp->rq.depth)
		atomic_store_explicit(&qp->rq.shared->need_doorbell, 0, memory_order_relaxed);
}

/* --- NAKs ----------------------------------------------------------------------------- */

static void owe_nak(struct core *c, struct qp *qp, uint8_t syndrome, uint32_t psn)
{
	qp->resp.owed = OWE_NAK;
	qp->resp.syndrome = syndrome;
	qp->resp.nak_psn = psn;
	qp_make_urgent(c, qp);
}

void responder_fatal(
	struct core *c, struct qp *qp, uint8_t syndrome, uint32_t psn, uint32_t event, uint64_t now)
{
	/* A region that is deregistered may also fail the READ responses that precede the NAK: the
	 * NAK then moves to the earlier PSN (RSP-31), but the owner has had its event. */
	if (qp->resp.drain && qp->resp.owed == OWE_NAK && qp->resp.syndrome == syndrome)
		event = 0;
	else if (syndrome == NAK_REMOTE_ACCESS)
		c->count.resp_remote_access_errors++;
	else if (syndrome == NAK_INVALID_REQ)
		c->count.resp_remote_invalid_request++;
	owe_nak(c, qp, syndrome, psn); /* RSP-22: the NAK, the event, then ERR */
	qp->resp.drain = true;	       /* before ERR, which otherwise silences the responder */
	if (event)
		qp_event(c, qp, event);
	qp_error(c, qp, now);
}

enum outcome invalid_request(
	struct core *c, struct qp *qp, const struct pkt *pkt, enum cause why, uint64_t now)
{
	cause_request(c, qp, pkt, why);
	/* EVT-03 */
	responder_fatal(c, qp, NAK_INVALID_REQ, qp->resp.epsn, ABI_EVENT_QP_REQ_ERR, now);
	return DONE;
}

enum outcome access_error(
	struct core *c, struct qp *qp, const struct pkt *pkt, enum cause why, uint64_t now)
{
	cause_request(c, qp, pkt, why);
	/* EVT-03 */
	responder_fatal(c, qp, NAK_REMOTE_ACCESS, qp->resp.epsn, ABI_EVENT_QP_ACCESS_ERR, now);
	return DONE;
}

void responder_read_failed(
	struct core *c, struct qp *qp, uint8_t syndrome, uint32_t psn, uint32_t event, uint64_t now)
{
	qp->resp.res_next = qp->resp.res_head; /* nothing follows except the NAK */
	responder_fatal(c, qp, syndrome, psn, event, now);
}

void responder_error(struct qp *qp)
{
	struct qp_resp *r = &qp->resp;

	if (r->drain)
		return;
	r->owed = OWE_NOTHING;
	r->res_next = r->res_head;
}

/* --- receive WQEs --------------------------------------------------------------------- */

void responder_recv_failed(
	struct core *c, struct qp *qp, uint8_t status, uint8_t syndrome, uint64_t now)
{
	cause_publish(qp, now);
	/* A full CQ moves the QP to ERR here, but what is owed must precede the NAK (RSP-27). */
	qp->resp.drain = true;
	recv_complete(c, qp, status, NULL, now);
	responder_fatal(c, qp, syndrome, qp->resp.epsn, 0, now); /* RSP-22: the CQE reports it */
}

/* --- the checks ----------------------------------------------------------------------- */

/* RSP-46, EVT-01 */
void responder_established(struct core *c, struct qp *qp)
{
	if (qp->comm_est)
		return;
	qp->comm_est = true;
	if (qp->state == ABI_QPS_RTR)
		qp_event(c, qp, ABI_EVENT_COMM_EST);
}

void responder_delivered(
	struct core *c, struct qp *qp, uint8_t kind, uint32_t packets, bool complete)
{
	struct qp_resp *r = &qp->resp;

	responder_established(c, qp);
	r->epsn = seq24_add(r->epsn, packets);
	r->open = complete || kind == KIND_READ ? KIND_NONE : kind;
	if (!qp->reliable) /* UC-02 */
		return;
	if (kind <= KIND_WRITE) /* RSP-39: an ACK does not stand for responses */
		r->ack_psn = seq24_add(r->epsn, SEQ24_MASK);
	r->msn = seq24_add(r->msn, complete); /* RSP-25 */
}

void responder_not_ready(struct core *c, struct qp *qp, uint8_t timer)
{
	responder_established(c, qp); /* its owner may wait for that before it posts any */
	c->count.rnr_nak_sent++;
	qp->resp.rnr_sent = true; /* RSP-18 */
	owe_nak(c, qp, AETH_RNR_NAK | timer, qp->resp.epsn);
}

/* No receive WQE: asks the peer to wait. ePSN stays, nothing is written (RSP-16, RSP-17,
 * SRQ-03). */
static enum outcome receiver_not_ready(struct core *c, struct qp *qp)
{
	recv_starved(c, qp);
	responder_not_ready(c, qp, qp->attr.min_rnr_timer);
	return DONE;
}

static enum outcome no_recv_wqe(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	enum cause why = recv_wqe_hopeless(c, qp);

	if (likely(why == CAUSE_NONE)) {
		cause_not_ready(qp, pkt, now);
		return receiver_not_ready(c, qp);
	}
	if (why == CAUSE_XRC_SRQ)
		return invalid_request(c, qp, pkt, why, now);
	cause_request(c, qp, pkt, why); /* SRQ-08: SRQ_ERR has told its owner */
	responder_fatal(c, qp, NAK_REMOTE_OP, qp->resp.epsn, ABI_EVENT_QP_FATAL, now);
	return DONE;
}

static bool psn_ahead(struct core *c, struct qp *qp, uint32_t psn)
{
	c->count.out_of_sequence++;
	cause_ahead(qp, psn);
	if (!qp->resp.nak_sent || seq24_lt(qp->resp.early, psn))
		qp->resp.early = psn;
	if (qp->resp.nak_sent || qp->resp.rnr_sent)
		return false; /* RSP-03, RSP-18: sent once only */
	qp->resp.nak_sent = true;
	owe_nak(c, qp, NAK_PSN_SEQUENCE, qp->resp.epsn); /* RSP-02 */
	return true;
}

/* The payload of the expected packet cannot be read any more, so the packet is treated as lost. The
 * NAK makes the requester build it again and find that its memory is gone. */
static NOINLINE enum outcome nameless(struct core *c, struct qp *qp)
{
	struct qp_resp *r = &qp->resp;

	r->nak_sent = true;
	r->rnr_sent = false;
	r->early = r->epsn;
	owe_nak(c, qp, NAK_PSN_SEQUENCE, r->epsn);
	return LOST;
}

/* RSP-05, RSP-06, RSP-07: messages do not interleave. */
static enum outcome check_op_seq(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	/* RSP-05; READ is a first packet too (RSP-07). */
	bool ok = pkt->op->first ? qp->resp.open == KIND_NONE : qp->resp.open == pkt->op->kind;

	return ok ? PASS : invalid_request(c, qp, pkt, CAUSE_OP_SEQUENCE, now);
}

/* RSP-08, VAL-05: opcodes that this QP executes. */
static enum outcome check_op_valid(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	enum cause why = CAUSE_OP_UNSUPPORTED;
	bool ok;

	switch (pkt->op->kind) {
	case KIND_SEND:
	case KIND_FLUSH: /* the region's rights decide */
		ok = true;
		break;
	case KIND_WRITE:
	case KIND_ATOMIC_WRITE:
		ok = qp->attr.access_flags & ABI_ACCESS_REMOTE_WRITE;
		why = CAUSE_NO_REMOTE_WRITE;
		break;
	case KIND_READ:
		ok = qp->attr.access_flags & ABI_ACCESS_REMOTE_READ;
		why = CAUSE_NO_REMOTE_READ;
		break;
	case KIND_ATOMIC:
		ok = qp->attr.access_flags & ABI_ACCESS_REMOTE_ATOMIC;
		why = CAUSE_NO_REMOTE_ATOMIC;
		break;
	default:
		ok = false;
		break;
	}
	return ok ? PASS : invalid_request(c, qp, pkt, why, now);
}

/* Whether a request is answered by more than an ACK and takes a slot of the replay ring. */
static bool has_response(const struct opcode *op)
{
	const unsigned kinds =
		1u << KIND_READ | 1u << KIND_ATOMIC | 1u << KIND_FLUSH | 1u << KIND_ATOMIC_WRITE;

	return kinds >> op->kind & 1;
}

/* At most the agreed number of READs and ATOMICs may wait for their responses. Responses to
 * duplicates do not count: a requester that sends a new request needs them no more, so the oldest
 * gives way. */
static enum outcome check_rd_atomic(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	struct qp_resp *r = &qp->resp;

	responder_pending(r);
	if (r->res_head - r->res_done >= qp->attr.max_dest_rd_atomic) /* RSP-30 */
		return invalid_request(c, qp, pkt, CAUSE_READS_EXCEEDED, now);
	if (r->res_head - r->res_next == RD_ATOMIC_MAX)
		r->res_next++;
	return PASS;
}

/* Reserves what the request needs: a receive WQE, or a slot for its responses. */
static enum outcome check_resource(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	const struct opcode *op = pkt->op;
	struct qp_resp *r = &qp->resp;

	if (has_response(op))
		return check_rd_atomic(c, qp, pkt, now);
	/* RSP-19: SEND takes its WQE with the first packet, WRITE with its immediate data. */
	if (op->kind == KIND_SEND ? !op->first : !op->immdt)
		return PASS;
	if (!r->have_wqe && !recv_wqe_take_rc(c, qp))
		return no_recv_wqe(c, qp, pkt, now);
	if (r->wqe.invalid) {
		cause_request(c, qp, pkt, CAUSE_RECV_SGES);
		responder_recv_failed(c, qp, ABI_WC_LOC_QP_OP_ERR, NAK_REMOTE_OP, now);
		return DONE;
	}
	return PASS;
}

/* Payload sizes, and the space in the receive WQE. */
static enum outcome check_length(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	if (!packet_length_ok(qp, pkt))
		return invalid_request(c, qp, pkt, CAUSE_PACKET_LENGTH, now);
	if (pkt->op->kind == KIND_SEND &&
		(uint64_t)qp->resp.recv_off + pkt->payload_len > qp->resp.wqe.length) {
		cause_request(c, qp, pkt, CAUSE_RECV_LENGTH);
		c->count.resp_local_length_error++; /* RSP-20 */
		responder_recv_failed(c, qp, ABI_WC_LOC_LEN_ERR, NAK_INVALID_REQ, now);
		return DONE;
	}
	return PASS;
}

/* The header of a WRITE or READ. @p at: the address that it resolves to, if it names any bytes. */
static ALWAYS_INLINE enum outcome check_reth(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint8_t **at, uint64_t now)
{
	uint32_t access =
		pkt->op->kind == KIND_READ ? ABI_ACCESS_REMOTE_READ : ABI_ACCESS_REMOTE_WRITE;

	if (pkt->dma_len > MSG_LEN_MAX)
		/* RSP-10, C9-94 */
		return invalid_request(c, qp, pkt, CAUSE_MESSAGE_LENGTH, now);
	if (!pkt->dma_len) /* RSP-12, C9-88 */
		return PASS;
	/* RSP-13, RSP-14: for the whole message, before its first byte is written. */
	if (rkey_resolve(c->cfg.mrs, pkt->rkey, qp->pd, qp->qpn, access, pkt->va, pkt->dma_len,
		    at) != MR_OK)
		return access_error(c, qp, pkt, CAUSE_RKEY, now);
	return PASS;
}

static ALWAYS_INLINE enum outcome check_rkey(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint8_t **at, uint64_t now)
{
	/* The other kinds look theirs up once, on execution. */
	if (pkt->op->reth && pkt->op->kind <= KIND_READ && check_reth(c, qp, pkt, at, now) != PASS)
		return DONE;
	if (pkt->op->kind == KIND_WRITE && !write_length_ok(qp, pkt))
		return invalid_request(c, qp, pkt, CAUSE_WRITE_LENGTH, now); /* RSP-11 */
	return PASS;
}

/* --- execution ------------------------------------------------------------------------ */

static ALWAYS_INLINE enum outcome execute_send(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint8_t status = recv_place(c, qp, pkt);

	if (unlikely(pkt->named) && named_is_gone(c, pkt))
		return nameless(c, qp);
	if (status) {
		responder_recv_failed(c, qp, status, NAK_REMOTE_OP, now); /* RSP-21 */
		return DONE;
	}
	qp->resp.recv_off += pkt->payload_len;
	if (unlikely(pkt->op->ieth) && execute_invalidate(c, qp, pkt, now) != PASS)
		return DONE; /* INV-02: before the completion */
	c->count.rx_send_requests += pkt->op->last;
	return PASS;
}

/* Application memory faulted while a request was executed. EVT-03 */
void memory_fault(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	c->count.access_faults++;
	cause_request(c, qp, pkt, CAUSE_WRITE_FAULT);
	responder_fatal(c, qp, NAK_REMOTE_OP, qp->resp.epsn, ABI_EVENT_QP_FATAL, now);
}

static ALWAYS_INLINE enum outcome execute_write(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint8_t *at, uint64_t now)
{
	enum placed placed = write_place(core_memory(c), c->cfg.mrs, qp, pkt, at);

	if (unlikely(pkt->named) && named_is_gone(c, pkt)) {
		c->count.access_faults += placed == PLACED_FAULT;
		if (placed == PLACED)
			write_unplaced(qp, pkt);
		return nameless(c, qp);
	}
	switch (placed) {
	case PLACED_KEY_GONE:
		return access_error(c, qp, pkt, CAUSE_RKEY_GONE, now); /* RSP-15 */
	case PLACED_FAULT:
		memory_fault(c, qp, pkt, now);
		return DONE;
	default:
		c->count.rx_write_requests += pkt->op->last;
		return PASS;
	}
}

/* Points the slot at the responses from @p psn on. */
static void res_execute(struct core *c, struct qp *qp, struct resp_res *res, uint32_t psn,
	uint64_t va, uint32_t len)
{
	res->exec_psn = psn;
	res->next_psn = psn;
	res->end_psn = seq24_add(psn, qp_packets(qp, len));
	res->exec_va = va;
	res->exec_len = len;
	qp_make_ready(c, qp);
}

struct resp_res *res_new(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint32_t n, uint32_t len)
{
	struct qp_resp *r = &qp->resp;
	struct resp_res *res = &r->res[r->res_head++ % RD_ATOMIC_MAX];

	*res = (struct resp_res){
		.kind = pkt->op->kind,
		.first_psn = pkt->psn,
		.last_psn = seq24_add(pkt->psn, n - 1),
		.rkey = pkt->rkey,
		.length = len,
		.pd = qp->pd,
		.va = pkt->va,
		.msn = seq24_add(r->msn, 1),
		/* Some requesters do not treat a READ response as an ACK of earlier requests, so a
		 * requested ACK is still sent (spec-errors 62), but not one for a duplicate that
		 * precedes another READ. */
		.ack_first = r->owed == OWE_ACK && seq24_add(r->ack_psn, 1) == pkt->psn,
	}; /* RSP-37: replaces the oldest */
	if (res->ack_first)
		r->owed = OWE_NOTHING;
	if (r->res_kept < RD_ATOMIC_MAX)
		r->res_kept++;
	res_execute(c, qp, res, pkt->psn, pkt->va, len);
	r->epsn = seq24_add(res->last_psn, 1); /* RSP-29 */
	r->msn = res->msn;		       /* RSP-25 */
	return res;
}

static enum outcome execute_read(struct core *c, struct qp *qp, const struct pkt *pkt)
{
	res_new(c, qp, pkt, qp_packets(qp, pkt->dma_len), pkt->dma_len);
	c->count.rx_read_requests++;
	return PASS;
}

/* RSP-33, RSP-34, RSP-36: executed now, once; the response waits for its turn. The key is looked up
 * once, so that the word that was checked is the one operated on. */
static enum outcome execute_atomic(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint64_t orig;
	uint8_t *ptr;
	bool ok;

	if (rkey_resolve(c->cfg.mrs, pkt->rkey, qp->pd, qp->qpn, ABI_ACCESS_REMOTE_ATOMIC, pkt->va,
		    ATOMIC_LEN, &ptr) != MR_OK)
		return access_error(c, qp, pkt, CAUSE_RKEY, now); /* RSP-13 */
	/* RSP-32. A region whose wire addresses are not congruent to its memory addresses has no
	 * word that a CPU could lock, either. */
	if ((pkt->va | (uintptr_t)ptr) % ATOMIC_LEN)
		return invalid_request(c, qp, pkt, CAUSE_ATOMIC_ALIGNMENT, now);
	if ((pkt->op->code & OPC_OP_MASK) == OP_CMP_SWAP)
		ok = uaccess_cmp_swap(core_memory(c), ptr, pkt->compare, pkt->swap_add, &orig);
	else
		ok = uaccess_fetch_add(core_memory(c), ptr, pkt->swap_add, &orig);
	if (!ok) {
		memory_fault(c, qp, pkt, now);
		return DONE;
	}
	res_new(c, qp, pkt, 1, ATOMIC_LEN)->orig = orig;
	c->count.rx_atomic_requests++;
	return PASS;
}

/* --- duplicates ----------------------------------------------------------------------- */

/* The remembered slot whose original request covers @p psn. */
static struct resp_res *res_find(struct qp *qp, uint32_t psn, uint32_t *idx)
{
	uint32_t kept = qp->attr.max_dest_rd_atomic;

	for (uint32_t back = 1; back <= kept && back <= qp->resp.res_kept; back++) {
		struct resp_res *res = &qp->resp.res[(qp->resp.res_head - back) % RD_ATOMIC_MAX];

		if (seq24_between(psn, res->first_psn, res->last_psn)) {
			*idx = qp->resp.res_head - back;
			return res;
		}
	}
	return NULL;
}

/* Sends responses from slot @p idx on. The stream that this interrupts starts over after them: the
 * requester has discarded its responses, and must find no gap (RSP-27). */
static void res_go_back(struct qp_resp *r, uint32_t idx)
{
	struct resp_res *cut = &r->res[r->res_next % RD_ATOMIC_MAX];

	if (r->res_next != r->res_head)
		cut->next_psn = cut->exec_psn;
	r->res_next = idx;
}

/* Sends the responses of slot @p idx again, from @p psn on. */
static void res_replay(
	struct core *c, struct qp *qp, uint32_t idx, uint32_t psn, uint64_t va, uint32_t len)
{
	struct resp_res *res = &qp->resp.res[idx % RD_ATOMIC_MAX];

	res->ack_first = false;
	res_execute(c, qp, res, psn, va, len); /* RSP-43: FIRST or ONLY there */
	if ((int32_t)(idx - qp->resp.res_next) < 0)
		res_go_back(&qp->resp, idx);
}

/* RSP-40: executed again if it is part of an earlier request. The R_Key is looked up (RSP-41) and
 * the memory read (RSP-42) again, when the responses are built. */
static enum drop duplicate_read(struct core *c, struct qp *qp, const struct pkt *pkt)
{
	uint32_t idx;
	struct resp_res *res = res_find(qp, pkt->psn, &idx);
	uint64_t off;

	responder_pending(&qp->resp); /* first executions that are over no longer count */
	if (!res || res->kind != KIND_READ || pkt->rkey != res->rkey)
		return DROP_DUP_NO_RESOURCE;
	off = pkt->va - res->va;
	if (!range_inside(off, pkt->dma_len, res->length) ||
		off != (uint64_t)seq24_diff(pkt->psn, res->first_psn) << qp->mtu_shift)
		return DROP_DUP_NO_RESOURCE;
	res_replay(c, qp, idx, pkt->psn, pkt->va, pkt->dma_len);
	return DROP_NONE;
}

/* RSP-36, FLU-06, FLU-09: answered with the saved result, not executed. */
static enum drop duplicate_once(struct core *c, struct qp *qp, const struct pkt *pkt)
{
	uint32_t idx;
	const struct resp_res *res = res_find(qp, pkt->psn, &idx);

	responder_pending(&qp->resp);
	if (!res || res->kind != pkt->op->kind)
		return DROP_DUP_NO_RESOURCE; /* RSP-38 */
	res_replay(c, qp, idx, res->first_psn, res->va, res->length);
	return DROP_NONE;
}

static enum drop answer_duplicate(struct core *c, struct qp *qp, const struct pkt *pkt)
{
	switch (pkt->op->kind) {
	case KIND_READ:
		return duplicate_read(c, qp, pkt);
	case KIND_ATOMIC:
	case KIND_FLUSH:
	case KIND_ATOMIC_WRITE:
		return duplicate_once(c, qp, pkt);
	case KIND_SEND: /* RSP-45: nor is its key invalidated */
	case KIND_WRITE:
		/* RSP-39, RSP-44, C9-105: not executed; acknowledged with the newest accepted PSN,
		 * not counting READs: an ACK must not stand for responses that may be lost. A NAK
		 * that is owed says as much, and one that was sent stays sent (RSP-04). */
		if (pkt->ackreq && qp->resp.owed == OWE_NOTHING) {
			qp->resp.owed = OWE_ACK;
			qp_make_urgent(c, qp);
		}
		return DROP_NONE;
	default:
		return DROP_DUP_NO_RESOURCE; /* RSP-38: no result of it was saved */
	}
}

/* Handled like any duplicate, but when no valid request came before, the peer's sq_psn is wrong:
 * the peer takes as done what was never executed. */
static enum drop duplicate_request(struct core *c, struct qp *qp, const struct pkt *pkt)
{
	enum drop why;

	c->count.duplicate_request++;
	why = answer_duplicate(c, qp, pkt);
	return likely(qp->comm_est) ? why : DROP_PSN_BEHIND;
}

/* --- the pipeline --------------------------------------------------------------------- */

/* The packet was executed: updates ePSN and MSN, and completes the receive. */
static void accepted(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	struct qp_resp *r = &qp->resp;

	r->ack_psn = r->epsn;
	r->epsn = seq24_add(r->epsn, 1);
	r->open = pkt->op->last ? KIND_NONE : pkt->op->kind;
	if (!pkt->op->last)
		return;
	r->msn = seq24_add(r->msn, 1); /* RSP-25 */
	if (pkt->op->recv_wqe)
		recv_complete_rc(c, qp, pkt, now);
}

/* RSP-23: now or, if more packets of the burst ask for it, once for all of them. */
static void acknowledge(struct core *c, struct qp *qp, const struct pkt *pkt)
{
	struct qp_resp *r = &qp->resp;
	bool nak_void;

	responder_established(c, qp);
	r->rnr_sent = false; /* RSP-18: the NAKed request was sent again */
	if (r->owed == OWE_NAK && r->syndrome == NAK_PSN_SEQUENCE && seq24_le(r->epsn, r->early)) {
		/* The packet was only late, but the one that overtook it was dropped: NAK that
		 * instead. */
		r->nak_psn = r->epsn;
		return;
	}
	r->nak_sent = false;	       /* RSP-03 */
	nak_void = r->owed == OWE_NAK; /* it may have replaced an ACK that was owed */
	if (nak_void)
		r->owed = OWE_NOTHING;
	if (has_response(pkt->op) || !(pkt->ackreq || nak_void))
		return;
	r->owed = OWE_ACK;
	qp_make_urgent(c, qp);
}

static ALWAYS_INLINE enum outcome execute(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint8_t *at, uint64_t now)
{
	enum outcome done;

	switch (pkt->op->kind) {
	case KIND_READ:
		return execute_read(c, qp, pkt);
	case KIND_ATOMIC:
		return execute_atomic(c, qp, pkt, now);
	case KIND_FLUSH:
		return execute_flush(c, qp, pkt, now);
	case KIND_ATOMIC_WRITE:
		return execute_atomic_write(c, qp, pkt, now);
	case KIND_SEND:
		done = execute_send(c, qp, pkt, now);
		break;
	default:
		done = execute_write(c, qp, pkt, at, now);
		break;
	}
	if (done == PASS)
		accepted(c, qp, pkt, now);
	return done;
}

enum drop responder_rx(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	int32_t ahead = seq24_diff(pkt->psn, qp->resp.epsn); /* RSP-01 */
	enum outcome done;
	uint8_t *at = NULL;

	if (ahead < 0)
		return duplicate_request(c, qp, pkt);
	if (ahead > 0) /* RSP-52: never executed, so memory is written in PSN order */
		return psn_ahead(c, qp, pkt->psn) ? DROP_NONE
		       : qp->resp.rnr_sent	  ? DROP_RNR_PENDING
						  : DROP_PSN_AHEAD;
	if (check_op_seq(c, qp, pkt, now) != PASS || check_op_valid(c, qp, pkt, now) != PASS)
		return DROP_NONE;
	if (unlikely(pkt->named == PKT_NAMELESS)) { /* takes no receive */
		nameless(c, qp);
		return DROP_NAMELESS;
	}
	if (check_resource(c, qp, pkt, now) != PASS || check_length(c, qp, pkt, now) != PASS ||
		check_rkey(c, qp, pkt, &at, now) != PASS)
		return DROP_NONE;
	done = execute(c, qp, pkt, at, now);
	if (done == PASS) /* RSP-24: the data are in memory before an ACK is owed. */
		acknowledge(c, qp, pkt);
	return likely(done != LOST) ? DROP_NONE : DROP_NAMELESS;
}
