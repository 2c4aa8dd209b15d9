/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC completer: handles the responses to our requests. An acknowledgement of PSN n covers all SEND
 * and WRITE packets up to n; a READ is complete only with its last response, so an acknowledgement
 * of anything after it that arrives first means that responses were lost.
 */
#include "completer.h"
#include "complete.h"
#include "core_memory.h"
#include "headers.h"
#include "mr.h"
#include "named.h"
#include "opcode.h"
#include "pacing.h"
#include "qp_impl.h"
#include "requester.h"
#include "seq24.h"
#include "timers.h"
#include "uaccess.h"
#include "wqe.h"

void completer_reload_retries(struct qp *qp)
{
	qp->comp.retry_left = qp->attr.retry_cnt;
	qp->comp.rnr_left = qp->attr.rnr_retry;
}

void completer_start(struct qp *qp, uint32_t psn)
{
	qp->comp.una = psn;
	qp->comp.limited = false; /* CRD-07: as if the CM's flow control bit is 0 */
	completer_reload_retries(qp);
}

void completer_reset(struct qp *qp)
{
	memset(&qp->comp, 0, sizeof(qp->comp));
	qp->comp.head = qp->req.fetched;
}

bool completer_drained(const struct qp *qp)
{
	const struct send_wqe *w = qp_wqe(qp, qp->comp.head);

	/* REQ-50: the oldest remaining WQE, if any, was not started. */
	return qp->comp.head == qp->req.fetched ||
	       (w->first_psn == qp->req.psn_new && w->status < WQE_LOCAL_GRACE);
}

/* --- completing WQEs ------------------------------------------------------------------ */

static uint8_t wc_opcode(const struct send_wqe *w)
{
	switch (w->opcode) {
	case ABI_WR_RDMA_WRITE:
	case ABI_WR_RDMA_WRITE_WITH_IMM:
		return ABI_WC_RDMA_WRITE;
	case ABI_WR_RDMA_READ:
		return ABI_WC_RDMA_READ;
	case ABI_WR_ATOMIC_CMP_AND_SWP:
		return ABI_WC_COMP_SWAP;
	case ABI_WR_ATOMIC_FETCH_AND_ADD:
		return ABI_WC_FETCH_ADD;
	case ABI_WR_FLUSH:
		return ABI_WC_FLUSH;
	case ABI_WR_ATOMIC_WRITE:
		return ABI_WC_ATOMIC_WRITE;
	case ABI_WR_BIND_MW:
		return ABI_WC_BIND_MW;
	case ABI_WR_LOCAL_INV:
		return ABI_WC_LOCAL_INV;
	default:
		return ABI_WC_SEND;
	}
}

/* Takes the oldest WQE off the queue and reports it, so completions are in post order (REQ-12). */
static ALWAYS_INLINE void complete_head(
	struct core *c, struct qp *qp, uint8_t status, uint32_t vendor_err, uint64_t now)
{
	struct send_wqe *w = qp_wqe(qp, qp->comp.head);
	struct abi_cqe cqe = {
		.wr_id = w->wr_id,     /* CQ-08 */
		.byte_len = w->length, /* CQ-09 */
		.qpn = qp->qpn,
		.status = status,
		.opcode = wc_opcode(w),
		.vendor_err = vendor_err,
	};

	if (unlikely(status != ABI_WC_SUCCESS)) {
		cqe.imm = qp->comp.head;
		c->count.req_cqe_error++;
		c->count.req_cqe_flush_error += status == ABI_WC_WR_FLUSH_ERR;
	}
	qp->comp.head++;
	/* REQ-13: failures always; REQ-14 */
	if (status != ABI_WC_SUCCESS || qp->sq_sig_all || (w->flags & ABI_WQE_SIGNALED))
		qp_complete(c, qp, &cqe, now);
	atomic_store_explicit(&qp->sq.shared->consumer, qp->comp.head, memory_order_release);
}

