/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of groups, and which of too many stay in them. Programs without privileges join as many as
 * they like. */
#include <string.h>
#include "bits.h"
#include "rib_impl.h"

static uint32_t find(const struct rib_groups *g, const uint8_t mgid[16])
{
	uint32_t i = 0;

	while (i < g->n && memcmp(g->mgid[i], mgid, 16))
		i++;
	return i;
}

bool rib_groups_has(const struct rib_groups *g, const uint8_t mgid[16])
{
	return find(g, mgid) < g->n;
}

void rib_groups_remove(struct rib_groups *g, uint32_t i)
{
	g->n--;
	memcpy(g->mgid[i], g->mgid[g->n], 16);
	g->rank[i] = g->rank[g->n];
	g->since[i] = g->since[g->n];
}

/* @return whether the @p i-th group gives its place to another. */
static bool gives_way(const struct rib_groups *g, uint32_t i, uint8_t rank, uint32_t since)
{
	return g->rank[i] > rank || (g->rank[i] == rank && g->since[i] > since);
}

static uint32_t find_last(const struct rib_groups *g)
{
	uint32_t last = 0;

	for (uint32_t i = 1; i < g->n; i++)
		if (gives_way(g, i, g->rank[last], g->since[last]))
			last = i;
	return last;
}

bool rib_groups_put(const struct rib_members *m, struct rib_groups *to, const uint8_t mgid[16],
	enum rib_rank rank)
{
	uint32_t i = find(to, mgid), before = find(&m->joined, mgid);
	uint32_t since = before < m->joined.n ? m->joined.since[before] : m->reads;

	if (i < to->n) {
		if (to->rank[i] <= rank)
			return false;
	} else if (to->n < RIB_GROUPS) {
		to->n++;
	} else {
		to->over++;
		i = find_last(to);
		if (!gives_way(to, i, rank, since))
			return false;
	}
	memcpy(to->mgid[i], mgid, 16);
	to->rank[i] = (uint8_t)rank;
	to->since[i] = since;
	return true;
}

bool rib_groups_add(const struct rib_members *m, struct rib_groups *to, const uint8_t *ip,
	unsigned len, enum rib_rank rank)
{
	uint8_t mgid[16];

	if (len == 4)
		ipoib_mgid_of_ip4(mgid, m->pkey, IPOIB_SCOPE, ip);
	else
		ipoib_mgid_of_ip6(mgid, m->pkey, IPOIB_SCOPE, ip);
	return rib_groups_put(m, to, mgid, rank);
}

/* The groups of RFC 4291 2.7.1 and RFC 1112 4, without which no host reaches another. */
static bool is_own(const struct rib_members *m, const uint8_t *ip, unsigned len)
{
	static const uint8_t all_hosts[4] = {224, 0, 0, 1}, all_nodes[15] = {0xFF, 2};
	static const uint8_t solicited[13] = {0xFF, 2, [11] = 1, [12] = 0xFF};

	if (len == 4)
		return !memcmp(ip, all_hosts, 4);
	if (!memcmp(ip, all_nodes, sizeof(all_nodes)))
		return ip[15] == 1 || ip[15] == 2; /* nodes, routers */
	if (memcmp(ip, solicited, sizeof(solicited)) != 0)
		return false;
	for (uint32_t i = 0; i < m->nown; i++)
		if (m->own[i] == get_be24(ip + 13))
			return true;
	return false;
}

void rib_groups_listed(struct rib_members *m, const uint8_t *ip, unsigned len)
{
	rib_groups_add(m, &m->now, ip, len, is_own(m, ip, len) ? RIB_OWN : RIB_REST);
}

void rib_groups_own(struct rib_members *m, const uint8_t ip6[16])
{
	if (m->nown < RIB_GROUPS)
		m->own[m->nown++] = get_be24(ip6 + 13);
}
