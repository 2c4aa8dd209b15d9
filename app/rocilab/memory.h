/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file memory.h
 * Memory of a run, which is freed as a whole. It uses large pages: thousands of hosts and queue
 * pairs take turns within microseconds, and each would otherwise miss the TLB several times.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct memory {
	struct memory_chunk *chunk; /* the newest */
	uint8_t *free;		    /* of it: [free, end) */
	uint8_t *end;
};

/** @return @p len bytes of zeros, aligned to CACHE_LINE; NULL: no memory. Pages that nobody touches
 *  cost nothing. */
void *memory_take(struct memory *m, size_t len);

/** Frees all that was allocated. */
void memory_free(struct memory *m);

#endif
