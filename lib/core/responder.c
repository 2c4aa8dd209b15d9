/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC responder, receive side. A request passes through the checks in the order of
 * responder_rx(); each check is one function and answers how the packet goes on.
 */
#include "packet.h"
#include "recv.h"
#include "responder.h"
#include "seq24.h"

/* How a check ends. */
enum verdict {
	PASS,
	DONE, /* the packet was dealt with, or turned into a NAK */
};

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
	qp_make_ready(c, qp);
}

void responder_fatal(
	struct core *c, struct qp *qp, uint8_t syndrome, uint32_t psn, uint32_t event, uint64_t now)
{
	/* A region that goes takes a READ's responses too while they precede the NAK: the NAK moves
	 * to the earlier PSN (RSP-31), but the owner was told. */
	if (qp->resp.drain && qp->resp.owed == OWE_NAK && qp->resp.syndrome == syndrome)
		event = 0;
	else if (syndrome == NAK_REMOTE_ACCESS)
		c->count.resp_remote_access_errors++;
	else if (syndrome == NAK_INVALID_REQ)
		c->count.resp_remote_invalid_request++;
	owe_nak(c, qp, syndrome, psn); /* RSP-22: the NAK, the event, then ERR */
	qp->resp.drain = true;	       /* before ERR, which else silences the responder */
	if (event)
		qp_event(c, qp, event);
	qp_error(c, qp, now);
}

static enum verdict invalid_request(struct core *c, struct qp *qp, uint64_t now)
{
	/* EVT-03 */
	responder_fatal(c, qp, NAK_INVALID_REQ, qp->resp.epsn, ABI_EVENT_QP_REQ_ERR, now);
	return DONE;
}

static enum verdict access_error(struct core *c, struct qp *qp, uint64_t now)
{
	/* EVT-03 */
	responder_fatal(c, qp, NAK_REMOTE_ACCESS, qp->resp.epsn, ABI_EVENT_QP_ACCESS_ERR, now);
	return DONE;
}

void responder_read_failed(
	struct core *c, struct qp *qp, uint8_t syndrome, uint32_t psn, uint32_t event, uint64_t now)
{
	qp->resp.res_next = qp->resp.res_head; /* nothing follows but the NAK */
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

/* A receive WQE that cannot take the data: its owner's fault, told to both sides (RSP-21). */
static void recv_failed(struct core *c, struct qp *qp, uint8_t status, uint64_t now)
{
	uint8_t syndrome = status == ABI_WC_LOC_LEN_ERR ? NAK_INVALID_REQ : NAK_REMOTE_OP;

	if (status == ABI_WC_LOC_LEN_ERR)
		c->count.resp_local_length_error++;
	recv_complete(c, qp, status, NULL, now);
	responder_fatal(c, qp, syndrome, qp->resp.epsn, 0, now); /* RSP-22: the CQE tells */
}

/* --- the checks ----------------------------------------------------------------------- */

/* RSP-46, EVT-01 */
static void communication_established(struct core *c, struct qp *qp)
{
	if (qp->comm_est)
		return;
	qp->comm_est = true;
	if (qp->state == ABI_QPS_RTR)
		qp_event(c, qp, ABI_EVENT_COMM_EST);
}

/* No receive WQE: ask for time. ePSN stays, nothing is written (RSP-16, RSP-17). */
static enum verdict receiver_not_ready(struct core *c, struct qp *qp)
{
	communication_established(c, qp); /* its owner may wait for that before it posts any */
	c->count.rnr_nak_sent++;
	qp->resp.rnr_sent = true; /* RSP-18 */
	owe_nak(c, qp, AETH_RNR_NAK | qp->attr.min_rnr_timer, qp->resp.epsn);
	return DONE;
}

static bool psn_ahead(struct core *c, struct qp *qp, uint32_t psn)
{
	c->count.out_of_sequence++;
	if (!qp->resp.nak_sent || seq24_lt(qp->resp.early, psn))
		qp->resp.early = psn;
	if (qp->resp.nak_sent || qp->resp.rnr_sent)
		return false; /* RSP-03, RSP-18: said once */
	qp->resp.nak_sent = true;
	owe_nak(c, qp, NAK_PSN_SEQUENCE, qp->resp.epsn); /* RSP-02 */
	return true;
}

/* RSP-05, RSP-06, RSP-07: messages do not interleave. */
static enum verdict check_op_seq(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	/* RSP-05; READ is a first packet too (RSP-07). */
	bool ok = pkt->op->first ? qp->resp.open == KIND_NONE : qp->resp.open == pkt->op->kind;

	return ok ? PASS : invalid_request(c, qp, now);
}

/* RSP-08, VAL-05: opcodes that this QP executes. */
static enum verdict check_op_valid(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	bool ok;

	switch (pkt->op->kind) {
	case KIND_SEND:
		ok = !pkt->op->ieth;
		break;
	case KIND_WRITE:
		ok = qp->attr.access_flags & ABI_ACCESS_REMOTE_WRITE;
		break;
	case KIND_READ:
		ok = qp->attr.access_flags & ABI_ACCESS_REMOTE_READ;
		break;
	default:
		ok = false;
		break;
	}
	return ok ? PASS : invalid_request(c, qp, now);
}

/* As many READs may wait for their responses as was agreed. Responses to duplicates do
 * not count: a requester that sends a new READ needs them no more, so the oldest gives way. */
static enum verdict check_rd_atomic(struct core *c, struct qp *qp, uint64_t now)
{
	struct qp_resp *r = &qp->resp;

