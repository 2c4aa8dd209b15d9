/* SPDX-License-Identifier: BSD-3-Clause */
#include "aqm.h"
#include "network.h"
#include "parse_impl.h"
#include "pfc.h"
#include "scenario.h"

/* --- topology --------------------------------------------------------------------------- */

enum shape_key {
	SHAPE_HOSTS = 1,
	SHAPE_RECEIVER = 2,
	SHAPE_UPLINK = 4,
	SHAPE_HOPS = 8,
	SHAPE_LEAVES = 16,
	SHAPE_K = 32,
};

static const struct shape {
	const char *name;
	bool (*build)(struct network *n, const struct net_shape *s);
	unsigned keys; /* besides rate and delay */
	const char *syntax;
	const char *help;
} shapes[] = {
	{"star", net_star, SHAPE_HOSTS | SHAPE_RECEIVER, "star hosts=8 [receiver=10G]",
		"hosts 0..7 and a receiver, 8, at sw0; the rate of the receiver's cable"},
	{"dumbbell", net_dumbbell, SHAPE_HOSTS | SHAPE_UPLINK, "dumbbell hosts=4 [uplink=40G]",
		"hosts 0..3 at sw0, 4..7 at sw1, and a cable between the switches"},
	{"parking-lot", net_parking_lot, SHAPE_HOPS | SHAPE_UPLINK,
		"parking-lot hops=2 [uplink=40G]",
		"sw0 - sw1 - sw2; host 0 at the first and 1 at the last; for hop i from 1 on, host "
		"2i before it and 2i+1 after it"},
	{"victim", net_victim, SHAPE_HOSTS | SHAPE_UPLINK, "victim hosts=8 uplink=160G",
		"senders 0..7 and a bystander, 8, at sw0; receivers 9 and 10 at sw1"},
	{"leaf-spine", net_leaf_spine, SHAPE_HOSTS | SHAPE_UPLINK | SHAPE_LEAVES,
		"leaf-spine leaves=4 spines=2 hosts=8 [uplink=100G]",
		"8 hosts at each of sw0..sw3, which are linked to each of sw4, sw5"},
	{"fat-tree", net_fat_tree, SHAPE_K | SHAPE_UPLINK, "fat-tree k=4 [uplink=40G]",
		"k^3/4 hosts; edge switches come first, from sw0, then aggregation, then core"},
};

void topology_help(FILE *f)
{
	for (unsigned i = 0; i < ARRAY_SIZE(shapes); i++)
		fprintf(f, "      topology %s\n          %s\n", shapes[i].syntax, shapes[i].help);
	fprintf(f, "      topology file PATH\n"
		   "          nodes and cables in the format of HPCC's simulator\n");
}

static int unknown_shape(struct parser *p, const char *name)
{
	struct suggestion s;

	suggest_begin(&s, name);
	for (unsigned i = 0; i < ARRAY_SIZE(shapes); i++)
		suggest_try(&s, shapes[i].name);
	if (s.best)
		return wrong(p, "'%s' is not a topology; did you mean '%s'?", name, s.best);
	return wrong(p,
		"'%s' is not a topology: use star, dumbbell, parking-lot, victim, leaf-spine, "
		"fat-tree or file",
		name);
}

/* The fastest cable of a host is the line of congestion control. */
static uint64_t line_of(const struct network *n)
{
	uint64_t line = 0;

	for (uint32_t i = 0; i < n->links; i++)
		if (n->link[i].a < n->hosts && n->link[i].rate > line)
			line = n->link[i].rate;
	return line;
}

