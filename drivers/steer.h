/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file steer.h
 * Asks a NIC to steer RoCE packets to our queues: a ladder of rte_flow rules, of which a port uses
 * the best rung that it accepts, for each protocol. Nothing depends on them: workers hand over
 * packets that arrive on the wrong queue, and QPs move to where their packets arrive (decision
 * 0040).
 */
#ifndef STEER_H
#define STEER_H

#include <stdbool.h>
#include <stdint.h>
#include <rte_flow.h>
#include "limits.h"

enum steer_net {
	STEER_IPV4,
	STEER_IPV6,
	STEER_ROCEV1,
	STEER_NETS,
};

/** Best last. */
enum steer_rung {
	STEER_SOFTWARE, /* no rule */
	STEER_QUEUE0,	/* RoCE packets -> queue 0, separate from other traffic */
	STEER_RSS, /* RoCE packets -> all queues, by their flow; not RoCEv1, which has no ports */
	STEER_RAW, /* the worker bits of BTH.DestQP -> queue, matched by offset */
	STEER_BTH, /* the same, if DPDK has an item for the BTH (23.07) */
	STEER_RUNGS,
};

/** A rule and everything that it points to: it must not be copied. */
struct steer_rule {
	struct rte_flow_item pattern[5];
	struct rte_flow_action action[2];
	struct rte_flow_item_eth eth, eth_mask;
	struct rte_flow_item_udp udp, udp_mask;
	struct rte_flow_item_raw raw, raw_mask;
	uint8_t bytes[4], bytes_mask[4];
#ifdef HAVE_FLOW_ITEM_IB_BTH
	struct rte_flow_item_ib_bth bth, bth_mask;
#endif
	struct rte_flow_action_queue to_queue;
	struct rte_flow_action_rss rss;
	uint16_t queue[WORKER_MAX];
};

/** The rungs that a port uses. */
struct steer {
	enum steer_rung rung[STEER_NETS];
	struct rte_flow *flow[STEER_NETS][WORKER_MAX]; /* the rules of that rung */
	bool counts[STEER_NETS];		       /* they count */
};

/** @return how many rules rung @p rung has for @p net on a port with @p queues queues; 0: it is not
 * in this ladder. */
uint16_t steer_rules(enum steer_rung rung, enum steer_net net, uint16_t queues);

/** Fills @p r with rule @p index of those: with several, the one for queue @p index. */
void steer_rule(struct steer_rule *r, enum steer_rung rung, enum steer_net net, uint16_t index,
	uint16_t queues);

/** Installs on started port @p ethdev the best rung that it accepts over its first @p queues
 * queues. Rungs that it accepts only in part are removed. */
void steer_install(struct steer *s, uint16_t ethdev, uint16_t queues);

/** Asks port @p ethdev how many packets, and bytes, rule @p index of @p net has steered. The thread
 * that installed it. @return false if the port does not count. */
bool steer_count(const struct steer *s, uint16_t ethdev, enum steer_net net, uint16_t index,
	uint64_t *packets, uint64_t *bytes);

/** @return the name of a protocol, and of a rung on a port that spreads the rest by RSS or not.
 */
const char *steer_net_name(enum steer_net net);
const char *steer_rung_name(enum steer_rung rung, enum steer_net net, bool rss);

/**
 * Writes the description of @p s for the banner. @param rss the port spreads by RSS packets that no
 * rule steers
 * @return @p text.
 */
char *steer_text(const struct steer *s, bool rss, char *text, unsigned size);

#endif
