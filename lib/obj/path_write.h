/* SPDX-License-Identifier: BSD-3-Clause */
/** @file path_write.h  The headers of a packet along a path. */
#ifndef PATH_WRITE_H
#define PATH_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "bits.h"
#include "headers.h"
#include "path.h"

/** Bytes of path.hdr that IPv4 may use. */
#define PATH_HDR_IP4 48u
_Static_assert(ETH_HLEN + VLAN_HLEN + IP4_HLEN + UDP_HLEN <= PATH_HDR_IP4, "up to UDP");
_Static_assert(offsetof(struct path, hdr) + PATH_HDR_IP4 <= CACHE_LINE, "on the path's first line");

/**
 * Writes @p p's header and its per-packet fields at @p frame.
 * @param rest  bytes from BTH to ICRC, both included
 * @param id    IPv4 identification (IP4-17)
 * @return where to write the BTH
 */
static inline uint8_t *path_write(const struct path *p, uint8_t *frame, uint16_t rest, uint16_t id)
{
	uint8_t *ip = frame + p->l3_off;
	uint8_t *bth = frame + p->hdr_len;
	uint16_t len;

	memcpy(frame, p->hdr, PATH_HDR_IP4); /* a fixed number of moves */
	if (unlikely(p->net != NET_IPV4))
		memcpy(frame + PATH_HDR_IP4, p->hdr + PATH_HDR_IP4, sizeof(p->hdr) - PATH_HDR_IP4);
	switch (p->net) {
	case NET_IPV4:
		len = (uint16_t)(IP4_HLEN + UDP_HLEN + rest);
		put_be16(ip + IP4_TOTLEN, len); /* CA17-6, IP4-07 */
		put_be16(ip + IP4_ID, id);	/* IP4-17: before the ICRC */
		/* IP4-16 */
		put_be16(ip + IP4_CSUM,
			(uint16_t)~path_csum_fold(p->csum_base + (uint32_t)len + id));
		put_be16(bth - UDP_HLEN + UDP_LEN,
			(uint16_t)(UDP_HLEN + rest)); /* CA17-21, UDP-03 */
		break;
	case NET_IPV6:
		len = (uint16_t)(UDP_HLEN + rest);
		put_be16(ip + IP6_PLEN, len); /* CA17-15, IP6-03 */
		put_be16(bth - UDP_HLEN + UDP_LEN, len);
		break;
	default:
		put_be16(ip + IP6_PLEN, rest); /* V1-01 */
		break;
	}
	return bth;
}

#endif
