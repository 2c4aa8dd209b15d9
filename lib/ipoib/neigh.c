/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "bits.h"
#include "neigh.h"

#define MAC_WORDS 2u
#define GID_WORDS 4u

void neigh_init(struct neigh_table *t, const struct hash_seed *seed)
{
	memset(t, 0, sizeof(*t));
	t->seed = *seed;
	for (unsigned i = 0; i < NEIGH_BUCKETS; i++) {
		list_init(&t->gid[i]);
		list_init(&t->mac[i]);
	}
	list_init(&t->free);
	list_init(&t->fresh);
	list_init(&t->sent);
	list_init(&t->free_groups);
	list_init(&t->groups);
	for (unsigned i = 0; i < NEIGH_MAX; i++) {
		struct neigh *n = &t->entry[i];

		list_init(&n->by_gid);
		list_init(&n->by_mac);
		list_init(&n->age);
		list_init(&n->job);
		list_init(&n->packets);
		list_push(i < NEIGH_PEERS ? &t->free : &t->free_groups, &n->age);
	}
}

/* All QPNs of a GID are in one bucket. */
static struct list *gid_bucket(struct neigh_table *t, const uint8_t gid[16])
{
	return &t->gid[hash_words(&t->seed, gid, GID_WORDS) % NEIGH_BUCKETS];
}

/* Writes the key as the 32-bit words that hash_words() reads: a load that spans two recent stores
 * cannot be forwarded and stalls. */
static struct list *mac_bucket(struct neigh_table *t, const uint8_t mac[6])
{
	uint32_t key[MAC_WORDS];
	uint16_t last;

	memcpy(&key[0], mac, 4);
	memcpy(&last, mac + 4, 2);
	key[1] = last;
	return &t->mac[hash_words(&t->seed, key, MAC_WORDS) % NEIGH_BUCKETS];
}

static struct neigh *next_of_addr(
	const struct list *bucket, const struct list *at, const struct ipoib_addr *a)
{
	for (struct list *l = at->next; l != bucket; l = l->next) {
		struct neigh *n = container_of(l, struct neigh, by_gid);

		if (ipoib_addr_same(&n->addr, a))
			return n;
	}
	return NULL;
}

struct neigh *neigh_of_addr(struct neigh_table *t, const struct ipoib_addr *a)
{
	const struct list *bucket = gid_bucket(t, a->gid);

	return next_of_addr(bucket, bucket, a);
}

struct neigh *neigh_another(struct neigh_table *t, const struct neigh *n)
{
	return next_of_addr(gid_bucket(t, n->addr.gid), &n->by_gid, &n->addr);
}

struct neigh *neigh_of_mac(struct neigh_table *t, const uint8_t mac[6])
{
	struct list *bucket = mac_bucket(t, mac);

	for (struct list *l = bucket->next; l != bucket; l = l->next) {
		struct neigh *n = container_of(l, struct neigh, by_mac);

		if (!memcmp(n->mac, mac, 6))
			return n;
	}
	return NULL;
}

/* @return the place of @p ip among @p n addresses, or @p n. */
static unsigned place(const uint8_t *all, unsigned n, const uint8_t *ip, unsigned ip_len)
{
	unsigned i = 0;

	while (i < n && memcmp(all + i * ip_len, ip, ip_len) != 0)
		i++;
	return i;
}

static bool claimed(const struct neigh *n, const uint8_t *ip, unsigned ip_len)
{
	if (ip_len == sizeof(n->ip4[0]))
		return place((const uint8_t *)n->ip4, n->nip4, ip, ip_len) < n->nip4;
	return place((const uint8_t *)n->ip6, n->nip6, ip, ip_len) < n->nip6;
}

void neigh_claim(struct neigh *n, const uint8_t *ip, unsigned ip_len)
{
	bool v4 = ip_len == sizeof(n->ip4[0]);
	uint8_t *all = v4 ? (uint8_t *)n->ip4 : (uint8_t *)n->ip6,
		*count = v4 ? &n->nip4 : &n->nip6;
	unsigned at = place(all, *count, ip, ip_len);

	if (at == *count && at < NEIGH_IPS)
		++*count;
	if (at == NEIGH_IPS)
		at--;
	memmove(all + ip_len, all, (size_t)at * ip_len);
	memcpy(all, ip, ip_len);
}

struct neigh *neigh_of_ip(
	struct neigh_table *t, const uint8_t gid[16], const uint8_t *ip, unsigned ip_len)
{
	struct list *bucket = gid_bucket(t, gid);

