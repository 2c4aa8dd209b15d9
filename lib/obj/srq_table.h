/* SPDX-License-Identifier: BSD-3-Clause */
/** @file srq_table.h  From an SRQ number to its SRQ: srq.h. */
#ifndef SRQ_TABLE_H
#define SRQ_TABLE_H

#include <stdatomic.h>
#include "limits.h"

struct srq;

/** SRQN -> SRQ. Written by the control thread, read by all workers. An SRQ that was removed is
 *  freed only after a grace period. */
struct srq_table {
	_Atomic(struct srq *) slot[SRQ_MAX];
};

#endif
