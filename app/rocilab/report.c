/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include "metric.h"
#include "report.h"

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

static void print_port(const struct lab *l, uint32_t sw, uint32_t port)
{
	const struct network *n = &l->s->net;
	uint32_t peer = net_peer(n, sw, port - l->first[sw]);
	bool host = peer < n->hosts;

	printf("  sw%u.%-3u to %s%-4u", sw, port - l->first[sw], host ? "" : "sw",
		host ? peer : peer - n->hosts);
	for (unsigned i = 0; i < metric_count; i++) {
		const struct metric *m = &metrics[i];
		const struct expectation e = {.metric = m, .index = port};
		char text[32];

		if (m->of == OF_PORT)
			printf("  %s %s", m->name,
				text_of(m->value(l, &e), m->unit, text, sizeof(text)));
	}
	putchar('\n');
}

void report_run(const struct lab *l)
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
	for (uint32_t sw = 0; sw < l->s->net.switches; sw++)
		for (uint32_t i = l->first[sw]; i < l->first[sw + 1]; i++)
			if (l->port[i].meter.most)
				print_port(l, sw, i);
	printf("  %llu packets delivered, %llu marked, %llu CNPs sent, %llu handled\n",
		(unsigned long long)(z->packets - a->packets),
		(unsigned long long)(z->marked - a->marked),
		(unsigned long long)(z->cnps - a->cnps),
		(unsigned long long)(z->handled - a->handled));
	/* Not on standard output: that is the same wherever the scenario runs. */
	fprintf(stderr, "  %.1f s of CPU, %.3f us for each delivered packet, %llu events\n",
		l->cpu_s, z->packets ? l->cpu_s * 1e6 / (double)z->packets : 0.0,
		(unsigned long long)l->engine.fired);
}
