/* SPDX-License-Identifier: BSD-3-Clause */
/* A request that is executed: reply, completion, memory, counters, what the QP expects next. */
#include <string.h>
#include "frame.h"
#include "golden.h"
#include "opcode.h"

#define PSN_MASK 0xFFFFFFu

struct accepted {
	struct golden *g;
	struct node *n;
	const struct pkt *p;
	const struct memento *before;
	uint32_t done;	    /* bytes of its message that came before it */
	uint32_t responses; /* PSNs that it takes */
	uint32_t msn;	    /* afterwards */
	bool ends;	    /* it ends a message */
};

/* --- reply -------------------------------------------------------------------------------- */

/* Whether @p r is operation @p op of the service that @p to is of. */
static bool answers(const struct pkt *to, const struct pkt *r, unsigned op)
{
	return r->op->code == ((to->op->code & OPC_CLASS_MASK) | op);
}

/* @return the i-th packet of the reply, which is one of ours; NULL and a failure else. */
static const struct pkt *reply(const struct accepted *a, unsigned i, struct pkt *r)
{
	const struct node *n = a->n;
	char why[128];

	memset(r, 0, sizeof(*r));
	if (i >= n->sents) {
		item_fail(a->g, "%u packets are the answer, not %u", n->sents, i + 1);
		return NULL;
	}
	if (!wire_ok(n, n->sent[i], n->sent_len[i], why, sizeof(why))) {
		item_fail(a->g, "%s", why);
		return NULL;
	}
	frame_parse(r, n->sent[i], n->sent_len[i]);
	return r;
}

static void check_aeth(const struct accepted *a, const struct pkt *r)
{
	if (r->syndrome > 0x1F)
		item_fail(a->g, "it is answered with syndrome 0x%x", r->syndrome);
	if (r->msn != a->msn)
		item_fail(a->g, "the answer's MSN is 0x%x, not 0x%x", r->msn, a->msn);
}

static bool is_acknowledged(const struct node *n)
{
	return n->spec.type != ABI_QPT_UC && !is_datagram(n->spec.type);
}

/* RSP-23: an ACK if it was asked for; else one may come. */
static void check_ack(const struct accepted *a)
{
	struct pkt r;

	if (!is_acknowledged(a->n) && a->n->sents)
		item_fail(a->g, "it is answered"); /* UC-02, BTH-14 */
	if (!is_acknowledged(a->n) || (!a->n->sents && !a->p->ackreq))
		return;
	if (!reply(a, 0, &r))
		return;
	if (a->n->sents > 1)
		item_fail(a->g, "%u packets are the answer", a->n->sents);
	if (!answers(a->p, &r, OP_ACKNOWLEDGE) || r.psn != a->p->psn)
		item_fail(a->g, "the answer is %s of PSN 0x%x", r.op->name, r.psn);
	else
		check_aeth(a, &r);
}

static unsigned read_opcode(uint32_t i, uint32_t n)
{
	if (n == 1)
		return OP_READ_RESP_ONLY;
	return !i ? OP_READ_RESP_FIRST : i == n - 1 ? OP_READ_RESP_LAST : OP_READ_RESP_MIDDLE;
}

/* RSP-28 */
static void check_read(const struct accepted *a)
{
	uint64_t at = a->p->va - a->n->mr->mr.iova;
	uint32_t left = a->p->dma_len, mtu = a->n->spec.mtu;
	struct pkt r;

	for (uint32_t i = 0; i < a->responses; i++) {
		uint32_t len = left < mtu ? left : mtu;

		if (!reply(a, i, &r))
			return;
		if (!answers(a->p, &r, read_opcode(i, a->responses)) ||
			r.psn != ((a->p->psn + i) & PSN_MASK) || r.payload_len != len)
			item_fail(a->g, "response %u is %s of PSN 0x%x with %u bytes", i,
				r.op->name, r.psn, r.payload_len);
		else if (len && memcmp(r.payload, a->n->mr->mem + at, len))
			item_fail(a->g, "response %u has other bytes than the region", i);
		if (r.op->aeth)
			check_aeth(a, &r);
		at += len;
		left -= len;
	}
	if (a->n->sents > a->responses)
		item_fail(a->g, "%u packets are the answer, not %u", a->n->sents, a->responses);
}