	for (struct list *l = bucket->next; l != bucket; l = l->next) {
		struct neigh *n = container_of(l, struct neigh, by_gid);

		if (!n->group && !memcmp(n->addr.gid, gid, 16) && claimed(n, ip, ip_len))
			return n;
	}
	return NULL;
}

/* FNV-1a, without a seed: the MAC must be the same after a restart. */
static uint32_t hash24(const uint8_t *p, unsigned n)
{
	uint64_t hash = 0xCBF29CE484222325ull;

	for (unsigned i = 0; i < n; i++)
		hash = (hash ^ p[i]) * 0x100000001B3ull;
	return (uint32_t)(hash ^ hash >> 32) & 0xFFFFFF;
}

void neigh_mac(uint8_t mac[6], const struct ipoib_addr *a)
{
	uint8_t key[IPOIB_LLADDR_LEN];
	uint64_t both;

	ipoib_addr_put(key, a);
	both = (uint64_t)hash24(a->gid, sizeof(a->gid)) << 24 | hash24(key, sizeof(key));
	put_be16(mac, (uint16_t)(both >> 32));
	put_be32(mac + 2, (uint32_t)both);
	mac[0] = (uint8_t)((mac[0] & ~1) | 2); /* locally administered, unicast */
}

void neigh_made_up(uint8_t ip[16], const struct ipoib_addr *a)
{
	uint8_t mac[6];

	neigh_mac(mac, a);
	put_be64(ip, 0xFE80ull << 48);
	memcpy(ip + 8, mac, 3);
	put_be16(ip + 11, 0xFFFE);
	memcpy(ip + 13, mac + 3, 3);
	ip[8] ^= 2;
}

struct neigh *neigh_add(struct neigh_table *t, const struct ipoib_addr *a, const uint8_t mac[6])
{
	struct list *place = list_pop(mac ? &t->free : &t->free_groups);
	struct neigh *n = container_of(place, struct neigh, age);

	n->addr = *a;
	n->group = !mac;
	n->state = NEIGH_INCOMPLETE;
	n->used = true;
	n->asked = n->sent = false;
	n->nip4 = n->nip6 = n->asked4 = n->asked6 = n->probes = n->waiting = 0;
	n->heard = n->due = n->touched = 0;
	n->serial = ++t->serial;
	if (mac) {
		memcpy(n->mac, mac, 6);
		list_push(mac_bucket(t, n->mac), &n->by_mac);
	}
	list_push(gid_bucket(t, a->gid), &n->by_gid);
	list_push(mac ? &t->fresh : &t->groups, &n->age);
	t->n++;
	return n;
}

static struct neigh *first_of(const struct list *l)
{
	return list_empty(l) ? NULL : container_of(l->next, struct neigh, age);
}

struct neigh *neigh_oldest(struct neigh_table *t, bool group)
{
	if (!list_empty(group ? &t->free_groups : &t->free))
		return NULL;
	if (group)
		return neigh_idlest_group(t);
	return first_of(list_empty(&t->fresh) ? &t->sent : &t->fresh);
}

struct neigh *neigh_idlest_group(const struct neigh_table *t)
{
	return first_of(&t->groups);
}

/* Whether @p a should be evicted before @p b. */
static bool is_worse(const struct neigh *a, const struct neigh *b)
{
	return a->sent != b->sent ? !a->sent : a->heard < b->heard;
}

struct neigh *neigh_surplus(struct neigh_table *t, const uint8_t gid[16])
{
	struct list *bucket = gid_bucket(t, gid);
	struct neigh *worst = NULL;
	unsigned n = 0;

	for (struct list *l = bucket->next; l != bucket; l = l->next) {
		struct neigh *e = container_of(l, struct neigh, by_gid);

		if (e->group || memcmp(e->addr.gid, gid, 16) != 0)
			continue;
		n++;
		if (!worst || is_worse(e, worst))
			worst = e;
	}
	return n < NEIGH_PER_GID ? NULL : worst;
}

void neigh_remove(struct neigh_table *t, struct neigh *n)
{
	list_del(&n->by_gid);
	list_del(&n->by_mac);
	list_del(&n->job);
	list_del(&n->age);
	n->used = false;
	list_push(n->group ? &t->free_groups : &t->free, &n->age);
	t->n--;
}

void neigh_rebind(struct neigh *n, uint32_t qpn)
{
	n->addr.qpn = qpn;
}

static struct list *age_list(struct neigh_table *t, const struct neigh *n)
{
	if (n->group)
		return &t->groups;
	return n->sent ? &t->sent : &t->fresh;
}

void neigh_touch(struct neigh_table *t, struct neigh *n, uint64_t now)
{
	n->touched = now;
	list_del(&n->age);
	list_push(age_list(t, n), &n->age);
}
