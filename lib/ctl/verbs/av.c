/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include "config/config.h"
#include "config/ctl_parts.h"
#include "headers.h"
#include "mcast.h"
#include "net/congestion.h"
#include "net/neigh.h"
#include "net/net.h"
#include "net/netport.h"
#include "refuse.h"
#include "session/message.h"
#include "session/quota.h"
#include "session/session.h"
#include "verbs/av.h"
#include "verbs/dest.h"

#define SL_MAX (SL_COUNT - 1)
/** Linux's substitute for a hop limit of 0 if routers may be on the path (IP4-18). */
#define HOP_LIMIT_DEFAULT 64

int av_check(const struct ctl *ctl, const struct abi_ah_attr *ah, char why[ABI_SENTENCE_MAX])
{
	if (ah->port < 1 || ah->port > ctl->net->nports) /* QPS-15 */
		return refuse(why, -EINVAL,
			"the address vector uses port %u: this rocid has 1 to %u", ah->port,
			ctl->net->nports);
	if (!ah->is_global) /* VRB-05, V1-04 */
		return refuse(why, -EINVAL,
			"the address vector has no GRH, which RoCE needs: set is_global");
	if (ah->sl > SL_MAX) /* ETH-06, VRB-04 */
		return refuse(why, -EINVAL, "service level %u does not exist on RoCE: use 0 to %u",
			ah->sl, SL_MAX);
	return 0;
}

bool av_is_unicast(const uint8_t gid[16])
{
	if (gid_is_local_only(gid)) /* VAL-15 */
		return false;
	if (gid_is_ip4(gid))
		return gid[12] != 0 && gid[12] < 224;
	return gid[0] != 0xFF;
}

/* The host's routes and neighbours decide where packets go. Programs do so only if the
 * administrator lets them (doc/decisions/0033-destination-macs.md). */
static int take_given(const struct ctl *ctl, const uint8_t mac[6], struct dest_key *key,
	char why[ABI_SENTENCE_MAX])
{
	if (!ctl->application_macs)
		return refuse(why, -EPERM,
			"the address vector has a destination MAC, but this rocid does not let "
			"programs choose one: set it to all ones to have it looked up, or start "
			"rocid with --application-macs");
	if (mac[0] & 1)
		return refuse(why, -EINVAL,
			"the destination MAC is a multicast address: set the peer's MAC, or all "
			"ones to have it looked up");
	memcpy(key->given, mac, 6);
	return 0;
}

int av_dest_key(const struct ctl *ctl, const struct abi_ah_attr *ah, struct dest_key *key,
	char why[ABI_SENTENCE_MAX])
{
	/* Both request a lookup. No station has the zero MAC (ETH-12). */
	static const uint8_t ones[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, zeroes[6];

	*key = (struct dest_key){.port = ah->port - 1u, .sgid = ah->sgid_index};
	memcpy(key->dgid, ah->dgid, 16);
	if (gid_is_multicast(ah->dgid)) { /* MC-07: ignores any MAC from the program */
		mcast_mac(key->given, ah->dgid);
		return 0;
	}
	if (!memcmp(ah->dmac, ones, 6) || !memcmp(ah->dmac, zeroes, 6))
		return 0;
	return take_given(ctl, ah->dmac, key, why); /* ETH-11 */
}

int av_find(struct session *s, const struct dest_key *key, struct neigh_query *q, bool *local,
	char why[ABI_SENTENCE_MAX])
{
	int err = dest_find(s->ctl, key, q, local, why);

	if (err != -EINPROGRESS)
		return err;
	err = quota_take_one(s, CTL_LOOKUPS, why);
	if (err)
		neigh_cancel(q);
	return err ? err : DEFERRED;
}

/* doc/decisions/0020-hop-limit.md: 0 is an ordinary value if nothing is routed, and for groups,
 * whose scope it limits (V1-01). */
static uint8_t hop_limit(const struct gid_entry *sgid, const struct abi_ah_attr *ah)
{
	bool routed = sgid->net != NET_ROCEV1 && !gid_is_multicast(ah->dgid);

	return !ah->hop_limit && routed ? HOP_LIMIT_DEFAULT : ah->hop_limit;
}

bool av_ect(const struct ctl *ctl, uint32_t port)
{
	return ctl->net->port[port].congestion->on; /* IP4-05, IP6-02 */
}

void av_path(const struct ctl *ctl, const struct abi_ah_attr *ah, struct path_spec *p)
{
	const struct netport *port = &ctl->net->port[ah->port - 1];
	const struct priority_map *map = &port->priority;

	memcpy(p->dgid, ah->dgid, sizeof(p->dgid));
	p->traffic_class = ah->traffic_class;
	p->hop_limit = hop_limit(&port->gids.table.entry[ah->sgid_index], ah);
	p->pcp = priority_of(map, ah->sl, ah->traffic_class);
	p->priority_tag = map->tag;
	p->ect = av_ect(ctl, ah->port - 1);
	p->plain_label = ctl->plain_label;
	p->port = (uint8_t)(ah->port - 1);
	p->flow_label = ah->flow_label;
}
