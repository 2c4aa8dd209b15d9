/* SPDX-License-Identifier: BSD-3-Clause */
#include "bits.h"
#include "frame.h"
#include "headers.h"
#include "icrc.h"
#include "opcode.h"
#include "path_write.h"
#include "write.h"

static void write_bth(uint8_t *bth, const struct pkt *p, unsigned pad)
{
	bth[BTH_OPCODE] = p->op->code;
	bth[BTH_FLAGS] = (uint8_t)((p->se ? BTH_SE : 0) | (p->migreq ? BTH_MIGREQ : 0) |
				   pad << BTH_PAD_SHIFT);
	put_be16(bth + BTH_PKEY, p->pkey);
	put_be32(bth + BTH_RESV8A, p->dest_qp);
	put_be32(bth + BTH_ACKREQ, (p->ackreq ? (uint32_t)BTH_A << 24 : 0) | p->psn);
}

static uint8_t *write_reth(uint8_t *h, const struct pkt *p)
{
	put_be64(h, p->va);
	put_be32(h + 8, p->rkey);
	put_be32(h + 12, p->dma_len);
	return h + RETH_LEN;
}

static uint8_t *write_atomiceth(uint8_t *h, const struct pkt *p)
{
	put_be64(h, p->va);
	put_be32(h + 8, p->rkey);
	put_be64(h + 12, p->swap_add);
	put_be64(h + 20, p->compare);
	return h + ATOMICETH_LEN;
}

/* In the order of the chain (BTH-18..24). */
static uint8_t *write_extended(uint8_t *h, const struct pkt *p)
{
	const struct opcode *op = p->op;

	if (op->xrceth) {
		put_be32(h, p->srqn);
		h += XRCETH_LEN;
	}
	if (op->deth) {
		put_be32(h, p->qkey);
		put_be32(h + 4, p->src_qp);
		h += DETH_LEN;
	}
	if (op->feth) {
		put_be32(h, p->feth);
		h += FETH_LEN;
	}
	if (op->reth)
		h = write_reth(h, p);
	if (op->atomiceth)
		h = write_atomiceth(h, p);
	if (op->aeth) {
		put_be32(h, (uint32_t)p->syndrome << 24 | p->msn);
		h += AETH_LEN;
	}
	if (op->atomicack) {
		put_be64(h, p->atomic_orig);
		h += ATOMICACK_LEN;
	}
	if (op->immdt) {
		memcpy(h, &p->imm, IMMDT_LEN);
		h += IMMDT_LEN;
	}
	if (op->ieth) {
		put_be32(h, p->rkey);
		h += IETH_LEN;
	}
	return h;
}

void packet_seal(uint8_t *l3, unsigned net, size_t len)
{
	icrc_store(
		l3 + len - ICRC_LEN, icrc_header(icrc_by_name("table"), l3, net, len - ICRC_LEN));
}

size_t packet_write(
	uint8_t *frame, const struct path *path, const struct pkt *p, const uint8_t *payload)
{
	unsigned pad = -(unsigned)p->payload_len & 3;
	size_t rest = (size_t)p->op->hdr_len + p->payload_len + pad + ICRC_LEN;
	uint8_t *bth = path_write(path, frame, (uint16_t)rest, 0);
	uint8_t *at;

	write_bth(bth, p, pad);
	at = write_extended(bth + BTH_HLEN, p);
	if (p->payload_len)
		memcpy(at, payload, p->payload_len);
	memset(at + p->payload_len, 0, pad);
	packet_seal(frame + path->l3_off, path->net, (size_t)(bth - frame) - path->l3_off + rest);
	return (size_t)(bth - frame) + rest;
}