/* The oldest WQE failed: it completes with @p status, the QP goes to ERR or SQE, and the rest is
 * flushed after it (CQ-10). */
static void fail_head(
	struct core *c, struct qp *qp, uint8_t status, uint32_t vendor_err, uint64_t now)
{
	cause_publish(qp, now);
	if (unlikely(qp->named)) { /* its memory may still be read: the flush completes it */
		qp->comp.failed = status;
		qp->comp.failed_why = (uint8_t)vendor_err;
	} else {
		complete_head(c, qp, status, vendor_err, now);
	}
	qp_send_error(c, qp, now);
}

/* WQEs that send nothing are never acknowledged: they complete when all before them have. */
static NOINLINE void complete_local(struct core *c, struct qp *qp, uint64_t now)
{
	uint32_t old = qp->comp.head;

	while (qp->comp.head != qp->req.fetched &&
		qp_wqe(qp, qp->comp.head)->status == WQE_LOCAL_DONE && qp->state < ABI_QPS_SQE)
		complete_head(c, qp, ABI_WC_SUCCESS, 0, now);
	if (qp->comp.head == old)
		return;
	if ((int32_t)(qp->req.cur - qp->comp.head) < 0)
		requester_seek(qp); /* it had gone back, and not skipped them again */
	qp_check_drained(c, qp);
}

/* A WQE that failed locally waits until everything before it is complete, and in SQD it does not
 * even start (QPS-19). */
static NOINLINE void settle(struct core *c, struct qp *qp, uint64_t now)
{
	const struct send_wqe *w = qp_wqe(qp, qp->comp.head);

	if (w->status == WQE_LOCAL_DONE) {
		complete_local(c, qp, now);
		w = qp_wqe(qp, qp->comp.head);
	}
	if (qp->comp.head == qp->req.fetched || !w->status || w->status >= WQE_LOCAL)
		return;
	if (qp->state >= ABI_QPS_SQE || (qp->state == ABI_QPS_SQD && completer_drained(qp)))
		return;
	cause_wqe(c, qp, w->cause, 0);
	fail_head(c, qp, w->status, 0, now);
}

void completer_settle(struct core *c, struct qp *qp, uint64_t now)
{
	if (qp->comp.head != qp->req.fetched && unlikely(qp_wqe(qp, qp->comp.head)->status))
		settle(c, qp, now);
}

/* The first one may be the one that failed: fail_head(). */
static void flush_head(struct core *c, struct qp *qp, uint64_t now)
{
	uint8_t failed = qp->comp.failed;

	qp->comp.failed = 0;
	if (unlikely(failed))
		complete_head(c, qp, failed, qp->comp.failed_why, now);
	else
		complete_head(c, qp, ABI_WC_WR_FLUSH_ERR, 0, now);
}

/* An ERR QP has WQEs of two kinds: fetched, and still in the shared ring (REQ-20). */
bool completer_flush_one(struct core *c, struct qp *qp, uint64_t now)
{
	if (qp->comp.head == qp->req.fetched &&
		(qp_built_now(c, qp) || (!requester_fetch(c, qp) && requester_idle(qp))))
		return false;
	if (qp->comp.head != qp->req.fetched)
		flush_head(c, qp, now);
	return true;
}

static void una_set(struct qp *qp, uint32_t una, uint32_t packets)
{
	qp->comp.una = una;
	qp->comp.acked += packets;
}

void completer_sent(struct core *c, struct qp *qp, uint64_t now)
{
	uint32_t old = qp->comp.head;

	/* A full CQ may fail the QP and end the loop. In SQE and ERR the rest is flushed. */
	while (qp->state < ABI_QPS_SQE && (int32_t)(qp->req.cur - qp->comp.head) > 0)
		complete_head(c, qp, ABI_WC_SUCCESS, 0, now);
	una_set(qp, qp->req.psn, qp->req.sent - qp->comp.acked);
	if (qp->comp.head != old)
		qp_check_drained(c, qp);
}

