/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_wqe.h"
#include "frame.h"
#include "headers.h"
#include "icrc.h"
#include "mr.h"
#include "opcode.h"
#include "oracle.h"
#include "qp_impl.h"
#include "rules.h"
#include "seq24.h"
#include "ud.h"
#include "wqe.h"

void rules_start(struct rules *r, const struct qp *qp, const struct mr_table *mrs)
{
	r->qp = qp;
	r->mrs = mrs;
	r->life++;
	r->blind = false;
	r->requested = false;
	r->acked = false;
	memset(r->stream, 0, sizeof(r->stream));
	r->reads = 0;
	r->atomics = 0;
}

void rules_asked(struct rules *r, const struct pkt *p)
{
	r->read[r->reads++ % RULES_READS] = (struct rules_read){.psn = p->psn,
		.rkey = p->rkey,
		.dma_len = p->op->kind == KIND_READ ? p->dma_len : 0,
		.va = p->va};
}

void rules_executed(struct rules *r, uint32_t psn, uint64_t orig)
{
	r->atomic[r->atomics++ % RULES_READS] = (struct rules_atomic){.psn = psn, .orig = orig};
}

struct rules_before rules_before(const struct qp *qp)
{
	return (struct rules_before){.state = qp->state, .rnr_wait = qp->comp.rnr_wait};
}

/* --- requests ------------------------------------------------------------------------- */

static struct rules_sent *sent_at(struct rules *r, uint32_t psn)
{
	return &r->sent[psn % RULES_SENT];
}

static struct rules_sent *sent_find(struct rules *r, uint32_t psn)
{
	struct rules_sent *s = sent_at(r, psn);

	return s->life == r->life && s->psn == psn ? s : NULL;
}

/* REQ-04, REQ-05: FIRST, MIDDLEs and LAST of one kind, or ONLY. */
static void check_order(const struct rules_sent *prev, const struct opcode *op)
{
	const struct opcode *before = opcode_row(prev->code);

	if (before->last)
		MUST(op->first);
	else
		MUST(!op->first && op->kind == before->kind);
}

static void check_request_length(
	const struct rules *r, const struct pkt *p, uint32_t sum, uint32_t dma_len)
{
	uint32_t mtu = 1u << r->qp->mtu_shift;

	if (!p->op->last)
		MUST(p->payload_len == mtu);
	else if (p->op->first)
		MUST(p->payload_len <= mtu);
	else
		MUST(p->payload_len && p->payload_len <= mtu);
	if (p->op->kind == KIND_WRITE) /* REQ-06 */
		MUST(p->op->last ? sum == dma_len : sum < dma_len);
	if (r->qp->reliable)
		MUST(!p->op->last || p->ackreq); /* BTH-13 */
	else
		MUST(!p->ackreq);					    /* UC-02 */
	MUST(!p->se || (p->op->last && (p->op->recv_wqe || p->op->immdt))); /* BTH-09 */
}

/* A packet that is sent again says the same. */
static void check_again(const struct rules_sent *s, const struct pkt *p)
{
	MUST(s->code == p->op->code && s->len == p->payload_len);
	if (p->op->reth)
		MUST(s->va == p->va && s->rkey == p->rkey && s->dma_len == p->dma_len);
	if (p->op->immdt)
		MUST(s->imm == p->imm);
	if (p->op->atomiceth)
		MUST(s->va == p->va && s->rkey == p->rkey && s->swap_add == p->swap_add &&
			s->compare == p->compare);
}

/* A READ may be asked for from any of its PSNs on (REQ-39): its last one stays. */
static void see_read(struct rules *r, const struct pkt *p)
{
	uint32_t last = seq24_add(p->psn, qp_packets(r->qp, p->dma_len) - 1);
	struct rules_sent read = {.life = r->life, .psn = p->psn, .code = p->op->code};
	const struct rules_sent *end = sent_find(r, last);

	MUST(p->ackreq && !p->se);
	if (end && seq24_lt(last, r->next))
		MUST(end->code == read.code);
	*sent_at(r, p->psn) = read;
	read.psn = last;
	*sent_at(r, last) = read;
	r->next = seq24_add(last, 1);
}

/* The work request that @p psn belongs to, unless it has been flushed meanwhile. */
static struct send_wqe *wqe_of(const struct qp *qp, uint32_t psn)
{
	for (uint32_t i = qp->comp.head; i != qp->req.fetched; i++) {
		struct send_wqe *w = qp_wqe(qp, i);

		if (seq24_between(psn, w->first_psn, w->last_psn))
			return w;
	}
	return NULL;
}