/* A file may say that a word anywhere is accepted. */
static bool has_word(const struct accepted *a)
{
	uint64_t at = a->p->va - a->n->mr->mr.iova;

	if (a->n->mr->len >= sizeof(uint64_t) && at <= a->n->mr->len - sizeof(uint64_t))
		return true;
	item_fail(a->g, "its word is not in the region");
	return false;
}

/* The word that an ATOMIC is about, in @p memory. */
static uint64_t word_at(const struct accepted *a, const uint8_t *memory)
{
	uint64_t v;

	memcpy(&v, memory + (a->p->va - a->n->mr->mr.iova), sizeof(v));
	return v;
}

/* RSP-33, RSP-34: the original value goes back, and the word is what the operation makes of it. */
static void check_atomic(const struct accepted *a)
{
	uint64_t orig = word_at(a, a->before->memory), want = orig + a->p->swap_add;
	struct pkt r;

	if ((a->p->op->code & OPC_OP_MASK) == OP_CMP_SWAP)
		want = orig == a->p->compare ? a->p->swap_add : orig;
	if (!reply(a, 0, &r))
		return;
	if (a->n->sents > 1)
		item_fail(a->g, "%u packets are the answer", a->n->sents);
	if (!answers(a->p, &r, OP_ATOMIC_ACK) || r.psn != a->p->psn)
		item_fail(a->g, "the answer is %s of PSN 0x%x", r.op->name, r.psn);
	else
		check_aeth(a, &r);
	if (r.atomic_orig != orig)
		item_fail(a->g, "the answer says 0x%llx, the word was 0x%llx",
			(unsigned long long)r.atomic_orig, (unsigned long long)orig);
	if (word_at(a, a->n->mr->mem) != want)
		item_fail(a->g, "the word is 0x%llx, not 0x%llx",
			(unsigned long long)word_at(a, a->n->mr->mem), (unsigned long long)want);
	memento_same_memory(a->g, a->before, a->n, a->p->va - a->n->mr->mr.iova, sizeof(uint64_t));
}

/* FLU-02, FLU-09: answered like a READ of no bytes; FLU-08: the word is the payload. */
static void check_flush_or_word(const struct accepted *a)
{
	bool word = a->p->op->kind == KIND_ATOMIC_WRITE;
	struct pkt r;

	if (!reply(a, 0, &r))
		return;
	if (a->n->sents > 1)
		item_fail(a->g, "%u packets are the answer", a->n->sents);
	if (!answers(a->p, &r, OP_READ_RESP_ONLY) || r.psn != a->p->psn || r.payload_len)
		item_fail(a->g, "the answer is %s of PSN 0x%x", r.op->name, r.psn);
	else
		check_aeth(a, &r);
	if (word && memcmp(a->n->mr->mem + (a->p->va - a->n->mr->mr.iova), a->p->payload,
			    sizeof(uint64_t)))
		item_fail(a->g, "the word is not the payload");
	memento_same_memory(a->g, a->before, a->n, word ? a->p->va - a->n->mr->mr.iova : 0,
		word ? sizeof(uint64_t) : 0);
}

/* RSP-39: what came before the QP was fresh is not executed, but may be acknowledged again. */
static void check_duplicate(const struct accepted *a)
{
	const struct qp *was = a->before->qp, *is = a->n->qp->qp;
	struct abi_cqe c;
	struct pkt r;

	if (a->n->sents > 1)
		item_fail(a->g, "%u packets are the answer", a->n->sents);
	if (a->n->sents && reply(a, 0, &r) &&
		(!answers(a->p, &r, OP_ACKNOWLEDGE) || r.syndrome > 0x1F ||
			r.msn != was->resp.msn || r.psn != ((was->resp.epsn - 1) & PSN_MASK)))
		item_fail(a->g, "the answer is %s of PSN 0x%x", r.op->name, r.psn);
	memento_same_memory(a->g, a->before, a->n, 0, 0);
	if (is->state != was->state || is->resp.epsn != was->resp.epsn ||
		is->resp.msn != was->resp.msn)
		item_fail(a->g, "a duplicate changed the QP");
	if (memcmp(a->n->recv->mem, a->before->recv, a->n->recv->len))
		item_fail(a->g, "a receive buffer was written");
	if (node_poll(a->n, &c))
		item_fail(a->g, "a duplicate makes a completion");
}

/* --- completion ----------------------------------------------------------------------------- */

