/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_ethdev.h>
#include <rte_flow.h>
#include "headers.h"
#include "limits.h"
#include "steer.h"

static bool install(uint16_t ethdev, const struct rte_flow_item pattern[], uint16_t queues)
{
	const struct rte_flow_attr attr = {.ingress = 1};
	const struct rte_flow_action_queue to_queue = {.index = 0};
	struct rte_flow_action_rss rss = {.types = RTE_ETH_RSS_UDP, .queue_num = queues};
	struct rte_flow_action action[2] = {
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to_queue},
		{.type = RTE_FLOW_ACTION_TYPE_END},
	};
	uint16_t queue[WORKER_MAX];
	struct rte_flow_error err;

	if (queues > 1) {
		for (uint16_t i = 0; i < queues; i++)
			queue[i] = i;
		rss.queue = queue;
		action[0].type = RTE_FLOW_ACTION_TYPE_RSS;
		action[0].conf = &rss;
	}
	/* Both: net_tap says yes to validate and no to create. */
	return !rte_flow_validate(ethdev, &attr, pattern, action, &err) &&
	       rte_flow_create(ethdev, &attr, pattern, action, &err);
}

static bool install_udp(uint16_t ethdev, enum rte_flow_item_type ip, uint16_t queues)
{
	const struct rte_flow_item_udp spec = {.hdr.dst_port = RTE_BE16(UDP_PORT_ROCEV2)};
	const struct rte_flow_item_udp mask = {.hdr.dst_port = RTE_BE16(UINT16_MAX)};
	const struct rte_flow_item pattern[] = {
		{.type = RTE_FLOW_ITEM_TYPE_ETH},
		{.type = ip},
		{.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &spec, .mask = &mask},
		{.type = RTE_FLOW_ITEM_TYPE_END},
	};

	return install(ethdev, pattern, queues);
}

/* RSS has nothing to hash in RoCEv1, so it goes to one queue. */
static bool install_rocev1(uint16_t ethdev)
{
	const struct rte_flow_item_eth spec = {.type = RTE_BE16(ETHERTYPE_ROCEV1)};
	const struct rte_flow_item_eth mask = {.type = RTE_BE16(UINT16_MAX)};
	const struct rte_flow_item pattern[] = {
		{.type = RTE_FLOW_ITEM_TYPE_ETH, .spec = &spec, .mask = &mask},
		{.type = RTE_FLOW_ITEM_TYPE_END},
	};

	return install(ethdev, pattern, 1);
}

unsigned steer_install(uint16_t ethdev, uint16_t queues)
{
	unsigned rungs = 0;

	if (install_udp(ethdev, RTE_FLOW_ITEM_TYPE_IPV4, queues))
		rungs |= STEER_UDP4;
	if (install_udp(ethdev, RTE_FLOW_ITEM_TYPE_IPV6, queues))
		rungs |= STEER_UDP6;
	if (install_rocev1(ethdev))
		rungs |= STEER_ROCEV1;
	return rungs;
}

const char *steer_name(unsigned rungs)
{
	if (rungs == STEER_ALL)
		return "rte_flow";
	return rungs ? "rte_flow (partly) and software" : "software";
}
