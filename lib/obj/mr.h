/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mr.h
 * Memory regions: key -> address of the bytes in this process, and access rights (IBA 10.6;
 * MR-01..07). The control thread writes entries and publishes pointers; workers look an entry up
 * for each packet and use it only until their next quiescent state.
 */
#ifndef MR_H
#define MR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "bits.h"
#include "limits.h"

/** Immutable, except for `windows`, until the end of the grace period after its removal.
 */
struct mr {
	uint32_t key;	 /* lkey and rkey: slot << 8 | key part */
	uint32_t pd;	 /* protection domain, unique in the daemon */
	uint32_t access; /* ABI_ACCESS_* */
	/** Number of memory windows bound to it, by any worker: mr_hold(), mr_let_go(). */
	_Atomic uint32_t windows;
	uint64_t iova; /* address of the first byte in keys and on the wire */
	uint64_t length;
	uint8_t *base;		   /* the first byte in this process */
	uint32_t session;	   /* number of the session that registered it */
	_Atomic(struct mr *) next; /* of the same mapping: struct mr_list */
	struct mr *prev;
};

/** The regions of one mapping of this process: if a page of it faults, all are withdrawn. The
 *  control thread changes it, signal handlers read it. */
struct mr_list {
	_Atomic(struct mr *) first;
	_Atomic bool faulted; /* never false again */
};

struct mr_table {
	_Atomic(struct mr *) slot[MR_MAX];
};

enum mr_status {
	MR_OK,
	MR_NO_KEY, /* unknown or stale key, or of another protection domain */
	MR_NO_ACCESS,
	MR_RANGE, /* out of bounds */
};

/** @return the region that @p key names, including the key part, or NULL. */
static inline struct mr *mr_find(const struct mr_table *t, uint32_t key)
{
	uint32_t slot = key >> 8;
	struct mr *mr;

	if (slot >= MR_MAX)
		return NULL;
	mr = atomic_load_explicit(&t->slot[slot], memory_order_acquire);
	return mr && mr->key == key ? mr : NULL; /* RSP-14: the key part counts */
}

/**
 * Resolves [@p va, @p va + @p len) of the region @p key.
 * @param pd      the QP's protection domain; must be that of the region (MR-06)
 * @param access  all of these ABI_ACCESS_* bits must be granted; 0 for local read
 * @param ptr     receives the first byte in this process; NULL to check only
 */
static inline enum mr_status mr_resolve(const struct mr_table *t, uint32_t key, uint32_t pd,
	uint32_t access, uint64_t va, uint64_t len, uint8_t **ptr)
{
	const struct mr *mr = mr_find(t, key);
	uint64_t off;

	if (!mr || mr->pd != pd)
		return MR_NO_KEY;
	if ((mr->access & access) != access)
		return MR_NO_ACCESS;
	/* MR-04, MR-07: below iova the offset wraps to a huge one, which range_inside() refuses. */
	off = va - mr->iova;
	if (!range_inside(off, len, mr->length))
		return MR_RANGE;
	if (ptr)
		*ptr = mr->base + off;
	return MR_OK;
}

/** Removes @p mr from @p t, if it is still there; the slot may be reused by now. Any thread, and
 *  signal handlers. */
void mr_withdraw(struct mr_table *t, struct mr *mr);

/** Control thread. A region that was removed stays as it is for a grace period. */
void mr_list_add(struct mr_list *l, struct mr *mr);
void mr_list_remove(struct mr_list *l, struct mr *mr);

/** Withdraws all regions of @p l. Any thread, and signal handlers. */
void mr_list_withdraw(struct mr_list *l, struct mr_table *t);

/** Counts a window bound to @p mr, which then stays until mr_let_go().
 *  @return false when it is being deregistered. */
bool mr_hold(struct mr *mr);
void mr_let_go(struct mr *mr);

/** Control thread: prevents windows from being bound to @p mr from now on.
 *  @return false when one is bound (MR-05). */
bool mr_close(struct mr *mr);

/**
 * Checks access flags for reg_mr (MR-02).
 * @return false for remote write or atomic without local write, or an unknown bit.
 */
bool mr_access_valid(uint32_t access);

#endif