/* The payload is what the SGEs name. */
static void check_payload(const struct rules *r, const struct pkt *p)
{
	struct send_wqe *w = wqe_of(r->qp, p->psn);
	const uint8_t *got = p->payload;
	uint32_t left = p->payload_len;
	uint64_t off;

	if (!w || !left)
		return;
	off = (uint64_t)seq24_diff(p->psn, w->first_psn) << r->qp->mtu_shift;
	if (w->flags & ABI_WQE_INLINE)
		MUST(!memcmp(got, wqe_inline(w) + off, left));
	for (unsigned i = 0; left && i < w->num_sge; i++) {
		const struct abi_sge *sge = &wqe_sge(w)[i];
		uint32_t part = sge->length > off ? sge->length - (uint32_t)off : 0;
		uint8_t *ptr;

		if (part > left)
			part = left;
		if (part) {
			MUST(mr_resolve(r->mrs, sge->lkey, r->qp->pd, 0, sge->addr + off, part,
				     &ptr) == MR_OK);
			MUST(!memcmp(got, ptr, part));
		}
		off = part || off < sge->length ? 0 : off - sge->length;
		got += part;
		left -= part;
	}
}

/* The operands are the work request's (REQ-48). */
static void check_operands(const struct rules *r, const struct pkt *p)
{
	const struct send_wqe *w = wqe_of(r->qp, p->psn);
	bool swap = (p->op->code & OPC_OP_MASK) == OP_CMP_SWAP;

	MUST(p->payload_len == 0);
	if (!w)
		return;
	MUST(p->va == w->remote_addr && p->rkey == w->rkey);
	MUST(p->swap_add == (swap ? w->atomic.swap : w->atomic.compare_add));
	MUST(!swap || p->compare == w->atomic.compare_add);
}

/* BTH-22: all packets of a message name the SRQ of its work request. */
static void check_srqn(const struct rules *r, const struct pkt *p)
{
	struct send_wqe *w = wqe_of(r->qp, p->psn);

	MUST(!w || p->srqn == *wqe_srqn(r->qp, w));
}

/* All but READs. */
static void see_send_write(struct rules *r, const struct pkt *p)
{
	const struct rules_sent *prev = sent_find(r, seq24_add(p->psn, SEQ24_MASK));
	const struct rules_sent *same = sent_find(r, p->psn);
	struct rules_sent s = {.life = r->life,
		.psn = p->psn,
		.code = p->op->code,
		.len = p->payload_len,
		.sum = p->payload_len,
		.imm = p->imm};

	if (p->op->reth) {
		s.va = p->va;
		s.rkey = p->rkey;
		s.dma_len = p->dma_len;
	}
	if (p->op->atomiceth) {
		s.va = p->va;
		s.rkey = p->rkey;
		s.swap_add = p->swap_add;
		s.compare = p->compare;
		check_operands(r, p);
	}
	if (!p->op->first) {
		MUST(prev);
		s.sum += prev->sum;
		s.dma_len = prev->dma_len;
	}
	if (p->op->xrceth)
		check_srqn(r, p);
	check_request_length(r, p, s.sum, s.dma_len);
	check_payload(r, p);
	if (same && r->requested && seq24_lt(p->psn, r->next))
		check_again(same, p);
	*sent_at(r, p->psn) = s;
	r->next = seq24_add(p->psn, 1);
}

static void see_request(struct rules *r, const struct rules_before *b, const struct pkt *p)
{
	const struct rules_sent *prev = sent_find(r, seq24_add(p->psn, SEQ24_MASK));

	MUST(b->state == ABI_QPS_RTS || b->state == ABI_QPS_SQD);
	MUST(!b->rnr_wait); /* REQ-29 */
	/* It continues, or goes (back) to the oldest unacknowledged PSN: REQ-25 */
	MUST(!r->requested || p->psn == r->next || p->psn == r->qp->comp.una);
	MUST(!seq24_lt(p->psn, r->qp->comp.una));
	if (prev)
		check_order(prev, p->op);
	else if (p->op->kind != KIND_READ)
		MUST(p->op->first);
	if (p->op->kind == KIND_READ)
		see_read(r, p);
	else
		see_send_write(r, p);
	r->requested = true;
}

/* --- responses ------------------------------------------------------------------------ */

static bool read_matches(const struct rules *r, const struct rules_read *q,
	const struct rules_stream *s, const struct pkt *p)
{
	uint8_t *ptr;

	if (q->psn != s->first || q->dma_len < s->sum + p->payload_len)
		return false;
	if (p->op->last && q->dma_len != s->sum + p->payload_len)
		return false;
	if (!p->payload_len)
		return true;
	return mr_resolve(r->mrs, q->rkey, r->qp->pd, ABI_ACCESS_REMOTE_READ, q->va + s->sum,
		       p->payload_len, &ptr) == MR_OK &&
	       !memcmp(ptr, p->payload, p->payload_len);
}

static struct rules_stream *stream_of(struct rules *r, const struct pkt *p)
{
	struct rules_stream *s;

	if (p->op->first) {
		s = &r->stream[r->streams++ % RULES_STREAMS];
		*s = (struct rules_stream){.first = p->psn, .next = p->psn};
		return s;
	}
	for (unsigned i = 0; i < RULES_STREAMS; i++) {
		s = &r->stream[(r->streams - 1 - i) % RULES_STREAMS];
		if (s->open && s->next == p->psn)
			return s;
	}
	return NULL;
}

