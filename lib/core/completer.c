/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RC completer: what comes back for our requests. An acknowledgement of PSN n covers all
 * SEND and WRITE packets up to n; a READ is complete only when its last response is here, so
 * whatever lies behind it and is acknowledged first tells that responses were lost.
 */
#include "completer.h"
#include "requester.h"
#include "seq24.h"
#include "timers.h"

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
	/* REQ-50: the oldest that is left, if any, was not started. */
	return qp->comp.head == qp->req.fetched ||
	       qp_wqe(qp, qp->comp.head)->first_psn == qp->req.psn_new;
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
	default:
		return ABI_WC_SEND;
	}
}

/* Takes the oldest WQE off the queue and reports it, so in post order (REQ-12). */
static void complete_head(
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

	qp->comp.head++;
	if (status != ABI_WC_SUCCESS && status != ABI_WC_WR_FLUSH_ERR)
		c->count.req_cqe_error++;
	/* REQ-13: a failure always; REQ-14 */
	if (status != ABI_WC_SUCCESS || qp->sq_sig_all || (w->flags & ABI_WQE_SIGNALED))
		qp_complete(c, qp, &cqe, now);
	atomic_store_explicit(&qp->sq.shared->consumer, qp->comp.head, memory_order_release);
}

/* The oldest WQE failed: it completes with @p status, the QP goes to ERR and the rest is
 * flushed after it (CQ-10). */
static void fail_head(
	struct core *c, struct qp *qp, uint8_t status, uint32_t vendor_err, uint64_t now)
{
	complete_head(c, qp, status, vendor_err, now);
	qp_error(c, qp, now);
}

/* What failed locally waits until everything before it is complete, and in SQD it does not even
 * start (QPS-19). */
static bool fail_head_if_marked(struct core *c, struct qp *qp, uint64_t now)
{
	const struct send_wqe *w = qp_wqe(qp, qp->comp.head);

	if (qp->comp.head == qp->req.fetched || !w->status)
		return false;
	if (qp->state == ABI_QPS_SQD && completer_drained(qp))
		return false;
	fail_head(c, qp, w->status, 0, now);
	return true;
}

void completer_local_error(struct core *c, struct qp *qp, uint64_t now)
{
	fail_head_if_marked(c, qp, now);
}

/* An ERR QP has WQEs of two kinds: taken, and still in the shared ring (REQ-20). */
bool completer_flush_one(struct core *c, struct qp *qp, uint64_t now)
{
	if (qp->comp.head == qp->req.fetched &&
		(qp_built_now(c, qp) || (!requester_fetch(c, qp) && requester_idle(qp))))
		return false;
	if (qp->comp.head != qp->req.fetched)
		complete_head(c, qp, ABI_WC_WR_FLUSH_ERR, 0, now);
	return true;
}

static void una_set(struct qp *qp, uint32_t una, uint32_t packets)
{
	qp->comp.una = una;
	qp->comp.acked += packets;
}

/* Everything up to and including @p psn arrived: completes SEND and WRITE WQEs (REQ-35).
 * Stops before a READ.  @return false when it stopped there. */
static bool ack_through(struct core *c, struct qp *qp, uint32_t psn, uint64_t now)
{
	struct qp_comp *k = &qp->comp;

	while (k->head != qp->req.fetched) {
		const struct send_wqe *w = qp_wqe(qp, k->head);
		uint32_t upto = seq24_lt(psn, w->last_psn) ? psn : w->last_psn;

		/* REQ-37: of before. Not by first_psn, which may be 2^23 PSNs back. */
		if (seq24_lt(psn, k->una))
			break;
		if (wqe_is_read(w))
			return false; /* REQ-38: no ACKNOWLEDGE completes it */
		una_set(qp, seq24_add(upto, 1), (uint32_t)seq24_diff(upto, k->una) + 1);
		if (upto != w->last_psn)
			break;
		complete_head(c, qp, ABI_WC_SUCCESS, 0, now);
	}
	return true;
}

/* The peer gave up on the request at una (REQ-33). */
static void nak_fatal(struct core *c, struct qp *qp, uint8_t syndrome, uint64_t now)
{
	uint8_t status = ABI_WC_REM_OP_ERR;

	if (syndrome == NAK_REMOTE_ACCESS) {
		c->count.req_remote_access_errors++;
		status = ABI_WC_REM_ACCESS_ERR;
	} else if (syndrome != NAK_REMOTE_OP) {
		c->count.req_remote_invalid_request++;
		status = ABI_WC_REM_INV_REQ_ERR;
	}
	fail_head(c, qp, status, syndrome, now);
}

/* --- retrying ------------------------------------------------------------------------- */

/* Goes back to the oldest unacknowledged PSN (REQ-24). */
static void go_back(struct core *c, struct qp *qp)
{
	window_on_loss(&qp->win);
	qp->comp.retrying = true;
	requester_seek(qp);
	timers_went_back(qp);
	qp_make_ready(c, qp);
}

