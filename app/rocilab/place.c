/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the hosts of the flows of a scenario. */
#include <stdlib.h>
#include "arrivals.h"
#include "lab.h"
#include "lab_flow.h"
#include "lab_host.h"
#include "scenario.h"
#include "sizes.h"

/* Two different hosts from first..last of @p t. */
static uint32_t hosts_of(const struct traffic_line *t)
{
	return t->line.last - t->line.first + 1;
}

static unsigned flows_of(const struct traffic_line *t)
{
	uint32_t n = hosts_of(t);

	switch (t->pattern) {
	case TRAFFIC_PERMUTATION:
		return n * t->line.qps;
	case TRAFFIC_ALL_TO_ALL:
		return n * (n - 1) * t->line.qps;
	case TRAFFIC_FILE:
		return t->flows;
	default:
		return t->line.qps;
	}
}

unsigned place_count(const struct scenario *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->flow_lines; i++)
		n += (s->flow[i].last - s->flow[i].first + 1) * s->flow[i].qps;
	for (unsigned i = 0; i < s->traffic_lines; i++)
		n += flows_of(&s->traffic[i]);
	return n;
}

static void place(
	struct lab *l, struct lab_flow *f, const struct flow_line *line, uint32_t from, uint32_t to)
{
	f->line = line;
	f->from = &l->host[from];
	f->to = &l->host[to];
	f->poster = line->op == FLOW_READ ? f->to : f->from;
	f->poster->posts++;
	f->to->sinks++;
	f->to->receives += line->op == FLOW_SEND || line->op == FLOW_UD;
}

static struct lab_flow *place_line(struct lab *l, struct lab_flow *f, const struct flow_line *line)
{
	for (uint32_t k = 0; k < (line->last - line->first + 1) * line->qps; k++)
		place(l, f++, line, line->first + k / line->qps, line->to);
	return f;
}

/* Each host sends to one other and receives from one: a ring of the hosts in random order.
 */
static struct lab_flow *permute(
	struct lab *l, struct lab_flow *f, const struct traffic_line *t, struct random *random)
{
	uint32_t n = hosts_of(t);
	uint32_t *order = calloc(n, sizeof(*order));

	for (uint32_t i = 0; order && i < n; i++) {
		uint32_t j = (uint32_t)random_below(random, i + 1);

		order[i] = order[j];
		order[j] = t->line.first + i;
	}
	for (uint32_t i = 0; order && i < n * t->line.qps; i++)
		place(l, f++, &t->line, order[i / t->line.qps], order[(i / t->line.qps + 1) % n]);
	free(order);
	return order ? f : NULL;
}

static struct lab_flow *all_to_all(struct lab *l, struct lab_flow *f, const struct traffic_line *t)
{
	for (uint32_t i = t->line.first; i <= t->line.last; i++)
		for (uint32_t k = t->line.first; k <= t->line.last; k++)
			for (uint32_t q = 0; i != k && q < t->line.qps; q++)
				place(l, f++, &t->line, i, k);
	return f;
}

/* The senders take turns, each to a random other host. */
static struct lab_flow *spread(
	struct lab *l, struct lab_flow *f, const struct traffic_line *t, struct random *random)
{
	uint32_t n = hosts_of(t);

	for (uint32_t i = 0; i < t->line.qps; i++) {
		uint32_t other = (uint32_t)random_below(random, n - 1);

		place(l, f++, &t->line, t->line.first + i % n,
			t->line.first + other + (other >= i % n));
	}
	return f;
}

static struct lab_flow *place_traffic(
	struct lab *l, struct lab_flow *f, const struct traffic_line *t, struct random *random)
{
	switch (t->pattern) {
	case TRAFFIC_PERMUTATION:
		return permute(l, f, t, random);
	case TRAFFIC_ALL_TO_ALL:
		return all_to_all(l, f, t);
	case TRAFFIC_FILE:
		for (unsigned i = 0; i < t->flows; i++)
			f = place_line(l, f, &t->flow[i]);
		return f;
	default:
		return spread(l, f, t, random);
	}
}

bool place_flows(struct lab *l)
{
	struct random random = {.state = l->s->seed * 0xA0761D6478BD642Full | 1};
	struct lab_flow *f = l->flow;

	for (unsigned i = 0; i < l->s->flow_lines; i++)
		f = place_line(l, f, &l->s->flow[i]);
	for (unsigned i = 0; f && i < l->s->traffic_lines; i++)
		f = place_traffic(l, f, &l->s->traffic[i], &random);
	return f != NULL;
}

/* --- sources ------------------------------------------------------------------------------ */

/* Sorts pointers to the flows by the host that sends. */
static int by_host(const void *a, const void *b)
{
	const struct lab_flow *const *x = a, *const *y = b;

	if ((*x)->from != (*y)->from)
		return (*x)->from < (*y)->from ? -1 : 1;
	return (*x > *y) - (*x < *y);
}

/* The host of @p flow, which has @p n flows. */
static void make_source(struct lab *l, struct source *s, const struct traffic_line *t,
	struct lab_flow **flow, uint32_t n)
{
	uint32_t host = (uint32_t)(flow[0]->from - l->host);

	*s = (struct source){.lab = l,
		.flow = flow,
		.flows = n,
		.sizes = &t->sizes,
		.gap_ns = sizes_mean(&t->sizes) * 8e9 / (t->load * (double)lab_rate(l, host)),
		.until = LAB_START + t->line.start[1],
		.random.state = (l->s->seed * 65536 + host) * 0x9FB21C651E98DF25ull | 1};
	source_begin(s, LAB_START + t->line.start[0]);
}

static uint32_t sources_of(struct lab *l, const struct traffic_line *t, struct lab_flow **flow,
	uint32_t n, struct source *to)
{
	uint32_t made = 0;

	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && flow[end]->from == flow[i]->from; end++)
			continue;
		make_source(l, &to[made++], t, &flow[i], end - i);
	}
	return made;
}

bool place_sources(struct lab *l)
{
	const struct scenario *s = l->s;
	size_t most = (size_t)s->traffic_lines * l->hosts + 1;
	unsigned first = 0;

	l->by_source = calloc(l->flows + 1, sizeof(struct lab_flow *));
	l->source = calloc(most, sizeof(*l->source));
	if (!l->by_source || !l->source)
		return false;
	for (unsigned i = 0; i < s->flow_lines; i++)
		first += (s->flow[i].last - s->flow[i].first + 1) * s->flow[i].qps;
	for (unsigned i = 0; i < s->traffic_lines; i++) {
		const struct traffic_line *t = &s->traffic[i];
		struct lab_flow **flow = &l->by_source[first];
		unsigned n = flows_of(t);

		for (unsigned k = 0; k < n; k++)
			flow[k] = &l->flow[first + k];
		qsort(flow, n, sizeof(struct lab_flow *), by_host);
		if (t->pattern == TRAFFIC_POISSON)
			l->sources += sources_of(l, t, flow, n, &l->source[l->sources]);
		first += n;
	}
	return true;
}
