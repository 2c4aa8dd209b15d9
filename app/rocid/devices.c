/* SPDX-License-Identifier: BSD-3-Clause */
/* Administrators' view of the ports' devices, and changes of their emulated links (ctl.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <jansson.h>
#include <rte_ethdev.h>
#include "daemon.h"
#include "gso/gso.h"
#include "row.h"
#include "rxwake.h"

static uint32_t refused(void *arg, uint32_t i, uint64_t now_ms, uint64_t within_ms)
{
	const struct daemon *d = arg;

	return unstick_refused(&d->port[i].unstick, now_ms, within_ms);
}

/* Of a port on a packet socket: frames that it sent as one to the kernel. */
static void put_runs(struct row *row, const struct daemon_port *p)
{
	struct gsoport_runs runs;

	if (!p->gso)
		return;
	gsoport_runs(p->gso, &runs);
	put_int(row, "runs", (int64_t)runs.sent);
	put_int(row, "trials", (int64_t)runs.trials);
	put_int(row, "answers", (int64_t)runs.answers);
}

static json_t *port(void *arg, uint32_t i)
{
	const struct daemon *d = arg;
	const struct daemon_port *p = &d->port[i];
	struct rte_eth_stats s = {0};
	struct row row;
	char text[128];

	port_stats(d->dp, i, &s);
	row_begin(&row);
	put_int(&row, "ethdev", p->info.ethdev);
	put_text(&row, "name", p->info.name);
	put_text(&row, "driver", p->info.driver);
	put_int(&row, "queues", p->info.rx_queues);
	put_bool(&row, "rss", p->info.rss);
	put_int(&row, "numa_node", p->info.socket);
	put_text(&row, "steering", steer_text(&p->steer, p->info.rss, text, sizeof(text)));
	put_text(&row, "wakes_workers",
		d->dp->idle == IDLE_ADAPTIVE ? rxwake_name(p->wake) : "not needed");
	put_int(&row, "ipackets", (int64_t)s.ipackets);
	put_int(&row, "opackets", (int64_t)s.opackets);
	put_int(&row, "ibytes", (int64_t)s.ibytes);
	put_int(&row, "obytes", (int64_t)s.obytes);
	put_int(&row, "imissed", (int64_t)s.imissed);
	put_int(&row, "ierrors", (int64_t)s.ierrors);
	put_int(&row, "oerrors", (int64_t)s.oerrors);
	put_int(&row, "refused", (int64_t)p->unstick.count);
	put_int(&row, "rx_nombuf", (int64_t)s.rx_nombuf);
	put_runs(&row, p);
	return row_end(&row);
}

static bool is_open(void *arg, uint32_t i)
{
	return ((const struct daemon *)arg)->port[i].open;
}

/* --- the emulated link ------------------------------------------------------------------ */

void devices_count_link(const struct daemon_port *p, struct linkemu_counters *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned q = 0; q < WORKER_MAX; q++)
		if (p->emu[q])
			linkemu_count(p->emu[q], sum);
}

void devices_put_link(struct row *row, const struct daemon_port *p)
{
	struct linkemu_counters sum;
	const uint64_t *value = (const uint64_t *)&sum; /* by declaration order, as the names */
	const char *name;

	devices_count_link(p, &sum);
	for (unsigned k = 0; (name = linkemu_counter_name(k)); k++)
		put_int(row, name, (int64_t)value[k]);
}

static json_t *emulated_link(void *arg, uint32_t i)
{
	const struct daemon *d = arg;
	char text[VALUE_MAX];
	struct row row;

	if (!d->opt->impaired[i])
		return json_null();
	row_begin(&row);
	put_text(&row, "impair", linkemu_text(&d->port[i].impair, text, sizeof(text)));
	devices_put_link(&row, &d->port[i]);
	return row_end(&row);
}