/* A fatal NAK that came behind a READ without responses explains why the peer is silent: it applies
 * to its own request if only that is left (REQ-34), else it is told with the READ's error. */
static void retries_exceeded(struct core *c, struct qp *qp, uint64_t now)
{
	struct qp_comp *k = &qp->comp;

	if (k->refused)
		ack_through(c, qp, seq24_add(k->refused_psn, SEQ24_MASK), now);
	if (qp->state == ABI_QPS_ERR)
		return;
	if (k->refused && k->una == k->refused_psn) {
		nak_fatal(c, qp, k->refused, now);
		return;
	}
	c->count.retry_exceeded_err++;
	fail_head(c, qp, ABI_WC_RETRY_EXC_ERR, k->refused, now); /* REQ-26 */
}

/* A loss that counts: timeout, PSN sequence NAK, implied NAK. */
static void retry(struct core *c, struct qp *qp, uint64_t now)
{
	if (!qp->comp.retry_left) { /* REQ-25: no count is infinite */
		retries_exceeded(c, qp, now);
		return;
	}
	qp->comp.retry_left--; /* REQ-24, REQ-28 */
	go_back(c, qp);
}

void completer_timeout(struct core *c, struct qp *qp, uint64_t now)
{
	c->count.local_ack_timeout_err++;
	retry(c, qp, now);
}

/* Responses to an earlier READ are missing although something behind it was answered
 * (REQ-38). Once until something new arrives: packets of the old stream are still coming. */
static void implied_nak(struct core *c, struct qp *qp, uint64_t now)
{
	if (qp->comp.retrying || qp->comp.rnr_wait) /* REQ-29: it is asked for again, later */
		return;
	c->count.implied_nak_seq_err++;
	retry(c, qp, now);
}

/* --- progress ------------------------------------------------------------------------- */

/* After una moved from @p old: what depends on progress. */
static void progress(struct core *c, struct qp *qp, uint32_t old, uint64_t now)
{
	uint32_t packets = (uint32_t)seq24_diff(qp->comp.una, old);

	if (qp->state == ABI_QPS_ERR || !packets)
		return;
	qp->comp.retrying = false;
	if (seq24_lt(qp->comp.refused_psn, qp->comp.una))
		qp->comp.refused = 0;
	completer_reload_retries(qp); /* REQ-27, REQ-31 */
	window_on_ack(&qp->win, packets);
	if (seq24_lt(qp->req.psn, qp->comp.una))
		requester_seek(qp);  /* a late ACK overtook a retry */
	timers_progress(c, qp, now); /* REQ-23 */
	qp_make_ready(c, qp);
	qp_check_drained(c, qp);
	fail_head_if_marked(c, qp, now);
}

/* --- ACK and NAK ---------------------------------------------------------------------- */

/* Of an AETH that says ACK (CRD-08), also when it acknowledges nothing new (REQ-37). */
static void take_credits(struct core *c, struct qp *qp, const struct pkt *pkt)
{
	static const uint16_t credits[31] = {/* CRD-01 */ 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48,
		64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
		12288, 16384, 24576, 32768};
	unsigned code = pkt->syndrome & AETH_CODE_MASK;
	uint32_t limit;

	if (code == AETH_CREDIT_NONE) {
		qp->comp.limited = false;
		qp_make_ready(c, qp);
		return;
	}
	limit = seq24_add(pkt->msn, credits[code]); /* CRD-04 */
	if (qp->comp.limited && seq24_le(limit, qp->comp.limit))
		return; /* REQ-37: not the newest */
	qp->comp.limited = true;
	qp->comp.limit = limit;
	qp_make_ready(c, qp);
}

static void ack(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint32_t old = qp->comp.una;
	bool through;

	take_credits(c, qp, pkt);
	through = ack_through(c, qp, pkt->psn, now);
	progress(c, qp, old, now);
	if (!through && qp->state != ABI_QPS_ERR)
		implied_nak(c, qp, now);
}

static void nak_sequence(struct core *c, struct qp *qp, uint64_t now)
{
	c->count.packet_seq_err++;
	if (qp->req.psn != qp->comp.una) /* else it was said before, and we went back */
		retry(c, qp, now);	 /* REQ-28 */
}

static void nak_rnr(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	const uint8_t infinite = 7;

	c->count.rnr_nak_recv++;
	if (qp->comp.rnr_wait)
		return; /* a second copy */
	if (!qp->comp.rnr_left) {
		c->count.rnr_nak_retry_err++;
		fail_head(c, qp, ABI_WC_RNR_RETRY_EXC_ERR, pkt->syndrome, now); /* REQ-30 */
		return;
	}
	if (qp->attr.rnr_retry != infinite) /* REQ-30 */
		qp->comp.rnr_left--;
	/* The peer is alive and says so: waiting for it must not use up retry_cnt (REQ-31), not
	 * even when it answers the rest of each burst with a PSN sequence NAK, as soft-RoCE does.
	 * What is behind the refused packet is wasted, so less of it is sent next time. */
	qp->comp.retry_left = qp->attr.retry_cnt;
	window_on_loss(&qp->win);
	requester_seek(qp); /* REQ-29 */
	timers_rnr_nak(c, qp, pkt->syndrome & AETH_CODE_MASK, now);
}

