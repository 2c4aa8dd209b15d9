/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <assert.h>
#include <endian.h>
#include "address.h"
#include "group.h"

#define IPV4_AT 12 /* of an address in its mapped form */

static_assert(GROUP_TEXT >= INET6_ADDRSTRLEN, "any address has room");

static bool is_ipv4(const union roci_gid *gid)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)gid->raw);
}

bool group_parse(const char *text, uint64_t *high, uint64_t *low)
{
	union roci_gid gid;

	if (!gid_of_text(gid.raw, text))
		return false;
	*high = be64toh(gid.global.subnet_prefix);
	*low = be64toh(gid.global.interface_id);
	return true;
}

union roci_gid group_gid(uint64_t high, uint64_t low)
{
	return (union roci_gid){
		.global = {.subnet_prefix = htobe64(high), .interface_id = htobe64(low)}};
}

bool group_is_multicast(const union roci_gid *gid)
{
	return is_ipv4(gid) ? (gid->raw[IPV4_AT] & 0xf0) == 0xe0 : gid->raw[0] == 0xff;
}

const char *group_text(const union roci_gid *gid, char text[GROUP_TEXT])
{
	if (is_ipv4(gid))
		return inet_ntop(AF_INET, &gid->raw[IPV4_AT], text, GROUP_TEXT);
	return inet_ntop(AF_INET6, gid->raw, text, GROUP_TEXT);
}
