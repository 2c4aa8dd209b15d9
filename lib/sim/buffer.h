/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file buffer.h
 * Frames of the simulated network. Each exists only once on its way through queues and wires, and
 * takes no more memory than its length class needs.
 */
#ifndef BUFFER_H
#define BUFFER_H

#include <stdint.h>
#include "bits.h"
#include "limits.h"

enum buffer_class {
	BUFFER_SMALL,  /* ACKs, CNPs, READ requests */
	BUFFER_MEDIUM, /* path MTU 1024 */
	BUFFER_LARGE,
	BUFFER_CLASSES
};

struct sim_buffer {
	struct sim_buffer *next; /* in its queue, or in the free list */
	uint64_t due;		 /* on a wire: when it arrives */
	uint16_t len;
	uint16_t from; /* in a switch: the ingress port */
	uint8_t size;  /* enum buffer_class */
	uint8_t bytes[];
};

struct buffer_pool {
	uint8_t *free; /* memory never used so far: [free, end) */
	uint8_t *end;
	struct sim_buffer *unused[BUFFER_CLASSES];
	uint64_t held;	  /* frames allocated now */
	uint64_t refused; /* requests for which there was no memory */
};

/** @param mem  @p size bytes, aligned to CACHE_LINE; touched only when first used */
void pool_init(struct buffer_pool *p, void *mem, size_t size);

/** @return a frame of @p len bytes, at most FRAME_MAX; NULL: no memory. */
struct sim_buffer *pool_get(struct buffer_pool *p, size_t len);

/** Frees @p b. */
void pool_put(struct buffer_pool *p, struct sim_buffer *b);

/** @return a copy of @p b; NULL: no memory. */
struct sim_buffer *pool_copy(struct buffer_pool *p, const struct sim_buffer *b);

/** Frames in order of arrival. */
struct buffer_fifo {
	struct sim_buffer *head;
	struct sim_buffer *tail;
};

static inline void fifo_push(struct buffer_fifo *f, struct sim_buffer *b)
{
	b->next = NULL;
	if (f->head)
		f->tail->next = b;
	else
		f->head = b;
	f->tail = b;
}

/** Removes and returns the oldest frame, or NULL. */
static inline struct sim_buffer *fifo_pop(struct buffer_fifo *f)
{
	struct sim_buffer *b = f->head;

	if (b)
		f->head = b->next;
	return b;
}

#endif
