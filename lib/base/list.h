/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file list.h
 * Intrusive doubly linked list. A node that is on no list points to itself, so removing it twice is
 * harmless and membership is one comparison.
 */
#ifndef LIST_H
#define LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next;
	struct list *prev;
};

/** The structure of @p type whose member @p member is the node @p ptr. DPDK has the same. */
#ifndef container_of
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#endif

static inline void list_init(struct list *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

/** Appends @p n, which must be on no list, to @p l. */
static inline void list_push(struct list *l, struct list *n)
{
	n->prev = l->prev;
	n->next = l;
	l->prev->next = n;
	l->prev = n;
}

/** @return the node at position @p i of @p l, from 0; NULL past the end. */
static inline const struct list *list_at(const struct list *l, unsigned i)
{
	const struct list *n = l->next;

	while (n != l && i--)
		n = n->next;
	return n == l ? NULL : n;
}

static inline void list_del(struct list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	list_init(n);
}

/** Moves all nodes of @p from, in their order, to the end of @p l. */
static inline void list_splice(struct list *l, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = l->prev;
	l->prev->next = from->next;
	from->prev->next = l;
	l->prev = from->prev;
	list_init(from);
}

/** Removes and returns the first node of @p l; NULL when the list is empty. */
static inline struct list *list_pop(struct list *l)
{
	struct list *n = l->next;

	if (n == l)
		return NULL;
	list_del(n);
	return n;
}

#endif
