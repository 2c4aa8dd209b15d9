/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ah.h
 * Address handles of datagrams: id -> path (IBA 10.2.2.2, UD-15, UD-16). The control thread writes
 * entries and publishes pointers; when a destination changes, a new entry replaces the old one.
 * Workers look an id up when they take a work request, copy the path, and keep no pointer.
 */
#ifndef AH_H
#define AH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "limits.h"
#include "path.h"

/** Immutable between publication and the end of the grace period after its removal. */
struct ah {
	uint32_t id; /* slot in the low AH_SLOT_BITS, generation above: never 0 */
	uint32_t pd; /* protection domain, unique in the daemon */
	bool hashed; /* its address vector has no flow label: derived from the QPNs (ENT-10), ... */
	bool plain;  /* ... and used for the source port only (IP6-09) */
	struct path path;
};

struct ah_table {
	_Atomic(struct ah *) slot[AH_MAX];
};

#define AH_SLOT(id) ((id) & (AH_MAX - 1))

/** @return the handle @p id of protection domain @p pd, or NULL: there is none, it was destroyed,
 *  or it is another program's. */
static inline const struct ah *ah_find(const struct ah_table *t, uint32_t id, uint32_t pd)
{
	const struct ah *ah = atomic_load_explicit(&t->slot[AH_SLOT(id)], memory_order_acquire);

	return ah && ah->id == id && ah->pd == pd ? ah : NULL;
}

#endif
