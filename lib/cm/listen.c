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

/* The listener of just this address goes before that of all. */
struct cm_listener *cm_listener_find(
	struct cm *cm, uint64_t service_id, const uint8_t gid[16], uint32_t *number)
{
	struct cm_listener *found = NULL;

	for (uint32_t i = *bucket_of(cm, service_id); i != CM_NONE; i = cm->listener[i].next) {
		struct cm_listener *l = &cm->listener[i];
		bool exact = !l->any && !memcmp(l->gid, gid, sizeof(l->gid));

		if (l->service_id != service_id || !(exact || (l->any && !found)))
			continue;
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
	if (gid)
		memcpy(l->gid, gid, sizeof(l->gid));
	*head = i;
	*listener = i;
	return 0;
}

/* Requests without an answer are rejected; the others continue without the listener. */
static void orphan(struct cm *cm, struct cm_conn *c, uint64_t now)
{
	if (c->half && c->state == CM_SIDR_REQ_RCVD)
		cm_sidr_answer(cm, c->id, CM_SIDR_REJECT, 0, 0, NULL, 0, now);
	else if (c->half)
		cm_reject(cm, c->id, CM_REJ_CONSUMER, NULL, 0, now);
	c->listener = CM_NONE;
}

int cm_unlisten(struct cm *cm, uint32_t listener, uint64_t now)
{
	struct cm_listener *l = listener < cm->listeners ? &cm->listener[listener] : NULL;
	uint32_t *at;

	if (!l || !l->used)
		return -ENOENT;
	for (uint32_t i = 0; i < cm->conns; i++)
		if (cm->conn[i].id && cm->conn[i].listener == listener)
			orphan(cm, &cm->conn[i], now);
	for (at = bucket_of(cm, l->service_id); *at != listener;)
		at = &cm->listener[*at].next;
	*at = l->next;
	l->used = false;
	l->next = cm->free_listener;
	cm->free_listener = listener;
	return 0;
}