static struct abi_cqe check_completion(const struct accepted *a, uint8_t opcode, uint32_t byte_len)
{
	const struct pkt *p = a->p;
	struct abi_cqe c = {0};

	if (!node_poll(a->n, &c)) {
		item_fail(a->g, "no completion");
		return c;
	}
	if (c.opcode != opcode || c.status != ABI_WC_SUCCESS || c.wr_id || c.byte_len != byte_len ||
		c.qpn != a->n->spec.qpn)
		item_fail(a->g, "the completion is %s %s of receive %llu, %u bytes",
			wc_opcode_name(c.opcode), wc_status_name(c.status),
			(unsigned long long)c.wr_id, c.byte_len);
	if (!(c.flags & ABI_WC_WITH_IMM) != !p->op->immdt || (p->op->immdt && c.imm != p->imm))
		item_fail(a->g, "the immediate data of the completion are wrong");
	if (!(c.flags & ABI_WC_WITH_INV) != !p->op->ieth || (p->op->ieth && c.imm != p->rkey))
		item_fail(a->g, "the completion is wrong about what is invalidated"); /* INV-02 */
	if (p->op->ieth && (!a->n->mw || atomic_load(&a->n->mw->mw.version) & MW_BOUND))
		item_fail(a->g, "the window is still bound"); /* INV-04 */
	if (a->n->spec.type == ABI_QPT_XRC_RECV && c.srqn != a->n->srq->srq.srqn)
		item_fail(a->g, "the completion names SRQ 0x%x", c.srqn); /* XRC-05 */
	if (!(c.flags & ABI_WC_SOLICITED) != !p->se)
		item_fail(a->g, "the completion is wrong in being solicited"); /* RSP-51 */
	return c;
}

/* --- memory ---------------------------------------------------------------------------------- */

static void check_send(const struct accepted *a)
{
	size_t at = (size_t)(node_recv_buffer(a->n, 0) - a->n->recv->mem) + a->done;
	size_t len = a->p->payload_len;

	if (memcmp(a->n->recv->mem + at, a->p->payload, len))
		item_fail(a->g, "the receive buffer has other bytes than the payload");
	if (memcmp(a->n->recv->mem, a->before->recv, at) ||
		memcmp(a->n->recv->mem + at + len, a->before->recv + at + len,
			a->n->recv->len - at - len))
		item_fail(a->g, "more than the payload was written to the receive buffer");
	memento_same_memory(a->g, a->before, a->n, 0, 0);
	if (a->ends)
		check_completion(a, ABI_WC_RECV, a->done + a->p->payload_len);
}

/* UD-05..10: the 40 bytes, the payload, and how it came. */
static void check_datagram(const struct accepted *a)
{
	const struct pkt *p = a->p;
	const uint8_t *buffer = node_recv_buffer(a->n, 0);
	unsigned l3 = p->net == NET_IPV4 ? IP4_HLEN : IP6_HLEN;
	size_t at = (size_t)(buffer - a->n->recv->mem), end = at + GRH_HLEN + p->payload_len;
	struct abi_cqe c;

	if (memcmp(buffer + GRH_HLEN - l3, p->l3, l3))
		item_fail(a->g, "the first 40 bytes do not end with the IP header or GRH");
	if (memcmp(buffer + GRH_HLEN, p->payload, p->payload_len))
		item_fail(a->g, "the receive buffer has other bytes than the payload");
	if (memcmp(a->n->recv->mem + end, a->before->recv + end, a->n->recv->len - end))
		item_fail(a->g, "more than the payload was written to the receive buffer");
	memento_same_memory(a->g, a->before, a->n, 0, 0);
	c = check_completion(a, ABI_WC_RECV, GRH_HLEN + p->payload_len);
	if (is_ipoib(p) && !ipoib_takes(a->g, p, buffer))
		item_fail(a->g, "the netdev of IP over InfiniBand drops it");
	if (!(c.flags & ABI_WC_GRH) || c.src_qp != p->src_qp || c.net != p->net ||
		c.vid != p->vid || memcmp(c.smac, p->dmac + ETH_SRC, sizeof(c.smac)))
		item_fail(a->g, "the completion does not say how the datagram came");
}

