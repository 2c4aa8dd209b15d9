/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a packet's making: payload, pad and ICRC. Its headers are packet.c's. */
#include "qp.h"

uint16_t core_seal(struct core *c, struct txd *t)
{
	uint8_t *dst = t->frame + t->hdr_len;
	uint32_t pad = -(uint32_t)t->payload_len & 3;
	uint32_t crc =
		icrc_header(c->cfg.icrc, t->frame + t->l3_off, t->net, t->hdr_len - t->l3_off);

	for (unsigned i = 0; i < t->nsegs; i++) {
		if (!uaccess_gather(&c->ua, &crc, dst, t->seg[i].addr, t->seg[i].len)) {
			c->count.access_faults++;
			if (t->qp->state != ABI_QPS_ERR) {
				qp_event(c, t->qp, ABI_EVENT_QP_FATAL); /* EVT-03 */
				qp_error(c, t->qp, 0);
			}
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
