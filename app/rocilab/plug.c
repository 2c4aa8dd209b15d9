/* SPDX-License-Identifier: BSD-3-Clause */
/* The network of a scenario: switches, their cables and routes. */
#include <stdlib.h>
#include "icrc.h"
#include "impair.h"
#include "lab.h"
#include "lab_host.h"
#include "nic.h"
#include "notify.h"
#include "switch.h"

/* --- cables ------------------------------------------------------------------------------- */

/* An end of a cable. */
struct end {
	struct lab_host *host; /* or: */
	struct sim_switch *sw;
	uint32_t port;
};

static struct end end_of(struct lab *l, uint32_t node, uint32_t *fill)
{
	uint32_t sw = node - l->hosts;

	if (node < l->hosts)
		return (struct end){.host = &l->host[node]};
	return (struct end){.sw = &l->sw[sw], .port = fill[sw]++};
}

static struct sim_sink *sink_of(const struct end *e)
{
	return e->host ? &e->host->nic.in : &e->sw->port[e->port].in;
}

/* With impairments, a host's frames reach @p to through impair.c. */
static struct sim_sink *impaired(struct lab *l, struct lab_host *h, struct sim_sink *to)
{
	return l->impair ? impair_plug(&l->impair[h - l->host], l, to) : to;
}

static void connect(
	struct lab *l, const struct end *from, const struct end *to, const struct wire_config *wire)
{
	if (from->host)
		nic_plug(&from->host->nic, &l->engine, wire, impaired(l, from->host, sink_of(to)));
	else
		switch_plug(from->sw, from->port, &l->engine, wire, &l->s->aqm,
			l->s->seed * 65536 + (uint32_t)(from->sw->port + from->port - l->port),
			sink_of(to));
}

static bool cables(struct lab *l)
{
	uint32_t *fill = calloc(l->s->net.switches, sizeof(*fill));

	for (uint32_t i = 0; fill && i < l->s->net.links; i++) {
		const struct net_link *k = &l->s->net.link[i];
		const struct wire_config wire = {k->rate, k->delay};
		struct end a = end_of(l, k->a, fill), b = end_of(l, k->b, fill);

		connect(l, &a, &b, &wire);
		connect(l, &b, &a, &wire);
	}
	free(fill);
	return fill != NULL;
}

bool plug_all(struct lab *l)
{
	const struct network *n = &l->s->net;

	l->sw = calloc(n->switches, sizeof(*l->sw));
	l->routes = calloc(n->switches, sizeof(*l->routes));
	l->first = calloc(n->switches + 1, sizeof(*l->first));
	l->port = memory_take(&l->memory, l->ports * sizeof(*l->port));
	l->notify = l->s->fastcnp ? calloc(n->switches, sizeof(*l->notify)) : NULL;
	l->impair = impair_any(l->s) ? calloc(l->hosts, sizeof(*l->impair)) : NULL;
	if ((l->s->fastcnp && !l->notify) || (impair_any(l->s) && !l->impair))
		return false;
	if (!l->sw || !l->routes || !l->first || !l->port || !net_route(n, l->routes))
		return false;
	for (uint32_t i = 0; i < n->switches; i++) {
		l->first[i + 1] = l->first[i] + net_ports(n, i);
		switch_init(&l->sw[i], &l->pool, &l->port[l->first[i]], net_ports(n, i));
		switch_route(&l->sw[i], l->routes[i].way, n->hosts + 1, l->routes[i].next);
		l->sw[i].memory = l->s->memory;
		l->sw[i].salt = i;
		if (l->notify) {
			notify_init(&l->notify[i], l->s->fastcnp, icrc_best(), (uint16_t)i);
			l->sw[i].notify = &l->notify[i];
		}
	}
	return cables(l);
}

void plug_free(struct lab *l)
{
	net_routes_free(l->routes, l->s->net.switches);
	free(l->routes);
	free(l->first);
	free(l->notify);
	free(l->impair);
	free(l->sw);
}
