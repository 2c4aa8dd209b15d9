/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path of the responder: a run of RDMA WRITEs, or of SENDs, of one packet each, or of
 * READs, from the peer of one QP and in sequence. Conditions common to all of them are checked
 * once; the targets of WRITEs and SENDs are fetched together, and ePSN, MSN and the ACK that is
 * owed move once. The packet that does not pass all checks ends the run untouched: classify.c and
 * responder.c decide about it, as if there were no runs.
 */
#include "classify.h"
#include "core_memory.h"
#include "cq.h"
#include "icrc.h"
#include "mr.h"
#include "packet_length.h"
#include "qp_impl.h"
#include "recv.h"
#include "responder.h"
#include "responder_impl.h"
#include "run.h"
#include "seq24.h"
#include "uaccess.h"
#include "wqe.h"

/* Where the payload of a packet is placed, and the receive WQE that a SEND takes. */
struct target {
	uint8_t *at;
	uint64_t wr_id;
	uint32_t lkey;
};

typedef uint64_t entry_part __attribute__((vector_size(16), may_alias));

/* The parts of a receive WQE of one SGE. */
union entry {
	entry_part part[2];
	struct abi_recv_wqe wqe;
};

/* Whether @p qp executes requests now, those with its own P_Key among them, and there is no NAK
 * that it owes, or that its peer has not answered by sending again. */
static bool is_ready(const struct qp *qp)
{
	const unsigned receiving = 1u << ABI_QPS_RTR | 1u << ABI_QPS_RTS | 1u << ABI_QPS_SQD;
	const struct qp_resp *r = &qp->resp;

	return qp->opc == OPC_RC && (receiving >> qp->state & 1) && qp->comm_est && /* RSP-47 */
	       r->open == KIND_NONE && r->owed != OWE_NAK && !r->nak_sent && !r->rnr_sent &&
	       pkey_match(qp->pkey, qp->pkey); /* VAL-08 */
}

/* Whether SENDs take their receive WQEs from a queue of its own, which holds SGEs; not the one that
 * direct.c has taken; and complete without an error of the CQ (CQ-01). */
static bool has_receives(const struct qp *qp)
{
	return qp->rq.depth && qp->rq.max_sge && !qp->resp.have_wqe && !qp->recv_lane->overflow;
}

/* RSP-11, RSP-13, RSP-14.  @return false when it must not be placed, or the key is a window's. */
static ALWAYS_INLINE bool aim_write(
	const struct core *c, const struct qp *qp, const struct pkt *p, struct target *t)
{
	return p->payload_len == p->dma_len &&
	       mr_resolve(c->cfg.mrs, p->rkey, qp->pd, ABI_ACCESS_REMOTE_WRITE, p->va, p->dma_len,
		       &t->at) == MR_OK;
}

/* Copies the receive WQE that is the @p run-th from now.  @return false when there is none, or it
 * is not a single SGE that takes all of @p p. */
static ALWAYS_INLINE bool aim_send(const struct core *c, const struct qp *qp, const struct pkt *p,
	unsigned run, struct target *t)
{
	struct ring rq = qp->rq;
	const volatile entry_part *shared;
	union entry e __attribute__((aligned(16)));

	rq.next += run;
	shared = (const volatile entry_part *)ring_slot(&rq);
	if (!ring_ready(&rq))
		return false; /* RSP-16 */
	e.part[0] = shared[0];
	e.part[1] = shared[1];
	if (ABI_WQE_COUNT(e.wqe.ctl) != 1 || e.wqe.sge[0].length < p->payload_len)
		return false; /* RSP-20 */
	t->wr_id = e.wqe.wr_id;
	t->lkey = e.wqe.sge[0].lkey;
	return mr_resolve(c->cfg.mrs, t->lkey, qp->pd, ABI_ACCESS_LOCAL_WRITE, e.wqe.sge[0].addr,
		       p->payload_len, &t->at) == MR_OK;
}

/* Finds how many of the @p n packets are such requests, and where each is placed.
 * @return their number */
