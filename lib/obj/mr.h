/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mr.h
 * Memory regions: key -> where the bytes are in this process, and who may touch them
 * (IBA 10.6; MR-01..07). The control thread writes entries and publishes pointers; workers
 * look an entry up for each packet and use it only until their next quiescent state.
 */
#ifndef MR_H
#define MR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "bits.h"
#include "limits.h"

/** Never changes between publication and the grace period after its withdrawal, but for `windows`.
 */
struct mr {
	uint32_t key;	 /* lkey and rkey: slot << 8 | key part */
	uint32_t pd;	 /* protection domain, unique in the daemon */
	uint32_t access; /* ABI_ACCESS_* */
	/** Memory windows that are bound to it, of whatever worker: mr_hold(), mr_let_go(). */
	_Atomic uint32_t windows;
	uint64_t iova; /* address of the first byte in keys and on the wire */
	uint64_t length;
	uint8_t *base;	  /* the first byte in this process */
	uint32_t session; /* number of the session that registered it */
};

struct mr_table {
	_Atomic(struct mr *) slot[MR_MAX];
};

enum mr_status {
	MR_OK,
	MR_NO_KEY, /* unknown or stale key, or another protection domain's */
	MR_NO_ACCESS,
	MR_RANGE, /* out of bounds */
};

/** @return the region that @p key names, key part included, or NULL. */
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
 * @param pd      the QP's protection domain; must be the region's (MR-06)
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

/** Takes @p mr from @p t, if it is there; its slot may be another's by now. Any thread, and signal
 *  handlers. */
void mr_withdraw(struct mr_table *t, struct mr *mr);

/** A window is bound to @p mr, which stays until mr_let_go().
 *  @return false when it is being deregistered. */
bool mr_hold(struct mr *mr);
void mr_let_go(struct mr *mr);

/** Control thread: no window can be bound to @p mr any more.
 *  @return false when one is (MR-05). */
bool mr_close(struct mr *mr);

/**
 * Access flags that reg_mr may ask for (MR-02).
 * @return false when remote write or atomic is asked for without local write, or when a bit is
 * unknown.
 */
bool mr_access_valid(uint32_t access);

#endif