void completer_source_fault(struct core *c, struct qp *qp, uint32_t psn, uint64_t now)
{
	/* A full CQ may end the loop, as above. */
	while (qp->state < ABI_QPS_SQE && seq24_lt(qp_wqe(qp, qp->comp.head)->last_psn, psn))
		complete_head(c, qp, ABI_WC_SUCCESS, 0, now);
	if (qp->state < ABI_QPS_SQE)
		fail_head(c, qp, ABI_WC_LOC_PROT_ERR, 0, now);
}

/* Everything up to and including @p psn arrived: completes SEND and WRITE WQEs (REQ-35), up to the
 * first that has a response of its own.  @return false when it stopped there. */
static bool ack_through(struct core *c, struct qp *qp, uint32_t psn, uint64_t now)
{
	struct qp_comp *k = &qp->comp;

	while (k->head != qp->req.fetched) {
		const struct send_wqe *w = qp_wqe(qp, k->head);
		uint32_t upto = seq24_lt(psn, w->last_psn) ? psn : w->last_psn;

		/* REQ-37: acknowledged before. Not by first_psn, which may be 2^23 PSNs back. */
		if (seq24_lt(psn, k->una))
			break;
		if (wqe_has_response(w))
			return false; /* REQ-38: no ACKNOWLEDGE completes it */
		una_set(qp, seq24_add(upto, 1), (uint32_t)seq24_diff(upto, k->una) + 1);
		if (upto != w->last_psn)
			break;
		complete_head(c, qp, ABI_WC_SUCCESS, 0, now);
	}
	return true;
}

/* The peer refused the request at una (REQ-33). */
static void nak_fatal(struct core *c, struct qp *qp, uint8_t syndrome, uint64_t now)
{
	uint8_t status = ABI_WC_REM_OP_ERR;
	enum cause why = CAUSE_REFUSED_OPERATION;

	if (syndrome == NAK_REMOTE_ACCESS) {
		c->count.req_remote_access_errors++;
		status = ABI_WC_REM_ACCESS_ERR;
		why = CAUSE_REFUSED_ACCESS;
	} else if (syndrome != NAK_REMOTE_OP) {
		c->count.req_remote_invalid_request++;
		status = ABI_WC_REM_INV_REQ_ERR;
		why = CAUSE_REFUSED_REQUEST;
	}
	cause_wqe(c, qp, why, syndrome);
	fail_head(c, qp, status, syndrome, now);
}

void completer_delivered(struct core *c, struct qp *qp, bool complete, uint64_t now)
{
	qp->comp.una = qp->req.psn;
	if (complete)
		complete_head(c, qp, ABI_WC_SUCCESS, 0, now);
}

void completer_fetched(struct core *c, struct qp *qp, uint64_t orig, uint64_t now)
{
	uint8_t status = completer_place(
		c, qp, qp_wqe(qp, qp->comp.head), 0, (const uint8_t *)&orig, ATOMIC_LEN);

	if (status)
		fail_head(c, qp, status, AETH_ACK | AETH_CREDIT_NONE, now);
	else
		completer_delivered(c, qp, true, now);
}

/* --- retrying ------------------------------------------------------------------------- */

/* Goes back to the oldest unacknowledged PSN (REQ-24). */
static void go_back(struct core *c, struct qp *qp, enum cc_loss kind, uint64_t now)
{
	window_on_loss(&qp->win);
	if (unlikely(qp->limited))
		pacing_loss(c, qp, kind, now);
	qp->comp.retrying = true;
	requester_seek(qp);
	timers_went_back(qp);
	qp_make_ready(c, qp);
}

/* A fatal NAK for a request after a READ without responses explains why the peer is silent: it
 * applies to its own request if only that is left (REQ-34), otherwise it is reported with the
 * READ's error. */
