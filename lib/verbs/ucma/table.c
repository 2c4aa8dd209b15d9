/* SPDX-License-Identifier: BSD-3-Clause */
/* The ids and group memberships of the open files. */
#include <errno.h>
#include <stdlib.h>
#include "ucma.h"
#include "bits.h"

#define BUCKETS 1024u

static struct list buckets[BUCKETS];
static bool ready;
static uint32_t last_group;

static struct list *bucket_of(uint32_t handle)
{
	if (!ready) {
		for (unsigned i = 0; i < BUCKETS; i++)
			list_init(&buckets[i]);
		ready = true;
	}
	return &buckets[handle % BUCKETS];
}

void ucma_tables_forget(void)
{
	ready = false;
}

struct ucma_id *ucma_id_add(struct ucma_file *f, uint32_t handle, uint64_t uid, uint8_t qp_type)
{
	struct ucma_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->file = f;
	id->handle = handle;
	id->uid = uid;
	id->qp_type = qp_type;
	list_push(&f->ids, &id->node);
	list_push(bucket_of(handle), &id->bucket);
	return id;
}

struct ucma_id *ucma_id_find(uint32_t handle)
{
	struct list *head = bucket_of(handle);

	for (struct list *l = head->next; l != head; l = l->next) {
		struct ucma_id *id = container_of(l, struct ucma_id, bucket);

		if (id->handle == handle)
			return id;
	}
	return NULL;
}

struct ucma_id *ucma_id_of(const struct ucma_file *f, uint32_t handle)
{
	struct ucma_id *id = ucma_id_find(handle);

	return id && id->file == f ? id : NULL;
}

int ucma_id_missing(const struct ucma_file *f, uint32_t handle)
{
	const struct ucma_id *id = ucma_id_find(handle);

	if (!id)
		return ENOENT;
	return id->file == f ? 0 : EINVAL;
}

/* The memberships of @p id move with it to @p to, or end if that is NULL. */
static void move_groups(struct ucma_id *id, struct ucma_file *to)
{
	struct list *head = &id->file->groups, *l = head->next;

	while (l != head) {
		struct ucma_group *g = container_of(l, struct ucma_group, node);

		l = l->next;
		if (g->id != id->handle)
			continue;
		list_del(&g->node);
		if (to)
			list_push(&to->groups, &g->node);
		else
			free(g);
	}
}

void ucma_id_remove(struct ucma_id *id)
{
	move_groups(id, NULL);
	list_del(&id->node);
	list_del(&id->bucket);
	free(id);
}

void ucma_id_migrate(struct ucma_id *id, struct ucma_file *to)
{
	if (id->file == to)
		return;
	move_groups(id, to);
	list_del(&id->node);
	list_push(&to->ids, &id->node);
	id->file = to;
}

struct ucma_group *ucma_group_add(struct ucma_id *id, uint64_t uid)
{
	struct ucma_group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->id = id->handle;
	g->uid = uid;
	g->handle = ++last_group;
	list_push(&id->file->groups, &g->node);
	return g;
}

struct ucma_group *ucma_group_of(const struct ucma_file *f, uint32_t handle)
{
	const struct list *head = &f->groups;

	for (struct list *l = head->next; l != head; l = l->next) {
		struct ucma_group *g = container_of(l, struct ucma_group, node);

		if (g->handle == handle)
			return g;
	}
	return NULL;
}

void ucma_group_remove(struct ucma_group *g)
{
	list_del(&g->node);
	free(g);
}
