/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "inet.h"
#include "stations.h"

#define IP_WORDS  5u
#define MAC_WORDS 2u

void station_init(struct station_table *t, const struct hash_seed *seed, const uint8_t own[6])
{
	memset(t, 0, sizeof(*t));
	t->seed = *seed;
	memcpy(t->own, own, 6);
	for (unsigned i = 0; i < STATION_BUCKETS; i++) {
		list_init(&t->ip[i]);
		list_init(&t->mac[i]);
	}
	list_init(&t->free);
	list_init(&t->seen);
	list_init(&t->claimed);
	for (unsigned i = 0; i < STATION_MAX; i++) {
		struct station *s = &t->entry[i];

		list_init(&s->by_ip);
		list_init(&s->by_mac);
		list_init(&s->age);
		list_push(&t->free, &s->age);
	}
}

static struct list *ip_bucket(struct station_table *t, const struct station_ip *at)
{
	_Static_assert(sizeof(*at) == IP_WORDS * 4, "hashed as words");
	return &t->ip[hash_words(&t->seed, at, IP_WORDS) % STATION_BUCKETS];
}

static struct list *mac_bucket(struct station_table *t, const uint8_t mac[6])
{
	uint32_t key[MAC_WORDS] = {0};

	memcpy(key, mac, 6);
	return &t->mac[hash_words(&t->seed, key, MAC_WORDS) % STATION_BUCKETS];
}

static struct station_ip key_of(const uint8_t *ip, unsigned ip_len)
{
	struct station_ip at = {.len = ip_len};

	memcpy(at.ip, ip, ip_len);
	return at;
}

static struct station *find(struct station_table *t, const struct station_ip *at)
{
	struct list *bucket = ip_bucket(t, at);

	for (struct list *l = bucket->next; l != bucket; l = l->next) {
		struct station *s = container_of(l, struct station, by_ip);

		if (!memcmp(&s->at, at, sizeof(*at)))
			return s;
	}
	return NULL;
}

static bool is_other(const struct station_table *t, const struct station *s)
{
	return memcmp(s->mac, t->own, 6) != 0;
}

static void touch(struct station_table *t, struct station *s)
{
	s->touched = ++t->clock;
	list_del(&s->age);
	list_push(s->claimed ? &t->claimed : &t->seen, &s->age);
}

static void leave_mac(struct station_table *t, struct station *s)
{
	list_del(&s->by_mac);
	t->others -= is_other(t, s);
}

static void remove_entry(struct station_table *t, struct station *s)
{
	leave_mac(t, s);
	list_del(&s->by_ip);
	list_del(&s->age);
	s->used = false;
	list_push(&t->free, &s->age);
}

/* Whether @p a leaves before @p b. */
static bool is_worse(const struct station *a, const struct station *b)
{
	return a->claimed != b->claimed ? !a->claimed : a->touched < b->touched;
}

/* @return the address to evict for another of this MAC, NULL while there are fewer than
 * STATION_PER_MAC. */
static struct station *surplus(struct station_table *t, const uint8_t mac[6])
{
	struct list *bucket = mac_bucket(t, mac);
	struct station *worst = NULL;
	unsigned n = 0;

	for (struct list *l = bucket->next; l != bucket; l = l->next) {
		struct station *s = container_of(l, struct station, by_mac);

		if (memcmp(s->mac, mac, 6) != 0)
			continue;
		n++;
		if (!worst || is_worse(s, worst))
			worst = s;
	}
	return n < STATION_PER_MAC ? NULL : worst;
}

static struct station *oldest(struct station_table *t)
{
	struct list *from = list_empty(&t->seen) ? &t->claimed : &t->seen;

	return list_empty(&t->free) ? container_of(from->next, struct station, age) : NULL;
}

/* Makes room for one more address of @p mac.
 * @param fresh  it has no entry yet
 * @return whether another address was evicted. */
static bool make_room(struct station_table *t, const uint8_t mac[6], bool fresh)
{
	struct station *s = surplus(t, mac);

	if (!s && fresh)
		s = oldest(t);
	if (s)
		remove_entry(t, s);
	return s;
}

