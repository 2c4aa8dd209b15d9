/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All metrics, as families of samples: {"name", "type", "help", "samples": [{"labels": {...},
 * "value": n}]}. rocictl converts them to OpenMetrics text; doc/counters.md explains each. Counters
 * are the workers' own, which only rise.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "bits.h"
#include "cm/connections.h"
#include "config/config.h"
#include "config/ctl_parts.h"
#include "loop/loop.h"
#include "net/net.h"
#include "net/netport.h"
#include "pacing.h"
#include "row.h"
#include "session/session.h"
#include "session/sessions.h"
#include "show/counters.h"
#include "show/show.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"
#include "worker.h"

#define PREFIX	     "roci_"
#define DECIMAL	     24
#define NAME_MAX_LEN 48

/* One metric. */
struct family {
	const char *name, *type, *help;
	/** Adds its samples to @p to. */
	void (*samples)(struct ctl *ctl, const struct family *f, json_t *to);
	size_t value; /* offset of its value in the structure that `samples` reads */
};

static json_t *family_json(struct ctl *ctl, const struct family *f)
{
	struct row row;
	char full[64];
	json_t *to;

	snprintf(full, sizeof(full), PREFIX "%s", f->name);
	row_begin(&row);
	put_text(&row, "name", full);
	put_text(&row, "type", f->type);
	put_text(&row, "help", f->help);
	put_json(&row, "samples", json_array());
	to = row_end(&row);
	f->samples(ctl, f, to);
	return to;
}

static uint64_t value_in(const void *values, const struct family *f)
{
	uint64_t value;

	memcpy(&value, (const char *)values + f->value, sizeof(value));
	return value;
}

/* Adds a sample with up to two labels. NULLs, when memory is short, are noticed by text/document.c.
 */
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

/* --- samples of the daemon -------------------------------------------------------------- */

static void build_sample(struct ctl *ctl, const struct family *f, json_t *to)
{
	char abi[DECIMAL];

	sample(to, 1, "version", ROCINANTE_VERSION, "abi", decimal(ABI_VERSION, abi));
}

struct daemon_values {
	uint64_t start_time;
	uint64_t sessions, mrs, cqs, qps, srqs; /* of applications, at the moment */
	uint64_t queue_bytes, mapped_bytes;
};

static void daemon_sample(struct ctl *ctl, const struct family *f, json_t *to)
{
	struct daemon_values v = {.sessions = ctl->sessions->nsessions};

	v.start_time = (uint64_t)time(NULL) - (loop_now_ms() - ctl->since_ms) / 1000;
	for (uint32_t k = 0; k < SESSION_MAX; k++) {
		const struct session *s = ctl->sessions->session[k];

		if (!s || s->own) {
			v.sessions -= s != NULL;
			continue;
		}
		v.mrs += s->mrs.used;
		v.cqs += s->cqs.used;
		v.qps += s->qps.used;
		v.srqs += s->srqs.used;
		v.queue_bytes += s->used[CTL_QUEUES];
		v.mapped_bytes += s->used[CTL_MEMORY];
	}
	sample(to, value_in(&v, f), NULL, NULL, NULL, NULL);
}

/* --- samples of queue pairs whose rate is limited --------------------------------------- */

/* Buckets of the histogram: up to 1 Mb/s, then a factor of ten each, and a last one for the rest.
 */
#define RATE_BUCKETS 7u

struct limited {
	uint64_t qps, rate; /* b/s, the sum */
	uint64_t bucket[RATE_BUCKETS];
};

static void count_limited(struct ctl *ctl, struct limited *v)
{
	struct document_cursor at = {0};
	const struct qp_obj *o;

	*v = (struct limited){0};
	while ((o = show_next_qp(ctl, &at))) {
		uint64_t rate = pacing_rate(o->qp), bound = 1000000;
		unsigned i = 0;

		if (!rate)
			continue;
		v->qps++;
		v->rate += rate;
		for (; i < RATE_BUCKETS - 1 && rate > bound; i++)
			bound *= 10;
		v->bucket[i]++;
	}
}

static void limited_sample(struct ctl *ctl, const struct family *f, json_t *to)
{
	struct limited v;

	count_limited(ctl, &v);
	sample(to, value_in(&v, f), NULL, NULL, NULL, NULL);
}

/* Each bucket includes those below it, as OpenMetrics requires. */
static void rate_samples(struct ctl *ctl, const struct family *f, json_t *to)
{
	static const char *const bound[RATE_BUCKETS] = {
		"1e+06", "1e+07", "1e+08", "1e+09", "1e+10", "1e+11", "+Inf"};
	struct limited v;
	uint64_t sum = 0;

	count_limited(ctl, &v);
	for (unsigned i = 0; i < RATE_BUCKETS; i++) {
		sum += v.bucket[i];
		sample(to, sum, "le", bound[i], NULL, NULL);
	}
}

/* --- samples of the ports --------------------------------------------------------------- */

