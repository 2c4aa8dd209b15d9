/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "bits.h"
#include "encap.h"

#define SIGNATURE_IP4 0x401Bu
#define SIGNATURE_IP6 0x601Bu
#define MGID_FLAG_T   0x10u /* not permanently assigned: IPB-08 */

bool ipoib_type_known(uint16_t type)
{
	return type == IPOIB_IP4 || type == IPOIB_ARP || type == IPOIB_RARP || type == IPOIB_IP6;
}

void ipoib_header_put(uint8_t to[IPOIB_HLEN], uint16_t type)
{
	put_be16(to, type);
	put_be16(to + 2, 0);
}

void ipoib_addr_put(uint8_t to[IPOIB_LLADDR_LEN], const struct ipoib_addr *a)
{
	put_be32(to, a->qpn & 0xFFFFFF);
	memcpy(to + 4, a->gid, 16);
}

void ipoib_addr_get(struct ipoib_addr *a, const uint8_t from[IPOIB_LLADDR_LEN])
{
	a->qpn = get_be24(from + 1);
	memcpy(a->gid, from + 4, 16);
}

bool ipoib_addr_same(const struct ipoib_addr *a, const struct ipoib_addr *b)
{
	return a->qpn == b->qpn && !memcmp(a->gid, b->gid, 16);
}

static void mgid_begin(uint8_t mgid[16], uint16_t signature, uint16_t pkey, uint8_t scope)
{
	memset(mgid, 0, 16);
	mgid[0] = 0xFF;
	mgid[1] = (uint8_t)(MGID_FLAG_T | (scope & 0xF));
	put_be16(mgid + 2, signature);
	put_be16(mgid + 4, pkey | IPOIB_PKEY_FULL);
}

void ipoib_mgid_of_ip4(uint8_t mgid[16], uint16_t pkey, uint8_t scope, const uint8_t ip[4])
{
	uint32_t group = get_be32(ip);

	mgid_begin(mgid, SIGNATURE_IP4, pkey, scope);
	put_be32(mgid + 12, group == UINT32_MAX ? group : group & 0x0FFFFFFF);
}

void ipoib_mgid_of_ip6(uint8_t mgid[16], uint16_t pkey, uint8_t scope, const uint8_t ip[16])
{
	mgid_begin(mgid, SIGNATURE_IP6, pkey, scope);
	memcpy(mgid + 6, ip + 6, 10);
}
