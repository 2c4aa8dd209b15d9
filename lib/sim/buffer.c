/* SPDX-License-Identifier: BSD-3-Clause */
#include "buffer.h"

/* Bytes per buffer: whole cache lines, header included. */
static const uint16_t room[BUFFER_CLASSES] = {
	[BUFFER_SMALL] = 3 * CACHE_LINE,
	[BUFFER_MEDIUM] = 19 * CACHE_LINE,
	[BUFFER_LARGE] = FRAME_MAX + CACHE_LINE,
};

void pool_init(struct buffer_pool *p, void *mem, size_t size)
{
	memset(p, 0, sizeof(*p));
	p->free = mem;
	p->end = p->free + size;
}

static unsigned class_of(size_t len)
{
	unsigned size = BUFFER_SMALL;

	while (sizeof(struct sim_buffer) + len > room[size])
		size++;
	return size;
}

struct sim_buffer *pool_get(struct buffer_pool *p, size_t len)
{
	unsigned size = class_of(len);
	struct sim_buffer *b = p->unused[size];

	if (b) {
		p->unused[size] = b->next;
	} else if ((size_t)(p->end - p->free) >= room[size]) {
		b = (struct sim_buffer *)p->free;
		p->free += room[size];
	} else {
		p->refused++;
		return NULL;
	}
	b->size = (uint8_t)size;
	b->len = (uint16_t)len;
	p->held++;
	return b;
}

void pool_put(struct buffer_pool *p, struct sim_buffer *b)
{
	p->held--;
	b->next = p->unused[b->size];
	p->unused[b->size] = b;
}

struct sim_buffer *pool_copy(struct buffer_pool *p, const struct sim_buffer *b)
{
	struct sim_buffer *copy = pool_get(p, b->len);

	if (copy)
		memcpy(copy->bytes, b->bytes, b->len);
	return copy;
}
