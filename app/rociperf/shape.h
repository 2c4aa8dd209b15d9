/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file shape.h
 * How messages of one size are sent: the plan with all automatic values filled in. Both ends
 * compute the same result.
 */
#ifndef SHAPE_H
#define SHAPE_H

#include "plan.h"

struct shape {
	uint32_t size;
	uint32_t tx_stride; /* from slot to slot, */
	uint32_t tx_slots;  /* slots per QP, for sent messages */
	uint32_t rx_stride; /* the same for received ones */
	uint32_t rx_slots;
	uint32_t rx_header; /* bytes before the data in a receive slot */
	uint32_t depth;	    /* requests in flight per QP */
	uint32_t rx_depth;
	uint32_t cq_mod;
	uint32_t list;
	uint32_t repost;     /* receives that are posted at a time */
	unsigned send_flags; /* ROCI_SEND_INLINE or none */
};

struct shape shape_of(const struct plan *p, uint32_t size);

/** @return bytes of memory that the messages of all QPs cycle through, per direction. */
uint64_t shape_memory(const struct plan *p);

#endif
