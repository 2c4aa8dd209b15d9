/* SPDX-License-Identifier: BSD-3-Clause */
/** @file write_place.h  The payload of a WRITE packet, for RC and UC. */
#ifndef WRITE_PLACE_H
#define WRITE_PLACE_H

#include "bits.h"
#include "mw.h"
#include "opcode.h"
#include "pkt.h"
#include "qp.h"
#include "uaccess.h"

enum placed {
	PLACED,
	PLACED_KEY_GONE, /* RSP-15: the region was deregistered after FIRST */
	PLACED_FAULT,	 /* application memory faulted */
};

/** Places the payload of a WRITE packet; a FIRST or ONLY begins the message at @p ptr, the address
 * that its header resolved to. */
static ALWAYS_INLINE enum placed write_place(struct uaccess ua, const struct mr_table *mrs,
	struct qp *qp, const struct pkt *pkt, uint8_t *ptr)
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
			rkey_resolve(mrs, r->rkey, qp->pd, qp->qpn, ABI_ACCESS_REMOTE_WRITE, r->va,
				pkt->payload_len, &ptr) != MR_OK)
			return PLACED_KEY_GONE;
		if (!uaccess_place(ua, ptr, pkt->payload, pkt->payload_len))
			return PLACED_FAULT;
	}
	r->va += pkt->payload_len;
	r->write_left -= pkt->payload_len;
	return PLACED;
}

/** Undoes PLACED for a packet that is dropped after all: it will be placed there again. */
static inline void write_unplaced(struct qp *qp, const struct pkt *pkt)
{
	qp->resp.va -= pkt->payload_len;
	qp->resp.write_left += pkt->payload_len;
}

#endif
