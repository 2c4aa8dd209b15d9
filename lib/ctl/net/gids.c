/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "abi_ctl.h"
#include "headers.h"
#include "net/gids.h"
#include "refuse.h"
#include "text/sentence.h"

void gids_init(struct gids *g, bool rocev1)
{
	memset(g, 0, sizeof(*g));
	g->rocev1 = rocev1;
	g->changed = true; /* workers need a table, even an empty one */
}

void gid_of_mac(uint8_t gid[16], const uint8_t mac[6])
{
	memset(gid, 0, 16);
	gid[0] = 0xFE;
	gid[1] = 0x80;
	memcpy(gid + 8, mac, 3);
	gid[8] ^= 2; /* universal/local bit */
	gid[11] = 0xFF;
	gid[12] = 0xFE;
	memcpy(gid + 13, mac + 3, 3);
}

bool gid_to_mac(const uint8_t gid[16], uint8_t mac[6])
{
	uint8_t again[16];

	memcpy(mac, gid + 8, 3);
	mac[0] ^= 2;
	memcpy(mac + 3, gid + 13, 3);
	gid_of_mac(again, mac);
	return !memcmp(gid, again, 16) && !(mac[0] & 1);
}

uint32_t gid_abi_type(uint8_t net)
{
	return net == NET_IPV4	 ? ABI_GID_ROCEV2_IPV4
	       : net == NET_IPV6 ? ABI_GID_ROCEV2_IPV6
				 : ABI_GID_ROCEV1;
}

/* RoCEv2 entries are in [0, limit); the table's count covers the RoCEv1 half too. */
static uint32_t fresh_limit(const struct gids *g)
{
	return g->rocev1 ? GID_ROCEV1_FIRST : GID_MAX;
}

static bool is_address(const struct gid_entry *e, const uint8_t gid[16], uint16_t vid)
{
	return e->vid == vid && !memcmp(e->gid, gid, 16);
}

static bool never_used(const struct gid_entry *e)
{
	static const uint8_t none[16];

	return !memcmp(e->gid, none, 16);
}

static bool idle(const struct gids *g, uint32_t i)
{
	return !g->table.entry[i].valid && !g->users[i] &&
	       !(g->rocev1 && g->users[GID_ROCEV1_FIRST + i]);
}

/* Chooses an index for an address: its former one, else one never used, else an unused one. */
static int choose_index(const struct gids *g, const uint8_t gid[16], uint16_t vid)
{
	uint32_t limit = fresh_limit(g);

	for (uint32_t i = 0; i < limit; i++)
		if (is_address(&g->table.entry[i], gid, vid))
			return (int)i;
	for (uint32_t i = 0; i < limit; i++)
		if (never_used(&g->table.entry[i]))
			return (int)i;
	for (uint32_t i = 0; i < limit; i++)
		if (idle(g, i))
			return (int)i;
	return -ENOSPC;
}

static void set_entry(struct gids *g, uint32_t i, const struct gid_entry *e, bool kernel)
{
	if (memcmp(&g->table.entry[i], e, sizeof(*e))) {
		g->table.entry[i] = *e;
		g->changed = true;
	}
	g->kernel[i] = kernel;
	if (i >= g->table.count)
		g->table.count = i + 1;
}

int gids_add(struct gids *g, const struct gid_address *a, bool kernel)
{
	struct gid_entry e;
	int i;

	if (gid_is_local_only(a->gid))
		return -EADDRNOTAVAIL; /* VAL-15 */
	i = choose_index(g, a->gid, a->vid);
	if (i < 0)
		return i;
	if (kernel && g->table.entry[i].valid && !g->kernel[i])
		return 0;
	memset(&e, 0, sizeof(e)); /* padding too, because entries are compared as bytes */
	memcpy(e.gid, a->gid, 16);
	e.net = gid_is_ip4(a->gid) ? NET_IPV4 : NET_IPV6; /* GID-01, GID-04 */
	e.valid = true;
	e.vid = a->vid;
	e.ifindex = a->ifindex;
	memcpy(e.mac, a->mac, 6);
	set_entry(g, (uint32_t)i, &e, kernel);
	if (g->rocev1) { /* GID-02, V1-05 */
		e.net = NET_ROCEV1;
		set_entry(g, GID_ROCEV1_FIRST + (uint32_t)i, &e, kernel);
	}
	return 0;
}

