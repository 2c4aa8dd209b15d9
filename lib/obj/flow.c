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

static bool has_key(const struct qp_flow *f, const uint8_t dgid[16], uint32_t dest_qpn)
{
	return f->dest_qpn == dest_qpn && !memcmp(f->dgid, dgid, sizeof(f->dgid));
}

static uint32_t bucket_of(const struct flow_table *t, const uint8_t dgid[16], uint32_t dest_qpn)
{
	uint8_t key[20];

	memcpy(key, dgid, 16);
	memcpy(key + 16, &dest_qpn, sizeof(dest_qpn));
	return hash_words(&t->seed, key, sizeof(key) / sizeof(uint32_t)) % FLOW_BUCKETS;
}

const struct qp_flow *flow_find(
	const struct flow_table *t, const uint8_t dgid[16], uint32_t dest_qpn)
{
	const struct qp_flow *f = follow(&t->bucket[bucket_of(t, dgid, dest_qpn)]);

	while (f && !has_key(f, dgid, dest_qpn))
		f = follow(&f->next);
	return f;
}

/* The link that leads to the first flow with the key of @p f, or to the end. */
static link *place_of(struct flow_table *t, const struct qp_flow *f)
{
	link *at = &t->bucket[bucket_of(t, f->dgid, f->dest_qpn)];
	struct qp_flow *first;

	while ((first = follow(at)) && !has_key(first, f->dgid, f->dest_qpn))
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