struct port_values {
	uint64_t up, mtu, path_mtu, gids;
	struct port_counts counts;
};

static uint64_t valid_gids(const struct netport *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < GID_MAX; i++)
		n += p->gids.table.entry[i].valid;
	return n;
}

static void port_samples(struct ctl *ctl, const struct family *f, json_t *to)
{
	char text[DECIMAL];

	for (uint32_t k = 0; k < ctl->net->nports; k++) {
		const struct netport *p = &ctl->net->port[k];
		struct port_values v = {.up = p->up,
			.mtu = p->eth_mtu,
			.path_mtu = netport_mtu(p),
			.gids = valid_gids(p)};

		port_counts(ctl, k, &v.counts);
		sample(to, value_in(&v, f), "port", decimal(k + 1, text), "netdev", p->netdev);
	}
}

/* --- samples of the workers ------------------------------------------------------------- */

static void core_samples(struct ctl *ctl, const struct family *f, json_t *to)
{
	char text[DECIMAL];

	for (uint32_t w = 0; w < ctl->dp->nworkers; w++) {
		struct core_counters c = {0};

		worker_counters_of(ctl->dp->worker[w], &c);
		sample(to, value_in(&c, f), "worker", decimal(w, text), NULL, NULL);
	}
}

static void loop_samples(struct ctl *ctl, const struct family *f, json_t *to)
{
	char text[DECIMAL];

	for (uint32_t w = 0; w < ctl->dp->nworkers; w++) {
		struct worker_stats s = {0};

		worker_stats_of(ctl->dp->worker[w], &s);
		sample(to, value_in(&s, f), "worker", decimal(w, text), NULL, NULL);
	}
}

/* A reason that has not occurred has no sample yet. */
static void drop_samples(struct ctl *ctl, const struct family *f, json_t *to)
{
	char text[DECIMAL];

	for (uint32_t w = 0; w < ctl->dp->nworkers; w++) {
		struct core_counters c = {0};

		worker_counters_of(ctl->dp->worker[w], &c);
		for (unsigned why = DROP_NONE + 1; why < DROP_MAX; why++)
			if (c.drop[why])
				sample(to, c.drop[why], "worker", decimal(w, text), "reason",
					drop_name((enum drop)why));
	}
}

static void qp_samples(struct ctl *ctl, const struct family *f, json_t *to)
{
	char text[DECIMAL];

	for (uint32_t w = 0; w < ctl->dp->nworkers; w++)
		sample(to, ctl->objects->worker_qps[w], "worker", decimal(w, text), NULL, NULL);
}

/* --- samples of the communication manager --------------------------------------------- */

/* @return NULL without a communication manager (--cm no). */
static const struct cm_count *cm_count_of(struct ctl *ctl)
{
	return ctl->connections->cm ? cm_counters(ctl->connections->cm) : NULL;
}

/* For families whose value is an array with an element per message. */
static void cm_message_samples(struct ctl *ctl, const struct family *f, json_t *to)
{
	const struct cm_count *n = cm_count_of(ctl);
	uint64_t counts[CM_ATTRS];

	if (!n)
		return;
	memcpy(counts, (const char *)n + f->value, sizeof(counts));
	for (unsigned i = 0; i < CM_ATTRS; i++)
		sample(to, counts[i], "message", cm_attr_name(CM_REQ + i), NULL, NULL);
}

/* A reason that has not been used has no sample yet. */
static void cm_refused_samples(struct ctl *ctl, const struct family *f, json_t *to)
{
	const struct cm_count *n = cm_count_of(ctl);
	char text[DECIMAL];

	for (unsigned i = 0; n && i < ARRAY_SIZE(n->refused); i++)
		if (n->refused[i])
			sample(to, n->refused[i], "reason", decimal(i, text), NULL, NULL);
}

static void cm_used_sample(struct ctl *ctl, const struct family *f, json_t *to)
{
	if (ctl->connections->cm)
		sample(to, cm_used(ctl->connections->cm), NULL, NULL, NULL, NULL);
}

/* --- the list --------------------------------------------------------------------------- */

#define OF_DAEMON(field)  daemon_sample, offsetof(struct daemon_values, field)
#define OF_LIMITED(field) limited_sample, offsetof(struct limited, field)
#define OF_PORT(field)	  port_samples, offsetof(struct port_values, field)
#define OF_CM(field)	  cm_message_samples, offsetof(struct cm_count, field)
#define OF_CORE(field)	  core_samples, offsetof(struct core_counters, field)

/* All except those of core_counter_name() and worker_stat_name(). Port metrics have the names of
 * node_exporter's infiniband collector if it has them. */
