/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file recvs.h
 * Keeping receives posted.
 */
#ifndef RECVS_H
#define RECVS_H

#include "end.h"

/** Posts the missing receives of @p f. */
void recvs_fill(struct end *e, struct flow *f);

/** A receive is used up: posts more when a batch is missing. */
static inline void recvs_taken(struct end *e, struct flow *f)
{
	f->recvs--;
	cursor_next(&f->taken, e->shape.rx_slots);
	if (f->recvs + e->shape.repost <= e->shape.rx_depth)
		recvs_fill(e, f);
}

#endif
