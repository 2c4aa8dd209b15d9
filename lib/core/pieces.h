/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file pieces.h
 * The payload of a message, in pieces that can be placed one by one: each ends with a packet, or
 * with the payload. So an aligned word of the target can be torn only where frames would
 * tear it, too (uaccess_place()).
 */
#ifndef PIECES_H
#define PIECES_H

#include <stdbool.h>
#include <stdint.h>
#include "bits.h"
#include "limits.h"
#include "txd.h"
#include "uaccess.h"

struct pieces {
	const struct txd *t;
	unsigned seg; /* of the next byte */
	uint32_t off; /* in it */
	uint32_t mtu;
	bool faulted;
	uint8_t packet[PATH_MTU_MAX]; /* one that begins and ends in different segments */
};

/** The segments of @p t, which begin with a packet. */
static ALWAYS_INLINE void pieces_begin(struct pieces *p, const struct txd *t, uint32_t mtu)
{
	p->t = t;
	p->seg = 0;
	p->off = 0;
	p->mtu = mtu;
	p->faulted = false;
}

/** pieces_next() when there are several segments. */
bool pieces_of_many(struct uaccess ua, struct pieces *p, struct txseg *piece);

/** @param piece  receives the next one, valid until the next call
 *  @return false when there is none, or memory faulted: pieces.faulted. */
static ALWAYS_INLINE bool pieces_next(struct uaccess ua, struct pieces *p, struct txseg *piece)
{
	if (unlikely(p->t->nsegs > 1))
		return pieces_of_many(ua, p, piece);
	if (p->seg == p->t->nsegs)
		return false;
	*piece = p->t->seg[p->seg++];
	return true;
}

#endif