static void retries_exceeded(struct core *c, struct qp *qp, uint64_t now)
{
	struct qp_comp *k = &qp->comp;

	if (k->refused) {
		ack_through(c, qp, seq24_add(k->refused_psn, SEQ24_MASK), now);
		complete_local(c, qp, now);
	}
	if (qp->state == ABI_QPS_ERR)
		return;
	if (k->refused && k->una == k->refused_psn) {
		nak_fatal(c, qp, k->refused, now);
		return;
	}
	c->count.retry_exceeded_err++;
	cause_retries(qp);
	fail_head(c, qp, ABI_WC_RETRY_EXC_ERR, k->refused, now); /* REQ-26 */
}

/* A loss that is charged: timeout, PSN sequence NAK, implied NAK. */
static void retry(struct core *c, struct qp *qp, enum cc_loss kind, uint64_t now)
{
	if (!qp->comp.retry_left) { /* REQ-25: no count is infinite */
		retries_exceeded(c, qp, now);
		return;
	}
	qp->comp.retry_left--; /* REQ-24, REQ-28 */
	go_back(c, qp, kind, now);
}

void completer_timeout(struct core *c, struct qp *qp, uint64_t now)
{
	c->count.local_ack_timeout_err++;
	qp_late(c, qp);
	retry(c, qp, CC_LOSS_TIMEOUT, now);
}

void completer_gap(struct core *c, struct qp *qp, uint64_t now)
{
	c->count.implied_nak_seq_err++;
	retry(c, qp, CC_LOSS_IMPLIED, now);
}

/* Responses to an earlier READ are missing although a later request was answered (REQ-38). After
 * the READ was retransmitted, answers to requests sent before that still arrive. One that arrives
 * after those means another gap, which the ACK timer ends; where none runs, the gap timer does. */
static void implied_nak(struct core *c, struct qp *qp, uint64_t now)
{
	if (qp->comp.rnr_wait)
		return; /* REQ-29: requested again when the RNR timer fires */
	if (qp->comp.retrying) {
		if (qp->req.psn != qp->comp.una)
			timers_gap(c, qp, now);
		return;
	}
	completer_gap(c, qp, now);
}

/* --- progress ------------------------------------------------------------------------- */

/* An acknowledgement may allow more to be sent. With nothing left to send, a turn would be wasted
 * and would touch lines that no cache holds. Frames that faults hold back leave in turns. */
static ALWAYS_INLINE void resume_sending(struct core *c, struct qp *qp)
{
	if (likely(!c->careful) && requester_waits_for_bell(qp))
		return;
	qp_make_ready(c, qp);
}

/* After una moved by @p psns, with which @p packets of requests were acknowledged: updates
 * everything that depends on progress. */
static void progress_by(
	struct core *c, struct qp *qp, uint32_t psns, uint32_t packets, uint64_t now)
{
	if (qp->state == ABI_QPS_ERR || !psns)
		return;
	qp->comp.retrying = false;
	if (seq24_lt(qp->comp.refused_psn, qp->comp.una))
		qp->comp.refused = 0;
	completer_reload_retries(qp); /* REQ-27, REQ-31 */
	window_on_ack(&qp->win, psns);
	if (unlikely(qp->limited))
		pacing_ack(c, qp, seq24_add(qp->comp.una, SEQ24_MASK), packets, now);
	if (seq24_lt(qp->req.psn, qp->comp.una))
		requester_seek(qp);  /* a late ACK overtook a retry */
	timers_progress(c, qp, now); /* REQ-23 */
	resume_sending(c, qp);
	qp_check_drained(c, qp);
	completer_settle(c, qp, now);
}

void completer_progress(struct core *c, struct qp *qp, unsigned n, uint64_t now)
{
	progress_by(c, qp, n, n, now);
}

/* After una moved from @p old, and not into the responses to a READ. */
static void progress(struct core *c, struct qp *qp, uint32_t old, uint64_t now)
{
	uint32_t psns = (uint32_t)seq24_diff(qp->comp.una, old);

	progress_by(c, qp, psns, psns, now);
}

/* --- ACK and NAK ---------------------------------------------------------------------- */

