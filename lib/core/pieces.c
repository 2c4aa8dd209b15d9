/* SPDX-License-Identifier: BSD-3-Clause */
#include "pieces.h"

static uint32_t left_of(const struct pieces *p)
{
	return p->t->seg[p->seg].len - p->off;
}

static const uint8_t *take(struct pieces *p, uint32_t len)
{
	const uint8_t *at = p->t->seg[p->seg].addr + p->off;

	p->off += len;
	if (!left_of(p)) {
		p->seg++;
		p->off = 0;
	}
	return at;
}

/* Copies the next packet together.  @return its length. */
static uint32_t join(struct uaccess ua, struct pieces *p)
{
	uint32_t len = 0;

	while (len < p->mtu && p->seg < p->t->nsegs) {
		uint32_t left = left_of(p);
		uint32_t part = left < p->mtu - len ? left : p->mtu - len;

		if (!uaccess_place(ua, &p->packet[len], take(p, part), part))
			p->faulted = true;
		len += part;
	}
	return len;
}

bool pieces_of_many(struct uaccess ua, struct pieces *p, struct txseg *piece)
{
	uint32_t whole;

	if (p->seg == p->t->nsegs)
		return false;
	whole = left_of(p);
	if (p->seg + 1 < p->t->nsegs)
		whole &= ~(p->mtu - 1);
	piece->key = 0;
	if (whole) {
		piece->len = whole;
		piece->addr = take(p, whole);
	} else {
		piece->len = join(ua, p);
		piece->addr = p->packet;
	}
	return !p->faulted;
}
