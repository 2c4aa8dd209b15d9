/* SPDX-License-Identifier: BSD-3-Clause */
#include "named.h"
#include <string.h>
#include "classify.h"
#include "core_memory.h"
#include "headers.h"
#include "icrc.h"
#include "mr.h"
#include "opcode.h"
#include "pkt.h"
#include "qp_impl.h"
#include "txd_bth.h"

/** In the frame, after its headers. The sender's QP is known anyway, and thus the domain of the
 * key. Only this process writes frames that a shell marks as named. */
struct name {
	uint64_t va;
	uint32_t key;
	uint32_t epoch;
};

_Static_assert(sizeof(struct name) <= NAMED_MIN, "a name fits in place of any payload");

/* --- the sender ------------------------------------------------------------------------- */

/* Traces, injected faults and captures see frames with their payload. A UC or UD request completes
 * when it was sent, so its memory may not be read later; the domain of an XRC target may change. Of
 * a QP that has failed since it built the packet the names are recalled already. */
static bool may_name(const struct core *c, const struct txd *t)
{
	return c->names && !c->careful && t->sealed == TXD_OPEN && t->nsegs == 1 &&
	       t->payload_len >= NAMED_MIN && t->qp->opc == OPC_RC && t->qp->state < ABI_QPS_SQE;
}

static bool is_response(const struct txd *t)
{
	return opcode_row(txd_bth(t)[BTH_OPCODE])->response;
}

/* With payload, pad and ICRC. */
static uint16_t length(const struct txd *t)
{
	return (uint16_t)(t->hdr_len + t->payload_len + (-(uint32_t)t->payload_len & 3) + ICRC_LEN);
}

uint16_t named_seal(struct core *c, struct txd *t)
{
	struct core_port_counters *count = &c->count.port[t->port];
	const struct mr *mr;
	struct name n;
	uint64_t off;

	if (!may_name(c, t))
		return 0;
	mr = mr_find(c->cfg.mrs, t->seg[0].key); /* none, if it is the key of a window */
	if (!mr)
		return 0;
	off = (uint64_t)(t->seg[0].addr - mr->base);
	n.va = mr->iova + off;
	n.key = mr->key;
	n.epoch = atomic_load_explicit(&t->qp->epoch, memory_order_relaxed);
	memcpy(t->frame + t->hdr_len, &n, sizeof(n));
	t->named = true;
	if (!t->qp->named)
		t->qp->named = !is_response(t);
	c->count.named_packets++;
	count->tx_packets++;
	count->tx_bytes += (uint64_t)(length(t) - t->l3_off);
	return length(t);
}

bool named_recall(struct core *c, struct qp *qp)
{
	if (!qp->recall) {
		atomic_store_explicit(&qp->epoch,
			atomic_load_explicit(&qp->epoch, memory_order_relaxed) + 1,
			memory_order_release);
		qp->recall = core_grace_begin(c);
	}
	if (!core_grace_over(c, qp->recall))
		return false;
	qp->recall = 0;
	qp->named = false;
	return true;
}

/* --- the receiver ----------------------------------------------------------------------- */

/* @return whether the epoch of the name is over. No completion gives back the memory of a READ
 * response, which peers may read as long as it is registered; and those before a fatal NAK arrive
 * (RSP-22). */
static bool is_void(const struct qp *from, const struct pkt *pkt, const struct name *n)
{
	return !pkt->op->response &&
	       atomic_load_explicit(&from->epoch, memory_order_acquire) != n->epoch;
}

/* @return the memory that the sender would find now, without windows; NULL: there is none. */
static const uint8_t *find(const struct core *c, const struct pkt *pkt, const struct name *n)
{
	const struct qp *from = qp_lookup(c, pkt->source_qp);
	uint32_t access = pkt->op->response ? ABI_ACCESS_REMOTE_READ : 0;
	uint8_t *ptr;

	if (!from || is_void(from, pkt, n))
		return NULL;
	if (mr_resolve(c->cfg.mrs, n->key, from->pd, access, n->va, pkt->payload_len, &ptr) !=
		MR_OK)
		return NULL;
	return ptr;
}

bool named_is_gone(const struct core *c, const struct pkt *pkt)
{
	return !mr_find(c->cfg.mrs, pkt->source_key);
}

/* Makes the frame of @p pkt what the sender would have made, from its memory at @p from.
 * @return false when that faulted. */
static bool complete(struct core *c, struct pkt *pkt, uint8_t *to, const uint8_t *from)
{
	size_t len = pkt->payload_len;
	uint32_t crc;

	if (!uaccess_gather_first(core_memory(c), &crc, pkt->l3, pkt->net, (size_t)(to - pkt->l3),
		    to, from, len)) {
		c->count.access_faults++;
		return false;
	}
	memset(to + len, 0, pkt->pad);
	icrc_store(to + len + pkt->pad, c->cfg.icrc->crc(crc, to + len, pkt->pad));
	return true;
}

bool core_named(struct core *c, struct pkt *pkt, bool whole)
{
	uint8_t *payload = (uint8_t *)pkt->payload; /* in the frame, which is the shell's */
	const uint8_t *from;
	struct name n;

	memcpy(&n, payload, sizeof(n));
	from = find(c, pkt, &n);
	pkt->named = from ? PKT_NAMED : PKT_NAMELESS;
	pkt->source_key = n.key;
	if (likely(!whole && !c->careful)) {
		if (from)
			pkt->payload = from;
		return false;
	}
	if (from && complete(c, pkt, payload, from)) {
		pkt->named = PKT_WHOLE;
		return true;
	}
	memset(payload, 0, pkt->payload_len + pkt->pad + ICRC_LEN);
	pkt->named = PKT_NAMELESS;
	return false;
}
