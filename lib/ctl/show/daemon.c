/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon itself as documents: version, totals, ports, GIDs, workers, counters. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "net/congestion.h"
#include "net/priority.h"
#include "show/show.h"
#include "state.h"

static json_t *version(struct ctl *ctl, const struct admin_arg arg[])
{
	return json_pack("{s:s, s:i, s:I, s:I, s:I}", "version", ROCINANTE_VERSION, "abi",
		ABI_VERSION, "pid", (json_int_t)getpid(), "workers", (json_int_t)ctl->dp->nworkers,
		"up_s", (json_int_t)((ctl_now_ms() - ctl->since_ms) / 1000));
}

/* Published regions, counted where the workers look: none may outlive its session. */
static uint32_t count_keys(const struct mr_table *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MR_MAX; i++)
		n += atomic_load_explicit(&t->slot[i], memory_order_relaxed) != NULL;
	return n;
}

struct sum {
	json_int_t sessions, mrs, cqs, srqs, qps, channels, bytes, mr_bytes, resolving;
};

static void add_session(struct sum *t, const struct session *s)
{
	t->sessions++;
	t->mrs += s->mrs.used;
	t->cqs += s->cqs.used;
	t->srqs += s->srqs.used;
	t->qps += s->qps.used;
	t->channels += s->channels.used;
	t->bytes += (json_int_t)s->used[CTL_QUEUES];
	t->mr_bytes += (json_int_t)s->used[CTL_MEMORY];
	t->resolving += (json_int_t)s->used[CTL_LOOKUPS];
}

/* All of it returns to zero when the last application has gone and its end is over. */
static json_t *totals(struct ctl *ctl, const struct admin_arg arg[])
{
	struct sum t = {0};

	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (ctl->session[i])
			add_session(&t, ctl->session[i]);
	for (struct list *l = ctl->endings.next; l != &ctl->endings; l = l->next)
		add_session(&t, container_of(l, struct session, node));
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "sessions",
		t.sessions, "pds", (json_int_t)ctl->pds.used, "mrs", t.mrs, "mr_keys",
		(json_int_t)count_keys(ctl->dp->mrs), "cqs", t.cqs, "srqs", t.srqs, "qps", t.qps,
		"qpns", (json_int_t)(QP_MAX - ctl->qpns.count), "channels", t.channels,
		"queue_bytes", t.bytes, "mr_bytes", t.mr_bytes, "resolving", t.resolving);
}

/* null: no limit. */
static json_t *limits(struct ctl *ctl, const struct admin_arg arg[])
{
	struct ctl_limits l = ctl->quota.limits;
	json_t *o = json_object();

	for (unsigned i = 0; o && quota_limit_names[i]; i++) {
		uint32_t limit = *quota_limit(&l, i);

		json_object_set_new(o, quota_limit_names[i],
			limit == UINT32_MAX ? json_null() : json_integer(limit));
	}
	return o;
}

/* --- ports ------------------------------------------------------------------------------ */

static const char *port_state(const struct ctl *ctl, const struct netport *p)
{
	return p->up ? "ACTIVE" : ctl->disabled[p->index] ? "DISABLED" : "DOWN";
}

static bool next_port(
	struct ctl *ctl, const struct admin_arg arg[], struct document_cursor *at, json_t **element)
{
	const struct netport *p;
	char mac[18];

	if (at->index >= ctl->nports)
		return false;
	p = &ctl->port[at->index++];
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", p->mac[0], p->mac[1], p->mac[2],
		p->mac[3], p->mac[4], p->mac[5]);
	*element = json_pack("{s:I, s:s, s:s, s:s, s:I, s:I, s:I}", "port",
		(json_int_t)p->index + 1, "netdev", p->netdev, "state", port_state(ctl, p), "mac",
		mac, "mtu", (json_int_t)p->eth_mtu, "path_mtu",
		(json_int_t)mtu_of_ethernet(p->eth_mtu), "speed_mbps", (json_int_t)p->speed_mbps);
	return true;
}

const char *gid_type_name(uint8_t net)
{
	return net == NET_ROCEV1 ? "RoCEv1" : "RoCEv2";
}

/* at->slot: the port. */
static bool next_gid(
	struct ctl *ctl, const struct admin_arg arg[], struct document_cursor *at, json_t **element)
{
	for (; at->slot < ctl->nports; at->slot++, at->index = 0) {
		const struct gids *g = &ctl->port[at->slot].gids;

		while (at->index < GID_MAX) {
			uint32_t i = at->index++;
			const struct gid_entry *e = &g->table.entry[i];
			char text[GID_TEXT];

			if (!e->valid && !g->users[i])
				continue;
			*element = json_pack("{s:I, s:I, s:s, s:s, s:I, s:I, s:b}", "port",
				(json_int_t)at->slot + 1, "index", (json_int_t)i, "gid",
				gid_text(e->gid, text), "type", gid_type_name(e->net), "vid",
				(json_int_t)e->vid, "qps", (json_int_t)g->users[i], "valid",
				e->valid);
			return true;
		}
	}
	return false;
}

