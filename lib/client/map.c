/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include "map.h"

#define MAP_FIRST 16u

static void insert(struct map *m, struct map_node *node)
{
	struct map_node **head = &m->bucket[node->key & m->mask];

	node->next = *head;
	*head = node;
}

static bool grow(struct map *m)
{
	uint32_t size = m->bucket ? 2 * (m->mask + 1) : MAP_FIRST;
	struct map bigger = {.bucket = calloc(size, sizeof(*bigger.bucket)), .mask = size - 1};

	if (!bigger.bucket)
		return false;
	for (uint32_t i = 0; m->bucket && i <= m->mask; i++) {
		for (struct map_node *n = m->bucket[i], *next; n; n = next) {
			next = n->next;
			insert(&bigger, n);
		}
	}
	free(m->bucket);
	m->bucket = bigger.bucket;
	m->mask = bigger.mask;
	return true;
}

bool map_put(struct map *m, struct map_node *node, uint32_t key)
{
	/* One node per bucket on average. A map that cannot grow any more just gets slower. */
	if ((!m->bucket || m->count > m->mask) && !grow(m) && !m->bucket)
		return false;
	node->key = key;
	insert(m, node);
	m->count++;
	return true;
}

void map_remove(struct map *m, struct map_node *node)
{
	struct map_node **at = &m->bucket[node->key & m->mask];

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	m->count--;
}

struct map_node *map_find(const struct map *m, bool (*match)(struct map_node *, void *), void *arg)
{
	for (uint32_t i = 0; m->bucket && i <= m->mask; i++)
		for (struct map_node *n = m->bucket[i]; n; n = n->next)
			if (match(n, arg))
				return n;
	return NULL;
}

void map_free(struct map *m)
{
	free(m->bucket);
	*m = (struct map){0};
}
