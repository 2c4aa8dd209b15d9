/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "session/handles.h"

#define GEN_MAX	   0x7FFF
#define NO_SLOT	   UINT32_MAX
#define FIRST_SIZE 16u

void handles_init(struct handles *h, uint32_t max)
{
	memset(h, 0, sizeof(*h));
	h->max = max;
	h->free_head = NO_SLOT;
	h->free_tail = NO_SLOT;
}

void handles_free(struct handles *h)
{
	free(h->slot);
	handles_init(h, h->max);
}

static void free_push(struct handles *h, uint32_t i)
{
	h->slot[i].next = NO_SLOT;
	if (h->free_head == NO_SLOT)
		h->free_head = i;
	else
		h->slot[h->free_tail].next = i;
	h->free_tail = i;
}

static int grow(struct handles *h)
{
	uint32_t size = h->size ? h->size * 2 : FIRST_SIZE;
	struct handle_slot *slot;

	if (size > h->max)
		size = h->max;
	if (size == h->size)
		return -ENOSPC;
	slot = realloc(h->slot, size * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	h->slot = slot;
	for (uint32_t i = h->size; i < size; i++) {
		slot[i] = (struct handle_slot){.gen = 1};
		free_push(h, i);
	}
	h->size = size;
	return 0;
}

int handle_add(struct handles *h, void *obj, uint32_t *handle)
{
	struct handle_slot *s;
	uint32_t i;
	int err;

	if (h->free_head == NO_SLOT) {
		err = grow(h);
		if (err)
			return err;
	}
	i = h->free_head;
	s = &h->slot[i];
	h->free_head = s->next;
	s->obj = obj;
	h->used++;
	*handle = (uint32_t)s->gen << 16 | i;
	return 0;
}

static struct handle_slot *find(const struct handles *h, uint32_t handle)
{
	uint32_t i = handle & 0xFFFF;
	struct handle_slot *s;

	if (i >= h->size)
		return NULL;
	s = &h->slot[i];
	return s->obj && s->gen == handle >> 16 ? s : NULL;
}

void *handle_get(const struct handles *h, uint32_t handle)
{
	struct handle_slot *s = find(h, handle);

	return s ? s->obj : NULL;
}

void *handle_del(struct handles *h, uint32_t handle)
{
	struct handle_slot *s = find(h, handle);
	void *obj;

	if (!s)
		return NULL;
	obj = s->obj;
	s->obj = NULL;
	s->gen = s->gen == GEN_MAX ? 1 : (uint16_t)(s->gen + 1);
	free_push(h, handle & 0xFFFF);
	h->used--;
	return obj;
}

void *handle_next(const struct handles *h, uint32_t *cursor)
{
	while (*cursor < h->size) {
		void *obj = h->slot[(*cursor)++].obj;

		if (obj)
			return obj;
	}
	return NULL;
}
