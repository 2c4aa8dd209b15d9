/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All metrics, as families of samples: {"name", "type", "help", "samples":
 * [{"labels": {...}, "value": n}]}. rocictl makes OpenMetrics text of them; doc/counters.md
 * explains each. Counters are the workers' own, which only rise.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "bits.h"
#include "config/config.h"
#include "config/parts.h"
#include "loop/loop.h"
#include "net/net.h"
#include "net/netport.h"
#include "session/session.h"
#include "session/sessions.h"
#include "show/counters.h"
#include "show/show.h"
#include "text/row.h"
#include "verbs/objects.h"
#include "worker.h"

#define PREFIX	"roci_"
#define TOTALS	4u /* of core_counter_name(): they are the ports' */
#define DECIMAL 24

static json_t *family(const char *name, const char *type, const char *help)
{
	struct row row;
	char full[64];

	snprintf(full, sizeof(full), PREFIX "%s", name);
	row_begin(&row);
	put_text(&row, "name", full);
	put_text(&row, "type", type);
	put_text(&row, "help", help);
	put_json(&row, "samples", json_array());
	return row_end(&row);
}

/* Adds a sample with up to two labels. NULLs: memory is short, and text/document.c finds out. */
static void sample(
	json_t *f, uint64_t value, const char *l1, const char *v1, const char *l2, const char *v2)
{
	struct row labels, row;

	row_begin(&labels);
	if (l1)
		put_text(&labels, l1, v1);
	if (l2)
		put_text(&labels, l2, v2);
	row_begin(&row);
	put_json(&row, "labels", row_end(&labels));
	put_int(&row, "value", (int64_t)value);
	json_array_append_new(json_object_get(f, "samples"), row_end(&row));
}

static const char *decimal(uint32_t n, char text[DECIMAL])
{
	snprintf(text, DECIMAL, "%u", n);
	return text;
}

/* --- the daemon ------------------------------------------------------------------------- */

static bool make_build(struct ctl *ctl, unsigned i, json_t **out)
{
	char abi[DECIMAL];

	if (i)
		return false;
	*out = family("build_info", "gauge", "version of rocid and of its ABI");
	sample(*out, 1, "version", ROCINANTE_VERSION, "abi", decimal(ABI_VERSION, abi));
	return true;
}

static bool make_start(struct ctl *ctl, unsigned i, json_t **out)
{
	uint64_t up_s = (loop_now_ms() - ctl->since_ms) / 1000;

	if (i)
		return false;
	*out = family("start_time_seconds", "gauge", "when rocid began to serve, since 1970");
	sample(*out, (uint64_t)time(NULL) - up_s, NULL, NULL, NULL, NULL);
	return true;
}

/* The objects that applications have at the moment. */
static bool make_object(struct ctl *ctl, unsigned i, json_t **out)
{
	static const struct {
		const char *name, *help;
	} row[] = {
		{"sessions", "applications that are connected"},
		{"mrs", "memory regions"},
		{"cqs", "completion queues"},
		{"qps", "queue pairs"},
		{"srqs", "shared receive queues"},
		{"queue_bytes", "memory of queues"},
		{"registered_bytes", "registered memory that is mapped"},
	};
	uint64_t n[ARRAY_SIZE(row)] = {ctl->sessions->nsessions};

	if (i >= ARRAY_SIZE(row))
		return false;
	for (uint32_t k = 0; k < SESSION_MAX; k++) {
		const struct session *s = ctl->sessions->session[k];

		if (!s)
			continue;
		n[1] += s->mrs.used;
		n[2] += s->cqs.used;
		n[3] += s->qps.used;
		n[4] += s->srqs.used;
		n[5] += s->used[CTL_QUEUES];
		n[6] += s->used[CTL_MEMORY];
	}
	*out = family(row[i].name, "gauge", row[i].help);
	sample(*out, n[i], NULL, NULL, NULL, NULL);
	return true;
}

/* --- workers ---------------------------------------------------------------------------- */

static void worker_samples(struct ctl *ctl, json_t *f,
	uint64_t (*value)(const struct core_counters *c, unsigned i), unsigned i)
{
	char text[DECIMAL];

	for (uint32_t w = 0; w < ctl->dp->nworkers; w++) {
		struct core_counters c = {0};

		worker_counters_of(ctl->dp->worker[w], &c);
		sample(f, value(&c, i), "worker", decimal(w, text), NULL, NULL);
	}
}

static uint64_t core_value(const struct core_counters *c, unsigned i)
{
	return ((const uint64_t *)c)[i]; /* by declaration order, as the names */
}

static uint64_t icrc_value(const struct core_counters *c, unsigned i)
{
	return c->drop[DROP_ICRC];
}

static bool make_transport(struct ctl *ctl, unsigned i, json_t **out)
{
	const char *name = core_counter_name(i + TOTALS);

	if (!name)
		return false;
	*out = family(name, "counter", core_counter_help(i + TOTALS));
	worker_samples(ctl, *out, core_value, i + TOTALS);
	return true;
}

