/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/handles.h
 * Handles of one kind of object: slot and generation, so that a stale handle finds nothing
 * instead of its successor. Control thread; readers of other threads hold the notifier's
 * lock, as do writers then (session/notifier.h).
 */
#ifndef SESSION_HANDLES_H
#define SESSION_HANDLES_H

#include <stdint.h>

/** Most objects that one table can hold. */
#define HANDLES_MAX 65536u

struct handle_slot {
	void *obj;     /* NULL: free */
	uint32_t next; /* free slot after this one */
	uint16_t gen;  /* 1..0x7FFF, so no handle is 0 or ABI_NO_HANDLE */
};

/** Starts as zeroes but for `max`, which handles_init() sets. */
struct handles {
	struct handle_slot *slot;
	uint32_t size; /* slots allocated */
	uint32_t used;
	uint32_t max;
	uint32_t free_head, free_tail; /* first in, first out: a slot rests as long as can be */
};

/** @param max objects, at most HANDLES_MAX */
void handles_init(struct handles *h, uint32_t max);

/** Frees the table, not the objects. */
void handles_free(struct handles *h);

/** @return 0, -ENOSPC when the table is full or -ENOMEM. */
int handle_add(struct handles *h, void *obj, uint32_t *handle);

/** @return the object, or NULL when @p handle is unknown or stale. */
void *handle_get(const struct handles *h, uint32_t handle);

/** Takes the object out and makes its handle stale.  @return it, or NULL. */
void *handle_del(struct handles *h, uint32_t handle);

/** Walks the objects: start with *@p cursor = 0, stop at NULL. Deleting meanwhile is fine. */
void *handle_next(const struct handles *h, uint32_t *cursor);

#endif
