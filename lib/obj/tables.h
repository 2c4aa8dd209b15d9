/* SPDX-License-Identifier: BSD-3-Clause */
/** @file tables.h  Hash tables that the control thread writes: groups (mcast.h) and flows (flow.h).
 */
#ifndef TABLES_H
#define TABLES_H

#include <stdatomic.h>
#include "hash.h"

struct mcast_group;
struct qp_flow;

/** A few QPs per bucket where a program has the most. */
#define FLOW_BUCKETS 4096u

struct flow_table {
	struct hash_seed seed; /* secret, because programs and peers choose the keys */
	_Atomic(struct qp_flow *) bucket[FLOW_BUCKETS];
};

#define MCAST_BUCKETS 256u

struct mcast_table {
	struct hash_seed seed; /* secret, because programs and peers choose the MGIDs */
	_Atomic(struct mcast_group *) bucket[MCAST_BUCKETS];
};

#endif
