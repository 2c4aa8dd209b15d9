/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UC responder (IBA 9.8.2.2). It never responds (UC-02), whatever AckReq says (BTH-14), so a packet
 * that cannot be executed is dropped silently, and with it the rest of its message: packets are
 * ignored until one begins a message, with any PSN. The checks are those of responder.c, in an
 * order that takes no receive WQE for most dropped packets.
 *
 * The requester side is in requester.c; of completer.c only completer_sent() applies.
 */
#include "uc.h"
#include "core_memory.h"
#include "mr.h"
#include "mw.h"
#include "opcode.h"
#include "packet_length.h"
#include "qp_impl.h"
#include "recv.h"
#include "responder.h"
#include "seq24.h"
#include "write_place.h"

/* UC-06: its receive WQE, if it has one, serves the next message; data already written stay
 * (UC-08). A WQE of an SRQ must not be kept from other QPs, and cannot be returned in order: it
 * completes in error. */
static void abort_message(struct core *c, struct qp *qp, uint64_t now)
{
	if (unlikely(qp->srq && qp->resp.have_wqe))
		recv_complete(c, qp, ABI_WC_REM_INV_REQ_ERR, NULL, now);
	qp->resp.open = KIND_NONE;
	qp->resp.recv_off = 0;
}

/* UC-04, UC-05, UC-07. */
static enum drop check_order(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	if (!pkt->op->request)
		return DROP_OPCODE_UNSUPPORTED; /* VAL-05 */
	if (pkt->psn != qp->resp.epsn) {
		c->count.out_of_sequence++;
		abort_message(c, qp, now);
	}
	if (pkt->op->first) {
		abort_message(c, qp, now);
		return DROP_NONE;
	}
	return pkt->op->kind == qp->resp.open ? DROP_NONE : DROP_MESSAGE_TORN;
}

/* UC-10: the errors that RC answers with a NAK. */
static enum drop check_write(
	struct core *c, const struct qp *qp, const struct pkt *pkt, uint8_t **at)
{
	if (!(qp->attr.access_flags & ABI_ACCESS_REMOTE_WRITE))
		return DROP_REQUEST_ACCESS; /* RSP-08 */
	if (!write_length_ok(qp, pkt) || (pkt->op->reth && pkt->dma_len > MSG_LEN_MAX))
		return DROP_REQUEST_LENGTH; /* RSP-10 */
	if (!pkt->op->reth || !pkt->dma_len)
		return DROP_NONE; /* RSP-12, C9-88 */
	/* RSP-13: for the whole message, before its first byte is written. */
	if (rkey_resolve(c->cfg.mrs, pkt->rkey, qp->pd, qp->qpn, ABI_ACCESS_REMOTE_WRITE, pkt->va,
		    pkt->dma_len, at) == MR_OK)
		return DROP_NONE;
	c->count.resp_remote_access_errors++;
	return DROP_REQUEST_ACCESS;
}

/* The program's own receive WQE is invalid: it fails, and with it the QP (IBA 9.9.3, class A). */
static void recv_failed(struct core *c, struct qp *qp, uint8_t status, uint64_t now)
{
	cause_publish(qp, now);
	recv_complete(c, qp, status, NULL, now);
	qp_error(c, qp, now);
}

/* UC-06, UC-09, UC-12: SEND takes its WQE with the first packet, WRITE with its immediate data. */
static enum drop check_recv(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	struct qp_resp *r = &qp->resp;

	if (pkt->op->kind == KIND_SEND ? pkt->op->first : pkt->op->immdt) {
		if (!r->have_wqe && !recv_wqe_take(c, qp))
			return recv_wqe_missed(c, qp, pkt, now);
		if (r->wqe.invalid) {
			cause_request(c, qp, pkt, CAUSE_RECV_SGES);
			recv_failed(c, qp, ABI_WC_LOC_QP_OP_ERR, now);
			return DROP_NONE;
		}
	}
	if (pkt->op->kind != KIND_SEND || (uint64_t)r->recv_off + pkt->payload_len <= r->wqe.length)
		return DROP_NONE;
	c->count.resp_local_length_error++;
	if (unlikely(qp->srq)) /* not the sender's fault: as for a datagram, decision 0090 */
		recv_complete(c, qp, ABI_WC_LOC_LEN_ERR, NULL, now);
	return DROP_REQUEST_LENGTH; /* UC-10 */
}

static enum drop check(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint8_t **at, uint64_t now)
{
	enum drop why = check_order(c, qp, pkt, now);

	if (!why && !packet_length_ok(qp, pkt)) {
		c->count.resp_remote_invalid_request++;
		why = DROP_REQUEST_LENGTH; /* UC-13 */
	}
	if (!why && pkt->op->kind == KIND_WRITE)
		why = check_write(c, qp, pkt, at);
	return why ? why : check_recv(c, qp, pkt, now);
}

static enum drop execute_send(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint8_t status = recv_place_at(c, qp, qp->resp.recv_off, pkt->payload, pkt->payload_len);

	if (status) {
		recv_failed(c, qp, status, now);
		return DROP_NONE;
	}
	qp->resp.recv_off += pkt->payload_len;
	c->count.rx_send_requests += pkt->op->last;
	return DROP_NONE;
}

static enum drop execute_write(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint8_t *at, uint64_t now)
{
	switch (write_place(core_memory(c), c->cfg.mrs, qp, pkt, at)) {
	case PLACED_KEY_GONE:
		c->count.resp_remote_access_errors++;
		return DROP_REQUEST_ACCESS;
	case PLACED_FAULT: /* caused by its own program: EVT-03 */
		c->count.access_faults++;
		cause_request(c, qp, pkt, CAUSE_WRITE_FAULT);
		qp_event(c, qp, ABI_EVENT_QP_FATAL);
		qp_error(c, qp, now);
		return DROP_NONE;
	default:
		c->count.rx_write_requests += pkt->op->last;
		return DROP_NONE;
	}
}

static void accepted(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	struct qp_resp *r = &qp->resp;

	r->epsn = seq24_add(pkt->psn, 1); /* UC-04 */
	r->open = pkt->op->last ? KIND_NONE : pkt->op->kind;
	if (pkt->op->last && pkt->op->recv_wqe)
		recv_complete(c, qp, ABI_WC_SUCCESS, pkt, now);
}

enum drop uc_rx(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint8_t *at = NULL;
	enum drop why = check(c, qp, pkt, &at, now);

	if (!why && qp->state != ABI_QPS_ERR)
		why = pkt->op->kind == KIND_SEND ? execute_send(c, qp, pkt, now)
						 : execute_write(c, qp, pkt, at, now);
	if (qp->state == ABI_QPS_ERR)
		return why;
	if (why) {
		abort_message(c, qp, now);
		return why;
	}
	responder_established(c, qp);
	accepted(c, qp, pkt, now);
	return DROP_NONE;
}