/* at->slot: the port. Empty entries are left out. */
static bool next_pkey(
	struct ctl *ctl, const struct admin_arg arg[], struct document_cursor *at, json_t **element)
{
	for (; at->slot < ctl->nports; at->slot++, at->index = 0) {
		const struct port *p = ctl->port[at->slot].shared;

		while (at->index < p->pkeys) {
			uint32_t i = at->index++;
			uint16_t pkey = p->pkey[i];
			char text[8];

			if (!pkey_valid(pkey))
				continue;
			snprintf(text, sizeof(text), "0x%04x", pkey);
			*element = json_pack("{s:I, s:I, s:s, s:s}", "port",
				(json_int_t)at->slot + 1, "index", (json_int_t)i, "pkey", text,
				"member", pkey & 0x8000 ? "full" : "limited");
			return true;
		}
	}
	return false;
}

static bool next_priority(
	struct ctl *ctl, const struct admin_arg arg[], struct document_cursor *at, json_t **element)
{
	char text[PRIORITY_TEXT];

	if (at->index >= ctl->nports)
		return false;
	*element = json_pack("{s:I, s:s}", "port", (json_int_t)at->index + 1, "priorities",
		priority_text(&ctl->port[at->index].priority, text));
	at->index++;
	return true;
}

static bool next_congestion(
	struct ctl *ctl, const struct admin_arg arg[], struct document_cursor *at, json_t **element)
{
	char text[CONGESTION_TEXT];

	if (at->index >= ctl->nports)
		return false;
	*element = json_pack("{s:I, s:s}", "port", (json_int_t)at->index + 1, "cc",
		congestion_text(&ctl->port[at->index].congestion, text));
	at->index++;
	return true;
}

/* Whether an element belongs to the port that is the first argument. */
static bool is_of_port(const struct admin_arg arg[], const json_t *element)
{
	return json_integer_value(json_object_get(element, "port")) == (json_int_t)arg[0].number;
}

/* What steers packets to the queues of the ports' devices. */
static bool next_flow(
	struct ctl *ctl, const struct admin_arg arg[], struct document_cursor *at, json_t **element)
{
	const struct ctl_devices *d = ctl->devices;

	return d && d->flow(d->arg, at->index++, element);
}

/* --- workers and counters --------------------------------------------------------------- */

static bool next_worker(
	struct ctl *ctl, const struct admin_arg arg[], struct document_cursor *at, json_t **element)
{
	uint32_t i = at->index++;

	if (i >= ctl->dp->nworkers)
		return false;
	*element = json_pack("{s:I, s:s, s:I}", "worker", (json_int_t)i, "state",
		worker_running(ctl->dp->worker[i]) ? "running" : "stopped", "qps",
		(json_int_t)ctl->worker_qps[i]);
	return true;
}

/* Since the administrator reset them: the workers' own go on. */
void show_count(struct ctl *ctl, struct core_counters *sum)
{
	const uint64_t *base = (const uint64_t *)&ctl->counted;
	uint64_t *to = (uint64_t *)sum;

	memset(sum, 0, sizeof(*sum));
	worker_counters(ctl->dp, sum);
	for (unsigned i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] -= base[i];
}

static json_t *counters(struct ctl *ctl, const struct admin_arg arg[])
{
	struct core_counters sum;
	const uint64_t *value = (const uint64_t *)&sum; /* by declaration order, as the names */
	json_t *o = json_object();
	const char *name;

	show_count(ctl, &sum);
	for (unsigned i = 0; o && (name = core_counter_name(i)); i++)
		json_object_set_new(o, name, json_integer((json_int_t)value[i]));
	return o;
}

const struct document_section show_pkeys = {.name = "pkeys", .next = next_pkey};
const struct document_section show_port_pkeys = {
	.name = "pkeys", .next = next_pkey, .keep = is_of_port};
const struct document_section show_priorities = {.name = "priorities", .next = next_priority};
const struct document_section show_congestion = {
	.name = "congestion control", .next = next_congestion};
const struct document_section show_port_priorities = {
	.name = "priorities", .next = next_priority, .keep = is_of_port};
const struct document_section show_version = {.name = "rocid", .object = version};
const struct document_section show_totals = {.name = "totals", .object = totals};
const struct document_section show_limits = {.name = "limits", .object = limits};
const struct document_section show_ports = {.name = "ports", .next = next_port};
const struct document_section show_gids = {.name = "gids", .next = next_gid};
const struct document_section show_workers = {.name = "workers", .next = next_worker};
const struct document_section show_counters = {.name = "counters", .object = counters};

const struct document_section show_port = {.name = "port", .next = next_port, .keep = is_of_port};
const struct document_section show_port_gids = {
	.name = "gids", .next = next_gid, .keep = is_of_port};
const struct document_section show_flows = {.name = "flows", .next = next_flow};
const struct document_section show_port_flows = {
	.name = "flows", .next = next_flow, .keep = is_of_port};
