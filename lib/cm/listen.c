/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners: a service ID at one address or at all of them. */
#include <errno.h>
#include <string.h>
#include "cm_impl.h"

static uint32_t *bucket_of(struct cm *cm, uint64_t service_id)
{
	uint32_t key[2] = {(uint32_t)service_id, (uint32_t)(service_id >> 32)};

	return &cm->listen_bucket[hash_words(&cm->conf.seed, key, 2) & cm->listen_mask];
}

/* How well a listener matches: its own address (3), its family's wildcard (2), any (1), none (0).
 */
static unsigned fits(const struct cm_listener *l, const uint8_t gid[16])
{
	static const uint8_t any4[16] = {[10] = 0xFF, 0xFF}, any6[16];

	if (l->any)
		return 1;
	if (!memcmp(l->gid, memcmp(gid, any4, 12) ? any6 : any4, sizeof(l->gid)))
		return 2;
	return memcmp(l->gid, gid, sizeof(l->gid)) ? 0 : 3;
}

struct cm_listener *cm_listener_find(
	struct cm *cm, uint64_t service_id, const uint8_t gid[16], uint32_t *number)
{
	struct cm_listener *found = NULL;
	unsigned best = 0;

	for (uint32_t i = *bucket_of(cm, service_id); i != CM_NONE; i = cm->listener[i].next) {
		struct cm_listener *l = &cm->listener[i];
		unsigned fit = l->service_id == service_id ? fits(l, gid) : 0;

		if (fit <= best)
			continue;
		best = fit;
		found = l;
		*number = i;
	}
	return found;
}

static bool taken(struct cm *cm, uint64_t service_id, const uint8_t *gid)
{
	for (uint32_t i = *bucket_of(cm, service_id); i != CM_NONE; i = cm->listener[i].next) {
		const struct cm_listener *l = &cm->listener[i];

		if (l->service_id == service_id &&
			(gid ? !l->any && !memcmp(l->gid, gid, sizeof(l->gid)) : l->any))
			return true;
	}
	return false;
}

int cm_listen(struct cm *cm, uint64_t service_id, const uint8_t gid[16], uint32_t backlog,
	uint64_t cookie, uint32_t *listener)
{
	uint32_t *head = bucket_of(cm, service_id), i = cm->free_listener;
	struct cm_listener *l;

	if (taken(cm, service_id, gid))
		return -EADDRINUSE;
	if (i == CM_NONE)
		return -ENOMEM;
	l = &cm->listener[i];
	cm->free_listener = l->next;
	*l = (struct cm_listener){.service_id = service_id,
		.cookie = cookie,
		.backlog = backlog,
		.next = *head,
		.any = !gid,
		.used = true};
	list_init(&l->requests);
	if (gid)
		memcpy(l->gid, gid, sizeof(l->gid));
	*head = i;
	*listener = i;
	return 0;
}

int cm_heard(struct cm *cm, uint32_t id)
{
	struct cm_conn *c = cm_find(cm, id);

	if (!c || !c->owned)
		return -ENOENT;
	cm_half_heard(cm, c);
	return 0;
}

static struct cm_listener *used(struct cm *cm, uint32_t listener)
{
	struct cm_listener *l = listener < cm->listeners ? &cm->listener[listener] : NULL;

	return l && l->used ? l : NULL;
}

int cm_close(struct cm *cm, uint32_t listener)
{
	struct cm_listener *l = used(cm, listener);
	uint32_t *at;

	if (!l)
		return -ENOENT;
	if (l->closed)
		return 0;
	for (at = bucket_of(cm, l->service_id); *at != listener;)
		at = &cm->listener[*at].next;
	*at = l->next;
	l->closed = true;
	return 0;
}

uint64_t cm_listener_refused(const struct cm *cm, uint32_t listener)
{
	return cm->listener[listener].refused;
}

/* Requests whose event the user has received still wait for its answer, as in Linux. */
int cm_unlisten(struct cm *cm, uint32_t listener, uint64_t now)
{
	struct cm_listener *l = used(cm, listener);

	if (!l)
		return -ENOENT;
	cm_close(cm, listener);
	while (!list_empty(&l->requests))
		cm_reject(cm, container_of(l->requests.next, struct cm_conn, node)->id,
			CM_REJ_CONSUMER, NULL, 0, now);
	l->used = false;
	l->next = cm->free_listener;
	cm->free_listener = listener;
	return 0;
}
