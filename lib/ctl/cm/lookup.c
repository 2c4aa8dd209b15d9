/* SPDX-License-Identifier: BSD-3-Clause */
/* Look-ups of neighbours for RESOLVE_ADDR. Ids of one application with the same destination share
 * one: thousands of connections to one host are not thousands of questions to the kernel. A look-up
 * lasts as long as an id waits for it; each id has a timeout of its own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "cm/connections.h"
#include "cm/id.h"
#include "config/parts.h"
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
	struct list node; /* in connections.lookups */
	struct session *session;
	struct dest_key key;
	struct neigh_query query;
	struct list ids; /* cm_id.lookup_node: at least one */
};

static struct list *lookups_of(const struct session *s)
{
	return &s->ctl->connections->lookups[s->slot];
}

/* At most SESSION_RESOLVE_MAX are on the list. */
static struct cm_lookup *find(const struct session *s, const struct dest_key *key)
{
	struct list *head = lookups_of(s);

	for (struct list *l = head->next; l != head; l = l->next) {
		struct cm_lookup *k = container_of(l, struct cm_lookup, node);

		if (!memcmp(&k->key, key, sizeof(*key)))
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

	while (!list_empty(&k->ids)) {
		struct cm_id *id = container_of(k->ids.next, struct cm_id, lookup_node);

		leave(id);
		id_resolved(id, err, why);
	}
	end(k);
}

/* @return DEFERRED and the look-up in @p out; otherwise as av_find(). */
static int begin(struct session *s, const struct dest_key *key, struct cm_lookup **out,
	char why[ABI_SENTENCE_MAX])
{
	struct cm_lookup *k = calloc(1, sizeof(*k));
	bool local;
	int err;

	if (!k)
		return refuse_memory(why);
	k->session = s;
	k->key = *key;
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
	struct session *s = id->channel->session;
	struct cm_lookup *k = find(s, key);
	int err = k ? DEFERRED : begin(s, key, &k, why);

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
	neigh_cancel(&k->query);
	end(k);
}

void lookups_expire(struct connections *all, uint64_t now)
{
	struct wheel_timer *t;

	while ((t = wheel_expire(&all->resolving, now))) {
		struct cm_id *id = container_of(t, struct cm_id, deadline);

		lookup_cancel(id);
		id_resolved(id, -ETIMEDOUT,
			"no neighbour answered for the address in time: check that the peer is up, "
			"and the address");
	}
}