static int impair(void *arg, uint32_t i, const char *text, char why[ABI_SENTENCE_MAX])
{
	struct daemon *d = arg;
	struct daemon_port *p = &d->port[i];
	struct linkemu_config cfg;
	char reason[VALUE_MAX];

	if (!d->opt->impaired[i]) {
		snprintf(why, ABI_SENTENCE_MAX,
			"port %u has no emulated link: start rocid with --impair %u,seed=1", i + 1,
			p->info.ethdev);
		return -EOPNOTSUPP;
	}
	if (linkemu_parse(&cfg, strcmp(text, "none") ? text : "", reason, sizeof(reason))) {
		snprintf(why, ABI_SENTENCE_MAX, "%s", reason);
		return -EINVAL;
	}
	if (!linkemu_fits(&cfg, p->info.rx_queues, why, ABI_SENTENCE_MAX))
		return -EINVAL;
	if (cfg.spread && cfg.spread != p->impair.spread) {
		snprintf(why, ABI_SENTENCE_MAX,
			"spread cannot be changed while rocid runs: start it with --impair "
			"%u,spread=...",
			p->info.ethdev);
		return -EINVAL;
	}
	if (linkemu_holds(&cfg) && d->dp->idle == IDLE_ADAPTIVE && p->wake != PORT_WAKE_NOT) {
		snprintf(why, ABI_SENTENCE_MAX,
			"a sleeping worker would not be woken for delayed packets: start rocid "
			"with --impair %u,delay=1us, or without --idle adaptive",
			p->info.ethdev);
		return -EINVAL;
	}
	cfg.spread = p->impair.spread;
	p->impair = cfg;
	for (unsigned q = 0; q < WORKER_MAX; q++)
		if (p->emu[q])
			linkemu_change(p->emu[q], &cfg);
	worker_grace(d->dp);
	return 0;
}

/* --- steering --------------------------------------------------------------------------- */

/* The destination of the packets of rule @p index; without own rules, any queue. */
static const char *queue_text(
	const struct daemon_port *p, enum steer_rung rung, uint16_t index, char *text, size_t size)
{
	if (rung == STEER_RAW || rung == STEER_BTH)
		snprintf(text, size, "%u", index);
	else if (rung == STEER_QUEUE0 || p->info.rx_queues == 1)
		snprintf(text, size, "0");
	else
		snprintf(text, size, "0-%u", p->info.rx_queues - 1);
	return text;
}

static const char *match_text(
	enum steer_rung rung, enum steer_net net, uint16_t index, char *text, size_t size)
{
	const char *what = net == STEER_ROCEV1 ? "EtherType 0x8915" : "UDP port 4791";

	if (rung == STEER_RAW || rung == STEER_BTH)
		snprintf(text, size, "%s, QPs of worker %u", what, index);
	else
		snprintf(text, size, "%s", what);
	return text;
}

static json_t *flow_of(const struct daemon *d, uint32_t i, enum steer_net net, uint16_t index)
{
	const struct daemon_port *p = &d->port[i];
	enum steer_rung rung = p->steer.rung[net];
	char match[64], queue[16];
	uint64_t packets, bytes;
	struct row row;
	bool counts = steer_count(&p->steer, p->info.ethdev, net, index, &packets, &bytes);

	row_begin(&row);
	put_int(&row, "port", i + 1);
	put_text(&row, "protocol", steer_net_name(net));
	put_text(&row, "by", steer_rung_name(rung, net, p->info.rss));
	put_text(&row, "match", match_text(rung, net, index, match, sizeof(match)));
	put_text(&row, "queue", queue_text(p, rung, index, queue, sizeof(queue)));
	put_json(&row, "packets", counts ? json_integer((json_int_t)packets) : json_null());
	put_json(&row, "bytes", counts ? json_integer((json_int_t)bytes) : json_null());
	return row_end(&row);
}

/* One row per rule; one for a protocol without rules. */
static bool flow(void *arg, uint32_t i, json_t **element)
{
	const struct daemon *d = arg;

	for (uint32_t port = 0; port < d->nports; port++) {
		const struct daemon_port *p = &d->port[port];

		for (enum steer_net net = 0; net < STEER_NETS; net++) {
			uint16_t rules = steer_rules(p->steer.rung[net], net, p->info.rx_queues);
			uint16_t rows = rules ? rules : 1;

			if (i < rows) {
				*element = flow_of(d, port, net, (uint16_t)i);
				return true;
			}
			i -= rows;
		}
	}
	return false;
}

void devices_init(struct ctl_devices *devices, struct daemon *d)
{
	*devices = (struct ctl_devices){
		d, port, is_open, emulated_link, flow, ribs_show, impair, daemon_look, refused};
}
