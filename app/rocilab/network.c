/* SPDX-License-Identifier: BSD-3-Clause */
/* The topologies that a scenario can name. */
#include <stddef.h>
#include <string.h>
#include "network.h"
#include "number.h"

bool net_join(struct network *n, uint32_t a, uint32_t b, uint64_t rate, uint64_t delay)
{
	if (n->links == LINKS_MAX)
		return false;
	n->link[n->links++] = (struct net_link){a, b, rate, delay};
	return true;
}

static bool begin(struct network *n, uint64_t hosts, uint64_t switches)
{
	n->links = 0;
	if (hosts > HOSTS_MAX || switches > SWITCHES_MAX)
		return false;
	n->hosts = (uint32_t)hosts;
	n->switches = (uint32_t)switches;
	return true;
}

static bool host_to(struct network *n, uint32_t host, uint32_t sw, const struct net_shape *s)
{
	return net_join(n, host, n->hosts + sw, s->rate, s->delay);
}

static bool uplink(struct network *n, uint32_t sw, uint32_t to, const struct net_shape *s)
{
	return net_join(n, n->hosts + sw, n->hosts + to, s->uplink ? s->uplink : s->rate, s->delay);
}

bool net_star(struct network *n, const struct net_shape *s)
{
	if (!begin(n, s->hosts + 1, 1))
		return false;
	for (uint32_t i = 0; i < s->hosts; i++)
		if (!host_to(n, i, 0, s))
			return false;
	return net_join(
		n, (uint32_t)s->hosts, n->hosts, s->receiver ? s->receiver : s->rate, s->delay);
}

bool net_dumbbell(struct network *n, const struct net_shape *s)
{
	if (!begin(n, 2 * s->hosts, 2))
		return false;
	for (uint32_t i = 0; i < n->hosts; i++)
		if (!host_to(n, i, i >= s->hosts, s))
			return false;
	return uplink(n, 0, 1, s);
}

/* Host 0 sends to host 1 over all hops; host 2i to host 2i + 1 over hop i, from 1. */
bool net_parking_lot(struct network *n, const struct net_shape *s)
{
	if (!begin(n, 2 * s->hops + 2, s->hops + 1) || !host_to(n, 0, 0, s) ||
		!host_to(n, 1, (uint32_t)s->hops, s))
		return false;
	for (uint32_t i = 1; i <= s->hops; i++)
		if (!host_to(n, 2 * i, i - 1, s) || !host_to(n, 2 * i + 1, i, s))
			return false;
	for (uint32_t i = 0; i < s->hops; i++)
		if (!uplink(n, i, i + 1, s))
			return false;
	return true;
}

/* Senders and the bystander at one switch, the two receivers at the other. */
bool net_victim(struct network *n, const struct net_shape *s)
{
	if (!begin(n, s->hosts + 3, 2))
		return false;
	for (uint32_t i = 0; i < n->hosts; i++)
		if (!host_to(n, i, i > s->hosts, s))
			return false;
	return uplink(n, 0, 1, s);
}

bool net_leaf_spine(struct network *n, const struct net_shape *s)
{
	if (!begin(n, s->leaves * s->hosts, s->leaves + s->spines))
		return false;
	for (uint32_t i = 0; i < n->hosts; i++)
		if (!host_to(n, i, i / (uint32_t)s->hosts, s))
			return false;
	for (uint32_t i = 0; i < s->leaves; i++)
		for (uint32_t j = 0; j < s->spines; j++)
			if (!uplink(n, i, (uint32_t)s->leaves + j, s))
				return false;
	return true;
}

/* k pods of k/2 edge and k/2 aggregation switches, and k^2/4 core switches: edges first, pod by
 * pod, then aggregation, then core. Aggregation switch j of each pod leads to the cores of row j.
 */
bool net_fat_tree(struct network *n, const struct net_shape *s)
{
	uint32_t k = (uint32_t)s->k, half = k / 2, edges = k * half;

	if (!begin(n, (uint64_t)edges * half, 2ull * edges + half * half))
		return false;
	for (uint32_t i = 0; i < n->hosts; i++)
		if (!host_to(n, i, i / half, s))
			return false;
	for (uint32_t e = 0; e < edges; e++)
		for (uint32_t j = 0; j < half; j++)
			if (!uplink(n, e, edges + e / half * half + j, s))
				return false;
	for (uint32_t a = 0; a < edges; a++)
		for (uint32_t j = 0; j < half; j++)
			if (!uplink(n, edges + a, 2 * edges + a % half * half + j, s))
				return false;
	return true;
}

/* --- queries ------------------------------------------------------------------------------ */

static bool ends_at(const struct net_link *l, uint32_t node)
{
	return l->a == node || l->b == node;
}

uint32_t net_ports(const struct network *n, uint32_t sw)
{
	uint32_t ports = 0;

	for (uint32_t i = 0; i < n->links; i++)
		ports += ends_at(&n->link[i], n->hosts + sw);
	return ports;
}

bool net_port_named(const struct network *n, const char *name, uint32_t *sw, uint32_t *port)
{
	const char *at = name;
	uint64_t a, b;

	if (strncmp(at, "sw", 2))
		return false;
	at += 2;
	if (!take_number(&at, 10, UINT32_MAX, &a) || *at != '.' ||
		!parse_in_base(at + 1, 10, UINT32_MAX, &b) || a >= n->switches)
		return false;
	*sw = (uint32_t)a;
	*port = (uint32_t)b;
	return b < net_ports(n, *sw);
}

uint32_t net_peer(const struct network *n, uint32_t sw, uint32_t port)
{
	for (uint32_t i = 0; i < n->links; i++) {
		const struct net_link *l = &n->link[i];

		if (ends_at(l, n->hosts + sw) && !port--)
			return l->a == n->hosts + sw ? l->b : l->a;
	}
	return UINT32_MAX;
}

const struct net_link *net_cable(const struct network *n, uint32_t host)
{
	for (uint32_t i = 0; i < n->links; i++)
		if (ends_at(&n->link[i], host))
			return &n->link[i];
	return NULL;
}
