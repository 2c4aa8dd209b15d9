/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a packet's making: payload, pad and ICRC. Its headers are packet.c's. */
#include "opcode.h"
#include "responder.h"
#include "seq24.h"

/* Whether a NAK can still take the place of the READ response with PSN @p psn: it can in ERR, if
 * one is owed for what came behind it. */
static bool may_nak(const struct qp *qp, uint32_t psn)
{
	const struct qp_resp *r = &qp->resp;

	return qp->state != ABI_QPS_ERR || (r->drain && seq24_lt(psn, r->nak_psn));
}

/* Application memory faulted under @p t. What waits for a READ response is told by a NAK in its
 * place (RSP-31); a requester's own fault is nobody else's business. */
static void seal_failed(struct core *c, struct qp *qp, const struct txd *t)
{
	const uint8_t *bth = t->frame + qp->path.hdr_len;
	uint32_t psn = get_be32(bth + BTH_ACKREQ) & SEQ24_MASK;

	c->count.access_faults++;
	if (opcode_row(bth[BTH_OPCODE])->response) {
		/* EVT-03 */
		if (may_nak(qp, psn))
			responder_read_failed(c, qp, NAK_REMOTE_OP, psn, ABI_EVENT_QP_FATAL, 0);
		return;
	}
	if (qp->state == ABI_QPS_ERR)
		return;
	qp_event(c, qp, ABI_EVENT_QP_FATAL); /* EVT-03 */
	qp_error(c, qp, 0);
}

uint16_t core_seal(struct core *c, struct txd *t)
{
	uint8_t *dst = t->frame + t->hdr_len;
	uint32_t pad = -(uint32_t)t->payload_len & 3;
	uint32_t crc =
		icrc_header(c->cfg.icrc, t->frame + t->l3_off, t->net, t->hdr_len - t->l3_off);

	for (unsigned i = 0; i < t->nsegs; i++) {
		if (!uaccess_gather(&c->ua, &crc, dst, t->seg[i].addr, t->seg[i].len)) {
			seal_failed(c, t->qp, t);
			return 0;
		}
		dst += t->seg[i].len;
	}
	if (pad) {
		memset(dst, 0, pad);
		crc = c->cfg.icrc->crc(crc, dst, pad);
		dst += pad;
	}
	icrc_store(dst, crc);
	dst += ICRC_LEN;
	c->count.tx_packets++;
	/* from IP or GRH to ICRC, as rx_bytes */
	c->count.tx_bytes += (uint64_t)(dst - t->frame - t->l3_off);
	return (uint16_t)(dst - t->frame);
}