static bool listed(const struct gid_entry *e, const struct gid_address *a, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (is_address(e, a[i].gid, a[i].vid))
			return true;
	return false;
}

unsigned gids_sync(struct gids *g, const struct gid_address *a, unsigned n)
{
	unsigned left_out = 0;

	for (uint32_t i = 0; i < g->table.count; i++) {
		struct gid_entry *e = &g->table.entry[i];

		if (!g->kernel[i] || !e->valid || listed(e, a, n))
			continue;
		e->valid = false;
		g->changed = true;
	}
	for (unsigned i = 0; i < n; i++)
		left_out += gids_add(g, &a[i], true) != 0;
	return left_out;
}

void gids_set_netdev(struct gids *g, uint32_t ifindex, const uint8_t mac[6])
{
	for (uint32_t i = 0; i < GID_MAX; i++) {
		struct gid_entry *e = &g->table.entry[i];

		if (never_used(e) ||
			(g->kernel[i] && e->vid)) /* a VLAN's entry has its own netdev */
			continue;
		if (e->ifindex == ifindex && !memcmp(e->mac, mac, 6))
			continue;
		e->ifindex = ifindex;
		memcpy(e->mac, mac, 6);
		g->changed = true;
	}
}

const struct gid_table *gids_publish(struct gids *g, struct port *where)
{
	struct gid_table *copy;

	if (!g->changed)
		return NULL;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return NULL;
	*copy = g->table;
	g->changed = false;
	return atomic_exchange_explicit(&where->gids, copy, memory_order_acq_rel);
}

static const char *family(const uint8_t gid[16])
{
	return gid_is_ip4(gid) ? "IPv4" : gid_is_link_local(gid) ? "link-local" : "IPv6";
}

/* @return the first entry that can send to @p dgid, or -1. */
static int suggest(const struct gids *g, const uint8_t dgid[16])
{
	uint8_t net = gid_is_ip4(dgid) ? NET_IPV4 : NET_IPV6;
	int second_best = -1;

	for (uint32_t i = 0; i < g->table.count; i++) {
		const struct gid_entry *e = &g->table.entry[i];

		if (!e->valid || e->net != net)
			continue;
		if (gid_is_link_local(e->gid) == gid_is_link_local(dgid))
			return (int)i;
		if (second_best < 0)
			second_best = (int)i;
	}
	return second_best;
}

static void advise(const struct gids *g, const uint8_t dgid[16], const char *problem, char why[])
{
	int i = suggest(g, dgid);

	if (i >= 0)
		refuse(why, 0, "%s: use GID %d", problem, i);
	else
		refuse(why, 0, "%s, and this port has none: give the port's netdev %s address",
			problem, gid_is_ip4(dgid) ? "an IPv4" : "an IPv6");
}

const struct gid_entry *gids_select(
	const struct gids *g, uint32_t index, const uint8_t dgid[16], char why[])
{
	const struct gid_entry *e;
	char text[GID_TEXT], problem[128];

	gid_text(dgid, text);
	if (index >= g->table.count || !g->table.entry[index].valid) {
		snprintf(problem, sizeof(problem), "GID %u is empty; the peer's GID is %s", index,
			gid_is_ip4(dgid) ? "IPv4" : "IPv6");
		advise(g, dgid, problem, why);
		return NULL;
	}
	e = &g->table.entry[index];
	/* GID-06. RoCEv1 carries any GID, but both ends must have addresses of the same family. */
	if (gid_is_ip4(e->gid) == gid_is_ip4(dgid))
		return e;
	snprintf(problem, sizeof(problem), "GID %u is %s; the peer's GID is %s", index,
		family(e->gid), gid_is_ip4(dgid) ? "IPv4" : "IPv6");
	advise(g, dgid, problem, why);
	return NULL;
}

void gid_hold_set(struct gid_hold *h, struct gids *gids, uint32_t index)
{
	if (gids)
		gids->users[index]++;
	if (h->gids)
		h->gids->users[h->index]--;
	h->gids = gids;
	h->index = index;
}
