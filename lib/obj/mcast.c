/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "bits.h"
#include "hash.h"
#include "mcast.h"
#include "tables.h"

bool gid_is_multicast(const uint8_t gid[16])
{
	return gid_is_ip4(gid) ? (gid[12] & 0xF0) == 0xE0 : gid[0] == 0xFF;
}

void mcast_mac(uint8_t mac[6], const uint8_t mgid[16])
{
	static const uint8_t ip4[3] = {0x01, 0x00, 0x5E};

	if (gid_is_ip4(mgid)) { /* low 23 bits of the address */
		memcpy(mac, ip4, sizeof(ip4));
		memcpy(mac + 3, mgid + 13, 3);
		mac[3] &= 0x7F;
		return;
	}
	mac[0] = 0x33; /* RoCEv1 too */
	mac[1] = 0x33;
	memcpy(mac + 2, mgid + 12, 4);
}

uint32_t mcast_bucket(const struct mcast_table *t, const uint8_t mgid[16])
{
	return hash_words(&t->seed, mgid, 4) % MCAST_BUCKETS;
}

const struct mcast_group *mcast_find(
	const struct mcast_table *t, const uint8_t mgid[16], uint32_t port)
{
	const struct mcast_group *g =
		atomic_load_explicit(&t->bucket[mcast_bucket(t, mgid)], memory_order_acquire);

	while (g && (g->port != port || memcmp(g->mgid, mgid, sizeof(g->mgid)) != 0))
		g = atomic_load_explicit(&g->next, memory_order_acquire);
	return g;
}

void mcast_replace(struct mcast_table *t, struct mcast_group *old, struct mcast_group *group)
{
	const uint8_t *mgid = old ? old->mgid : group->mgid;
	_Atomic(struct mcast_group *) *at = &t->bucket[mcast_bucket(t, mgid)];
	struct mcast_group *next = atomic_load_explicit(at, memory_order_relaxed);

	while (old && next != old) {
		at = &next->next;
		next = atomic_load_explicit(at, memory_order_relaxed);
	}
	if (old)
		next = atomic_load_explicit(&old->next, memory_order_relaxed);
	if (group)
		atomic_store_explicit(&group->next, next, memory_order_relaxed);
	atomic_store_explicit(at, group ? group : next, memory_order_release);
}
