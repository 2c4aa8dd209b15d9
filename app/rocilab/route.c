/* SPDX-License-Identifier: BSD-3-Clause */
/* All shortest paths from each switch to each host. Hosts at one switch share the paths to it. */
#include <stdlib.h>
#include "network.h"
#include "switch.h"

#define FAR UINT32_MAX

/* The ports of each switch: port p of switch s leads to peer[first[s] + p]. */
struct map {
	uint32_t *first;
	uint32_t *peer;
};

static bool map_make(struct map *m, const struct network *n)
{
	uint32_t *fill = calloc(n->switches + 1, sizeof(*fill));

	m->first = calloc(n->switches + 1, sizeof(*m->first));
	m->peer = calloc(2 * (size_t)n->links + 1, sizeof(*m->peer));
	if (!fill || !m->first || !m->peer) {
		free(fill);
		return false;
	}
	for (uint32_t s = 0; s < n->switches; s++)
		fill[s + 1] = m->first[s + 1] = m->first[s] + net_ports(n, s);
	for (uint32_t s = 0; s < n->switches; s++)
		fill[s] = m->first[s];
	for (uint32_t i = 0; i < n->links; i++) {
		const struct net_link *l = &n->link[i];

		if (l->a >= n->hosts)
			m->peer[fill[l->a - n->hosts]++] = l->b;
		if (l->b >= n->hosts)
			m->peer[fill[l->b - n->hosts]++] = l->a;
	}
	free(fill);
	return true;
}

/* Hops from each switch to switch @p to. */
static void distances(
	const struct network *n, const struct map *m, uint32_t to, uint32_t *far, uint32_t *queue)
{
	uint32_t head = 0, tail = 0;

	for (uint32_t s = 0; s < n->switches; s++)
		far[s] = FAR;
	far[to] = 0;
	queue[tail++] = to;
	while (head < tail) {
		uint32_t s = queue[head++];

		for (uint32_t p = m->first[s]; p < m->first[s + 1]; p++) {
			uint32_t next = m->peer[p] - n->hosts;

			if (m->peer[p] < n->hosts || far[next] != FAR)
				continue;
			far[next] = far[s] + 1;
			queue[tail++] = next;
		}
	}
}

/* The paths from switch @p s to hosts at switch @p to. */
static struct switch_way toward(const struct network *n, const struct map *m, uint32_t s,
	const uint32_t *far, struct net_routes *r)
{
	struct switch_way way = {.first = r->nexts};

	for (uint32_t p = m->first[s]; p < m->first[s + 1]; p++) {
		if (m->peer[p] < n->hosts || far[s] == FAR ||
			far[m->peer[p] - n->hosts] + 1 != far[s])
			continue;
		r->next[r->nexts++] = (uint16_t)(p - m->first[s]);
		way.ports++;
	}
	return way;
}

/* The paths from all switches to the hosts at switch @p to. */
static void route_to(const struct network *n, const struct map *m, uint32_t to, const uint32_t *far,
	struct net_routes *r)
{
	for (uint32_t s = 0; s < n->switches; s++) {
		struct switch_way way = toward(n, m, s, far, &r[s]);

		for (uint32_t p = m->first[to]; p < m->first[to + 1]; p++) {
			uint32_t host = m->peer[p];

			if (host >= n->hosts)
				continue;
			if (s != to) {
				r[s].way[host + 1] = way;
				continue;
			}
			r[s].way[host + 1] = (struct switch_way){r[s].nexts, 1};
			r[s].next[r[s].nexts++] = (uint16_t)(p - m->first[to]);
		}
	}
}

static bool routes_make(const struct network *n, const struct map *m, struct net_routes *r)
{
	for (uint32_t s = 0; s < n->switches; s++) {
		size_t ports = m->first[s + 1] - m->first[s];

		r[s].way = calloc(n->hosts + 1, sizeof(*r[s].way));
		r[s].next = calloc(ports * n->switches + n->hosts, sizeof(*r[s].next));
		if (!r[s].way || !r[s].next)
			return false;
	}
	return true;
}

bool net_route(const struct network *n, struct net_routes *r)
{
	struct map m = {0};
	uint32_t *far = calloc(n->switches, sizeof(*far));
	uint32_t *queue = calloc(n->switches, sizeof(*queue));
	bool ok = far && queue && map_make(&m, n) && routes_make(n, &m, r);

	for (uint32_t s = 0; ok && s < n->switches; s++) {
		distances(n, &m, s, far, queue);
		route_to(n, &m, s, far, r);
	}
	free(far);
	free(queue);
	free(m.first);
	free(m.peer);
	return ok;
}

void net_routes_free(struct net_routes *r, uint32_t switches)
{
	for (uint32_t s = 0; r && s < switches; s++) {
		free(r[s].way);
		free(r[s].next);
	}
}
