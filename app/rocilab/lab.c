/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include "abi_ctl.h"
#include "buffer.h"
#include "cc.h"
#include "cq.h"
#include "headers.h"
#include "host.h"
#include "icrc.h"
#include "ioam.h"
#include "endpoint.h"
#include "lab.h"
#include "lab_flow.h"
#include "lab_host.h"
#include "memory.h"
#include "mr.h"
#include "network.h"
#include "nic.h"
#include "notify.h"
#include "random.h"
#include "scenario.h"
#include "sizes.h"
#include "switch_list.h"
#include "wire.h"

#define IOVA   0x7F0000000000ull
#define MR_KEY 0x131u

/* Frames that exist at the same time: many times the window of each flow. Untouched pages cost
 * nothing. */
#define FRAMES_BYTES (1ull << 30)

static void news(struct sim_nic *n, uint64_t now)
{
	flow_news(n->arg, now);
}

static uint64_t longest_message(const struct scenario *s)
{
	uint64_t len = s->mtu; /* that of a datagram */

	for (unsigned i = 0; i < s->flow_lines; i++)
		if (s->flow[i].size > len)
			len = s->flow[i].size;
	for (unsigned i = 0; i < s->traffic_lines; i++)
		if (sizes_most(&s->traffic[i].sizes) > len)
			len = sizes_most(&s->traffic[i].sizes);
	for (unsigned i = 0; i < s->traffic_lines; i++)
		for (unsigned k = 0; k < s->traffic[i].flows; k++)
			if (s->traffic[i].flow[k].size > len)
				len = s->traffic[i].flow[k].size;
	return len + GRH_HLEN;
}

unsigned lab_headers(const struct lab *l)
{
	bool telemetry = l->s->control && l->s->cc.ops->wants_hops;

	return ETH_HLEN + (l->s->ip6 ? IP6_HLEN : IP4_HLEN) + (telemetry ? IOAM_LEN : 0) +
	       UDP_HLEN + BTH_HLEN + ICRC_LEN + WIRE_OVERHEAD;
}

double lab_payload(const struct lab *l, const struct lab_flow *f)
{
	return f->full ? (double)f->bytes / (double)f->full : (double)l->s->mtu;
}

uint64_t lab_rate(const struct lab *l, uint32_t host)
{
	return l->host[host].nic.out.cfg.rate_bps;
}

/* --- hosts ------------------------------------------------------------------------------ */

static void congestion(struct lab *l, struct lab_host *h)
{
	const struct cc_config *cc = &l->cc[0];
	struct port *port = &h->host->ports.port[0];
	double interval = cc_config_notice(cc, "np_min_time_between_cnps");

	atomic_store(&port->cc, cc);
	atomic_store(&port->burst, (uint32_t)l->s->quantum);
	atomic_store(&port->rcm, rcm_word(48 << 2, 6, true));
	if (l->s->fastcnp)
		atomic_store(&port->switches, l->listed);
	atomic_store(&port->cnp_interval, (uint32_t)(interval * 1000));
}

/* All messages use the same memory: their contents do not matter, and this machine's caches do not
 * model those of the hosts. */
static void region(struct lab *l, struct lab_host *h)
{
	h->mr = (struct mr){.key = MR_KEY,
		.pd = LAB_PD,
		.access = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ,
		.iova = IOVA,
		.length = longest_message(l->s),
		.base = l->messages};
	atomic_store(&h->host->mrs.slot[MR_KEY >> 8], &h->mr);
}

static bool completions(struct lab *l, struct lab_host *h)
{
	size_t size;

	h->cq_depth = round_pow2(8 * (h->posts + 1) + 2 * RECEIVES * h->receives);
	size = sizeof(*h->cq_shared) + sizeof(struct abi_cq_lane) +
	       h->cq_depth * sizeof(struct abi_cqe);
	h->cq_shared = calloc(1, size);
	if (!h->cq_shared)
		return false;
	h->cq.arm = &h->cq_shared->arm;
	h->cq.channel = ABI_NO_HANDLE;
	h->cq.lanes = 1;
	cq_lane_init(&h->cq, 0, (struct abi_cq_lane *)(h->cq_shared + 1), h->cq_depth);
	return true;
}

/* Hosts accept Fast CNPs of all switches, at any rate. */
static void list_switches(struct switch_list *s)
{
	const uint64_t most = 1000000000;

	*s = (struct switch_list){.type = {NOTIFY_OPTION, NOTIFY_OPTION + 1}, .n = 1};
	memcpy(s->entry[0].addr, notify_prefix, sizeof(s->entry[0].addr));
	s->entry[0].prefix = 64;
	bucket_init(&s->entry[0].bucket, most, most);
	bucket_init(&s->all, most, most);
}

