/* SPDX-License-Identifier: BSD-3-Clause */
/* The two ends of a packet's making: its fixed headers, and its payload with the ICRC. */
#include "packet.h"

uint8_t *packet_begin(struct core *c, struct qp *qp, struct txd *t, uint8_t code, uint8_t flags,
	bool ackreq, uint32_t psn, uint32_t payload_len)
{
	const struct opcode *op = opcode_row(code);
	uint32_t pad = -payload_len & 3; /* BTH-05 */
	uint16_t rest = (uint16_t)(op->hdr_len + payload_len + pad + ICRC_LEN);
	uint8_t *bth = path_write(&qp->path, t->frame, rest, c->ip_id++);

	bth[BTH_OPCODE] = code;
	/* BTH-10: no path migration is going on, so the state is MIGRATED. */
	bth[BTH_FLAGS] = (uint8_t)(flags | BTH_MIGREQ | pad << BTH_PAD_SHIFT);
	put_be16(bth + BTH_PKEY, qp->pkey); /* BTH-11 */
	put_be32(bth + BTH_RESV8A, qp->attr.dest_qpn);
	put_be32(bth + BTH_ACKREQ, (ackreq ? (uint32_t)BTH_A << 24 : 0) | psn);
	t->qp = qp;
	t->hdr_len = (uint16_t)(qp->path.hdr_len + op->hdr_len);
	t->payload_len = (uint16_t)payload_len;
	t->l3_off = qp->path.l3_off;
	t->net = qp->path.net;
	t->port = qp->path.port;
	t->local = qp->path.local;
	t->nsegs = 0;
	return bth + BTH_HLEN;
}

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
				qp_event(c, t->qp, ABI_EVENT_QP_FATAL);
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
