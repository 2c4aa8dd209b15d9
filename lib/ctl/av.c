/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include "av.h"
#include "command.h"
#include "mcast.h"
#include "sentence.h"
#include "state.h"

#define SL_MAX (SL_COUNT - 1)
/** For a hop limit of 0: what Linux uses (doc/decisions/0020-hop-limit.md, IP4-18). */
#define HOP_LIMIT_DEFAULT 64

int av_check(const struct ctl *ctl, const struct abi_ah_attr *ah, char why[ABI_SENTENCE_MAX])
{
	if (ah->port < 1 || ah->port > ctl->nports) /* QPS-15 */
		return refuse(why, -EINVAL,
			"the address vector names port %u: this rocid has 1 to %u", ah->port,
			ctl->nports);
	if (!ah->is_global) /* VRB-05, V1-04 */
		return refuse(why, -EINVAL,
			"the address vector has no GRH: set is_global, RoCE needs it");
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

/* All ones, and zeroes, which no station has (ETH-12), mean: look it up. */
int av_dest_key(const struct abi_ah_attr *ah, struct dest_key *key, char why[ABI_SENTENCE_MAX])
{
	static const uint8_t unknown[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

	*key = (struct dest_key){.port = ah->port - 1u, .sgid = ah->sgid_index};
	memcpy(key->dgid, ah->dgid, 16);
	if (gid_is_multicast(ah->dgid)) { /* MC-07: whatever was given */
		mcast_mac(key->given, ah->dgid);
		return 0;
	}
	if (!memcmp(ah->dmac, unknown, 6))
		return 0;
	if (ah->dmac[0] & 1)
		return refuse(why, -EINVAL,
			"the destination MAC is a group's: set the peer's, or all ones to have it "
			"looked up");
	memcpy(key->given, ah->dmac, 6);
	return 0;
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

void av_path(const struct ctl *ctl, const struct abi_ah_attr *ah, struct path_spec *p)
{
	const struct priority_map *map = &ctl->port[ah->port - 1].priority;

	memcpy(p->dgid, ah->dgid, sizeof(p->dgid));
	p->traffic_class = ah->traffic_class;
	p->hop_limit = ah->hop_limit ? ah->hop_limit : HOP_LIMIT_DEFAULT;
	p->pcp = priority_of(map, ah->sl, ah->traffic_class);
	p->priority_tag = map->tag;
	p->plain_label = ctl->plain_label;
	p->port = (uint8_t)(ah->port - 1);
	p->flow_label = ah->flow_label;
}
