/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file flow.h
 * Flows of connected QPs over IPv6, as switches see them: (addresses, DestQP) -> the QPs (FCN-08).
 * The control thread adds and removes flows; workers walk the table between two quiescent
 * states.
 */
#ifndef FLOW_H
#define FLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct flow_table;
struct qp;

/** A Fast CNP visits only QPs that match the whole key: others with the same peer cost nothing. */
struct flow_key {
	uint8_t dgid[16];
	uint32_t dest_qpn;
	uint32_t port; /* index */
	uint8_t sgid[16];
};

/** The control thread fills it in before flow_add(), except for the links. */
struct qp_flow {
	_Atomic(struct qp_flow *) next; /* the bucket's next key; only in a key's first flow */
	_Atomic(struct qp_flow *) more; /* with the same key (FCN-09) */
	struct flow_key key;
	struct qp *qp; /* the owner */
	bool added;    /* it is in the table */
};

/** @return the first flow with key @p k, in the order in which they were added, or NULL;
 *  flow_more() has the others. */
const struct qp_flow *flow_find(const struct flow_table *t, const struct flow_key *k);

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
