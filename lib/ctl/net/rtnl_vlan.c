/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <libmnl/libmnl.h>
#include "net/rtnl.h"

#define VID_MAX 4094

/* Stores @p a in @p table by its type if that is at most @p last. */
static void put_in(const struct nlattr *table[], unsigned last, const struct nlattr *a)
{
	if (mnl_attr_get_type(a) <= last)
		table[mnl_attr_get_type(a)] = a;
}

static void open_nest(const struct nlattr *table[], unsigned last, const struct nlattr *nest)
{
	const struct nlattr *a;

	if (!nest)
		return;
	mnl_attr_for_each_nested(a, nest)
	{
		put_in(table, last, a);
	}
}

static bool is(const struct nlattr *a, enum mnl_attr_data_type type)
{
	return a && mnl_attr_validate(a, type) >= 0;
}

/* Reads IFLA_LINKINFO of a netdev of kind "vlan".  @return the VLAN id; 0 for another kind. */
static uint16_t vid_of(const struct nlattr *linkinfo)
{
	const struct nlattr *info[IFLA_INFO_MAX + 1] = {NULL};
	const struct nlattr *data[IFLA_VLAN_MAX + 1] = {NULL};
	uint16_t vid;

	open_nest(info, IFLA_INFO_MAX, linkinfo);
	if (!is(info[IFLA_INFO_KIND], MNL_TYPE_NUL_STRING) ||
		strcmp(mnl_attr_get_str(info[IFLA_INFO_KIND]), "vlan"))
		return 0;
	open_nest(data, IFLA_VLAN_MAX, info[IFLA_INFO_DATA]);
	/* ETH-03: no provider tags (802.1ad). Kernels that omit the protocol know only 802.1Q. */
	if (data[IFLA_VLAN_PROTOCOL] &&
		(!is(data[IFLA_VLAN_PROTOCOL], MNL_TYPE_U16) ||
			mnl_attr_get_u16(data[IFLA_VLAN_PROTOCOL]) != htons(ETH_P_8021Q)))
		return 0;
	if (!is(data[IFLA_VLAN_ID], MNL_TYPE_U16))
		return 0;
	vid = mnl_attr_get_u16(data[IFLA_VLAN_ID]);
	return vid <= VID_MAX ? vid : 0;
}

bool rtnl_vlan_parse(const struct nlmsghdr *h, uint32_t parent, struct rtnl_vlan *vlan)
{
	const struct nlattr *link[IFLA_LINK_NETNSID + 1] = {NULL};
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(h);
	const struct nlattr *a;

	if (h->nlmsg_type != RTM_NEWLINK || mnl_nlmsg_get_payload_len(h) < sizeof(*ifi))
		return false;
	mnl_attr_for_each(a, h, sizeof(*ifi))
	{
		put_in(link, IFLA_LINK_NETNSID, a);
	}
	/* With IFLA_LINK_NETNSID, IFLA_LINK is an index in another namespace. */
	if (!(ifi->ifi_flags & IFF_UP) || link[IFLA_LINK_NETNSID] ||
		!is(link[IFLA_LINK], MNL_TYPE_U32) || mnl_attr_get_u32(link[IFLA_LINK]) != parent ||
		!link[IFLA_ADDRESS] || mnl_attr_get_payload_len(link[IFLA_ADDRESS]) != 6)
		return false;
	vlan->ifindex = (uint32_t)ifi->ifi_index;
	vlan->vid = vid_of(link[IFLA_LINKINFO]);
	memcpy(vlan->mac, mnl_attr_get_payload(link[IFLA_ADDRESS]), 6);
	return vlan->vid;
}