static const struct family families[] = {
	{"build_info", "gauge", "version of rocid and of its ABI", build_sample, 0},
	{"start_time_seconds", "gauge", "when rocid began to serve, since 1970",
		OF_DAEMON(start_time)},
	{"sessions", "gauge", "applications that are connected", OF_DAEMON(sessions)},
	{"mrs", "gauge", "memory regions", OF_DAEMON(mrs)},
	{"cqs", "gauge", "completion queues", OF_DAEMON(cqs)},
	{"qps", "gauge", "queue pairs", OF_DAEMON(qps)},
	{"srqs", "gauge", "shared receive queues", OF_DAEMON(srqs)},
	{"queue_bytes", "gauge", "memory of queues", OF_DAEMON(queue_bytes)},
	{"registered_bytes", "gauge", "registered memory that is mapped", OF_DAEMON(mapped_bytes)},
	{"limited_qps", "gauge", "queue pairs whose rate is limited, by CNPs or an administrator",
		OF_LIMITED(qps)},
	{"limited_bits_per_second", "gauge", "sum of the rates of limited_qps", OF_LIMITED(rate)},
	{"limited_rate_bits_per_second", "gaugehistogram", "queue pairs by their limited rate",
		rate_samples, 0},
	{"port_up", "gauge", "whether the port is ACTIVE", OF_PORT(up)},
	{"port_mtu_bytes", "gauge", "Ethernet MTU", OF_PORT(mtu)},
	{"port_path_mtu_bytes", "gauge", "largest path MTU, which is the payload of a packet",
		OF_PORT(path_mtu)},
	{"port_gids", "gauge", "valid entries of the GID table", OF_PORT(gids)},
	{"port_packets_received", "counter", "RoCE packets received",
		OF_PORT(counts.roce.rx_packets)},
	{"port_data_received_bytes", "counter", "bytes received, from IP or GRH to ICRC",
		OF_PORT(counts.roce.rx_bytes)},
	{"port_packets_transmitted", "counter", "RoCE packets sent",
		OF_PORT(counts.roce.tx_packets)},
	{"port_data_transmitted_bytes", "counter", "bytes sent, from IP or GRH to ICRC",
		OF_PORT(counts.roce.tx_bytes)},
	{"port_errors_received", "counter", "broken frames received, as the device counts them",
		OF_PORT(counts.errors)},
	{"port_missed", "counter", "frames that the device lost for lack of room",
		OF_PORT(counts.missed)},
	{"port_discards_transmitted", "counter", "frames that the device did not send",
		OF_PORT(counts.discards)},
	{"port_bad_pkey", "counter", "packets with a P_Key of another partition, up to 65535",
		OF_PORT(counts.bad_pkey)},
	{"port_qkey_viol", "counter", "datagrams whose Q_Key differs from their QP's, up to 65535",
		OF_PORT(counts.bad_qkey)},
	{"port_link_downed", "counter", "how often the port went down",
		OF_PORT(counts.link_downed)},
	{"rx_icrc_encapsulated", "counter", "RoCE packets received with a wrong ICRC",
		OF_CORE(drop[DROP_ICRC])},
	{"drops", "counter", "packets that were dropped", drop_samples, 0},
	{"worker_qps", "gauge", "queue pairs of a worker", qp_samples, 0},
	{"cm_connections", "gauge",
		"connections of the communication manager, including those that it "
		"remembers for a while after their end",
		cm_used_sample, 0},
	{"cm_messages_sent", "counter", "CM messages sent, repetitions included", OF_CM(tx)},
	{"cm_messages_received", "counter", "CM messages received", OF_CM(rx)},
	{"cm_messages_repeated", "counter", "messages sent again because no answer came",
		OF_CM(repeated)},
	{"cm_messages_duplicate", "counter", "messages received again", OF_CM(duplicates)},
	{"cm_messages_ignored", "counter", "messages received that fit no connection or its state",
		OF_CM(ignored)},
	{"cm_refused", "counter", "requests refused, by the reason in the REJ", cm_refused_samples,
		0},
};

/* The i-th of the counters with names of their own, those of the core and of the workers' loop;
 * both structures are arrays of 64-bit counters in the order of their names. @p name: room for it.
 */
static bool named_counter(unsigned i, struct family *f, char name[NAME_MAX_LEN])
{
	unsigned n = 0;

	for (; core_counter_name(n + TOTALS); n++)
		if (n == i) {
			*f = (struct family){core_counter_name(n + TOTALS), "counter",
				core_counter_help(n + TOTALS), core_samples,
				(n + TOTALS) * sizeof(uint64_t)};
			return true;
		}
	i -= n;
	if (!worker_stat_name(i))
		return false;
	snprintf(name, NAME_MAX_LEN, "worker_%s", worker_stat_name(i));
	*f = (struct family){
		name, "counter", worker_stat_help(i), loop_samples, i * sizeof(uint64_t)};
	return true;
}

static bool next_family(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	unsigned i = at->index++;
	char name[NAME_MAX_LEN];
	struct family f;

	if (i < ARRAY_SIZE(families))
		f = families[i];
	else if (!named_counter(i - ARRAY_SIZE(families), &f, name))
		return false;
	*element = family_json(ctl, &f);
	return true;
}

const struct document_section show_metrics = {.name = "metrics", .next = next_family};
