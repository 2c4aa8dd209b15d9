/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts on the bridge that a netdev of IP over InfiniBand is a port of; the test is its kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include <linux/if_bridge.h>
#include <linux/if_ether.h>
#include <linux/rtnetlink.h>
#include <libmnl/libmnl.h>
#include "bits.h"
#include "rib_impl.h"
#include "stations.h"

#define RIB	3u
#define BRIDGE	4u
#define ANOTHER 5u
#define PORT	6u

static const uint8_t own[6] = {2, 0, 0, 0, 0, 1}, other[6] = {2, 0xAA};
static const uint8_t ip4[4] = {10, 0, 0, 1};

static struct rib r;
static struct rib_members m;
static char buffer[1024] __attribute__((aligned(NLMSG_ALIGNTO)));
static uint32_t master; /* as the kernel has it */
static uint32_t asked;	/* how often, for a bridge's groups */

/* In which order they come does not matter. */
static void assert_joined(const char *text)
{
	uint8_t mgid[16];

	assert_int_equal(inet_pton(AF_INET6, text, mgid), 1);
	assert_true(rib_groups_has(&m.now, mgid));
}

/* --- a kernel --------------------------------------------------------------------------------- */

static void entry(struct nlmsghdr *h, uint32_t port, uint16_t proto, const char *group)
{
	struct nlattr *mdb = mnl_attr_nest_start(h, MDBA_MDB);
	struct nlattr *e = mnl_attr_nest_start(h, MDBA_MDB_ENTRY);
	struct br_mdb_entry info = {.ifindex = port, .addr.proto = htons(proto)};

	if (proto == ETH_P_IP || proto == ETH_P_IPV6)
		inet_pton(proto == ETH_P_IP ? AF_INET : AF_INET6, group, &info.addr.u);
	mnl_attr_put(h, MDBA_MDB_ENTRY_INFO, sizeof(info), &info);
	mnl_attr_nest_end(h, e);
	mnl_attr_nest_end(h, mdb);
}

static struct nlmsghdr *message(const void *head, size_t len)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(buffer);

	memcpy(mnl_nlmsg_put_extra_header(h, len), head, len);
	return h;
}

static void snooped(int (*take)(const struct nlmsghdr *h, void *arg), void *arg)
{
	struct br_port_msg port = {.family = PF_BRIDGE, .ifindex = BRIDGE};
	struct nlmsghdr *h = message(&port, sizeof(port));

	entry(h, PORT, ETH_P_IP, "239.1.2.3");
	entry(h, BRIDGE, ETH_P_IPV6, "ff15::1");
	entry(h, RIB, ETH_P_IPV6, "ff15::2");
	entry(h, PORT, ETH_P_ARP, "");
	assert_int_equal(take(h, arg), MNL_CB_OK);
	port.ifindex = ANOTHER;
	h = message(&port, sizeof(port));
	entry(h, PORT, ETH_P_IP, "239.9.9.9");
	assert_int_equal(take(h, arg), MNL_CB_OK);
}

bool rib_ask_kernel(uint16_t type, uint16_t flags, const void *head, size_t len,
	int (*take)(const struct nlmsghdr *h, void *arg), void *arg)
{
	struct ifinfomsg link = {0};
	struct nlmsghdr *h;

	if (type == RTM_GETMDB) {
		asked++;
		snooped(take, arg);
		return true;
	}
	assert_int_equal(type, RTM_GETLINK);
	assert_int_equal(((const struct ifinfomsg *)head)->ifi_index, RIB);
	h = message(&link, sizeof(link));
	mnl_attr_put_u32(h, IFLA_MTU, 2044);
	if (master)
		mnl_attr_put_u32(h, IFLA_MASTER, master);
	return take(h, arg) == MNL_CB_OK;
}

/* --- hosts ------------------------------------------------------------------------------------ */

/* The netdev's own, another, one that moves. */
static int begin(void **state)
{
	static struct ipoib_config cfg = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = 2044};
	struct station_table *t;
	uint8_t ip[16] = {0xFD, 8};

	memset(&r, 0, sizeof(r));
	memset(&m, 0, sizeof(m));
	m.pkey = 0xFFFF;
	master = 0;
	r.ifindex = RIB;
	pthread_mutex_init(&r.lock, NULL);
	r.ipoib = ipoib_init(malloc(ipoib_size()), &cfg);
	t = (struct station_table *)ipoib_stations(r.ipoib);
	station_claim(t, other, ip4, 4);
	put_be32(ip + 12, 0x111111);
	station_claim(t, own, ip, 16);
	put_be32(ip + 12, 0x222222);
	station_claim(t, other, ip, 16);
	rib_hosts_publish(&r);
	put_be32(ip + 12, 0x333333);
	station_claim(t, own, ip, 16);
	station_claim(t, other, ip, 16);
	rib_hosts_publish(&r);
	return 0;
}