/* From an AETH with an ACK syndrome (CRD-08), even when it acknowledges nothing new (REQ-37). */
static void take_credits(struct core *c, struct qp *qp, const struct pkt *pkt)
{
	static const uint16_t credits[31] = {/* CRD-01 */ 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48,
		64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
		12288, 16384, 24576, 32768};
	unsigned code = pkt->syndrome & AETH_CODE_MASK;
	uint32_t limit;

	if (code == AETH_CREDIT_NONE) {
		qp->comp.limited = false;
		resume_sending(c, qp);
		return;
	}
	limit = seq24_add(pkt->msn, credits[code]); /* CRD-04 */
	if (qp->comp.limited && seq24_le(limit, qp->comp.limit))
		return; /* REQ-37: not the newest */
	qp->comp.limited = true;
	qp->comp.limit = limit;
	resume_sending(c, qp);
}

static void ack(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint32_t old = qp->comp.una;
	bool through;

	take_credits(c, qp, pkt);
	completer_run(c, qp, pkt->psn);
	through = ack_through(c, qp, pkt->psn, now);
	if (unlikely(qp->comp.una == old))
		cause_old_ack(qp, pkt);
	progress(c, qp, old, now);
	if (!through && qp->state != ABI_QPS_ERR)
		implied_nak(c, qp, now);
}

static void nak_sequence(struct core *c, struct qp *qp, uint64_t now)
{
	c->count.packet_seq_err++;
	if (qp->req.psn != qp->comp.una) /* otherwise a repeated NAK, and we went back already */
		retry(c, qp, CC_LOSS_SEQUENCE, now); /* REQ-28 */
}

static void nak_rnr(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	const uint8_t infinite = 7;

	c->count.rnr_nak_recv++;
	if (qp->comp.rnr_wait)
		return; /* a duplicate */
	if (!qp->comp.rnr_left) {
		c->count.retry_rnr_exceeded_err++;
		cause_wqe(c, qp, CAUSE_RNR_RETRIES, pkt->syndrome);
		fail_head(c, qp, ABI_WC_RNR_RETRY_EXC_ERR, pkt->syndrome, now); /* REQ-30 */
		return;
	}
	c->count.rnr_nak_retry_err++;
	if (qp->attr.rnr_retry != infinite) /* REQ-30 */
		qp->comp.rnr_left--;
	/* The peer is alive: waiting for it must not use up retry_cnt (REQ-31), not even when it
	 * answers the rest of each burst with a PSN sequence NAK, as soft-RoCE does. The packets
	 * after the refused one are wasted, so fewer are sent next time. */
	qp->comp.retry_left = qp->attr.retry_cnt;
	window_on_loss(&qp->win);
	if (unlikely(qp->limited))
		pacing_loss(c, qp, CC_LOSS_RNR, now);
	requester_seek(qp); /* REQ-29 */
	timers_rnr_nak(c, qp, pkt->syndrome & AETH_CODE_MASK, now);
}

/* All NAKs acknowledge everything before their PSN (REQ-28, REQ-29, REQ-34). */
static enum drop nak(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint32_t old = qp->comp.una;
	uint8_t syndrome = pkt->syndrome & 0x7F; /* REQ-46: bit 7 is reserved */
	bool through = true;

	if (seq24_lt(pkt->psn, old))
		return DROP_GHOST_ACK;
	if (pkt->psn != old)
		through = ack_through(c, qp, seq24_add(pkt->psn, SEQ24_MASK), now);
	progress(c, qp, old, now);
	if (qp->state == ABI_QPS_ERR)
		return DROP_NONE;
	if (!through) {
		/* REQ-38: an earlier READ comes first (decision 0008). */
		if (syndrome > NAK_PSN_SEQUENCE) {
			qp->comp.refused = syndrome;
			qp->comp.refused_psn = pkt->psn;
		}
		implied_nak(c, qp, now);
		return DROP_NONE;
	}
	if ((syndrome & AETH_TYPE_MASK) == AETH_RNR_NAK)
		nak_rnr(c, qp, pkt, now);
	else if (syndrome == NAK_PSN_SEQUENCE)
		nak_sequence(c, qp, now);
	else
		nak_fatal(c, qp, syndrome, now);
	return DROP_NONE;
}

