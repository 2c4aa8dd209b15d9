/* SPDX-License-Identifier: BSD-3-Clause */
/* The time that a message takes in an idle network: the reference for slowdown. */
#include "headers.h"
#include "lab.h"
#include "lab_flow.h"
#include "lab_host.h"
#include "network.h"
#include "scenario.h"
#include "switch.h"

#define HOPS_MAX 64u

static double ns_of(double bytes, uint64_t rate)
{
	return bytes * 8e9 / (double)rate;
}

/* Adds cable @p k of the path of @p f. A switch forwards a frame when it has received all of it. */
static void add(struct lab_flow *f, const struct net_link *k, double packet, double ack)
{
	f->ideal_ns += ns_of(packet, k->rate) + ns_of(ack, k->rate) + 2.0 * (double)k->delay;
	f->transit_ns += ns_of(packet, k->rate);
	if (ns_of(packet, k->rate) > f->packet_ns)
		f->packet_ns = ns_of(packet, k->rate);
}

/* The first cable from switch @p sw towards @p host. */
static const struct net_link *next_cable(const struct lab *l, uint32_t sw, uint32_t host)
{
	const struct switch_way *way = &l->routes[sw].way[host + 1];
	const struct network *n = &l->s->net;
	uint32_t port = way->ports ? l->routes[sw].next[way->first] : UINT32_MAX;

	for (uint32_t i = 0; i < n->links; i++) {
		const struct net_link *k = &n->link[i];

		if ((k->a == n->hosts + sw || k->b == n->hosts + sw) && !port--)
			return k;
	}
	return NULL;
}

/* The last packet may be shorter than the others. */
double ideal_of(const struct lab_flow *f, uint64_t size)
{
	double packets = (double)size / (double)f->from->lab->s->mtu;
	double headers = (double)lab_headers(f->from->lab);
	double whole = (double)(uint64_t)packets, part = packets - whole;
	double mtu = (double)f->from->lab->s->mtu;
	double full = mtu + headers;

	if (whole < 1) /* one short packet: its whole path */
		return f->ideal_ns - f->transit_ns * (mtu - (double)size) / full;
	return f->ideal_ns + (whole - 1) * f->packet_ns +
	       (part > 0 ? f->packet_ns * (part * mtu + headers) / full : 0);
}

void ideal_find(struct lab *l, struct lab_flow *f)
{
	const struct network *n = &l->s->net;
	uint32_t from = (uint32_t)(f->from - l->host), to = (uint32_t)(f->to - l->host);
	double packet = (double)l->s->mtu + lab_headers(l);
	double ack = lab_headers(l) + AETH_LEN;
	const struct net_link *k = net_cable(n, from);
	uint32_t at = from;

	f->ideal_ns = f->packet_ns = f->transit_ns = 0;
	for (unsigned hops = 0; k && hops < HOPS_MAX; hops++) {
		add(f, k, packet, ack);
		at = k->a == at ? k->b : k->a;
		if (at == to)
			return;
		k = next_cable(l, at - n->hosts, to);
	}
}

double flow_slowdown(const struct lab_flow *f, uint64_t now)
{
	return (double)(now - f->since) / ideal_of(f, flow_size(f));
}
