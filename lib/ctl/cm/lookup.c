/* SPDX-License-Identifier: BSD-3-Clause */
/* Look-ups of neighbours for RESOLVE_ADDR. Ids of one application with the same destination share
 * one: thousands of connections to one host are not thousands of questions to the kernel. A look-up
 * lasts as long as an id waits for it; each id has a timeout of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "cm/connections.h"
#include "cm/id.h"
#include "cm/manager.h"
#include "config/ctl_parts.h"
#include "loop/loop.h"
#include "refuse.h"
#include "session/message.h"
#include "session/quota.h"
#include "session/session.h"
#include "verbs/av.h"
#include "verbs/dest.h"

#define NS_PER_MS	   1000000ull
#define TIMEOUT_DEFAULT_MS 2000u
#define TIMEOUT_MAX_MS	   120000u /* longer than programs are patient */

struct cm_lookup {
	struct list node; /* in connections.lookups, or, if `answered`, in connections.answered */
	struct session *session;
	struct dest_key key;
	struct cm_path path; /* its source: what is at key.sgid may change */
	struct neigh_query query;
	struct list ids; /* cm_id.lookup_node: at least one */
	bool answered;	 /* by the kernel, with `err` and `why` */
	int err;
	char why[ABI_SENTENCE_MAX];
};

static struct list *lookups_of(const struct session *s)
{
	return &s->ctl->connections->lookups[s->slot];
}

static bool same_source(const struct cm_path *a, const struct cm_path *b)
{
	return a->net == b->net && a->vid == b->vid &&
	       !memcmp(a->local, b->local, sizeof(a->local));
}

/* The list has at most SESSION_RESOLVE_MAX entries of this session, and perhaps some of an earlier
 * session in the slot that has not ended completely. */
static struct cm_lookup *find(const struct cm_id *id, const struct dest_key *key)
{
	const struct session *s = id->channel->session;
	struct list *head = lookups_of(s);

	for (struct list *l = head->next; l != head; l = l->next) {
		struct cm_lookup *k = container_of(l, struct cm_lookup, node);

		if (k->session == s && same_source(&k->path, &id->path) &&
			!memcmp(&k->key, key, sizeof(*key)))
			return k;
	}
	return NULL;
}

/* No id waits for it. */
static void end(struct cm_lookup *k)
{
	quota_give_one(k->session, CTL_LOOKUPS);
	list_del(&k->node);
	free(k);
}

static void leave(struct cm_id *id)
{
	wheel_cancel(&id->all->resolving, &id->deadline);
	list_del(&id->lookup_node);
	id->lookup = NULL;
}

static void found(struct neigh_query *q, int err, const char *why)
{
	struct cm_lookup *k = container_of(q, struct cm_lookup, query);

	k->answered = true;
	k->err = err;
	if (err)
		snprintf(k->why, sizeof(k->why), "%s", why);
	list_del(&k->node);
	list_push(&k->session->ctl->connections->answered, &k->node);
}

/* Look-ups take turns: thousands of ids may wait for one. */
bool lookups_poll(struct ctl *ctl)
{
	struct list *answered = &ctl->connections->answered;

	for (unsigned n = 0; n < CM_STEP && !list_empty(answered); n++) {
		struct cm_lookup *k = container_of(list_pop(answered), struct cm_lookup, node);
		struct cm_id *id = container_of(k->ids.next, struct cm_id, lookup_node);

		list_push(answered, &k->node);
		leave(id);
		id_resolved(id, k->err, k->why);
		if (list_empty(&k->ids))
			end(k);
	}
	return !list_empty(answered);
}

/* @return DEFERRED and the look-up in @p out; otherwise as av_find(). */
static int begin(const struct cm_id *id, const struct dest_key *key, struct cm_lookup **out,
	char why[ABI_SENTENCE_MAX])
{
	struct session *s = id->channel->session;
	struct cm_lookup *k = calloc(1, sizeof(*k));
	bool local;
	int err;

	if (!k)
		return refuse_memory(why);
	k->session = s;
	k->key = *key;
	k->path = id->path;
	k->query.done = found;
	err = av_find(s, key, &k->query, &local, why);
	if (err != DEFERRED) {
		free(k);
		return err;
	}
	k->query.deadline_ms = UINT64_MAX;
	list_init(&k->ids);
	list_push(lookups_of(s), &k->node);
	*out = k;
	return DEFERRED;
}

int lookup_begin(struct cm_id *id, const struct dest_key *key, uint32_t timeout_ms,
	char why[ABI_SENTENCE_MAX])
{
	struct cm_lookup *k = find(id, key);
	int err = k ? DEFERRED : begin(id, key, &k, why);

	if (err != DEFERRED)
		return err;
	if (!timeout_ms)
		timeout_ms = TIMEOUT_DEFAULT_MS;
	else if (timeout_ms > TIMEOUT_MAX_MS)
		timeout_ms = TIMEOUT_MAX_MS;
	id->lookup = k;
	list_push(&k->ids, &id->lookup_node);
	wheel_arm(&id->all->resolving, &id->deadline, loop_now_ns() + timeout_ms * NS_PER_MS);
	return -EINPROGRESS;
}

void lookup_cancel(struct cm_id *id)
{
	struct cm_lookup *k = id->lookup;

	leave(id);
	if (!list_empty(&k->ids))
		return;
	if (!k->answered)
		neigh_cancel(&k->query);
	end(k);
}

bool lookups_expire(struct connections *all, uint64_t now)
{
	unsigned moves = TIMERS_MOVED;

	for (unsigned n = 0; n < CM_STEP; n++) {
		struct wheel_timer *t = wheel_expire(&all->resolving, now, &moves);
		struct cm_id *id;

		if (!t)
			return !moves;
		id = container_of(t, struct cm_id, deadline);
		lookup_cancel(id);
		id_resolved(id, -ETIMEDOUT,
			"no neighbour answered for the address in time: check that the peer is up, "
			"and the address");
	}
	return true;
}
