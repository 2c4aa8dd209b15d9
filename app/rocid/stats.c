/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "bits.h"
#include "daemon.h"
#include "drop.h"

/* Names and values of a structure of counters, in the order of its members. */
static const char *const shell_name[] = {"tx_stalled", "no_mbuf", "pauses", "handoffs",
	"bells_passed", "qps_given", "sleeps", "to_kernel", "from_kernel", "kernel_full"};
static const char *const link_name[] = {"packets", "lost", "duplicated", "reordered", "corrupted",
	"truncated", "overflow", "spread"};
_Static_assert(sizeof(struct worker_stats) == 8 * ARRAY_SIZE(shell_name), "shell_name");
_Static_assert(sizeof(struct linkemu_counters) == 8 * ARRAY_SIZE(link_name), "link_name");

static void json_object(FILE *f, const char *const name[], const uint64_t *value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fprintf(f, "%s\"%s\": %" PRIu64, i ? ", " : "{", name[i], value[i]);
	fprintf(f, "}");
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
	json_object(f, shell_name, (const uint64_t *)&shell, ARRAY_SIZE(shell_name));
	fprintf(f, ", \"ports\": [");
	for (uint32_t i = 0; i < d->nports; i++) {
		struct rte_eth_stats eth = {0};
		struct linkemu_counters link;

		rte_eth_stats_get(d->port[i].info.ethdev, &eth);
		fprintf(f,
			"%s{\"name\": \"%s\", \"ipackets\": %" PRIu64 ", \"opackets\": %" PRIu64
			", \"imissed\": %" PRIu64 ", \"oerrors\": %" PRIu64,
			i ? ", " : "", d->port[i].info.name, eth.ipackets, eth.opackets,
			eth.imissed, eth.oerrors);
		if (d->opt->impaired[i]) {
			count_link(&d->port[i], &link);
			fprintf(f, ", \"link\": ");
			json_object(f, link_name, (const uint64_t *)&link, ARRAY_SIZE(link_name));
		}
		fprintf(f, "}");
	}
	fprintf(f, "]}\n");
}

/* Text leaves out what did not happen. */
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
	for (unsigned i = 0; i < ARRAY_SIZE(shell_name); i++)
		line(f, "worker", shell_name[i], ((const uint64_t *)&shell)[i]);
	for (uint32_t p = 0; p < d->nports; p++) {
		struct linkemu_counters link;

		count_link(&d->port[p], &link);
		for (unsigned i = 0; i < ARRAY_SIZE(link_name); i++)
			line(f, "link", link_name[i], ((const uint64_t *)&link)[i]);
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
