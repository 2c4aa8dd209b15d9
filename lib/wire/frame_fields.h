/* SPDX-License-Identifier: BSD-3-Clause */
/** @file frame_fields.h  What frame.c and expect.c read in the same way. */
#ifndef FRAME_FIELDS_H
#define FRAME_FIELDS_H

#include <stddef.h>
#include "bits.h"
#include "headers.h"
#include "opcode.h"
#include "pkt.h"

/* Inlines each protocol into one function, so that the rest of the frame stays in registers. */
#define FLAT static inline __attribute__((always_inline))

/* CA17-2, IP4-16, RFC 1071: the ones' complement sum of a good header is all ones, in any byte
 * order. */
FLAT bool ip4_sum_is_good(uint64_t sum)
{
	/* Folding keeps the remainder modulo 0xFFFF. The sum is not 0, because it includes the
	 * version. */
	return sum % 0xFFFF == 0;
}

/* SE, MigReq and PadCnt: one load for three shifts. Writes 0 to `ackreq`, too, which the caller
 * sets afterwards. */
FLAT void bth_flags(struct pkt *p, unsigned flags)
{
	_Static_assert(offsetof(struct pkt, migreq) == offsetof(struct pkt, se) + 1 &&
			       offsetof(struct pkt, pad) == offsetof(struct pkt, se) + 2 &&
			       offsetof(struct pkt, ackreq) == offsetof(struct pkt, se) + 3,
		"four bytes in this order");
#define FIELDS(v)                                 \
	{                                         \
		(v) >> 3 & 1, (v) >> 2 & 1, (v)&3 \
	}
#define FIELDS_4(v) FIELDS(v), FIELDS((v) + 1), FIELDS((v) + 2), FIELDS((v) + 3)
	static const uint8_t fields[16][4] = {FIELDS_4(0), FIELDS_4(4), FIELDS_4(8), FIELDS_4(12)};

	memcpy(&p->se, fields[flags >> BTH_PAD_SHIFT], sizeof(fields[0]));
}

/* The extended headers of @p op, in wire order: BTH-18, BTH-19, BTH-20, BTH-21, BTH-22, BTH-23,
 * BTH-24, BTH-25, BTH-26. */
FLAT void eth_fields(struct pkt *p, const struct opcode *op, const uint8_t *h)
{
	if (unlikely(op->xrceth || op->deth || op->feth)) {
		if (op->xrceth) {
			p->srqn = get_be32(h) & 0xFFFFFF;
			h += XRCETH_LEN;
		}
		if (op->deth) {
			p->qkey = get_be32(h);
			p->src_qp = get_be32(h + 4) & 0xFFFFFF;
			h += DETH_LEN;
		}
		if (op->feth) {
			p->feth = get_be32(h);
			h += FETH_LEN;
		}
	}
	if (op->reth) {
		p->va = get_be64(h);
		p->rkey = get_be32(h + 8);
		p->dma_len = get_be32(h + 12);
		h += RETH_LEN;
	}
	if (unlikely(op->atomiceth)) {
		p->va = get_be64(h);
		p->rkey = get_be32(h + 8);
		p->swap_add = get_be64(h + 12);
		p->compare = get_be64(h + 20);
		h += ATOMICETH_LEN;
	}
	if (op->aeth) {
		p->syndrome = h[0];
		p->msn = get_be32(h) & 0xFFFFFF;
		h += AETH_LEN;
	}
	if (unlikely(op->atomicack || op->immdt || op->ieth)) {
		if (op->atomicack) {
			p->atomic_orig = get_be64(h);
			h += ATOMICACK_LEN;
		}
		if (op->immdt)
			memcpy(&p->imm, h, IMMDT_LEN);
		if (op->ieth)
			p->rkey = get_be32(h);
	}
}

#endif