static void check_write(const struct accepted *a)
{
	size_t at = a->p->op->first ? (size_t)(a->p->va - a->n->mr->mr.iova) : a->done;
	size_t len = a->p->payload_len;

	if (!len)
		at = 0; /* C9-88: any address will do */
	if (at + len > a->n->mr->len)
		item_fail(a->g, "a write outside the region was executed");
	else if (memcmp(a->n->mr->mem + at, a->p->payload, len))
		item_fail(a->g, "the region has other bytes than the payload");
	memento_same_memory(a->g, a->before, a->n, at, len);
	if (memcmp(a->n->recv->mem, a->before->recv, a->n->recv->len))
		item_fail(a->g, "a receive buffer was written");
	if (a->p->op->immdt)
		check_completion(a, ABI_WC_RECV_RDMA_WITH_IMM, a->done + a->p->payload_len);
}

/* --- the whole -------------------------------------------------------------------------------- */

static void check_qp(const struct accepted *a)
{
	const struct qp *qp = a->n->qp->qp;
	uint32_t epsn = (a->p->psn + a->responses) & PSN_MASK;
	struct abi_cqe c;

	if (qp->state != a->n->spec.state)
		item_fail(a->g, "the QP went to %s", state_name(qp->state));
	if (is_datagram(a->n->spec.type))
		epsn = a->before->qp->resp.epsn; /* UD-04 */
	if (qp->resp.epsn != epsn)
		item_fail(a->g, "the expected PSN is 0x%x, not 0x%x", qp->resp.epsn, epsn);
	if (qp->resp.msn != a->msn)
		item_fail(a->g, "the MSN is 0x%x, not 0x%x", qp->resp.msn, a->msn);
	if (node_poll(a->n, &c))
		item_fail(a->g, "completion %s %s is too many", wc_opcode_name(c.opcode),
			wc_status_name(c.status));
}

/* A duplicate is answered as it must be (RSP-39), but at a QP that has executed nothing it shows
 * that the peer's PSN is wrong, and is counted. */
static void check_drops(
	struct golden *g, const struct node *n, bool duplicate, const struct memento *before)
{
	uint64_t drop[DROP_MAX];

	memcpy(drop, before->count.drop, sizeof(drop));
	drop[DROP_PSN_BEHIND] += duplicate;
	if (memcmp(n->host->core.count.drop, drop, sizeof(drop)))
		item_fail(g, duplicate ? "it is not counted as psn_behind" : "a drop is counted");
}

void check_accepted(
	struct golden *g, struct node *n, const struct trial *t, const struct memento *before)
{
	const struct pkt *p = &t->p;
	struct accepted a = {.g = g, .n = n, .p = p, .before = before, .responses = 1};
	/* UC takes each FIRST or ONLY for the begin of a message (UC-04), UD any (UD-04); neither
	 * counts an MSN. */
	bool counts = is_acknowledged(n);
	bool duplicate = counts && ((p->psn - before->qp->resp.epsn) & PSN_MASK) >= 0x800000;

	a.done = p->op->first ? 0 : n->spec.mtu;
	a.ends = p->op->last || p->op->kind == KIND_READ;
	a.msn = (n->spec.msn + (a.ends && counts)) & PSN_MASK;
	if (p->op->kind == KIND_READ && p->dma_len)
		a.responses = (p->dma_len - 1) / n->spec.mtu + 1;
	check_drops(g, n, duplicate, before);
	if (n->host->core.count.port[0].rx_packets != before->count.port[0].rx_packets + 1)
		item_fail(g, "counter rx_packets did not move by one");
	node_tx(n);
	if (duplicate) {
		check_duplicate(&a);
		return;
	}
	if ((p->op->kind == KIND_ATOMIC || p->op->kind == KIND_ATOMIC_WRITE) && !has_word(&a))
		return;
	if (p->op->kind == KIND_READ)
		check_read(&a);
	else if (p->op->kind == KIND_ATOMIC)
		check_atomic(&a);
	else if (p->op->kind == KIND_FLUSH || p->op->kind == KIND_ATOMIC_WRITE)
		check_flush_or_word(&a);
	else
		check_ack(&a);
	if (is_datagram(n->spec.type))
		check_datagram(&a);
	else if (p->op->kind == KIND_SEND)
		check_send(&a);
	else if (p->op->kind == KIND_WRITE)
		check_write(&a);
	else if (p->op->kind == KIND_READ)
		memento_same_memory(g, before, n, 0, 0);
	check_qp(&a);
}
