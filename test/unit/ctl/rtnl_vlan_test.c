/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages as the kernel writes them, and as it never would. */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <libmnl/libmnl.h>
#include "net/rtnl.h"

#define PARENT 3u

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 5};

/* The contents of a message; a zero is left out where it means nothing. */
struct said {
	uint16_t type;
	unsigned flags;
	uint32_t link;
	const char *kind;
	unsigned kind_len; /* 0: with its NUL */
	uint16_t proto;
	uint16_t vid;
	unsigned vid_len;
	unsigned mac_len;
	bool elsewhere; /* link is in another namespace */
};

static const struct said good = {
	.type = RTM_NEWLINK,
	.flags = IFF_UP,
	.link = PARENT,
	.kind = "vlan",
	.proto = ETH_P_8021Q,
	.vid = 5,
	.vid_len = 2,
	.mac_len = 6,
};

static uint64_t room[64];

static struct nlmsghdr *message(const struct said *s)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(memset(room, 0, sizeof(room)));
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(h, sizeof(*ifi));
	struct nlattr *info, *data;
	uint8_t vid[4] = {0};

	memcpy(vid, &s->vid, 2);
	h->nlmsg_type = s->type;
	ifi->ifi_index = 9;
	ifi->ifi_flags = s->flags;
	mnl_attr_put_strz(h, IFLA_IFNAME, "eth0.5");
	mnl_attr_put_u32(h, IFLA_LINK, s->link);
	mnl_attr_put(h, IFLA_ADDRESS, s->mac_len, mac);
	if (s->elsewhere)
		mnl_attr_put_u32(h, IFLA_LINK_NETNSID, 0);
	info = mnl_attr_nest_start(h, IFLA_LINKINFO);
	if (s->kind_len)
		mnl_attr_put(h, IFLA_INFO_KIND, s->kind_len, s->kind);
	else
		mnl_attr_put_strz(h, IFLA_INFO_KIND, s->kind);
	data = mnl_attr_nest_start(h, IFLA_INFO_DATA);
	if (s->proto)
		mnl_attr_put_u16(h, IFLA_VLAN_PROTOCOL, htons(s->proto));
	if (s->vid_len)
		mnl_attr_put(h, IFLA_VLAN_ID, s->vid_len, vid);
	mnl_attr_nest_end(h, data);
	mnl_attr_nest_end(h, info);
	return h;
}

static bool parse(const struct said *s, struct rtnl_vlan *vlan)
{
	return rtnl_vlan_parse(message(s), PARENT, vlan);
}

static void rtnl_vlan_parse__reads_it(void **state)
{
	struct rtnl_vlan vlan;
	struct said s = good;

	assert_true(parse(&s, &vlan));
	assert_int_equal(vlan.ifindex, 9);
	assert_int_equal(vlan.vid, 5);
	assert_memory_equal(vlan.mac, mac, 6);
	s.proto = 0; /* old kernels do not tell */
	assert_true(parse(&s, &vlan));
	s.vid = 1;
	assert_true(parse(&s, &vlan));
	s.vid = 4094;
	assert_true(parse(&s, &vlan));
	assert_int_equal(vlan.vid, 4094);
}

static void rtnl_vlan_parse__leaves_others_out(void **state)
{
	struct said other[13];
	struct rtnl_vlan vlan;

	for (unsigned i = 0; i < 13; i++)
		other[i] = good;
	other[0].type = RTM_DELLINK;
	other[1].flags = 0; /* it is down */
	other[2].link = PARENT + 1;
	other[3].elsewhere = true;
	other[4].kind = "macvlan";
	other[5].kind = "vlan2";
	other[6].kind_len = 4; /* no NUL */
	other[7].proto = ETH_P_8021AD;
	other[8].vid = 0;
	other[9].vid = 4095;
	other[10].vid_len = 0;
	other[11].vid_len = 1;
	other[12].mac_len = 4;
	for (unsigned i = 0; i < 13; i++)
		if (parse(&other[i], &vlan))
			fail_msg("message %u is taken for a VLAN of the port", i);
}

/* However a message is cut, at most what is there is read: the copy ends where it does, padding
 * included as in all of netlink, and the address sanitizer looks on. */
static void rtnl_vlan_parse__cut_messages(void **state)
{
	const struct nlmsghdr *whole = message(&good);
	unsigned taken = 0;

	for (uint32_t len = MNL_NLMSG_HDRLEN; len < whole->nlmsg_len; len++) {
		struct nlmsghdr *h = malloc(MNL_ALIGN(len));
		struct rtnl_vlan vlan;

		assert_non_null(h);
		memcpy(h, whole, MNL_ALIGN(len));
		h->nlmsg_len = len;
		taken += rtnl_vlan_parse(h, PARENT, &vlan);
		free(h);
	}
	/* but for the padding of the last attribute */
	assert_in_range(taken, 0, MNL_ALIGNTO - 1);
}

/* Lengths inside that say too much or too little: each 16-bit word in turn is made a lie. */
static void rtnl_vlan_parse__lying_lengths(void **state)
{
	static const uint16_t lie[] = {0, 1, 3, 4, 5, 0x7FFF, 0xFFFF};
	const struct nlmsghdr *whole = message(&good);
	uint32_t len = whole->nlmsg_len;

	for (uint32_t at = MNL_NLMSG_HDRLEN; at + 2 <= len; at += 2) {
		for (unsigned i = 0; i < sizeof(lie) / sizeof(*lie); i++) {
			struct nlmsghdr *h = malloc(len);
			struct rtnl_vlan vlan;

			assert_non_null(h);
			memcpy(h, whole, len);
			memcpy((uint8_t *)h + at, &lie[i], 2);
			if (rtnl_vlan_parse(h, PARENT, &vlan))
				assert_in_range(vlan.vid, 1, 4094);
			free(h);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rtnl_vlan_parse__reads_it),
		cmocka_unit_test(rtnl_vlan_parse__leaves_others_out),
		cmocka_unit_test(rtnl_vlan_parse__cut_messages),
		cmocka_unit_test(rtnl_vlan_parse__lying_lengths),
	};

	return cmocka_run_group_tests_name("rtnl_vlan", tests, NULL, NULL);
}
