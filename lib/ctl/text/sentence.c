/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include "abi_cm.h"
#include "abi_ctl.h"
#include "bits.h"
#include "headers.h"
#include "path.h"
#include "refuse.h"
#include "text/sentence.h"

_Static_assert(ABI_SENTENCE_MAX == SENTENCE_MAX, "sentence");

const char *qp_type_name(uint8_t type)
{
	static const char *const names[] = {
		[ABI_QPT_GSI] = "GSI",
		[ABI_QPT_RC] = "RC",
		[ABI_QPT_UC] = "UC",
		[ABI_QPT_UD] = "UD",
		[ABI_QPT_XRC_SEND] = "XRC_SEND",
		[ABI_QPT_XRC_RECV] = "XRC_RECV",
	};

	return type < ARRAY_SIZE(names) && names[type] ? names[type] : "other";
}

const char *port_space_name(uint32_t ps)
{
	switch (ps) {
	case ABI_CM_PS_IPOIB:
		return "IPoIB";
	case ABI_CM_PS_TCP:
		return "TCP";
	case ABI_CM_PS_UDP:
		return "UDP";
	default:
		return "IB";
	}
}

bool gid_is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xFE && (gid[1] & 0xC0) == 0x80;
}

const char *gid_text(const uint8_t gid[16], char buf[GID_TEXT])
{
	_Static_assert(GID_TEXT == INET6_ADDRSTRLEN, "room for the longest address");

	if (gid_is_ip4(gid))
		inet_ntop(AF_INET, gid + 12, buf, GID_TEXT);
	else
		inet_ntop(AF_INET6, gid, buf, GID_TEXT);
	return buf;
}

const char *net_type_name(uint8_t net)
{
	return net == NET_IPV4	 ? "RoCEv2 over IPv4"
	       : net == NET_IPV6 ? "RoCEv2 over IPv6"
				 : gid_type_name(net);
}

const char *gid_type_name(uint8_t net)
{
	return net == NET_ROCEV1 ? "RoCEv1" : "RoCEv2";
}