/* --- READ responses ------------------------------------------------------------------- */

/* Opcode, length and place in the stream.  @return 0 or a completion status. */
static uint8_t check_read_resp(const struct qp *qp, const struct send_wqe *w, const struct pkt *pkt)
{
	uint32_t mtu = 1u << qp->mtu_shift;
	uint32_t end = read_last_psn(w, pkt->psn);
	uint64_t off = (uint64_t)seq24_diff(pkt->psn, w->first_psn) << qp->mtu_shift;
	uint64_t left = w->length - off;
	bool opens = off == 0 || read_last_psn(w, seq24_add(pkt->psn, SEQ24_MASK)) != end ||
		     pkt->psn == w->read_psn[read_part(w, pkt->psn)]; /* REQ-41 */

	if (pkt->op->last != (pkt->psn == end)) /* REQ-40 */
		return ABI_WC_BAD_RESP_ERR;
	if (pkt->op->first && !opens)
		return ABI_WC_BAD_RESP_ERR;
	if (!pkt->op->first && off == 0)
		return ABI_WC_BAD_RESP_ERR;
	if (pkt->op->aeth && (pkt->syndrome & AETH_TYPE_MASK) != AETH_ACK) /* REQ-43 */
		return ABI_WC_BAD_RESP_ERR;
	if (pkt->payload_len != (left < mtu ? left : mtu)) /* REQ-42 */
		return ABI_WC_LOC_LEN_ERR;
	return 0;
}

/* As in recv.c: the source of a READ without frames is the peer's, and may be what faulted. */
static NOINLINE void scatter_fault(struct core *c, struct qp *qp, uint32_t lkey)
{
	c->count.access_faults++;
	if (!mr_find(c->cfg.mrs, lkey))
		cause_plain(qp, CAUSE_READ_FAULT, 0);
}

/* Places the payload as the WQE's SGEs say, at message offset @p off (REQ-45). */
static ALWAYS_INLINE uint8_t scatter(struct core *c, struct qp *qp, struct send_wqe *w,
	uint32_t off, const uint8_t *data, uint32_t len)
{
	for (unsigned i = 0; len && i < w->num_sge; i++) {
		const struct abi_sge *sge = &wqe_sge(w)[i];
		uint32_t part = sge->length - off;
		uint8_t *ptr;

		if (off >= sge->length) {
			off -= sge->length;
			continue;
		}
		if (part > len)
			part = len;
		if (mr_resolve(c->cfg.mrs, sge->lkey, qp->pd, ABI_ACCESS_LOCAL_WRITE,
			    sge->addr + off, part, &ptr) != MR_OK) {
			cause_key(c, qp, CAUSE_READ_KEY, sge->lkey, sge->addr + off, part,
				ABI_ACCESS_LOCAL_WRITE);
			return ABI_WC_LOC_PROT_ERR;
		}
		if (!uaccess_place(core_memory(c), ptr, data, part)) {
			scatter_fault(c, qp, sge->lkey);
			return ABI_WC_LOC_PROT_ERR;
		}
		off = 0;
		data += part;
		len -= part;
	}
	return 0;
}

NOINLINE uint8_t completer_place(struct core *c, struct qp *qp, struct send_wqe *w, uint32_t off,
	const uint8_t *data, uint32_t len)
{
	return scatter(c, qp, w, off, data, len);
}

/* The responder's memory is gone: as if its response had been lost. The request that is sent again
 * gets a NAK. */
static NOINLINE enum drop nameless(struct core *c, struct qp *qp, uint64_t now)
{
	implied_nak(c, qp, now);
	return DROP_NAMELESS;
}

