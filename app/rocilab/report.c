/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include "lab.h"
#include "meter.h"
#include "metric.h"
#include "network.h"
#include "report.h"
#include "scenario.h"
#include "switch.h"

/* Of a large network, only the most interesting ports are printed. */
#define PORTS_SHOWN 12u

double report_value(const struct lab *l, const struct expectation *e)
{
	return e->metric->moment ? l->looked[e - l->s->expect] : e->metric->value(l, e);
}

unsigned report_expectations(const struct lab *l, const char *command)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < l->s->expects; i++) {
		const struct expectation *e = &l->s->expect[i];
		double got = report_value(l, e);
		bool met = metric_met(e, got);
		char text[32];

		bad += !met;
		printf("%-6s %-38s got %-9s", met ? "ok" : "WRONG", e->text,
			text_of(got, e->metric->unit, text, sizeof(text)));
		if (e->sign == EXPECT_NEAR && e->value != 0)
			printf(" %+.1f %%", 100 * (got - e->value) / e->value);
		if (command)
			printf(" %s", command);
		putchar('\n');
	}
	return bad;
}

/* --- ports ------------------------------------------------------------------------------ */

/* Queues that were used, the longest mean first. */
struct hot {
	double mean;
	uint32_t sw, port; /* port: of all switches */
};

static int hotter(const void *a, const void *b)
{
	const struct hot *x = a, *y = b;

	if (x->mean > y->mean || x->mean < y->mean)
		return x->mean < y->mean ? 1 : -1;
	return (x->port > y->port) - (x->port < y->port);
}

/* @return how many; *ports is to be freed */
static unsigned find_hot(const struct lab *l, struct hot **ports)
{
	struct hot *h = *ports = calloc(l->ports, sizeof(*h));
	unsigned n = 0;

	for (uint32_t sw = 0; h && sw < l->s->net.switches; sw++)
		for (uint32_t i = l->first[sw]; i < l->first[sw + 1]; i++)
			if (l->port[i].meter.most)
				h[n++] = (struct hot){meter_mean(&l->port[i].meter), sw, i};
	if (n)
		qsort(h, n, sizeof(*h), hotter);
	return n;
}

static void print_head(void)
{
	printf("  %-8s %-8s", "port", "leads to");
	for (unsigned i = 0; i < metric_count; i++)
		if (metrics[i].of == OF_PORT)
			printf(" %11s", metrics[i].name);
	putchar('\n');
}

static void print_port(const struct lab *l, const struct hot *h)
{
	const struct network *n = &l->s->net;
	uint32_t port = h->port - l->first[h->sw], peer = net_peer(n, h->sw, port);
	bool host = peer < n->hosts;
	char name[32], to[32];

	snprintf(name, sizeof(name), "sw%u.%u", h->sw, port);
	snprintf(to, sizeof(to), "%s%u", host ? "" : "sw", host ? peer : peer - n->hosts);
	printf("  %-8s %-8s", name, to);
	for (unsigned i = 0; i < metric_count; i++) {
		const struct metric *m = &metrics[i];
		const struct expectation e = {.metric = m, .index = h->port};
		char text[32];

		if (m->of == OF_PORT)
			printf(" %11s", text_of(m->value(l, &e), m->unit, text, sizeof(text)));
	}
	putchar('\n');
}

static void print_ports(const struct lab *l, bool all)
{
	struct hot *h;
	unsigned n = find_hot(l, &h), shown = all || n <= PORTS_SHOWN ? n : PORTS_SHOWN;

	if (n)
		print_head();
	for (unsigned i = 0; i < shown; i++)
		print_port(l, &h[i]);
	if (shown < n)
		printf("  %u more ports had shorter queues; --ports prints them\n", n - shown);
	free(h);
}

void report_run(const struct lab *l, bool all_ports)
{
	const struct lab_counts *a = &l->begin, *z = &l->end;

	printf("%s%s%s\n", l->s->name, *l->s->title ? ": " : "", l->s->title);
	for (unsigned i = 0; i < metric_count; i++) {
		const struct metric *m = &metrics[i];
		const struct expectation e = {.metric = m, .index = METRIC_ALL};
		char text[32];

		if (m->of == OF_PORT || m->of == OF_FLOW)
			continue;
		printf("  %-16s %-10s %s\n", m->name,
			text_of(m->value(l, &e), m->unit, text, sizeof(text)), m->help);
	}
	print_ports(l, all_ports);
	printf("  %llu packets delivered, %llu marked, %llu CNPs sent, %llu handled\n",
		(unsigned long long)(z->packets - a->packets),
		(unsigned long long)(z->marked - a->marked),
		(unsigned long long)(z->cnps - a->cnps),
		(unsigned long long)(z->handled - a->handled));
	/* Not on standard output, which is the same on every machine. */
	fprintf(stderr, "  %.1f s of CPU, %.3f us per delivered packet, %llu events\n", l->cpu_s,
		z->packets ? l->cpu_s * 1e6 / (double)z->packets : 0.0,
		(unsigned long long)l->engine.fired);
}
