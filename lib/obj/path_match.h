/* SPDX-License-Identifier: BSD-3-Clause */
/** @file path_match.h  Whether a received packet belongs to a path. */
#ifndef PATH_MATCH_H
#define PATH_MATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "headers.h"
#include "path.h"
#include "pkt.h"

/** @return true when @p pkt comes from the destination of @p p and was sent to the source of @p p:
 *  protocol, both addresses and VLAN (VAL-12, VAL-13, ETH-07). */
static inline bool path_matches(const struct path *p, const struct pkt *pkt)
{
	const uint8_t *ours = p->hdr + p->l3_off;

	/* VAL-12, and VAL-13 by the protocol, which is the GID's type. */
	if (pkt->net != p->net || pkt->vid != p->vid || pkt->port != p->port)
		return false;
	if (p->net == NET_IPV4)
		return !memcmp(pkt->l3 + IP4_SRC, ours + IP4_DST, 4) &&
		       !memcmp(pkt->l3 + IP4_DST, ours + IP4_SRC, 4);
	return !memcmp(pkt->l3 + IP6_SRC, ours + IP6_DST, 16) &&
	       !memcmp(pkt->l3 + IP6_DST, ours + IP6_SRC, 16);
}

#endif