/* RSP-28, RSP-36: each stream answers a READ that was asked for, with the bytes of its region. */
static void see_read_resp(struct rules *r, const struct pkt *p)
{
	uint32_t mtu = 1u << r->qp->mtu_shift;
	struct rules_stream *s = stream_of(r, p);
	bool found = false;

	MUST(s);
	MUST(p->op->first || p->payload_len);
	MUST(p->op->last ? p->payload_len <= mtu : p->payload_len == mtu);
	MUST(seq24_lt(p->psn, r->qp->resp.epsn));
	for (unsigned i = 0; i < r->reads && i < RULES_READS && !found; i++)
		found = read_matches(r, &r->read[i], s, p);
	MUST(found);
	if (p->op->aeth)
		MUST(p->syndrome == 0x1F && seq24_le(p->msn, r->qp->resp.msn));
	s->open = !p->op->last;
	s->next = seq24_add(p->psn, 1);
	s->sum += p->payload_len;
}

/* RSP-33, RSP-36: what was in memory when it was executed, each time that it is asked for. */
static void check_original(const struct rules *r, const struct pkt *p)
{
	bool found = false;

	for (unsigned i = 0; i < r->atomics && i < RULES_READS && !found; i++)
		found = r->atomic[i].psn == p->psn && r->atomic[i].orig == p->atomic_orig;
	MUST(found);
}

static void see_ack(struct rules *r, const struct pkt *p)
{
	const struct qp_resp *resp = &r->qp->resp;
	uint8_t type = p->syndrome & AETH_TYPE_MASK;

	MUST(p->payload_len == 0);
	if (p->op->atomicack) {
		MUST(type == AETH_ACK);
		check_original(r, p);
	}
	MUST(seq24_le(p->msn, resp->msn)); /* RSP-25 */
	MUST(!r->acked || seq24_le(r->msn, p->msn));
	if (type == AETH_ACK)
		MUST(p->syndrome == 0x1F && seq24_lt(p->psn, resp->epsn));
	else if (type == AETH_RNR_NAK || p->syndrome == NAK_PSN_SEQUENCE)
		MUST(p->psn == resp->epsn); /* RSP-02, RSP-16 */
	else
		MUST(p->syndrome <= NAK_REMOTE_OP && p->syndrome > NAK_PSN_SEQUENCE &&
			seq24_le(p->psn, resp->epsn) && r->qp->state == ABI_QPS_ERR); /* RSP-22 */
	r->acked = true;
	r->msn = p->msn;
}

/* --- datagrams ------------------------------------------------------------------------- */

/* UD-03, MC-07, BTH-24: who sends it, and that it goes where its Q_Key is for. One with bit 31 is
 * the QP's own. */
static void check_datagram(const struct rules *r, const struct pkt *p)
{
	const struct send_wqe *w = wqe_of(r->qp, p->psn);
	bool group = p->dmac[ETH_DST] & 1;

	MUST(p->op->kind == KIND_SEND && p->src_qp == r->qp->qpn);
	MUST(p->qkey == r->qp->attr.qkey || !(p->qkey & QKEY_OWN));
	MUST((p->dest_qp == QPN_MULTICAST) == group);
	if (w)
		MUST(p->dest_qp == w->ud.dest_qpn && p->qkey == w->ud.qkey);
}

/* --- both ----------------------------------------------------------------------------- */

void rules_see(struct rules *r, const struct rules_before *b, const uint8_t *frame, size_t len,
	struct pkt *seen)
{
	const struct qp *qp = r->qp;
	struct pkt *p = seen;

	memset(p, 0, sizeof(*p));
	MUST(frame_parse(p, frame, len) == DROP_NONE);
	MUST(icrc_check(icrc_by_name("table"), p));
	MUST(p->l3 + p->icrc_off + ICRC_LEN == frame + len);
	MUST((p->op->code & OPC_CLASS_MASK) == qp->opc && p->op->name);
	MUST(p->pkey == qp->pkey && p->migreq); /* BTH-11, BTH-10 */
	if (qp->opc == OPC_UD)
		check_datagram(r, p);
	else
		MUST(p->dest_qp == qp->attr.dest_qpn && p->net == qp->path.net &&
			p->vid == qp->path.vid); /* BTH-12 */
	MUST(b->state >= ABI_QPS_RTR);
	for (unsigned i = 0; i < p->pad; i++)
		MUST(p->payload[p->payload_len + i] == 0); /* BTH-05 */
	if (r->blind)
		return;
	if (p->op->request) {
		see_request(r, b, p);
	} else {
		MUST(qp->reliable); /* UC-02 */
		MUST(!p->ackreq && !p->se);
		if (p->op->kind == KIND_READ_RESP)
			see_read_resp(r, p);
		else
			see_ack(r, p);
	}
}
