/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet.h"

uint8_t *packet_begin(struct core *c, struct qp *qp, struct txd *t, uint8_t code, uint8_t flags,
	bool ackreq, uint32_t psn, uint32_t payload_len)
{
	const struct opcode *op = opcode_row(code);
	uint32_t pad = -payload_len & 3; /* BTH-05 */
	uint16_t rest = (uint16_t)(op->hdr_len + payload_len + pad + ICRC_LEN);
	/* RSP-48, RSP-49: responses too go where the QP's AV says. */
	uint8_t *bth = path_write(&qp->path, t->frame, rest, c->ip_id++);

	bth[BTH_OPCODE] = code;
	/* BTH-10: no path migration is going on, so the state is MIGRATED. */
	bth[BTH_FLAGS] = (uint8_t)(flags | BTH_MIGREQ | pad << BTH_PAD_SHIFT);
	put_be16(bth + BTH_PKEY, qp->pkey);	       /* BTH-11, RSP-50 */
	put_be32(bth + BTH_RESV8A, qp->attr.dest_qpn); /* RSP-48 */
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
