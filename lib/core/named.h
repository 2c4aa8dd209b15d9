/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file named.h
 * Payload by name: a packet from one QP of this daemon to another need not carry its payload. It
 * has all its headers, and in place of payload and ICRC the name of the sender's memory: key and
 * address, and the epoch of its QP. The receiver looks the key up as the sender would, and copies
 * from memory to memory (decision 0152).
 *
 * A name is not a pointer and holds no reference: a receiver looks it up and reads within one
 * round, in which no region is freed (RCU). It is valid as long as its region and the epoch of its
 * QP. A QP that leaves RTS therefore begins another epoch, and gives memory back to the program
 * only after a grace period: named_recalled().
 */
#ifndef NAMED_H
#define NAMED_H

#include <stdbool.h>
#include <stdint.h>
#include "bits.h"
#include "qp.h"

struct core;
struct pkt;
struct txd;

/** Puts the name of the payload of @p t, which is local, into its frame, and sets txd.named.
 *  @return the length that the frame would have with payload, pad and ICRC; 0 when it must be
 *  sealed like any other. */
uint16_t named_seal(struct core *c, struct txd *t);

/** Called once the payload of @p pkt, which names it, was placed, or could not be.
 *  @return whether its region is gone: then it faulted, and what was placed may be zeroes (decision
 *  0003). */
bool named_is_gone(const struct core *c, const struct pkt *pkt);

/** @p qp has left the states in which it sends: ends the epoch of its names.
 *  @return whether no reader uses them any more. */
bool named_recall(struct core *c, struct qp *qp);

/** The same; true at once if there are no names. */
static ALWAYS_INLINE bool named_recalled(struct core *c, struct qp *qp)
{
	return likely(!qp->named) || named_recall(c, qp);
}

/** @p qp goes to another core, whose grace periods have other numbers. */
static inline void named_moved(struct qp *qp)
{
	qp->recall = 0;
}

#endif
