/* SPDX-License-Identifier: BSD-3-Clause */
/** @file placement.h  Length checks of SEND and WRITE packets for RC and UC, and the placement of a
 *  WRITE.
 */
#ifndef PLACEMENT_H
#define PLACEMENT_H

#include "mw.h"
#include "qp_impl.h"

/** RSP-09, C9-92: FIRST and MIDDLE are full, LAST is not empty, none exceeds the path MTU. */
static inline bool packet_length_ok(const struct qp *qp, const struct pkt *pkt)
{
	uint32_t mtu = 1u << qp->mtu_shift;

	if (!pkt->op->last)
		return pkt->payload_len == mtu;
	return pkt->payload_len <= mtu && (pkt->op->first || pkt->payload_len);
}

/** RSP-11: the payloads of a WRITE add up to its DMALen exactly at LAST, never to more before. A
 *  message that leaves nothing for LAST fails there (RSP-09), as with rxe and qib. */
static inline bool write_length_ok(const struct qp *qp, const struct pkt *pkt)
{
	uint32_t left = pkt->op->first ? pkt->dma_len : qp->resp.write_left;

	return pkt->op->last ? pkt->payload_len == left : pkt->payload_len <= left;
}

enum placed {
	PLACED,
	PLACED_KEY_GONE, /* RSP-15: the region was deregistered after FIRST */
	PLACED_FAULT,	 /* application memory faulted */
};

/** Places the payload of a WRITE packet; a FIRST or ONLY begins the message at @p ptr, the address
 * that its header resolved to. */
static ALWAYS_INLINE enum placed write_place(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint8_t *ptr)
{
	struct qp_resp *r = &qp->resp;

	if (pkt->op->first) {
		r->va = pkt->va;
		r->rkey = pkt->rkey;
		r->write_len = pkt->dma_len;
		r->write_left = pkt->dma_len;
	}
	if (pkt->payload_len) {
		if (!pkt->op->first &&
			rkey_resolve(c->cfg.mrs, r->rkey, qp->pd, qp->qpn, ABI_ACCESS_REMOTE_WRITE,
				r->va, pkt->payload_len, &ptr) != MR_OK)
			return PLACED_KEY_GONE;
		if (!uaccess_place(&c->ua, ptr, pkt->payload, pkt->payload_len))
			return PLACED_FAULT;
	}
	r->va += pkt->payload_len;
	r->write_left -= pkt->payload_len;
	c->count.rx_write_requests += pkt->op->last;
	return PLACED;
}

#endif
