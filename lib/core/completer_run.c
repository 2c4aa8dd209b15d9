/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path of the completer, for requests of one packet each that just succeed: a run of SENDs
 * and WRITEs that one ACK covers, and a run of READs whose responses arrive together. Their CQEs
 * are written in one loop, after which the cursor moves once. Any other WQE, and any response that
 * does not pass all checks, ends the run: completer.c continues there.
 */
#include "classify.h"
#include "completer.h"
#include "core.h"
#include "core_memory.h"
#include "cq.h"
#include "headers.h"
#include "icrc.h"
#include "mr.h"
#include "opcode.h"
#include "qp.h"
#include "run.h"
#include "seq24.h"
#include "uaccess.h"
#include "wqe.h"

/* Whether @p w is a request of the one packet @p psn, without a status. */
static ALWAYS_INLINE bool is_one_packet(const struct send_wqe *w, uint32_t psn)
{
	return w->first_psn == psn && w->last_psn == psn && !w->status;
}

/* Whether the ACK of @p psn completes @p w, whose first packet is @p una, and nothing else has to
 * be done about it. */
static ALWAYS_INLINE bool is_plain(const struct send_wqe *w, uint32_t una, uint32_t psn)
{
	return is_one_packet(w, una) && seq24_le(una, psn) &&
	       (w->opcode == ABI_WR_RDMA_WRITE || w->opcode == ABI_WR_SEND);
}

/* REQ-14 */
static ALWAYS_INLINE bool is_silent(const struct qp *qp, const struct send_wqe *w)
{
	return !qp->sq_sig_all && !(w->flags & ABI_WQE_SIGNALED);
}

/* CQ-08, CQ-09; its caller knows that there is room (CQ-01). */
static ALWAYS_INLINE void put(struct qp *qp, const struct send_wqe *w, uint8_t opcode)
{
	const struct abi_cqe cqe = {
		.wr_id = w->wr_id,
		.byte_len = w->length,
		.qpn = qp->qpn,
		.status = ABI_WC_SUCCESS,
		.opcode = opcode,
	};

	cq_put(qp->send_lane, &cqe, qp->comp.cqes);
	qp->comp.cqes++;
}

/* The WQEs before @p head are complete; their CQEs follow the first @p before ones. */
static void advance(struct core *c, struct qp *qp, uint32_t head, uint32_t before)
{
	struct cq_lane *lane = qp->send_lane;
	struct qp_comp *k = &qp->comp;

	k->acked += head - k->head;
	k->head = head;
	if (k->cqes != before && list_empty(&lane->touched))
		list_push(&c->touched, &lane->touched);
	atomic_store_explicit(&qp->sq.shared->consumer, head, memory_order_release);
}

/* REQ-35 */
void completer_run(struct core *c, struct qp *qp, uint32_t psn)
{
	struct qp_comp *k = &qp->comp;
	uint32_t before = k->cqes, head = k->head;

	if (!c->fast_paths || qp->traced || qp->send_lane->overflow)
		return;
	for (; head != qp->req.fetched; head++) {
		const struct send_wqe *w = qp_wqe(qp, head);

		if (!is_plain(w, k->una, psn))
			break;
		if (!is_silent(qp, w)) {
			if (unlikely(cq_lane_full(qp->send_lane)))
				break;
			put(qp, w, w->opcode == ABI_WR_SEND ? ABI_WC_SEND : ABI_WC_RDMA_WRITE);
		}
		k->una = seq24_add(k->una, 1);
	}
	if (head != k->head)
		advance(c, qp, head, before);
}

/* --- READs ---------------------------------------------------------------------------- */

/* Whether responses to @p qp are taken now, those with its own P_Key among them. A limiter looks at
 * each response, and a CQ that has lost a completion fails the QP at the next one (CQ-01): both are
 * left to completer.c. */
static bool takes_responses(const struct qp *qp)
{
	const unsigned sending = 1u << ABI_QPS_RTS | 1u << ABI_QPS_SQD;

	return qp->opc == OPC_RC && (sending >> qp->state & 1) && !qp->limited &&
	       !qp->send_lane->overflow && pkey_match(qp->pkey, qp->pkey); /* VAL-08 */
}