static ALWAYS_INLINE unsigned plan(const struct core *c, const struct qp *qp,
	const struct pkt pkt[], unsigned n, struct target t[], bool send)
{
	unsigned run;

	for (run = 0; run < n; run++) {
		const struct pkt *p = &pkt[run];

		if (!run_has(c->cfg.ports, qp, p, seq24_add(qp->resp.epsn, run),
			    send ? OP_SEND_ONLY : OP_WRITE_ONLY))
			break;
		if (!p->payload_len || !packet_length_ok(qp, p)) /* RSP-12, RSP-09 */
			break;
		if (send ? !aim_send(c, qp, p, run, &t[run]) : !aim_write(c, qp, p, &t[run]))
			break;
		run_prefetch(t[run].at, p->payload_len);
	}
	return run;
}

/* The first @p n packets of @p pkt, of @p bytes, were placed; their last bytes before the ACK is
 * owed (RSP-24). */
static void accept(struct core *c, struct qp *qp, const struct pkt pkt[], unsigned n,
	uint64_t bytes, bool ackreq)
{
	struct qp_resp *r = &qp->resp;

	if (!n)
		return;
	count_run(c, pkt, n, bytes);
	r->epsn = seq24_add(r->epsn, n);
	r->ack_psn = seq24_add(r->epsn, SEQ24_MASK);
	r->msn = seq24_add(r->msn, n); /* RSP-25 */
	if (!ackreq)
		return;
	r->owed = OWE_ACK; /* RSP-23 */
	qp_make_urgent(c, qp);
}

/* The last of @p n WRITEs was @p last: as write_place() leaves it. */
static void written(struct core *c, struct qp *qp, const struct pkt *last, unsigned n)
{
	struct qp_resp *r = &qp->resp;

	c->count.rx_write_requests += n;
	r->rkey = last->rkey;
	r->va = last->va + last->dma_len;
	r->write_len = last->dma_len;
	r->write_left = 0;
}

/* @p n receive WQEs were taken. */
static void taken(struct qp *qp, unsigned n)
{
	struct ring *rq = &qp->rq;

	rq->next += n;
	atomic_store_explicit(&rq->shared->consumer, rq->next, memory_order_release);
}

/* The last of @p n SENDs was @p last, and their receives are complete: as recv.c leaves it. */
static void received(struct core *c, struct qp *qp, const struct pkt *last, unsigned n)
{
	struct cq_lane *lane = qp->recv_lane;

	c->count.rx_send_requests += n;
	qp->resp.recv_off = last->payload_len;
	taken(qp, n);
	if (list_empty(&lane->touched))
		list_push(&c->touched, &lane->touched);
}

/* CQ-08, CQ-09; its caller knows that there is room (CQ-01). */
static ALWAYS_INLINE void complete(struct qp *qp, const struct pkt *p, uint64_t wr_id)
{
	const struct abi_cqe cqe = {
		.wr_id = wr_id,
		.byte_len = p->payload_len,
		.qpn = qp->qpn,
		.src_qp = qp->attr.dest_qpn,
		.status = ABI_WC_SUCCESS,
		.opcode = ABI_WC_RECV,
		.flags = p->se ? ABI_WC_SOLICITED : 0, /* RSP-51 */
	};

	cq_put(qp->recv_lane, &cqe, qp->resp.cqes);
	qp->resp.cqes++;
}

/* Application memory faulted under @p p, which is not to be placed again. */
static NOINLINE void fault(struct core *c, struct qp *qp, const struct pkt *p,
	const struct target *t, bool send, uint64_t now)
{
	count_received(c, p);
	if (!send) {
		memory_fault(c, qp, p, now);
		return;
	}
	taken(qp, 1);
	recv_fault(c, qp, t->wr_id, t->lkey);
	responder_recv_failed(c, qp, ABI_WC_LOC_PROT_ERR, NAK_REMOTE_OP, now); /* RSP-21 */
}

static ALWAYS_INLINE unsigned place_run(
	struct core *c, struct qp *qp, const struct pkt pkt[], unsigned n, uint64_t now, bool send)
{
	struct target t[BURST];
	unsigned run = plan(c, qp, pkt, n, t, send);
	const struct uaccess memory = core_memory(c);
	uint64_t bytes = 0;
	bool ackreq = false;
	bool faulted = false;
	unsigned done;

