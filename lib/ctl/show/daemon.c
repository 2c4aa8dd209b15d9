/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon itself as documents: version, totals, ports, GIDs, workers, counters. */
#include <string.h>
#include <unistd.h>
#include "config/config.h"
#include "config/ctl_parts.h"
#include "core.h"
#include "list.h"
#include "loop/loop.h"
#include "mr.h"
#include "net/congestion.h"
#include "net/gids.h"
#include "net/net.h"
#include "net/netport.h"
#include "net/priority.h"
#include "row.h"
#include "session/quota.h"
#include "session/session.h"
#include "session/sessions.h"
#include "show/show.h"
#include "text/sentence.h"
#include "verbs/objects.h"
#include "worker.h"

static json_t *version(struct ctl *ctl, const struct argument arg[])
{
	struct row row;

	row_begin(&row);
	put_text(&row, "version", ROCINANTE_VERSION);
	put_int(&row, "abi", ABI_VERSION);
	put_int(&row, "pid", getpid());
	put_int(&row, "workers", ctl->dp->nworkers);
	put_int(&row, "up_s", (loop_now_ms() - ctl->since_ms) / 1000);
	return row_end(&row);
}

/* Published regions, counted in the table that workers use: none may outlive its session. */
static uint32_t count_keys(const struct mr_table *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MR_MAX; i++)
		n += atomic_load_explicit(&t->slot[i], memory_order_relaxed) != NULL;
	return n;
}

struct sum {
	json_int_t sessions, mrs, cqs, srqs, qps, channels, bytes, mr_bytes, resolving, cm_ids,
		connections;
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
	t->cm_ids += (json_int_t)s->used[CTL_CM_IDS];
	t->connections += (json_int_t)s->used[CTL_CONNECTIONS];
}

/* Each value returns to zero once the last application has gone and its session is closed. */
static json_t *totals(struct ctl *ctl, const struct argument arg[])
{
	struct row row;
	struct sum t = {0}, own = {0};

	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (ctl->sessions->session[i])
			add_session(ctl->sessions->session[i]->own ? &own : &t,
				ctl->sessions->session[i]);
	for (struct list *l = ctl->sessions->closing.next; l != &ctl->sessions->closing;
		l = l->next)
		add_session(&t, container_of(l, struct session, node));
	row_begin(&row);
	put_int(&row, "sessions", t.sessions);
	put_int(&row, "pds", ctl->objects->pds.used - own.sessions); /* one per session */
	put_int(&row, "mrs", t.mrs);
	put_int(&row, "mr_keys", count_keys(ctl->dp->mrs) - own.mrs);
	put_int(&row, "cqs", t.cqs);
	put_int(&row, "srqs", t.srqs);
	put_int(&row, "qps", t.qps);
	put_int(&row, "qpns", QP_MAX - ctl->objects->qpns.count - own.qps);
	put_int(&row, "channels", t.channels);
	put_int(&row, "queue_bytes", t.bytes);
	put_int(&row, "mr_bytes", t.mr_bytes);
	put_int(&row, "resolving", t.resolving);
	put_int(&row, "cm_ids", t.cm_ids);
	put_int(&row, "connections", t.connections);
	return row_end(&row);
}

/* null: no limit. */
static json_t *limits(struct ctl *ctl, const struct argument arg[])
{
	struct ctl_limits l = ctl->sessions->quota.limits;
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
	return p->up ? "ACTIVE" : ctl->net->disabled[p->index] ? "DISABLED" : "DOWN";
}

static bool next_port(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	const struct netport *p;

	if (at->index >= ctl->net->nports)
		return false;
	p = &ctl->net->port[at->index++];
	row_begin(&row);
	put_int(&row, "port", p->index + 1);
	put_text(&row, "netdev", p->netdev);
	put_text(&row, "state", port_state(ctl, p));
	put_mac(&row, "mac", p->mac);
	put_int(&row, "mtu", p->eth_mtu);
	put_int(&row, "path_mtu", netport_mtu(p));
	put_int(&row, "speed_mbps", p->speed_mbps);
	*element = row_end(&row);
	return true;
}