static bool host_make(struct lab *l, unsigned index)
{
	struct lab_host *h = &l->host[index];
	h->lab = l;
	h->host = memory_take(&l->memory, sizeof(*h->host));
	if (!h->host || !completions(l, h))
		return false;
	host_init(h->host, (uint16_t)(index + 1), icrc_best(), l->engine.now);
	if (l->s->control)
		congestion(l, h);
	region(l, h);
	nic_init(&h->nic, h->host, &l->pool, h->header);
	h->nic.news = news;
	h->nic.arg = h;
	return true;
}

/* --- flows ------------------------------------------------------------------------------ */

static bool flows_make(struct lab *l)
{
	struct random random = {.state = l->s->seed * 0x9E3779B97F4A7C15ull | 1};

	for (unsigned i = 0; i < l->flows; i++) {
		struct lab_flow *f = &l->flow[i];
		uint64_t spread = f->line->start[1] - f->line->start[0] + 1;

		ideal_find(l, f);
		if (!flow_init(l, f,
			    l->engine.now + f->line->start[0] + random_below(&random, spread)))
			return false;
	}
	return place_sources(l);
}

/* --- the whole -------------------------------------------------------------------------- */

/* The most rules that are set at once. */
static uint32_t count_events(const struct lab *l)
{
	const uint32_t per_nic = 5, per_port = 2;

	return per_nic * l->hosts + per_port * l->ports + l->flows +
	       l->s->traffic_lines * l->hosts + 2;
}

static bool memory_make(struct lab *l)
{
	const struct scenario *s = l->s;
	size_t samples = (s->to - s->from) / LAB_SAMPLE + 1;
	uint32_t events;

	l->hosts = s->net.hosts;
	for (uint32_t i = 0; i < s->net.switches; i++)
		l->ports += net_ports(&s->net, i);
	l->flows = place_count(s);
	events = count_events(l);
	l->heap = calloc(events, sizeof(*l->heap));
	l->place = calloc(events + 1, sizeof(*l->place));
	l->frames = memory_take(&l->memory, FRAMES_BYTES);
	l->messages = calloc(1, longest_message(s));
	l->host = calloc(l->hosts, sizeof(*l->host));
	l->flow = calloc(l->flows, sizeof(*l->flow));
	l->share = calloc(samples * l->flows + 1, sizeof(*l->share));
	l->util = calloc(samples * l->ports + 1, sizeof(*l->util));
	l->passed = calloc(l->ports, sizeof(*l->passed));
	l->looked = calloc(s->expects + 1, sizeof(*l->looked));
	l->listed = calloc(1, sizeof(*l->listed));
	if (!l->heap || !l->place || !l->frames || !l->messages || !l->host || !l->flow ||
		!l->share || !l->util || !l->passed || !l->looked || !l->listed)
		return false;
	engine_init(&l->engine, l->heap, l->place, events, LAB_START);
	pool_init(&l->pool, l->frames, FRAMES_BYTES);
	l->luck.state = s->seed * 0xD1342543DE82EF95ull | 1;
	return true;
}

static bool build(struct lab *l)
{
	if (!memory_make(l) || !place_flows(l))
		return false;
	list_switches(l->listed);
	for (unsigned i = 0; i < l->hosts; i++)
		if (!host_make(l, i))
			return false;
	return plug_all(l) && flows_make(l);
}

struct lab *lab_make(const struct scenario *s)
{
	struct lab *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->s = s;
	if (s->control) {
		l->cc[0] = s->cc;
		cc_config_unacked(&l->cc[0], &l->cc[1]);
	}
	if (!build(l)) {
		lab_free(l);
		return NULL;
	}
	return l;
}

void lab_free(struct lab *l)
{
	for (unsigned i = 0; l->flow && i < l->flows; i++)
		flow_free(&l->flow[i]);
	for (unsigned i = 0; l->host && i < l->hosts; i++)
		free(l->host[i].cq_shared);
	free(l->heap);
	free(l->place);
	free(l->messages);
	plug_free(l);
	free(l->host);
	free(l->flow);
	free(l->by_source);
	free(l->source);
	free(l->slowdown);
	free(l->share);
	free(l->util);
	free(l->passed);
	free(l->looked);
	free(l->listed);
	memory_free(&l->memory);
	free(l);
}
