/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file map.h
 * Number -> object, for handles and QPNs: a hash table with chaining, whose nodes are embedded in
 * the objects. The caller locks.
 */
#ifndef MAP_H
#define MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_node {
	struct map_node *next;
	uint32_t key;
};

struct map {
	struct map_node **bucket; /* mask + 1 of them; NULL while empty */
	uint32_t mask;
	uint32_t count;
};

#define map_entry(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

/** Adds @p node under @p key, which must not be in the map.  @return false: out of memory. */
bool map_put(struct map *m, struct map_node *node, uint32_t key);

/** Removes @p node, which is in the map. */
void map_remove(struct map *m, struct map_node *node);

/** @return a node for which @p match returns true, in no particular order, or NULL. */
struct map_node *map_find(const struct map *m, bool (*match)(struct map_node *, void *), void *arg);

/** Frees the map's own allocations; the nodes belong to the caller. */
void map_free(struct map *m);

/** @return the node of @p key, or NULL. */
static inline struct map_node *map_get(const struct map *m, uint32_t key)
{
	struct map_node *n = m->bucket ? m->bucket[key & m->mask] : NULL;

	while (n && n->key != key)
		n = n->next;
	return n;
}

#endif