/* at->slot: the port. */
static bool next_gid(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;

	for (; at->slot < ctl->net->nports; at->slot++, at->index = 0) {
		const struct gids *g = &ctl->net->port[at->slot].gids;

		while (at->index < GID_MAX) {
			uint32_t i = at->index++;
			const struct gid_entry *e = &g->table.entry[i];
			char text[GID_TEXT];

			if (!e->valid && !g->users[i])
				continue;
			row_begin(&row);
			put_int(&row, "port", at->slot + 1);
			put_int(&row, "index", i);
			put_text(&row, "gid", gid_text(e->gid, text));
			put_text(&row, "type", gid_type_name(e->net));
			put_int(&row, "vid", e->vid);
			put_int(&row, "qps", g->users[i]);
			put_bool(&row, "valid", e->valid);
			*element = row_end(&row);
			return true;
		}
	}
	return false;
}

/* at->slot: the port. Empty entries are left out. */
static bool next_pkey(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;

	for (; at->slot < ctl->net->nports; at->slot++, at->index = 0) {
		const struct port *p = ctl->net->port[at->slot].shared;

		while (at->index < p->pkeys) {
			uint32_t i = at->index++;
			uint16_t pkey = p->pkey[i];

			if (!pkey_valid(pkey))
				continue;
			row_begin(&row);
			put_int(&row, "port", at->slot + 1);
			put_int(&row, "index", i);
			put_hex(&row, "pkey", pkey, 4);
			put_text(&row, "member", pkey & 0x8000 ? "full" : "limited");
			*element = row_end(&row);
			return true;
		}
	}
	return false;
}

static bool next_priority(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	char text[PRIORITY_TEXT];

	if (at->index >= ctl->net->nports)
		return false;
	row_begin(&row);
	put_int(&row, "port", at->index + 1);
	put_text(&row, "priorities", priority_text(&ctl->net->port[at->index].priority, text));
	*element = row_end(&row);
	at->index++;
	return true;
}

static bool next_congestion(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	char text[CONGESTION_TEXT];

	if (at->index >= ctl->net->nports)
		return false;
	row_begin(&row);
	put_int(&row, "port", at->index + 1);
	put_text(&row, "cc", congestion_text(ctl->net->port[at->index].congestion, text));
	*element = row_end(&row);
	at->index++;
	return true;
}

/* Whether an element belongs to the port that is the first argument. */
static bool is_of_port(const struct argument arg[], const json_t *element)
{
	return json_integer_value(json_object_get(element, "port")) == (json_int_t)arg[0].number;
}

/* The rules that steer packets to the queues of the ports' devices. */
static bool next_flow(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	const struct ctl_devices *d = ctl->devices;

	return d && d->flow(d->arg, at->index++, element);
}

/* The IP over InfiniBand netdevs. */
static bool next_ipoib(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	const struct ctl_devices *d = ctl->devices;

	return d && d->ipoib && d->ipoib(d->arg, at->index++, element);
}

/* --- workers and counters --------------------------------------------------------------- */

static bool next_worker(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row row;
	uint32_t i = at->index++;

	if (i >= ctl->dp->nworkers)
		return false;
	row_begin(&row);
	put_int(&row, "worker", i);
	put_text(&row, "state", worker_running(ctl->dp->worker[i]) ? "running" : "stopped");
	put_int(&row, "qps", ctl->objects->worker_qps[i]);
	*element = row_end(&row);
	return true;
}

/* Counts since the administrator's last reset; the workers' own counters never restart. */
void show_count(struct ctl *ctl, struct core_counters *sum)
{
	const uint64_t *base = (const uint64_t *)ctl->counted;
	uint64_t *to = (uint64_t *)sum;

	memset(sum, 0, sizeof(*sum));
	worker_counters(ctl->dp, sum);
	for (unsigned i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] -= base[i];
}

static json_t *counters(struct ctl *ctl, const struct argument arg[])
{
	struct core_counters sum;
	const uint64_t *value = (const uint64_t *)&sum; /* in declaration order, as the names are */
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
const struct document_section show_ipoib = {.name = "ipoib", .next = next_ipoib};
const struct document_section show_port_flows = {
	.name = "flows", .next = next_flow, .keep = is_of_port};
