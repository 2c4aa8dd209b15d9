/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file flow.h
 * What connected QPs send over IPv6, as a switch sees it: (destination GID, DestQP) -> the QPs
 * (FCN-08). The control thread adds and removes flows; workers walk the table between two quiescent
 * states.
 */
#ifndef FLOW_H
#define FLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct flow_table;
struct qp;

/** Written by the control thread before flow_add(), but for the links. */
struct qp_flow {
	_Atomic(struct qp_flow *) next; /* with another key, in the same bucket; of a first one */
	_Atomic(struct qp_flow *) more; /* with the same key (FCN-09) */
	/* the key */
	uint8_t dgid[16];
	uint32_t dest_qpn;
	/* whose it is */
	uint32_t port; /* index */
	uint8_t sgid[16];
	struct qp *qp;
	bool added; /* it is in the table */
};

/** @return the first flow to QP @p dest_qpn at @p dgid, in the order in which they were added, or
 *  NULL; flow_more() has the others. */
const struct qp_flow *flow_find(
	const struct flow_table *t, const uint8_t dgid[16], uint32_t dest_qpn);

/** @return the flow with the same key after @p f, or NULL. */
static inline const struct qp_flow *flow_more(const struct qp_flow *f)
{
	return atomic_load_explicit(&f->more, memory_order_acquire);
}

/** Adds @p f to @p t, after those with its key. Control thread. */
void flow_add(struct flow_table *t, struct qp_flow *f);

/** Removes @p f from @p t, if it is there. It must stay as it is until the end of a grace period.
 *  Control thread. */
void flow_remove(struct flow_table *t, struct qp_flow *f);

#endif
