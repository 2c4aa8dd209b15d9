/* SPDX-License-Identifier: BSD-3-Clause */
#include "bits.h"
#include "ecn.h"
#include "headers.h"

static bool mark_ip4(uint8_t *ip)
{
	unsigned ecn = ip[IP4_TOS] & ECN_MASK;
	uint32_t sum;

	if (!ecn)
		return false;
	sum = (uint32_t)(uint16_t)~get_be16(ip + IP4_CSUM) + ECN_CE - ecn; /* RFC 1624 */
	ip[IP4_TOS] |= ECN_CE;
	put_be16(ip + IP4_CSUM, (uint16_t) ~((sum & 0xFFFF) + (sum >> 16)));
	return true;
}

static bool mark_ip6(uint8_t *ip)
{
	if (!(ip[1] >> 4 & ECN_MASK))
		return false;
	ip[1] |= ECN_CE << 4;
	return true;
}

bool ecn_mark(uint8_t *frame, size_t len)
{
	size_t l3 = ETH_HLEN;
	uint16_t type;

	if (len < ETH_HLEN)
		return false;
	type = get_be16(frame + ETH_TYPE);
	if (type == ETHERTYPE_VLAN) {
		l3 += VLAN_HLEN;
		if (len < l3)
			return false;
		type = get_be16(frame + l3 - 2);
	}
	if (type == ETHERTYPE_IPV4 && len >= l3 + IP4_HLEN)
		return mark_ip4(frame + l3);
	if (type == ETHERTYPE_IPV6 && len >= l3 + IP6_HLEN)
		return mark_ip6(frame + l3);
	return false;
}
