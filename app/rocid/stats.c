/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "show/stats.h"
#include "bits.h"
#include "daemon.h"
#include "drop.h"

/* Names and values of a structure of counters, in the order of its members. */
#define LINK_COUNTERS (sizeof(struct linkemu_counters) / sizeof(uint64_t))

static void json_object(FILE *f, const char *const name[], const uint64_t *value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fprintf(f, "%s\"%s\": %" PRIu64, i ? ", " : "{", name[i], value[i]);
	fprintf(f, "}");
}

static void json_link(FILE *f, const struct linkemu_counters *link)
{
	const char *name[LINK_COUNTERS];

	for (unsigned i = 0; i < LINK_COUNTERS; i++)
		name[i] = linkemu_counter_name(i);
	json_object(f, name, (const uint64_t *)link, LINK_COUNTERS);
}

static void count_link(const struct daemon_port *p, struct linkemu_counters *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned q = 0; q < WORKER_MAX; q++)
		if (p->emu[q])
			linkemu_count(p->emu[q], sum);
}

static void print_json(const struct daemon *d, FILE *f)
{
	struct worker_stats shell;

	worker_stats(d->dp, &shell);
	fprintf(f, "{\"transport\": ");
	ctl_stats_json(d->dp, f);
	fprintf(f, ", \"shell\": ");
	for (unsigned i = 0; worker_stat_name(i); i++)
		fprintf(f, "%s\"%s\": %" PRIu64, i ? ", " : "{", worker_stat_name(i),
			((const uint64_t *)&shell)[i]);
	fprintf(f, "}");
	fprintf(f, ", \"ports\": [");
	for (uint32_t i = 0; i < d->nports; i++) {
		struct rte_eth_stats eth = {0};
		struct linkemu_counters link;

		port_stats(d->dp, i, &eth);
		fprintf(f,
			"%s{\"name\": \"%s\", \"ipackets\": %" PRIu64 ", \"opackets\": %" PRIu64
			", \"imissed\": %" PRIu64 ", \"oerrors\": %" PRIu64,
			i ? ", " : "", d->port[i].info.name, eth.ipackets, eth.opackets,
			eth.imissed, eth.oerrors);
		if (d->opt->impaired[i]) {
			count_link(&d->port[i], &link);
			fprintf(f, ", \"link\": ");
			json_link(f, &link);
		}
		fprintf(f, "}");
	}
	fprintf(f, "]}\n");
}

/* The text format omits zeroes. */
static void line(FILE *f, const char *prefix, const char *name, uint64_t value)
{
	if (value)
		fprintf(f, "%-12s%-28s%" PRIu64 "\n", prefix, name, value);
}

static void print_text(const struct daemon *d, FILE *f)
{
	struct core_counters core;
	struct worker_stats shell;
	const char *name;

	worker_counters(d->dp, &core);
	for (unsigned i = 0; (name = core_counter_name(i)); i++)
		line(f, "", name, ((const uint64_t *)&core)[i]);
	for (unsigned i = 1; i < DROP_MAX; i++)
		line(f, "drop", drop_name((enum drop)i), core.drop[i]);
	worker_stats(d->dp, &shell);
	for (unsigned i = 0; (name = worker_stat_name(i)); i++)
		line(f, "worker", name, ((const uint64_t *)&shell)[i]);
	for (uint32_t p = 0; p < d->nports; p++) {
		struct linkemu_counters link;

		count_link(&d->port[p], &link);
		for (unsigned i = 0; i < LINK_COUNTERS; i++)
			line(f, "link", linkemu_counter_name(i), ((const uint64_t *)&link)[i]);
	}
}

void stats_print(const struct daemon *d, FILE *f)
{
	if (d->opt->stats == STATS_JSON)
		print_json(d, f);
	else if (d->opt->stats == STATS_TEXT)
		print_text(d, f);
	fflush(f);
}