	responder_pending(r);
	if (r->res_head - r->res_done >= qp->attr.max_dest_rd_atomic) /* RSP-30 */
		return invalid_request(c, qp, now);
	if (r->res_head - r->res_next == RD_ATOMIC_MAX)
		r->res_next++;
	return PASS;
}

/* A place for what the request needs: a receive WQE, or a slot for its responses. */
static enum verdict check_resource(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	const struct opcode *op = pkt->op;
	struct qp_resp *r = &qp->resp;

	if (op->kind == KIND_READ)
		return check_rd_atomic(c, qp, now);
	/* RSP-19: SEND takes its WQE with the first packet, WRITE with its immediate data. */
	if (op->kind == KIND_SEND ? !op->first : !op->immdt)
		return PASS;
	if (!r->have_wqe && !recv_wqe_take(qp))
		return receiver_not_ready(c, qp);
	if (r->wqe.invalid) {
		recv_failed(c, qp, ABI_WC_LOC_QP_OP_ERR, now);
		return DONE;
	}
	return PASS;
}

/* Payload sizes, and room in the receive WQE. */
static enum verdict check_length(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint32_t mtu = 1u << qp->mtu_shift;
	const struct opcode *op = pkt->op;

	/* RSP-09 */
	if (!op->last && pkt->payload_len != mtu)
		return invalid_request(c, qp, now);
	if (pkt->payload_len > mtu || (op->last && !op->first && !pkt->payload_len))
		return invalid_request(c, qp, now);
	if (op->kind == KIND_SEND &&
		(uint64_t)qp->resp.recv_off + pkt->payload_len > qp->resp.wqe.length) {
		recv_failed(c, qp, ABI_WC_LOC_LEN_ERR, now); /* RSP-20 */
		return DONE;
	}
	return PASS;
}

/* The header of a WRITE or READ. */
static enum verdict check_reth(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint32_t access =
		pkt->op->kind == KIND_READ ? ABI_ACCESS_REMOTE_READ : ABI_ACCESS_REMOTE_WRITE;

	if (pkt->dma_len > MSG_LEN_MAX)
		return invalid_request(c, qp, now); /* RSP-10, C9-94 */
	if (!pkt->dma_len)			    /* RSP-12, C9-88 */
		return PASS;
	/* RSP-13, RSP-14: of the whole message, before its first byte is written. */
	if (mr_resolve(c->cfg.mrs, pkt->rkey, qp->pd, access, pkt->va, pkt->dma_len, NULL) != MR_OK)
		return access_error(c, qp, now);
	return PASS;
}

/* RSP-11: the payloads of a WRITE sum up to its DMALen, exactly at LAST and to no more before. What
 * leaves LAST nothing is found there (RSP-09), as rxe and qib do. */
static enum verdict check_write_left(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint32_t left = pkt->op->first ? pkt->dma_len : qp->resp.write_left;
	bool ok = pkt->op->last ? pkt->payload_len == left : pkt->payload_len <= left;

	return ok ? PASS : invalid_request(c, qp, now);
}

static enum verdict check_rkey(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	if (pkt->op->reth && check_reth(c, qp, pkt, now) != PASS)
		return DONE;
	if (pkt->op->kind == KIND_WRITE)
		return check_write_left(c, qp, pkt, now);
	return PASS;
}

/* --- execution ------------------------------------------------------------------------ */

static enum verdict execute_send(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint8_t status = recv_place(c, qp, pkt);

	if (status) {
		recv_failed(c, qp, status, now);
		return DONE;
	}
	qp->resp.recv_off += pkt->payload_len;
	c->count.rx_send_requests += pkt->op->last;
	return PASS;
}

static enum verdict execute_write(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	struct qp_resp *r = &qp->resp;
	uint8_t *ptr;

	if (pkt->op->first) {
		r->va = pkt->va;
		r->rkey = pkt->rkey;
		r->write_len = pkt->dma_len;
		r->write_left = pkt->dma_len;
	}
	if (pkt->payload_len) {
		/* RSP-15: the region may have gone since FIRST. */
		if (mr_resolve(c->cfg.mrs, r->rkey, qp->pd, ABI_ACCESS_REMOTE_WRITE, r->va,
			    pkt->payload_len, &ptr) != MR_OK)
			return access_error(c, qp, now);
		if (!uaccess_place(&c->ua, ptr, pkt->payload, pkt->payload_len)) {
			c->count.access_faults++;
			/* EVT-03 */
			responder_fatal(c, qp, NAK_REMOTE_OP, r->epsn, ABI_EVENT_QP_FATAL, now);
			return DONE;
		}
	}
	r->va += pkt->payload_len;
	r->write_left -= pkt->payload_len;
	c->count.rx_write_requests += pkt->op->last;
	return PASS;
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

static void execute_read(struct core *c, struct qp *qp, const struct pkt *pkt)
{
	struct qp_resp *r = &qp->resp;
	struct resp_res *res = &r->res[r->res_head++ % RD_ATOMIC_MAX];
	uint32_t n = qp_packets(qp, pkt->dma_len);

	*res = (struct resp_res){
		.first_psn = pkt->psn,
		.last_psn = seq24_add(pkt->psn, n - 1),
		.rkey = pkt->rkey,
		.length = pkt->dma_len,
		.va = pkt->va,
		.msn = seq24_add(r->msn, 1),
		/* Some requesters do not take a READ response as an ACK of what came before it, so
		 * an ACK that was asked for is given (spec-errors 62); but not one for a duplicate
		 * from before another READ. */
		.ack_first = r->owed == OWE_ACK && seq24_add(r->ack_psn, 1) == pkt->psn,
	}; /* RSP-37: over the oldest */
	if (res->ack_first)
		r->owed = OWE_NOTHING;
	if (r->res_kept < RD_ATOMIC_MAX)
		r->res_kept++;
	res_execute(c, qp, res, pkt->psn, pkt->va, pkt->dma_len);
	c->count.rx_read_requests++;
	r->epsn = seq24_add(res->last_psn, 1); /* RSP-29 */
	r->msn = res->msn;		       /* RSP-25 */
}

/* --- duplicates ----------------------------------------------------------------------- */

/* The slot whose original request covers @p psn, among those that are remembered. */
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

/* Responses are sent from slot @p idx on. The stream that this cuts off begins anew behind them:
 * the requester has discarded what came of it, and must find no gap (RSP-27). */
static void res_go_back(struct qp_resp *r, uint32_t idx)
{
	struct resp_res *cut = &r->res[r->res_next % RD_ATOMIC_MAX];

	if (r->res_next != r->res_head)
		cut->next_psn = cut->exec_psn;
	r->res_next = idx;
}

/* RSP-40: executed again if it is a part of what was asked for before. The R_Key is looked up
 * (RSP-41) and the memory read (RSP-42) again, when the responses are built. */
static enum drop duplicate_read(struct core *c, struct qp *qp, const struct pkt *pkt)
{
	uint32_t idx;
	struct resp_res *res = res_find(qp, pkt->psn, &idx);
	uint64_t off;

	responder_pending(&qp->resp); /* first executions that are over no longer count */
	if (!res || pkt->rkey != res->rkey)
		return DROP_DUP_NO_RESOURCE;
	off = pkt->va - res->va;
	if (!range_inside(off, pkt->dma_len, res->length) ||
		off != (uint64_t)seq24_diff(pkt->psn, res->first_psn) << qp->mtu_shift)
		return DROP_DUP_NO_RESOURCE;
	res->ack_first = false;
	res_execute(c, qp, res, pkt->psn, pkt->va, pkt->dma_len); /* RSP-43: FIRST or ONLY there */
	if ((int32_t)(idx - qp->resp.res_next) < 0)
		res_go_back(&qp->resp, idx);
	return DROP_NONE;
}

static enum drop duplicate_request(struct core *c, struct qp *qp, const struct pkt *pkt)
{
	c->count.duplicate_request++;
	switch (pkt->op->kind) {
	case KIND_READ:
		return duplicate_read(c, qp, pkt);
	case KIND_SEND:
	case KIND_WRITE:
		/* RSP-39, RSP-44, C9-105: not executed; answered with the newest accepted PSN, not
		 * counting READs: an ACK must not stand for responses that may be lost. A NAK that
		 * is owed says as much, and one that was sent stays sent (RSP-04). */
		if (pkt->ackreq && qp->resp.owed == OWE_NOTHING) {
			qp->resp.owed = OWE_ACK;
			qp_make_ready(c, qp);
		}
		return DROP_NONE;
	default:
		return DROP_DUP_NO_RESOURCE; /* RSP-38: nothing is remembered of it */
	}
}

/* --- the pipeline --------------------------------------------------------------------- */

/* The packet was executed: ePSN, MSN, completion. */
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
		recv_complete(c, qp, ABI_WC_SUCCESS, pkt, now);
}

/* RSP-23: now or, if more of the burst asks for it, once for all of them. */
static void acknowledge(struct core *c, struct qp *qp, const struct pkt *pkt)
{
	struct qp_resp *r = &qp->resp;
	bool nak_void;

	communication_established(c, qp);
	r->rnr_sent = false; /* RSP-18: the flow goes on */
	if (r->owed == OWE_NAK && r->syndrome == NAK_PSN_SEQUENCE && seq24_le(r->epsn, r->early)) {
		/* The packet was only late, but what overtook it was dropped: NAK that instead. */
		r->nak_psn = r->epsn;
		return;
	}
	r->nak_sent = false;	       /* RSP-03 */
	nak_void = r->owed == OWE_NAK; /* it may stand for an ACK that was owed before */
	if (nak_void)
		r->owed = OWE_NOTHING;
	if (pkt->op->kind == KIND_READ || !(pkt->ackreq || nak_void))
		return;
	r->owed = OWE_ACK;
	qp_make_ready(c, qp);
}

enum drop responder_rx(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	int32_t ahead = seq24_diff(pkt->psn, qp->resp.epsn); /* RSP-01 */
	enum verdict done;

	if (ahead < 0)
		return duplicate_request(c, qp, pkt);
	if (ahead > 0) /* RSP-52: never executed, so what is written is written in PSN order */
		return psn_ahead(c, qp, pkt->psn) ? DROP_NONE
		       : qp->resp.rnr_sent	  ? DROP_RNR_PENDING
						  : DROP_PSN_AHEAD;
	if (check_op_seq(c, qp, pkt, now) != PASS || check_op_valid(c, qp, pkt, now) != PASS ||
		check_resource(c, qp, pkt, now) != PASS || check_length(c, qp, pkt, now) != PASS ||
		check_rkey(c, qp, pkt, now) != PASS)
		return DROP_NONE;
	if (pkt->op->kind == KIND_READ) {
		execute_read(c, qp, pkt);
		acknowledge(c, qp, pkt);
		return DROP_NONE;
	}
	/* RSP-24: the data lie in memory before an ACK is owed. */
	done = pkt->op->kind == KIND_SEND ? execute_send(c, qp, pkt, now)
					  : execute_write(c, qp, pkt, now);
	if (done != PASS)
		return DROP_NONE;
	accepted(c, qp, pkt, now);
	acknowledge(c, qp, pkt);
	return DROP_NONE;
}