/* Whether @p p alone completes the READ that is @p run WQEs after the oldest; sets @p at to where
 * its payload goes. */
static ALWAYS_INLINE bool aim(
	const struct core *c, const struct qp *qp, const struct pkt *p, unsigned run, uint8_t **at)
{
	struct send_wqe *w = qp_wqe(qp, qp->comp.head + run);
	const struct abi_sge *sge = wqe_sge(w);

	if (!seq24_lt(p->psn, qp->req.psn_new)) /* REQ-36 */
		return false;
	if (w->opcode != ABI_WR_RDMA_READ || !is_one_packet(w, p->psn) || w->num_sge != 1)
		return false;
	if (p->syndrome != (AETH_ACK | AETH_CREDIT_NONE)) /* REQ-43, CRD-08 */
		return false;
	return p->payload_len == w->length && /* REQ-42 */
	       mr_resolve(c->cfg.mrs, sge->lkey, qp->pd, ABI_ACCESS_LOCAL_WRITE, sge->addr,
		       p->payload_len, at) == MR_OK; /* REQ-45 */
}

static ALWAYS_INLINE unsigned plan_reads(const struct core *c, const struct qp *qp,
	const struct pkt pkt[], unsigned n, uint8_t *at[])
{
	unsigned run;

	for (run = 0; run < n; run++) {
		const struct pkt *p = &pkt[run];

		if (!run_has(
			    c->cfg.ports, qp, p, seq24_add(qp->comp.una, run), OP_READ_RESP_ONLY) ||
			!aim(c, qp, p, run, &at[run]))
			break;
		run_prefetch(at[run], p->payload_len);
	}
	return run;
}

/* Application memory faulted under @p p, the response for the oldest WQE, which must not be placed
 * again. */
static NOINLINE void fault(struct core *c, struct qp *qp, const struct pkt *p, uint64_t now)
{
	count_received(c, p);
	completer_read_fault(c, qp, p, now);
}

/* The READs of the first @p n packets of @p pkt are complete, with CQEs after the first @p before
 * ones. */
static NOINLINE void reads_done(
	struct core *c, struct qp *qp, unsigned n, uint32_t before, uint64_t now)
{
	struct qp_comp *k = &qp->comp;

	k->una = seq24_add(k->una, n);
	k->rd_done += n;
	k->limited = false; /* CRD-01 */
	advance(c, qp, k->head + n, before);
	completer_progress(c, qp, n, now);
}

__attribute__((flatten)) unsigned completer_run_reads(
	struct core *c, struct qp *qp, const struct pkt pkt[], unsigned n, uint64_t now)
{
	const struct uaccess memory = core_memory(c);
	uint32_t before = qp->comp.cqes;
	uint8_t *at[BURST];
	uint64_t bytes = 0;
	bool faulted = false;
	unsigned run, done;

	if (!takes_responses(qp))
		return 0;
	run = plan_reads(c, qp, pkt, n, at);
	for (done = 0; done < run; done++) {
		const struct pkt *p = &pkt[done];
		const struct send_wqe *w = qp_wqe(qp, qp->comp.head + done);
		bool silent = is_silent(qp, w);

		if (!silent && unlikely(cq_lane_full(qp->send_lane)))
			break;
		if (unlikely(!icrc_check(c->cfg.icrc, p))) /* VAL-01 */
			break;
		observe_queue(qp, p->queue);
		faulted = !uaccess_place(memory, at[done], p->payload, p->payload_len);
		if (unlikely(faulted))
			break;
		if (!silent)
			put(qp, w, ABI_WC_RDMA_READ);
		bytes += p->icrc_off + (uint64_t)ICRC_LEN;
	}
	if (done) {
		count_run(c, pkt, done, bytes);
		reads_done(c, qp, done, before, now);
	}
	if (likely(!faulted))
		return done;
	fault(c, qp, &pkt[done], now);
	return done + 1;
}