/* All NAKs acknowledge what lies before their PSN (REQ-28, REQ-29, REQ-34). */
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

/* Puts the payload where the WQE's SGEs say, at message offset @p off (REQ-45). */
static uint8_t scatter(struct core *c, struct qp *qp, struct send_wqe *w, uint32_t off,
	const uint8_t *data, uint32_t len)
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
			    sge->addr + off, part, &ptr) != MR_OK)
			return ABI_WC_LOC_PROT_ERR;
		if (!uaccess_place(&c->ua, ptr, data, part)) {
			c->count.access_faults++;
			return ABI_WC_LOC_PROT_ERR;
		}
		off = 0;
		data += part;
		len -= part;
	}
	return 0;
}

static void read_accept(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	struct send_wqe *w = qp_wqe(qp, qp->comp.head);
	uint32_t off = (uint32_t)seq24_diff(pkt->psn, w->first_psn) << qp->mtu_shift;
	uint32_t end = read_last_psn(w, pkt->psn);
	uint32_t old = qp->comp.una;
	uint8_t status = check_read_resp(qp, w, pkt);

	if (!status)
		status = scatter(c, qp, w, off, pkt->payload, pkt->payload_len);
	if (status) {
		fail_head(c, qp, status, pkt->op->aeth ? pkt->syndrome : 0, now);
		return;
	}
	if (pkt->op->aeth)
		take_credits(c, qp, pkt); /* CRD-01: an AETH has them, whatever it is in */
	una_set(qp, seq24_add(pkt->psn, 1), pkt->psn == end);
	if (pkt->psn == end)
		qp->comp.rd_done++;
	if (pkt->psn == w->last_psn)
		complete_head(c, qp, ABI_WC_SUCCESS, 0, now);
	progress(c, qp, old, now);
}

/* Whether @p psn, which is outstanding, belongs to a READ. */
static bool in_a_read(const struct qp *qp, uint32_t psn)
{
	for (uint32_t i = qp->comp.head; i != qp->req.fetched; i++) {
		const struct send_wqe *w = qp_wqe(qp, i);

		if (seq24_le(psn, w->last_psn))
			return wqe_is_read(w);
	}
	return false;
}

static enum drop read_resp(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint32_t old = qp->comp.una;
	const struct send_wqe *w;
	bool ours;

	if (seq24_lt(pkt->psn, old) || !in_a_read(qp, pkt->psn))
		return DROP_READ_RESP_UNEXPECTED; /* REQ-36: a duplicate, or not asked for */
	/* REQ-44: it acknowledges the SENDs and WRITEs before its READ, but not itself. */
	while (qp->comp.head != qp->req.fetched) {
		w = qp_wqe(qp, qp->comp.head);
		if (wqe_is_read(w) || seq24_le(pkt->psn, w->last_psn))
			break;
		ack_through(c, qp, w->last_psn, now);
	}
	progress(c, qp, old, now);
	if (qp->state == ABI_QPS_ERR || qp->comp.head == qp->req.fetched)
		return DROP_READ_RESP_UNEXPECTED;
	w = qp_wqe(qp, qp->comp.head);
	ours = wqe_is_read(w) && pkt->psn == qp->comp.una; /* REQ-39 */
	if (ours) {
		read_accept(c, qp, pkt, now);
		return DROP_NONE;
	}
	if (wqe_is_read(w))
		implied_nak(c, qp, now); /* REQ-39: the ones before it are missing */
	return DROP_READ_RESP_UNEXPECTED;
}

enum drop completer_rx(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint8_t type = pkt->syndrome & AETH_TYPE_MASK;

	c->count.rx_acks += pkt->op->kind == KIND_ACK;
	/* REQ-36: nothing that was not asked for. */
	if (!seq24_lt(pkt->psn, qp->req.psn_new))
		return DROP_GHOST_ACK;
	if (pkt->op->kind == KIND_READ_RESP)
		return read_resp(c, qp, pkt, now);
	if (pkt->op->kind != KIND_ACK)
		return DROP_OPCODE_UNSUPPORTED;
	if (type == AETH_ACK) {
		ack(c, qp, pkt, now);
		return DROP_NONE;
	}
	/* REQ-46 */
	if (type != AETH_RNR_NAK && (type != AETH_NAK || (pkt->syndrome & AETH_CODE_MASK) > 4))
		return DROP_AETH_RESERVED;
	return nak(c, qp, pkt, now);
}
