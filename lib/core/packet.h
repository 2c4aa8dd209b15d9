/* SPDX-License-Identifier: BSD-3-Clause */
/** @file packet.h  What requester and responder need to start a packet. */
#ifndef PACKET_H
#define PACKET_H

#include "opcode.h"
#include "qp.h"

/**
 * Writes everything up to the BTH of a packet of @p qp into @p t.
 * @param code   BTH opcode
 * @param flags  BTH_SE, or 0
 * @param ackreq sets the AckReq bit
 * @return where the first extended header goes.
 */
uint8_t *packet_begin(struct core *c, struct qp *qp, struct txd *t, uint8_t code, uint8_t flags,
	bool ackreq, uint32_t psn, uint32_t payload_len);

/** Appends @p len bytes at @p addr to the payload of @p t. */
static inline void packet_payload(struct txd *t, const uint8_t *addr, uint32_t len)
{
	t->seg[t->nsegs++] = (struct txseg){addr, len};
}

#endif
