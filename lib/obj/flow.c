/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <string.h>
#include "bits.h"
#include "flow.h"
#include "tables.h"
#include "hash.h"

typedef _Atomic(struct qp_flow *) link;

static struct qp_flow *follow(const link *at)
{
	return atomic_load_explicit(at, memory_order_acquire);
}

static void set(link *at, struct qp_flow *f)
{
	atomic_store_explicit(at, f, memory_order_release);
}

static bool same_key(const struct flow_key *a, const struct flow_key *b)
{
	return !memcmp(a, b, sizeof(*a));
}
_Static_assert(sizeof(struct flow_key) == 16 + 4 + 4 + 16, "same_key() compares no padding");

/* By the peer alone: a host has few addresses of its own, so few keys have the same peer. */
static uint32_t bucket_of(const struct flow_table *t, const struct flow_key *k)
{
	const unsigned len = sizeof(k->dgid) + sizeof(k->dest_qpn);

	return hash_words(&t->seed, k, len / sizeof(uint32_t)) % FLOW_BUCKETS;
}

const struct qp_flow *flow_find(const struct flow_table *t, const struct flow_key *k)
{
	const struct qp_flow *f = follow(&t->bucket[bucket_of(t, k)]);

	while (f && !same_key(&f->key, k))
		f = follow(&f->next);
	return f;
}

/* The link that leads to the first flow with the key of @p f, or to the end. */
static link *place_of(struct flow_table *t, const struct qp_flow *f)
{
	link *at = &t->bucket[bucket_of(t, &f->key)];
	struct qp_flow *first;

	while ((first = follow(at)) && !same_key(&first->key, &f->key))
		at = &first->next;
	return at;
}

void flow_add(struct flow_table *t, struct qp_flow *f)
{
	link *at = place_of(t, f);
	struct qp_flow *same;

	while ((same = follow(at)))
		at = &same->more;
	set(&f->next, NULL);
	set(&f->more, NULL);
	f->added = true;
	set(at, f);
}

void flow_remove(struct flow_table *t, struct qp_flow *f)
{
	link *at = place_of(t, f);
	struct qp_flow *more = follow(&f->more);

	if (!f->added)
		return;
	f->added = false;
	if (follow(at) == f) { /* the next one with its key takes its place */
		if (more)
			set(&more->next, follow(&f->next));
		set(at, more ? more : follow(&f->next));
		return;
	}
	for (struct qp_flow *same = follow(at); same; same = follow(at)) {
		at = &same->more;
		if (follow(at) == f) {
			set(at, more);
			return;
		}
	}
}