static ALWAYS_INLINE enum drop read_accept(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	struct send_wqe *w = qp_wqe(qp, qp->comp.head);
	uint32_t off = (uint32_t)seq24_diff(pkt->psn, w->first_psn) << qp->mtu_shift;
	uint32_t end = read_last_psn(w, pkt->psn);
	uint8_t status = check_read_resp(qp, w, pkt);

	if (status)
		cause_response(qp, pkt,
			status == ABI_WC_LOC_LEN_ERR ? CAUSE_READ_LENGTH : CAUSE_READ_SEQUENCE,
			w->length - off);
	else if (unlikely(pkt->named == PKT_NAMELESS))
		return nameless(c, qp, now);
	else
		status = scatter(c, qp, w, off, pkt->payload, pkt->payload_len);
	if (unlikely(pkt->named) && named_is_gone(c, pkt))
		return nameless(c, qp, now);
	if (status) {
		fail_head(c, qp, status, pkt->op->aeth ? pkt->syndrome : 0, now);
		return DROP_NONE;
	}
	if (pkt->op->aeth)
		take_credits(c, qp, pkt); /* CRD-01: every AETH carries them, whatever the packet */
	una_set(qp, seq24_add(pkt->psn, 1), pkt->psn == end);
	if (pkt->psn == end)
		qp->comp.rd_done++;
	if (pkt->psn == w->last_psn)
		complete_head(c, qp, ABI_WC_SUCCESS, 0, now);
	progress_by(c, qp, 1, pkt->psn == end, now);
	return DROP_NONE;
}

void completer_read_fault(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	scatter_fault(c, qp, wqe_sge(qp_wqe(qp, qp->comp.head))->lkey);
	fail_head(c, qp, ABI_WC_LOC_PROT_ERR, pkt->syndrome, now);
}

/* --- responses to ATOMIC, FLUSH, ATOMIC WRITE ------------------------------------------- */

/* Takes the response's data: the original word, or nothing.  @return 0 or a completion status. */
static uint8_t take_word(struct core *c, struct qp *qp, struct send_wqe *w, const struct pkt *pkt)
{
	uint64_t orig = pkt->atomic_orig; /* REQ-47: in host byte order */

	if ((pkt->syndrome & AETH_TYPE_MASK) != AETH_ACK) /* REQ-43 */
		return ABI_WC_BAD_RESP_ERR;
	if (wqe_is_atomic(w))
		return scatter(c, qp, w, 0, (const uint8_t *)&orig, ATOMIC_LEN);
	/* FLU-02, FLU-09 */
	return pkt->payload_len ? ABI_WC_LOC_LEN_ERR : 0;
}

static NOINLINE void word_accept(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	struct send_wqe *w = qp_wqe(qp, qp->comp.head);
	uint32_t old = qp->comp.una;
	uint8_t status = take_word(c, qp, w, pkt);

	if (status) {
		cause_response(qp, pkt, CAUSE_READ_SEQUENCE, ATOMIC_LEN);
		fail_head(c, qp, status, pkt->syndrome, now);
		return;
	}
	take_credits(c, qp, pkt);
	una_set(qp, seq24_add(pkt->psn, 1), 1);
	qp->comp.rd_done++;
	complete_head(c, qp, ABI_WC_SUCCESS, 0, now);
	progress(c, qp, old, now);
}

/* --- responses ------------------------------------------------------------------------ */

/* @p pkt is the expected response, for the oldest WQE. */
static ALWAYS_INLINE enum drop response_accept(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	const struct send_wqe *w = qp_wqe(qp, qp->comp.head);
	bool ok = wqe_is_atomic(w) ? pkt->op->kind == KIND_ATOMIC_ACK
		  : wqe_is_read(w) ? pkt->op->kind == KIND_READ_RESP
				   : pkt->op->code == (qp->opc | OP_READ_RESP_ONLY);

	if (!ok) { /* REQ-40 */
		cause_response(qp, pkt, CAUSE_READ_SEQUENCE, w->length);
		fail_head(c, qp, ABI_WC_BAD_RESP_ERR, pkt->op->aeth ? pkt->syndrome : 0, now);
	} else if (wqe_is_read(w))
		return read_accept(c, qp, pkt, now);
	else
		word_accept(c, qp, pkt, now);
	return DROP_NONE;
}

