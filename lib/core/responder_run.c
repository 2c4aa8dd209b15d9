/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path of the responder: a run of RDMA WRITEs of one packet each, from the peer of one QP
 * and in sequence. Conditions common to all of them are checked once, their targets are fetched
 * together, and ePSN, MSN and the ACK that is owed move once. The packet that does not pass all
 * checks ends the run untouched: classify.c and responder.c decide about it, as if there were no
 * runs.
 */
#include "classify.h"
#include "core_memory.h"
#include "from_peer.h"
#include "icrc.h"
#include "mr.h"
#include "np.h"
#include "packet_length.h"
#include "qp_impl.h"
#include "responder.h"
#include "responder_impl.h"
#include "seq24.h"
#include "uaccess.h"

/* Whether @p qp executes WRITEs now, those with its own P_Key among them, and answers them with
 * nothing but an ACK. */
static bool is_ready(const struct qp *qp)
{
	const unsigned receiving = 1u << ABI_QPS_RTR | 1u << ABI_QPS_RTS | 1u << ABI_QPS_SQD;
	const struct qp_resp *r = &qp->resp;

	return qp->opc == OPC_RC && (receiving >> qp->state & 1) && qp->comm_est && /* RSP-47 */
	       r->open == KIND_NONE && r->owed != OWE_NAK && !r->nak_sent && !r->rnr_sent &&
	       (qp->attr.access_flags & ABI_ACCESS_REMOTE_WRITE) && /* RSP-08 */
	       pkey_match(qp->pkey, qp->pkey);			    /* VAL-08 */
}

/* Whether @p pkt has the addresses of @p qp's peer (VAL-12, SEC-03), is for its port's MAC (ETH-10)
 * and has the P_Key that is_ready() asked about (VAL-09). A frame to the MAC of a VLAN netdev is
 * left to classify.c. */
static ALWAYS_INLINE bool is_from_peer(
	const struct core *c, const struct qp *qp, const struct pkt *pkt)
{
	const struct port *port = &c->cfg.ports->port[pkt->port];
	uint64_t mac = atomic_load_explicit(&port->mac, memory_order_relaxed);

	return mac_word(pkt->dmac) == mac && qp_is_from_peer(qp, pkt) && pkt->pkey == qp->pkey;
}

/* Finds how many of the @p n packets are such WRITEs, and where each is placed.
 * @return their number */
static ALWAYS_INLINE unsigned plan(const struct core *c, const struct qp *qp,
	const struct pkt pkt[], unsigned n, uint8_t *at[])
{
	unsigned run;

	for (run = 0; run < n; run++) {
		const struct pkt *p = &pkt[run];

		if (p->op->code != OP_WRITE_ONLY || p->psn != seq24_add(qp->resp.epsn, run))
			break;
		if (p->expected != &qp->expect &&
			(p->dest_qp != qp->qpn || !is_from_peer(c, qp, p)))
			break;
		if (unlikely(np_is_marked(p) || p->named))
			break; /* CNP-01: the notification point sees it */
		if (!p->payload_len || p->payload_len != p->dma_len || !packet_length_ok(qp, p))
			break; /* RSP-09, RSP-11, RSP-12 */
		if (mr_resolve(c->cfg.mrs, p->rkey, qp->pd, ABI_ACCESS_REMOTE_WRITE, p->va,
			    p->dma_len, &at[run]) != MR_OK)
			break; /* RSP-13, RSP-14; or it is the key of a window */
		__builtin_prefetch(at[run], 1);
		if (p->payload_len > CACHE_LINE)
			__builtin_prefetch(at[run] + CACHE_LINE, 1);
	}
	return run;
}

/* The first @p n packets of @p pkt, of @p bytes, were placed; their last bytes before the ACK is
 * owed (RSP-24). */
static void accept(struct core *c, struct qp *qp, const struct pkt pkt[], unsigned n,
	uint64_t bytes, bool ackreq)
{
	struct qp_resp *r = &qp->resp;
	const struct pkt *last;

	if (!n)
		return;
	last = &pkt[n - 1];
	c->count.port[pkt->port].rx_packets += n;
	c->count.port[pkt->port].rx_bytes += bytes;
	c->count.rx_write_requests += n;
	r->epsn = seq24_add(r->epsn, n);
	r->ack_psn = seq24_add(r->epsn, SEQ24_MASK);
	r->msn = seq24_add(r->msn, n); /* RSP-25 */
	r->rkey = last->rkey;	       /* as write_place() leaves it */
	r->va = last->va + last->dma_len;
	r->write_len = last->dma_len;
	r->write_left = 0;
	if (!ackreq)
		return;
	r->owed = OWE_ACK; /* RSP-23 */
	qp_make_urgent(c, qp);
}

unsigned responder_run(
	struct core *c, struct qp *qp, const struct pkt pkt[], unsigned n, uint64_t now)
{
	uint8_t *at[BURST];
	unsigned run = is_ready(qp) ? plan(c, qp, pkt, n, at) : 0;
	const struct uaccess memory = core_memory(c);
	uint64_t bytes = 0;
	bool ackreq = false;
	unsigned done;

	for (done = 0; done < run; done++) {
		const struct pkt *p = &pkt[done];

		if (unlikely(!icrc_check(c->cfg.icrc, p))) /* VAL-01 */
			break;
		observe_queue(qp, p->queue);
		if (unlikely(!uaccess_place(memory, at[done], p->payload, p->payload_len))) {
			accept(c, qp, pkt, done, bytes, ackreq);
			count_received(c, p);
			memory_fault(c, qp, p, now);
			return done + 1;
		}
		bytes += p->icrc_off + (uint64_t)ICRC_LEN;
		ackreq |= p->ackreq;
	}
	accept(c, qp, pkt, done, bytes, ackreq);
	return done;
}
