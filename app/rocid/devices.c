/* SPDX-License-Identifier: BSD-3-Clause */
/* Administrators' view of the ports' devices, and changes of their emulated links (ctl.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <jansson.h>
#include <rte_ethdev.h>
#include "daemon.h"
#include "rxwake.h"

/* json_pack()'s I. */
#define N(n) ((json_int_t)(n))

static uint32_t refused(void *arg, uint32_t i, uint64_t now_ms, uint64_t within_ms)
{
	const struct daemon *d = arg;

	return unstick_refused(&d->port[i].unstick, now_ms, within_ms);
}

static json_t *port(void *arg, uint32_t i)
{
	const struct daemon *d = arg;
	const struct daemon_port *p = &d->port[i];
	struct rte_eth_stats s = {0};
	char text[128];

	port_stats(d->dp, i, &s);
	return json_pack("{s:I, s:s, s:s, s:I, s:b, s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, "
			 "s:I, s:I, s:I}",
		"ethdev", N(p->info.ethdev), "name", p->info.name, "driver", p->info.driver,
		"queues", N(p->info.rx_queues), "rss", p->info.rss, "numa_node", N(p->info.socket),
		"steering", steer_text(&p->steer, p->info.rss, text, sizeof(text)), "wakes_workers",
		d->dp->idle == IDLE_ADAPTIVE ? rxwake_name(p->wake) : "not needed", "ipackets",
		N(s.ipackets), "opackets", N(s.opackets), "ibytes", N(s.ibytes), "obytes",
		N(s.obytes), "imissed", N(s.imissed), "ierrors", N(s.ierrors), "oerrors",
		N(s.oerrors), "refused", N(p->unstick.count), "rx_nombuf", N(s.rx_nombuf));
}

static bool is_open(void *arg, uint32_t i)
{
	return ((const struct daemon *)arg)->port[i].open;
}

/* --- the emulated link ------------------------------------------------------------------ */

static json_t *emulated_link(void *arg, uint32_t i)
{
	const struct daemon *d = arg;
	const struct daemon_port *p = &d->port[i];
	struct linkemu_counters sum = {0};
	const uint64_t *value = (const uint64_t *)&sum; /* by declaration order, as the names */
	char text[VALUE_MAX];
	const char *name;
	json_t *o;

	if (!d->opt->impaired[i])
		return json_null();
	for (unsigned q = 0; q < WORKER_MAX; q++)
		if (p->emu[q])
			linkemu_count(p->emu[q], &sum);
	o = json_pack("{s:s}", "impair", linkemu_text(&p->impair, text, sizeof(text)));
	for (unsigned k = 0; o && (name = linkemu_counter_name(k)); k++)
		json_object_set_new(o, name, json_integer(N(value[k])));
	return o;
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
	bool counts = steer_count(&p->steer, p->info.ethdev, net, index, &packets, &bytes);

	return json_pack("{s:I, s:s, s:s, s:s, s:s, s:o, s:o}", "port", N(i + 1), "protocol",
		steer_net_name(net), "by", steer_rung_name(rung, net, p->info.rss), "match",
		match_text(rung, net, index, match, sizeof(match)), "queue",
		queue_text(p, rung, index, queue, sizeof(queue)), "packets",
		counts ? json_integer(N(packets)) : json_null(), "bytes",
		counts ? json_integer(N(bytes)) : json_null());
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
		d, port, is_open, emulated_link, flow, impair, daemon_look, refused};
}