/* @return PSNs from una to the end of @p w, which is not complete: modulo 2^24, because a READ
 * after 2^23 outstanding PSNs may have as many. */
static uint32_t psns_to_end(const struct qp *qp, const struct send_wqe *w)
{
	return (w->last_psn + 1 - qp->comp.una) & SEQ24_MASK;
}

/* Whether @p psn, which is outstanding, belongs to a request with a response of its own. PSNs
 * ascend along the queue: a WQE that sends nothing ends where the one before it does. */
static bool in_a_response(const struct qp *qp, uint32_t psn)
{
	uint32_t want = (psn + 1 - qp->comp.una) & SEQ24_MASK;
	uint32_t from = qp->comp.head;
	uint32_t to = qp->req.fetched;

	while (from != to) {
		uint32_t middle = from + (to - from) / 2;

		if (psns_to_end(qp, qp_wqe(qp, middle)) < want)
			from = middle + 1;
		else
			to = middle;
	}
	return from != qp->req.fetched && wqe_has_response(qp_wqe(qp, from));
}

/* Whether @p psn is that of the expected response, which belongs to the oldest WQE. */
static bool response_is_next(const struct qp *qp, uint32_t psn)
{
	return qp->comp.head != qp->req.fetched && wqe_has_response(qp_wqe(qp, qp->comp.head)) &&
	       psn == qp->comp.una;
}

/* A response that is not simply the next has implications for others.  @return whether it is next
 * now. */
static NOINLINE bool response_catch_up(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint32_t old = qp->comp.una;
	const struct send_wqe *w;
	bool ours;

	if (seq24_lt(pkt->psn, old) || !in_a_response(qp, pkt->psn))
		return false; /* REQ-36: a duplicate, or unsolicited */
	/* REQ-44: it acknowledges the SENDs and WRITEs before its request, but not the request
	 * itself. A full CQ ends the loop: nothing completes any more. */
	while (qp->comp.head != qp->req.fetched && qp->state < ABI_QPS_SQE) {
		w = qp_wqe(qp, qp->comp.head);
		if (wqe_has_response(w) || seq24_le(pkt->psn, w->last_psn))
			break;
		ack_through(c, qp, w->last_psn, now);
		complete_local(c, qp, now);
	}
	progress(c, qp, old, now);
	if (qp->state == ABI_QPS_ERR || qp->comp.head == qp->req.fetched)
		return false;
	w = qp_wqe(qp, qp->comp.head);
	ours = wqe_has_response(w) && pkt->psn == qp->comp.una; /* REQ-39 */
	if (!ours && wqe_has_response(w))
		implied_nak(c, qp, now); /* REQ-39: earlier responses are missing */
	return ours;
}

static ALWAYS_INLINE enum drop response(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	if (unlikely(!response_is_next(qp, pkt->psn)) && !response_catch_up(c, qp, pkt, now))
		return DROP_READ_RESP_UNEXPECTED;
	return response_accept(c, qp, pkt, now);
}

enum drop completer_rx(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint8_t type = pkt->syndrome & AETH_TYPE_MASK;

	c->count.rx_acks += pkt->op->kind == KIND_ACK;
	/* REQ-36: no response to a request that was not sent. */
	if (!seq24_lt(pkt->psn, qp->req.psn_new))
		return DROP_GHOST_ACK;
	if (pkt->op->kind != KIND_ACK)
		return response(c, qp, pkt, now);
	if (type == AETH_ACK) {
		ack(c, qp, pkt, now);
		return DROP_NONE;
	}
	/* REQ-46 */
	if (type != AETH_RNR_NAK && (type != AETH_NAK || (pkt->syndrome & AETH_CODE_MASK) > 4))
		return DROP_AETH_RESERVED;
	return nak(c, qp, pkt, now);
}
