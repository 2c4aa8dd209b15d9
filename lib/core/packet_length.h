/* SPDX-License-Identifier: BSD-3-Clause */
/** @file packet_length.h  Length checks of SEND and WRITE packets for RC and UC. */
#ifndef PACKET_LENGTH_H
#define PACKET_LENGTH_H

#include <stdbool.h>
#include <stdint.h>
#include "opcode.h"
#include "pkt.h"
#include "qp.h"

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

#endif
