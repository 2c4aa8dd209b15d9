/* SPDX-License-Identifier: BSD-3-Clause */
/** @file packet.h  Starting a packet, for the requester and the responder. */
#ifndef PACKET_H
#define PACKET_H

#include "bits.h"
#include "headers.h"
#include "opcode.h"
#include "path_write.h"
#include "qp.h"
#include "txd.h"
#include "xrc.h"

/** The BTH fields that differ from packet to packet. */
struct bth {
	uint8_t code;  /* BTH opcode */
	uint8_t flags; /* BTH_SE, or 0 */
	bool ackreq;
	uint16_t pkey;
	uint32_t dest_qpn;
	uint32_t psn;
};

/** Like packet_begin(), for a datagram: along @p path and with @p b. Inlined, because most
 * arguments are constant at the call sites. */
static ALWAYS_INLINE uint8_t *packet_begin_to(uint16_t *id, struct qp *qp, const struct path *path,
	struct txd *t, const struct bth *b, uint32_t payload_len)
{
	const struct opcode *op = opcode_row(b->code);
	uint32_t pad = -payload_len & 3; /* BTH-05; an MTU has none: BTH-08 */
	uint16_t rest = (uint16_t)(op->hdr_len + payload_len + pad + ICRC_LEN);
	uint8_t *bth = path_write(path, t->frame, rest, (*id)++);

	/* BTH-01. Reserved fields are 0, FECN and BECN too: BTH-03, BTH-04. */
	bth[BTH_OPCODE] = b->code;
	/* BTH-10: no path migration is in progress, so the state is MIGRATED. */
	bth[BTH_FLAGS] = (uint8_t)(b->flags | BTH_MIGREQ | pad << BTH_PAD_SHIFT);
	put_be16(bth + BTH_PKEY, b->pkey);	 /* BTH-11, RSP-50 */
	put_be32(bth + BTH_RESV8A, b->dest_qpn); /* RSP-48, BTH-12 */
	put_be32(bth + BTH_ACKREQ, (b->ackreq ? (uint32_t)BTH_A << 24 : 0) | b->psn);
	t->qp = qp;
	t->hdr_len = (uint16_t)(path->hdr_len + op->hdr_len);
	t->payload_len = (uint16_t)payload_len;
	t->l3_off = path->l3_off;
	t->net = path->net;
	t->port = path->port;
	t->local = path->local;
	t->group = false;
	t->named = false;
	t->nsegs = 0;
	t->sealed = TXD_OPEN;
	if (unlikely(op->xrceth)) { /* XRC-03, BTH-22: in all requests */
		put_be32(bth + BTH_HLEN, xrc_srqn(qp));
		return bth + BTH_HLEN + XRCETH_LEN;
	}
	return bth + BTH_HLEN;
}

/**
 * Writes everything up to the BTH of a packet of @p qp into @p t.
 * @param id     IPv4 identification: core.ip_id
 * @param code   BTH opcode
 * @param flags  BTH_SE, or 0
 * @param ackreq sets the AckReq bit
 * @return where the first extended header starts.
 */
static ALWAYS_INLINE uint8_t *packet_begin(uint16_t *id, struct qp *qp, struct txd *t, uint8_t code,
	uint8_t flags, bool ackreq, uint32_t psn, uint32_t payload_len)
{
	const struct bth b = {
		.code = code,
		.flags = flags,
		.ackreq = ackreq,
		.pkey = qp->pkey,
		.dest_qpn = qp->attr.dest_qpn,
		.psn = psn,
	};

	/* RSP-48, RSP-49: responses, too, are addressed by the QP's AV. */
	return packet_begin_to(id, qp, &qp->path, t, &b, payload_len);
}

/** Writes a RETH at @p reth. */
static inline void packet_reth(uint8_t *reth, uint64_t va, uint32_t rkey, uint32_t len)
{
	put_be64(reth, va);
	put_be32(reth + 8, rkey);
	put_be32(reth + 12, len);
}

/** Appends @p len bytes at @p addr, of region @p key if it is not 0, to the payload of @p t. */
static inline void packet_payload(struct txd *t, const uint8_t *addr, uint32_t len, uint32_t key)
{
	t->seg[t->nsegs++] = (struct txseg){addr, len, key};
	/* It is copied when the whole burst is built. From the third line on, the CPU's own
	 * prefetcher fetches. */
	__builtin_prefetch(addr);
	if (len > CACHE_LINE)
		__builtin_prefetch(addr + CACHE_LINE);
}

#endif
