/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "switch_list.h"

#define SECOND 1000000000u

void bucket_init(struct bucket *b, uint64_t rate, uint64_t burst)
{
	b->step = SECOND / rate;
	b->depth = (burst - 1) * b->step; /* one more fits if no more than this is missing */
	atomic_store_explicit(&b->full_at, 0, memory_order_relaxed);
}

bool bucket_take(struct bucket *b, uint64_t now)
{
	uint64_t full_at = atomic_load_explicit(&b->full_at, memory_order_relaxed);
	uint64_t from;

	do {
		from = full_at > now ? full_at : now;
		if (from - now > b->depth)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&b->full_at, &full_at, from + b->step, memory_order_relaxed, memory_order_relaxed));
	return true;
}

static bool is_in(const uint8_t addr[16], const struct switch_entry *e)
{
	unsigned whole = e->prefix / 8, bits = e->prefix % 8;

	return !memcmp(addr, e->addr, whole) &&
	       (!bits || !((addr[whole] ^ e->addr[whole]) >> (8 - bits)));
}

struct switch_entry *switch_find(struct switch_list *l, const uint8_t addr[16])
{
	for (uint32_t i = 0; i < l->n; i++)
		if (is_in(addr, &l->entry[i]))
			return &l->entry[i];
	return NULL;
}