	for (done = 0; done < run; done++) {
		const struct pkt *p = &pkt[done];

		if (send && unlikely(cq_lane_full(qp->recv_lane)))
			break;
		if (unlikely(!icrc_check(c->cfg.icrc, p))) /* VAL-01 */
			break;
		observe_queue(qp, p->queue);
		faulted = !uaccess_place(memory, t[done].at, p->payload, p->payload_len);
		if (unlikely(faulted))
			break;
		if (send)
			complete(qp, p, t[done].wr_id);
		bytes += p->icrc_off + (uint64_t)ICRC_LEN;
		ackreq |= p->ackreq;
	}
	if (done && send)
		received(c, qp, &pkt[done - 1], done);
	else if (done)
		written(c, qp, &pkt[done - 1], done);
	accept(c, qp, pkt, done, bytes, ackreq);
	if (likely(!faulted))
		return done;
	fault(c, qp, &pkt[done], &t[done], send, now);
	return done + 1;
}

static NOINLINE unsigned run_of_sends(
	struct core *c, struct qp *qp, const struct pkt pkt[], unsigned n, uint64_t now)
{
	return has_receives(qp) ? place_run(c, qp, pkt, n, now, true) : 0;
}

/* --- READs ---------------------------------------------------------------------------- */

/* RSP-10, RSP-13, RSP-14. Leaves to responder.c the keys of windows, and READs of zero bytes, whose
 * key is not looked up (RSP-12). */
static ALWAYS_INLINE bool may_read(const struct core *c, const struct qp *qp, const struct pkt *p)
{
	uint8_t *at;

	return p->dma_len <= MSG_LEN_MAX &&
	       mr_resolve(c->cfg.mrs, p->rkey, qp->pd, ABI_ACCESS_REMOTE_READ, p->va, p->dma_len,
		       &at) == MR_OK;
}

/* @return how many READs may wait for their responses besides those that do (RSP-30). Responses to
 * duplicates that must give way are left to responder.c. */
static unsigned reads_room(struct qp *qp)
{
	struct qp_resp *r = &qp->resp;
	unsigned most = qp->attr.max_dest_rd_atomic;
	unsigned waiting, free;

	responder_pending(r);
	waiting = r->res_head - r->res_done;
	free = RD_ATOMIC_MAX - (r->res_head - r->res_next);
	if (waiting >= most)
		return 0;
	return most - waiting < free ? most - waiting : free;
}

static NOINLINE unsigned run_of_reads(
	struct core *c, struct qp *qp, const struct pkt pkt[], unsigned n)
{
	unsigned room = 0;
	uint64_t bytes = 0;
	unsigned done;

	for (done = 0; done < n; done++) {
		const struct pkt *p = &pkt[done];

		if (!run_has(c->cfg.ports, qp, p, qp->resp.epsn, OP_READ_REQUEST) ||
			!may_read(c, qp, p))
			break;
		if (unlikely(!icrc_check(c->cfg.icrc, p))) /* VAL-01 */
			break;
		if (!done)
			room = reads_room(qp);
		if (done == room)
			break;
		observe_queue(qp, p->queue);
		res_new(c, qp, p, qp_packets(qp, p->dma_len), p->dma_len);
		bytes += p->icrc_off + (uint64_t)ICRC_LEN;
	}
	count_run(c, pkt, done, bytes);
	c->count.rx_read_requests += done;
	return done;
}

/* --- any run -------------------------------------------------------------------------- */

/* Flattened: otherwise gcc calls mr_resolve() for each WRITE. */
__attribute__((flatten)) unsigned responder_run(
	struct core *c, struct qp *qp, const struct pkt pkt[], unsigned n, uint64_t now)
{
	if (!is_ready(qp))
		return 0;
	if (pkt->op->code == OP_SEND_ONLY)
		return run_of_sends(c, qp, pkt, n, now);
	if (pkt->op->code == OP_READ_REQUEST)
		return qp->attr.access_flags & ABI_ACCESS_REMOTE_READ /* RSP-08 */
			       ? run_of_reads(c, qp, pkt, n)
			       : 0;
	return qp->attr.access_flags & ABI_ACCESS_REMOTE_WRITE /* RSP-08 */
		       ? place_run(c, qp, pkt, n, now, false)
		       : 0;
}
