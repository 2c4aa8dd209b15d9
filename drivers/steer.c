/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <rte_ethdev.h>
#include "bits.h"
#include "core.h"
#include "headers.h"
#include "qp_table.h"
#include "steer.h"

/* The reserved byte and DestQP as one field: its offset is even, as some NICs require. */
#define DESTQP_AT BTH_RESV8A
/* The bits of a QPN that name its home. */
#define WORKER_BITS QPN_MAKE(0, WORKER_MAX - 1, 0)

/* --- rules as data -------------------------------------------------------------------- */

static bool by_destqp(enum steer_rung rung)
{
	return rung == STEER_RAW || rung == STEER_BTH;
}

uint16_t steer_rules(enum steer_rung rung, enum steer_net net, uint16_t queues)
{
	switch (rung) {
	case STEER_QUEUE0:
		return queues == 1 || net == STEER_ROCEV1;
	case STEER_RSS:
		return queues > 1 && net != STEER_ROCEV1;
	case STEER_RAW:
		return queues > 1 ? queues : 0;
	case STEER_BTH:
#ifdef HAVE_FLOW_ITEM_IB_BTH
		return queues > 1 && net != STEER_ROCEV1 ? queues : 0; /* it follows UDP */
#endif
	default:
		return 0;
	}
}

/* Ethernet, IP and UDP, or the EtherType of RoCEv1.  Returns the number of items. */
static unsigned match_net(struct steer_rule *r, enum steer_net net)
{
	struct rte_flow_item *p = r->pattern;

	p[0].type = RTE_FLOW_ITEM_TYPE_ETH;
	if (net == STEER_ROCEV1) {
		r->eth.type = RTE_BE16(ETHERTYPE_ROCEV1);
		r->eth_mask.type = RTE_BE16(UINT16_MAX);
		p[0].spec = &r->eth;
		p[0].mask = &r->eth_mask;
		return 1;
	}
	p[1].type = net == STEER_IPV4 ? RTE_FLOW_ITEM_TYPE_IPV4 : RTE_FLOW_ITEM_TYPE_IPV6;
	p[2].type = RTE_FLOW_ITEM_TYPE_UDP;
	r->udp.hdr.dst_port = RTE_BE16(UDP_PORT_ROCEV2);
	r->udp_mask.hdr.dst_port = RTE_BE16(UINT16_MAX);
	p[2].spec = &r->udp;
	p[2].mask = &r->udp_mask;
	return 3;
}

/* The last item: QPNs whose home is @p worker. */
static void match_raw(
	struct steer_rule *r, struct rte_flow_item *p, enum steer_net net, uint16_t worker)
{
	put_be32(r->bytes, QPN_MAKE(0, worker, 0));
	put_be32(r->bytes_mask, WORKER_BITS);
	r->raw = (struct rte_flow_item_raw){
		.relative = 1,
		.offset = DESTQP_AT + (net == STEER_ROCEV1 ? IP6_HLEN : 0), /* of the GRH */
		.length = sizeof(r->bytes),
		.pattern = r->bytes,
	};
	r->raw_mask = rte_flow_item_raw_mask;
	r->raw_mask.pattern = r->bytes_mask;
	p->type = RTE_FLOW_ITEM_TYPE_RAW;
	p->spec = &r->raw;
	p->mask = &r->raw_mask;
}

#ifdef HAVE_FLOW_ITEM_IB_BTH
static void match_bth(struct steer_rule *r, struct rte_flow_item *p, uint16_t worker)
{
	uint8_t qpn[4];

	put_be32(qpn, QPN_MAKE(0, worker, 0));
	memcpy(r->bth.hdr.dst_qp, qpn + 1, 3);
	put_be32(qpn, WORKER_BITS);
	memcpy(r->bth_mask.hdr.dst_qp, qpn + 1, 3);
	p->type = RTE_FLOW_ITEM_TYPE_IB_BTH;
	p->spec = &r->bth;
	p->mask = &r->bth_mask;
}
#endif

static void act(struct steer_rule *r, enum steer_rung rung, uint16_t index, uint16_t queues)
{
	r->action[1].type = RTE_FLOW_ACTION_TYPE_END;
	if (rung != STEER_RSS) {
		r->to_queue.index = index;
		r->action[0].type = RTE_FLOW_ACTION_TYPE_QUEUE;
		r->action[0].conf = &r->to_queue;
		return;
	}
	for (uint16_t i = 0; i < queues; i++)
		r->queue[i] = i;
	r->rss = (struct rte_flow_action_rss){
		.types = RTE_ETH_RSS_UDP, .queue_num = queues, .queue = r->queue};
	r->action[0].type = RTE_FLOW_ACTION_TYPE_RSS;
	r->action[0].conf = &r->rss;
}