static int finish(void **state)
{
	pthread_mutex_destroy(&r.lock);
	free(r.ipoib);
	return 0;
}

static void rib_master__of_a_port(void **state)
{
	assert_int_equal(rib_master(&r), 0);
	master = BRIDGE;
	assert_int_equal(rib_master(&r), BRIDGE);
}

/* Its own kernel has joined the groups of its own addresses, and leaves them. */
static void rib_hosts_groups__without_a_bridge(void **state)
{
	rib_hosts_groups(&r, &m, 1000);
	assert_int_equal(m.now.n, 2);
	assert_joined("ff12:601b:ffff::1:ff33:3333");
	assert_joined("ff12:601b:ffff::1:ff22:2222");
}

static void rib_hosts_groups__of_a_bridge(void **state)
{
	m.master = BRIDGE;
	rib_hosts_groups(&r, &m, 1000);
	assert_int_equal(m.now.n, 5);
	assert_joined("ff12:601b:ffff::1:ff11:1111");
	assert_joined("ff12:401b:ffff::f01:203");
	assert_joined("ff12:601b:ffff::1");
}

/* Each packet, and each membership, can be of another host: however often the kernel's memberships
 * are read, those of hosts are read once per second. */
static void rib_hosts_groups__once_per_second(void **state)
{
	uint32_t before;

	m.master = BRIDGE;
	rib_hosts_groups(&r, &m, 1000);
	before = asked;
	for (uint32_t now = 1010; now < 1000 + RIB_READ_MS; now += 10) {
		m.now.n = 0;
		rib_hosts_groups(&r, &m, now);
		assert_int_equal(m.now.n, 5);
	}
	assert_int_equal(asked, before);
	rib_hosts_groups(&r, &m, 1000 + RIB_READ_MS);
	assert_int_equal(asked, before + 1);
	m.master = m.now.n = 0; /* left the bridge */
	rib_hosts_groups(&r, &m, 1010 + RIB_READ_MS);
	assert_int_equal(m.now.n, 2);
}

/* Hosts that are gone stay in the table: the youngest are solicited, and groups that hosts join
 * have room. A packet makes a host young, too. */
static void youngest(bool in_turn)
{
	struct station_table *t = (struct station_table *)ipoib_stations(r.ipoib);
	uint8_t ip[16] = {0xFD, 9}, mac[6] = {2, 0xBB};

	for (uint32_t i = 1; i <= 300; i++) {
		put_be32(ip + 12, i);
		put_be32(mac + 2, i);
		if (in_turn ? i % 2 : i <= 100)
			station_claim(t, mac, ip, 16);
		else
			station_seen(t, mac, ip, 16);
	}
	put_be32(ip + 12, 7);
	put_be32(mac + 2, 7);
	station_seen(t, mac, ip, 16);
	rib_hosts_publish(&r);
	m.master = BRIDGE;
	rib_hosts_groups(&r, &m, 1000);
	assert_int_equal(m.now.n, RIB_HOST_GROUPS + 2);
	assert_joined("ff12:601b:ffff::1:ff00:7");
	assert_joined("ff12:601b:ffff::1:ff00:12c");
	assert_joined("ff12:601b:ffff::1:ff00:6e"); /* the last of so many */
	assert_joined("ff12:401b:ffff::f01:203");
}

static void rib_hosts_groups__of_the_youngest(void **state)
{
	youngest(false);
}

static void rib_hosts_groups__of_both_kinds_in_turn(void **state)
{
	youngest(true);
}

/* A program on the host that joins more groups than there is room for leaves them to hosts. */
static void rib_hosts_groups__before_other_groups(void **state)
{
	uint8_t group[16] = {0xFF, 0x15};

	for (uint32_t i = 0; i < 2 * RIB_GROUPS; i++) {
		put_be32(group + 12, i);
		rib_groups_listed(&m, group, sizeof(group));
	}
	rib_hosts_groups(&r, &m, 1000);
	assert_joined("ff12:601b:ffff::1:ff33:3333");
	assert_joined("ff12:601b:ffff::1:ff22:2222");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rib_master__of_a_port, begin, finish),
		cmocka_unit_test_setup_teardown(rib_hosts_groups__without_a_bridge, begin, finish),
		cmocka_unit_test_setup_teardown(rib_hosts_groups__of_a_bridge, begin, finish),
		cmocka_unit_test_setup_teardown(rib_hosts_groups__once_per_second, begin, finish),
		cmocka_unit_test_setup_teardown(rib_hosts_groups__of_the_youngest, begin, finish),
		cmocka_unit_test_setup_teardown(
			rib_hosts_groups__of_both_kinds_in_turn, begin, finish),
		cmocka_unit_test_setup_teardown(
			rib_hosts_groups__before_other_groups, begin, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