static bool make_icrc(struct ctl *ctl, unsigned i, json_t **out)
{
	if (i)
		return false;
	*out = family("rx_icrc_encapsulated", "counter", "RoCE packets received with a wrong ICRC");
	worker_samples(ctl, *out, icrc_value, i);
	return true;
}

/* A reason that never came up has no sample yet. */
static bool make_drops(struct ctl *ctl, unsigned i, json_t **out)
{
	char text[DECIMAL];

	if (i)
		return false;
	*out = family("drops", "counter", "packets that were dropped");
	for (uint32_t w = 0; w < ctl->dp->nworkers; w++) {
		struct core_counters c = {0};

		worker_counters_of(ctl->dp->worker[w], &c);
		for (unsigned why = DROP_NONE + 1; why < DROP_MAX; why++)
			if (c.drop[why])
				sample(*out, c.drop[why], "worker", decimal(w, text), "reason",
					drop_name((enum drop)why));
	}
	return true;
}

static bool make_loop(struct ctl *ctl, unsigned i, json_t **out)
{
	const char *stat = worker_stat_name(i);
	char name[48], text[DECIMAL];

	if (!stat)
		return false;
	snprintf(name, sizeof(name), "worker_%s", stat);
	*out = family(name, "counter", worker_stat_help(i));
	for (uint32_t w = 0; w < ctl->dp->nworkers; w++) {
		struct worker_stats s = {0};

		worker_stats_of(ctl->dp->worker[w], &s);
		sample(*out, ((const uint64_t *)&s)[i], "worker", decimal(w, text), NULL, NULL);
	}
	return true;
}

static bool make_worker_qps(struct ctl *ctl, unsigned i, json_t **out)
{
	char text[DECIMAL];

	if (i)
		return false;
	*out = family("worker_qps", "gauge", "queue pairs of a worker");
	for (uint32_t w = 0; w < ctl->dp->nworkers; w++)
		sample(*out, ctl->objects->worker_qps[w], "worker", decimal(w, text), NULL, NULL);
	return true;
}

/* --- ports ------------------------------------------------------------------------------ */

/* The names are those of node_exporter's infiniband collector where it has such a metric. */
static const struct port_row {
	const char *name, *type, *help;
} port_row[] = {
	{"port_up", "gauge", "whether the port is ACTIVE"},
	{"port_mtu_bytes", "gauge", "Ethernet MTU"},
	{"port_path_mtu_bytes", "gauge", "largest path MTU, which is the payload of a packet"},
	{"port_gids", "gauge", "valid entries of the GID table"},
	{"port_packets_received", "counter", "RoCE packets received"},
	{"port_data_received_bytes", "counter", "their bytes, from IP or GRH to ICRC"},
	{"port_packets_transmitted", "counter", "RoCE packets sent"},
	{"port_data_transmitted_bytes", "counter", "their bytes, from IP or GRH to ICRC"},
	{"port_errors_received", "counter", "broken frames received, as the device counts them"},
	{"port_missed", "counter", "frames that the device lost for lack of room"},
	{"port_discards_transmitted", "counter", "frames that the device did not send"},
	{"port_bad_pkey", "counter", "packets with a P_Key of another partition, up to 65535"},
	{"port_qkey_viol", "counter", "datagrams with another Q_Key than their QP's, up to 65535"},
	{"port_link_downed", "counter", "how often the port went down"},
};

static uint32_t valid_gids(const struct netport *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < GID_MAX; i++)
		n += p->gids.table.entry[i].valid;
	return n;
}

static bool make_port(struct ctl *ctl, unsigned i, json_t **out)
{
	char text[DECIMAL];

	if (i >= ARRAY_SIZE(port_row))
		return false;
	*out = family(port_row[i].name, port_row[i].type, port_row[i].help);
	for (uint32_t k = 0; k < ctl->net->nports; k++) {
		const struct netport *p = &ctl->net->port[k];
		struct port_counts n;

		port_counts(ctl, k, &n);
		const uint64_t value[ARRAY_SIZE(port_row)] = {p->up, p->eth_mtu,
			mtu_of_ethernet(p->eth_mtu), valid_gids(p), n.roce.rx_packets,
			n.roce.rx_bytes, n.roce.tx_packets, n.roce.tx_bytes, n.errors, n.missed,
			n.discards, n.bad_pkey, n.bad_qkey, n.link_downed};

		sample(*out, value[i], "port", decimal(k + 1, text), "netdev", p->netdev);
	}
	return true;
}

/* --- all of them ------------------------------------------------------------------------ */

/* at->row: the group. */
static bool next_family(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	static bool (*const group[])(struct ctl *, unsigned, json_t **) = {make_build, make_start,
		make_object, make_port, make_transport, make_icrc, make_drops, make_worker_qps,
		make_loop};

	for (; at->row < ARRAY_SIZE(group); at->row++, at->index = 0)
		if (group[at->row](ctl, at->index++, element))
			return true;
	return false;
}

const struct document_section show_metrics = {.name = "metrics", .next = next_family};