static void join_mac(struct station_table *t, struct station *s, const uint8_t mac[6])
{
	memcpy(s->mac, mac, 6);
	list_push(mac_bucket(t, mac), &s->by_mac);
	t->others += is_other(t, s);
}

static struct station *add(struct station_table *t, const struct station_ip *at)
{
	struct station *s = container_of(list_pop(&t->free), struct station, age);

	s->at = *at;
	s->used = true;
	s->claimed = s->doubted = false;
	list_push(ip_bucket(t, at), &s->by_ip);
	return s;
}

/* Assigns @p s, or a new entry, to @p mac. @return whether another address was evicted. */
static bool place(struct station_table *t, struct station *s, const struct station_ip *at,
	const uint8_t mac[6], bool claimed)
{
	bool left = false;

	if (!s || memcmp(s->mac, mac, 6) != 0) {
		left = make_room(t, mac, !s);
		if (s)
			leave_mac(t, s);
		else
			s = add(t, at);
		join_mac(t, s, mac);
	}
	if (claimed) {
		s->claimed = true;
		s->doubted = false;
	}
	touch(t, s);
	return left;
}

/* Of one host. */
static bool is_of_one(const uint8_t mac[6], const uint8_t *ip, unsigned ip_len)
{
	return !(mac[0] & 1) && !inet_is_zero(mac, 6) && inet_is_unicast(ip, ip_len);
}

bool station_claim(
	struct station_table *t, const uint8_t mac[6], const uint8_t *ip, unsigned ip_len)
{
	struct station_ip at = key_of(ip, ip_len);

	return is_of_one(mac, ip, ip_len) && place(t, find(t, &at), &at, mac, true);
}

bool station_seen(struct station_table *t, const uint8_t mac[6], const uint8_t *ip, unsigned ip_len)
{
	struct station_ip at = key_of(ip, ip_len);
	struct station *s = find(t, &at);

	if (s && s->claimed && memcmp(s->mac, mac, 6) != 0)
		return false;
	return is_of_one(mac, ip, ip_len) && place(t, s, &at, mac, false);
}

const uint8_t *station_mac(struct station_table *t, const uint8_t *ip, unsigned ip_len)
{
	struct station_ip at = key_of(ip, ip_len);
	const struct station *s = find(t, &at);

	return s ? s->mac : NULL;
}

bool station_is_claimed(struct station_table *t, const uint8_t *ip, unsigned ip_len)
{
	struct station_ip at = key_of(ip, ip_len);
	const struct station *s = find(t, &at);

	return s && s->claimed;
}

bool station_has_mac(struct station_table *t, const uint8_t mac[6])
{
	struct list *bucket = mac_bucket(t, mac);

	for (struct list *l = bucket->next; l != bucket; l = l->next)
		if (!memcmp(container_of(l, struct station, by_mac)->mac, mac, 6))
			return true;
	return false;
}

bool station_doubt(struct station_table *t, const uint8_t *ip, unsigned ip_len)
{
	struct station_ip at = key_of(ip, ip_len);
	struct station *s = find(t, &at);

	if (!s || !s->claimed || s->doubted)
		return false;
	s->doubted = true;
	return true;
}

/* Addresses of the previous MAC stay with the netdev. Others may already be recorded for the new
 * MAC, from packets that arrived before the change was known. */
void station_set_own(struct station_table *t, const uint8_t own[6])
{
	uint8_t before[6];

	if (!memcmp(t->own, own, 6))
		return;
	memcpy(before, t->own, 6);
	memcpy(t->own, own, 6);
	t->others = 0;
	for (unsigned i = 0; i < STATION_MAX; i++) {
		struct station *s = &t->entry[i];

		if (!s->used)
			continue;
		if (!memcmp(s->mac, before, 6)) {
			list_del(&s->by_mac);
			memcpy(s->mac, own, 6);
			list_push(mac_bucket(t, own), &s->by_mac);
		}
		t->others += is_other(t, s);
	}
}
