/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core_counters.h"
#include "daemon.h"
#include "drop.h"
#include "row.h"
#include "show/stats.h"

static json_t *shell_json(const struct daemon *d)
{
	struct worker_stats shell;
	const uint64_t *value = (const uint64_t *)&shell; /* by declaration order, as the names */
	struct row row;

	worker_stats(d->dp, &shell);
	row_begin(&row);
	for (unsigned i = 0; worker_stat_name(i); i++)
		put_int(&row, worker_stat_name(i), (int64_t)value[i]);
	return row_end(&row);
}

static json_t *port_json(const struct daemon *d, uint32_t i)
{
	struct rte_eth_stats eth = {0};
	struct row row, link;

	port_stats(d->dp, i, &eth);
	row_begin(&row);
	put_text(&row, "name", d->port[i].info.name);
	put_int(&row, "ipackets", (int64_t)eth.ipackets);
	put_int(&row, "opackets", (int64_t)eth.opackets);
	put_int(&row, "imissed", (int64_t)eth.imissed);
	put_int(&row, "oerrors", (int64_t)eth.oerrors);
	if (d->opt->impaired[i]) {
		row_begin(&link);
		devices_put_link(&link, &d->port[i]);
		put_json(&row, "link", row_end(&link));
	}
	return row_end(&row);
}

static void print_json(const struct daemon *d, FILE *f)
{
	struct row row;
	json_t *ports = json_array(), *all;

	for (uint32_t i = 0; i < d->nports; i++)
		json_array_append_new(ports, port_json(d, i));
	row_begin(&row);
	put_json(&row, "transport", show_stats(d->dp));
	put_json(&row, "shell", shell_json(d));
	put_json(&row, "ports", ports);
	all = row_end(&row);
	json_dumpf(all ? all : json_null(), f, 0);
	json_decref(all);
	fputc('\n', f);
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

		devices_count_link(&d->port[p], &link);
		for (unsigned i = 0; (name = linkemu_counter_name(i)); i++)
			line(f, "link", name, ((const uint64_t *)&link)[i]);
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
