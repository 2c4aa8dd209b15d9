/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/handles.h
 * Handles of one kind of object: slot and generation, so that a stale handle does not find the
 * slot's next object. Control thread; if other threads read the table, they and the writers hold
 * the notifier's lock (session/notifier.h).
 */
#ifndef SESSION_HANDLES_H
#define SESSION_HANDLES_H

#include <stdint.h>

/** Maximum number of objects per table. */
#define HANDLES_MAX 65536u

struct handle_slot {
	void *obj;     /* NULL: free */
	uint32_t next; /* free slot after this one */
	uint16_t gen;  /* 1..0x7FFF, so no handle is 0 or ABI_NO_HANDLE */
};

/** handles_init() sets it up. */
struct handles {
	struct handle_slot *slot;
	uint32_t size; /* slots allocated */
	uint32_t used;
	uint32_t max;
	uint32_t free_head, free_tail; /* FIFO: a slot stays unused as long as possible */
};

/** @param max objects, at most HANDLES_MAX */
void handles_init(struct handles *h, uint32_t max);

/** Frees the table, not the objects. */
void handles_free(struct handles *h);

/** @return 0, -ENOSPC if the table is full, or -ENOMEM. */
int handle_add(struct handles *h, void *obj, uint32_t *handle);

/** @return the object, or NULL if @p handle is unknown or stale. */
void *handle_get(const struct handles *h, uint32_t handle);

/** Removes an object and makes its handle stale.  @return the object, or NULL. */
void *handle_del(struct handles *h, uint32_t handle);

/** Walks the objects: start with *@p cursor = 0, stop at NULL. Objects may be deleted meanwhile. */
void *handle_next(const struct handles *h, uint32_t *cursor);

#endif