void steer_rule(struct steer_rule *r, enum steer_rung rung, enum steer_net net, uint16_t index,
	uint16_t queues)
{
	unsigned n;

	memset(r, 0, sizeof(*r));
	n = match_net(r, net);
	if (rung == STEER_RAW)
		match_raw(r, &r->pattern[n++], net, index);
#ifdef HAVE_FLOW_ITEM_IB_BTH
	if (rung == STEER_BTH)
		match_bth(r, &r->pattern[n++], index);
#endif
	r->pattern[n].type = RTE_FLOW_ITEM_TYPE_END;
	act(r, rung, by_destqp(rung) ? index : 0, queues);
}

/* --- the ladder ----------------------------------------------------------------------- */

static struct rte_flow *install(uint16_t ethdev, const struct steer_rule *r, bool counts)
{
	const struct rte_flow_attr attr = {.ingress = 1};
	const struct rte_flow_action counted[] = {
		{.type = RTE_FLOW_ACTION_TYPE_COUNT},
		r->action[0],
		{.type = RTE_FLOW_ACTION_TYPE_END},
	};
	const struct rte_flow_action *action = counts ? counted : r->action;
	struct rte_flow_error err;

	/* Both: net_tap accepts validate but refuses create. */
	if (rte_flow_validate(ethdev, &attr, r->pattern, action, &err))
		return NULL;
	return rte_flow_create(ethdev, &attr, r->pattern, action, &err);
}

/* All rules of a rung or none: with half of them the other half's QPs would be steered at
 * random. */
static bool stand_on(struct steer *s, uint16_t ethdev, enum steer_rung rung, enum steer_net net,
	uint16_t queues, bool counts)
{
	struct rte_flow **flow = s->flow[net];
	uint16_t all = steer_rules(rung, net, queues);
	uint16_t n = 0;
	struct steer_rule r;
	struct rte_flow_error err;

	s->counts[net] = counts;
	do {
		if (n == all)
			return all;
		steer_rule(&r, rung, net, n, queues);
		flow[n] = install(ethdev, &r, counts);
	} while (flow[n++]);
	while (--n)
		rte_flow_destroy(ethdev, flow[n - 1], &err);
	return false;
}

/* Try a rule that counts, but do not give up the rung if it is refused. */
static bool stand_counting(
	struct steer *s, uint16_t ethdev, enum steer_rung rung, enum steer_net net, uint16_t queues)
{
	return stand_on(s, ethdev, rung, net, queues, true) ||
	       stand_on(s, ethdev, rung, net, queues, false);
}

void steer_install(struct steer *s, uint16_t ethdev, uint16_t queues)
{
	for (enum steer_net net = 0; net < STEER_NETS; net++) {
		enum steer_rung rung = STEER_RUNGS - 1;

		while (rung != STEER_SOFTWARE && !stand_counting(s, ethdev, rung, net, queues))
			rung--;
		s->rung[net] = rung;
	}
}

bool steer_count(const struct steer *s, uint16_t ethdev, enum steer_net net, uint16_t index,
	uint64_t *packets, uint64_t *bytes)
{
	const struct rte_flow_action action[] = {
		{.type = RTE_FLOW_ACTION_TYPE_COUNT},
		{.type = RTE_FLOW_ACTION_TYPE_END},
	};
	struct rte_flow_query_count count = {0};
	struct rte_flow_error err;

	if (s->rung[net] == STEER_SOFTWARE || !s->counts[net] ||
		rte_flow_query(ethdev, s->flow[net][index], action, &count, &err) ||
		!count.hits_set)
		return false;
	*packets = count.hits;
	*bytes = count.bytes_set ? count.bytes : 0;
	return true;
}

/* --- names ----------------------------------------------------------------------- */

const char *steer_rung_name(enum steer_rung rung, enum steer_net net, bool rss)
{
	static const char *const name[STEER_RUNGS] = {
		[STEER_SOFTWARE] = "software",
		[STEER_QUEUE0] = "rte_flow",
		[STEER_RSS] = "rte_flow to RSS",
		[STEER_RAW] = "rte_flow by DestQP (raw)",
		[STEER_BTH] = "rte_flow by DestQP",
	};

	return rss && rung == STEER_SOFTWARE && net != STEER_ROCEV1 ? "RSS" : name[rung];
}

const char *steer_net_name(enum steer_net net)
{
	static const char *const name[STEER_NETS] = {"IPv4", "IPv6", "RoCEv1"};

	return name[net];
}

char *steer_text(const struct steer *s, bool rss, char *text, unsigned size)
{
	unsigned used = 0;

	if (!rss && s->rung[0] == s->rung[1] && s->rung[0] == s->rung[2]) {
		snprintf(text, size, "%s", steer_rung_name(s->rung[0], STEER_IPV4, rss));
		return text;
	}
	for (enum steer_net net = 0; net < STEER_NETS && used < size; net++)
		used += (unsigned)snprintf(text + used, size - used, "%s%s: %s", net ? ", " : "",
			steer_net_name(net), steer_rung_name(s->rung[net], net, rss));
	return text;
}