static int read_shape(struct parser *p, const struct shape *to)
{
	struct net_shape s = {.hosts = 2,
		.hops = 2,
		.leaves = 2,
		.spines = 2,
		.k = 4,
		.rate = p->s->rate,
		.delay = 1000};
	const struct {
		unsigned of; /* 0: every topology */
		struct key key;
	} all[] = {
		{0, {"rate", KIND_RATE, &s.rate, 1e6, 1e12, {0}}},
		{0, {"delay", KIND_TIME, &s.delay, 0, 1e9, {0}}},
		{SHAPE_HOSTS, {"hosts", KIND_WHOLE, &s.hosts, 1, HOSTS_MAX, {0}}},
		{SHAPE_RECEIVER, {"receiver", KIND_RATE, &s.receiver, 1e6, 1e12, {0}}},
		{SHAPE_UPLINK, {"uplink", KIND_RATE, &s.uplink, 1e6, 1e13, {0}}},
		{SHAPE_HOPS, {"hops", KIND_WHOLE, &s.hops, 1, 64, {0}}},
		{SHAPE_LEAVES, {"leaves", KIND_WHOLE, &s.leaves, 1, 256, {0}}},
		{SHAPE_LEAVES, {"spines", KIND_WHOLE, &s.spines, 1, 256, {0}}},
		{SHAPE_K, {"k", KIND_WHOLE, &s.k, 2, 24, {0}}},
	};
	struct key keys[ARRAY_SIZE(all)];
	unsigned n = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(all); i++)
		if (!all[i].of || (all[i].of & to->keys))
			keys[n++] = all[i].key;
	if (set_all(p, 2, keys, n))
		return -EINVAL;
	if (s.k & 1)
		return wrong(p, "k must be an even number of ports");
	if (!to->build(&p->s->net, &s))
		return wrong(p, "a network has at most %u hosts, %u switches and %u cables",
			HOSTS_MAX, SWITCHES_MAX, LINKS_MAX);
	return 0;
}

static int read_network(struct parser *p)
{
	const char *name = p->words < 2 ? "" : p->word[1];

	if (!strcmp(name, "file"))
		return p->words == 3 ? network_file(p, p->word[2])
				     : wrong(p, "topology file needs a path");
	for (unsigned i = 0; i < ARRAY_SIZE(shapes); i++)
		if (!strcmp(name, shapes[i].name))
			return read_shape(p, &shapes[i]);
	return unknown_shape(p, name);
}

int on_topology(struct parser *p)
{
	if (read_network(p))
		return -EINVAL;
	p->s->rate = line_of(&p->s->net);
	return 0;
}

/* --- switch ----------------------------------------------------------------------------- */

int on_switch(struct parser *p)
{
	struct aqm_config *c = &p->s->aqm;
	struct switch_memory *m = &p->s->memory;
	const struct key keys[] = {
		{"mark", KIND_CHOICE, &c->ingress, 0, 0, {"egress", "ingress"}},
		{"kmin", KIND_BYTES, &c->kmin, 0, 1e12, {0}},
		{"kmax", KIND_BYTES, &c->kmax, 0, 1e12, {0}},
		{"pmax", KIND_PART, &c->pmax, 0, 1, {0}},
		{"buffer", KIND_BYTES, &c->limit, 0, 1e12, {0}},
		{"shared", KIND_BYTES, &m->size, 0, 1e12, {0}},
		{"alpha", KIND_PART, &m->alpha, 0, 1024, {0}},
		{"xoff", KIND_BYTES, &m->pfc.xoff, 0, 1e12, {0}},
		{"xon", KIND_BYTES, &m->pfc.xon, 0, 1e12, {0}},
		{"headroom", KIND_BYTES, &m->pfc.headroom, 0, 1e12, {0}},
		{"fastcnp", KIND_TIME, &p->s->fastcnp, 0, 1e9, {0}},
	};

	if (set_all(p, 1, keys, ARRAY_SIZE(keys)))
		return -EINVAL;
	if (c->kmin && !c->kmax)
		return wrong(p, "kmin marks nothing without kmax and pmax");
	if (c->kmax && c->kmax <= c->kmin)
		return wrong(p, "kmax must be above kmin");
	if (m->pfc.xoff && (!m->pfc.xon || m->pfc.xon > m->pfc.xoff))
		return wrong(p, "xoff needs an xon that is not above it");
	return 0;
}
