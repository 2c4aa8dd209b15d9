/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "config/config.h"
#include "headers.h"
#include "net/neigh.h"
#include "net/netport.h"
#include "netns.h"
#include "patience.h"

static const uint8_t ours4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 0, 1};
static const uint8_t extra4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 0, 3};

static struct rtnl nl;
static struct netport p;
static struct port shared;
static char why[ABI_SENTENCE_MAX];

/* Replaces the kernel's list of VLAN netdevs for net/netport.c. Any netdev does as
 * one: its addresses are the kernel's. */
static struct rtnl_vlan vlan;
static int vlans; /* or a negative errno */

int __wrap_rtnl_vlans(struct rtnl *r, uint32_t parent, struct rtnl_vlan *list, unsigned max);

int __wrap_rtnl_vlans(struct rtnl *r, uint32_t parent, struct rtnl_vlan *list, unsigned max)
{
	assert_int_equal(parent, p.ifindex);
	if (vlans > 0)
		list[0] = vlan;
	return vlans;
}

static bool memory_is_short; /* for a table of GIDs */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return memory_is_short && size == sizeof(struct gid_table) ? NULL : __real_malloc(size);
}

static int setup(void **state)
{
	assert_int_equal(rtnl_open(&nl), 0);
	return 0;
}

static int teardown(void **state)
{
	free((void *)netport_withdraw(&p));
	netport_destroy(&p);
	rtnl_close(&nl);
	vlans = 0;
	return 0;
}

static void init(struct ctl_port *cfg)
{
	strcpy(cfg->netdev, NETNS_OURS);
	assert_int_equal(netport_init(&p, 0, cfg, false, &nl, &shared, why), 0);
}

static unsigned refresh(void)
{
	const struct gid_table *old;
	unsigned what = netport_refresh(&p, &nl, &old);

	free((void *)old);
	return what;
}

static int find4(const uint8_t gid[16])
{
	return gid_find(atomic_load(&shared.gids), gid, NET_IPV4, 0);
}

static void netport_init__takes_the_netdevs_own(void **state)
{
	struct ctl_port cfg = {0};
	struct rtnl_link link;
	uint8_t ll[16];

	rtnl_link_get(&nl, NETNS_OURS, &link);
	init(&cfg);
	assert_int_equal(atomic_load(&shared.mac), mac_word(link.mac));
	assert_int_equal(shared.active_mtu, 1024);
	assert_true(p.up);
	gid_of_mac(ll, link.mac);
	assert_memory_equal(atomic_load(&shared.gids)->entry[0].gid, ll, 16);
	assert_int_equal(find4(ours4), 1);
	assert_memory_equal(atomic_load(&shared.gids)->entry[1].mac, link.mac, 6);
	assert_int_equal(atomic_load(&shared.gids)->entry[1].ifindex, link.ifindex);
}

static void netport_refresh__addresses_come_and_go(void **state)
{
	struct ctl_port cfg = {0};

	init(&cfg);
	refresh(); /* IPv6 addresses may just have become usable */
	assert_int_equal(refresh() & NETPORT_GIDS_CHANGED, 0);
	netns_run("ip addr add 10.9.0.3/24 dev " NETNS_OURS);
	assert_true(refresh() & NETPORT_GIDS_CHANGED);
	assert_true(find4(extra4) > 1);
	assert_int_equal(find4(ours4), 1); /* GID-03 */
	netns_run("ip addr del 10.9.0.3/24 dev " NETNS_OURS);
	assert_true(refresh() & NETPORT_GIDS_CHANGED);
	assert_int_equal(find4(extra4), -1);
	assert_int_equal(find4(ours4), 1);
}

/* Programs hear of no GID that workers do not have; the port is read again soon. */
static void netport_refresh__memory_is_short(void **state)
{
	struct ctl_port cfg = {0};

	init(&cfg);
	refresh();
	netns_run("ip addr add 10.9.0.3/24 dev " NETNS_OURS);
	memory_is_short = true;
	assert_int_equal(refresh() & NETPORT_GIDS_CHANGED, 0);
	memory_is_short = false;
	assert_true(p.stale);
	assert_int_equal(find4(extra4), -1);
	assert_true(refresh() & NETPORT_GIDS_CHANGED);
	assert_false(p.stale);
	assert_true(find4(extra4) > 1);
	netns_run("ip addr del 10.9.0.3/24 dev " NETNS_OURS);
}

static void netport_refresh__mtu_and_its_limit(void **state)
{
	struct ctl_port cfg = {.eth_mtu = 2200};

	init(&cfg);
	assert_int_equal(shared.active_mtu, 1024);
	netns_run("ip link set " NETNS_OURS " mtu 4200");
	refresh();
	assert_int_equal(shared.active_mtu, 2048); /* of 2200: the ethdev can do no more */
	netns_run("ip link set " NETNS_OURS " mtu 1500");
	refresh();
	assert_int_equal(shared.active_mtu, 1024);
}

static void netport_refresh__link_down_and_up(void **state)
{
	struct ctl_port cfg = {0};
	unsigned what = 0;

	init(&cfg);
	netns_run_peer("ip link set " NETNS_PEER " down"); /* no carrier here */
	WAIT_UNTIL((what |= refresh()) & NETPORT_WENT_DOWN);
	assert_true(what & NETPORT_WENT_DOWN);
	assert_false(p.up);
	netns_run_peer("ip link set " NETNS_PEER " up");
	what = 0;
	WAIT_UNTIL((what |= refresh()) & NETPORT_WENT_UP);
	assert_true(what & NETPORT_WENT_UP);
}

static void netport_set_down__whatever_the_link_says(void **state)
{
	struct ctl_port cfg = {0};

	init(&cfg);
	assert_int_equal(netport_set_down(&p, true), NETPORT_WENT_DOWN);
	assert_false(p.up);
	assert_int_equal(netport_set_down(&p, true), 0);
	assert_int_equal(refresh() & (NETPORT_WENT_UP | NETPORT_WENT_DOWN), 0);
	assert_false(p.up);
	assert_int_equal(p.link_downed, 1);
	assert_int_equal(netport_set_down(&p, false), NETPORT_WENT_UP);
	assert_true(p.up);
}

static void netport_refresh__netdev_vanishes_and_returns(void **state)
{
	struct ctl_port cfg = {0};
	unsigned what;

	netns_run("ip link add rtgone type veth peer name rtgone1 && ip link set rtgone up && "
		  "ip link set rtgone1 up && ip addr add 10.9.0.3/24 dev rtgone");
	strcpy(cfg.netdev, "rtgone");
	assert_int_equal(netport_init(&p, 0, &cfg, false, &nl, &shared, why), 0);
	assert_int_equal(find4(extra4), 1);
	netns_run("ip link del rtgone");
	what = refresh();
	assert_int_equal(
		what & (NETPORT_WENT_DOWN | NETPORT_GONE), NETPORT_WENT_DOWN | NETPORT_GONE);
	assert_int_equal(refresh(), 0);
	assert_int_equal(find4(extra4), -1);
	netns_run("ip link add rtgone type veth peer name rtgone1 && ip link set rtgone up && "
		  "ip link set rtgone1 up && ip addr add 10.9.0.3/24 dev rtgone");
	what = refresh();
	assert_int_equal(
		what & (NETPORT_WENT_UP | NETPORT_REPLACED), NETPORT_WENT_UP | NETPORT_REPLACED);
	assert_int_equal(find4(extra4), 1);
	assert_int_equal(p.ifindex, if_nametoindex("rtgone"));
	netns_run("ip link del rtgone");
}

/* ETH-11: every entry, a static one and one whose address is gone too, and what workers compare
 * with. */
static void netport_refresh__mac_changes(void **state)
{
	struct ctl_gid gid = {.vid = 0};
	struct ctl_port cfg = {.gids = &gid, .ngids = 1};
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 0x44};
	const struct gid_table *t;
	unsigned what;

	memcpy(gid.gid, extra4, 16);
	netns_run("ip addr add 10.9.0.7/24 dev " NETNS_OURS);
	init(&cfg);
	netns_run("ip addr del 10.9.0.7/24 dev " NETNS_OURS);
	refresh();
	netns_run("ip link set " NETNS_OURS " address 02:00:00:00:00:44");
	what = refresh();
	assert_true(what & NETPORT_MAC_CHANGED);
	assert_true(what & NETPORT_GIDS_CHANGED);
	assert_false(what & NETPORT_REPLACED);
	assert_int_equal(atomic_load(&shared.mac), mac_word(mac));
	t = atomic_load(&shared.gids);
	assert_true(t->count > 3);
	for (uint32_t i = 1; i < t->count; i++) /* 0 is the old MAC's own */
		assert_memory_equal(t->entry[i].mac, mac, 6);
	assert_int_equal(refresh() & ~NETPORT_GIDS_CHANGED, 0);
}

static int find_vlan(const uint8_t gid[16])
{
	return gid_find(atomic_load(&shared.gids), gid, NET_IPV4, vlan.vid);
}

static void netport_refresh__vlan_netdevs_come_and_go(void **state)
{
	static const uint8_t in_vlan[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 5, 1};
	struct ctl_port cfg = {0};
	const struct gid_entry *e;
	int index;

	netns_run("ip link add rtvlan type veth peer name rtvlan1 && ip link set rtvlan up && "
		  "ip addr add 10.9.5.1/24 dev rtvlan");
	vlan = (struct rtnl_vlan){if_nametoindex("rtvlan"), 5, {2, 0, 0, 0, 0, 5}};
	init(&cfg);
	refresh();
	assert_int_equal(find_vlan(in_vlan), -1);
	vlans = 1;
	assert_int_equal(refresh() & (NETPORT_VLANS | NETPORT_GIDS_CHANGED),
		NETPORT_VLANS | NETPORT_GIDS_CHANGED);
	index = find_vlan(in_vlan);
	assert_true(index > 1);
	assert_int_equal(find4(in_vlan), -1); /* not without the tag */
	assert_int_equal(find4(ours4), 1);
	e = &atomic_load(&shared.gids)->entry[index];
	assert_int_equal(e->ifindex, vlan.ifindex);
	assert_memory_equal(e->mac, vlan.mac, 6); /* ETH-11 */
	assert_int_equal(refresh() & NETPORT_VLANS, 0);
	vlans = -EBUSY;
	assert_int_equal(refresh() & NETPORT_VLANS, 0);
	assert_int_equal(find_vlan(in_vlan), index); /* the kernel did not tell */
	vlans = 0;				     /* down or gone */
	assert_true(refresh() & NETPORT_VLANS);
	assert_int_equal(find_vlan(in_vlan), -1);
	assert_int_equal(find4(ours4), 1);
	vlans = 1;
	refresh();
	assert_int_equal(find_vlan(in_vlan), index); /* GID-03 */
	netns_run("ip link del rtvlan");	     /* after the list was read */
	refresh();
	assert_int_equal(find_vlan(in_vlan), -1);
	assert_int_equal(find4(ours4), 1);
}

/* The netdev that has the source GID is asked, not the port's. */
static void neigh_resolve__by_the_vlans_netdev(void **state)
{
	static const uint8_t from[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 5, 1};
	static const uint8_t to[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 5, 2};
	static const uint8_t mac[6] = {2, 0, 0, 0, 5, 2};
	struct ctl_port cfg = {0};
	struct neigh_query q = {.port = &p};
	struct neigh_queue nq;

	netns_run("ip link add rtvlan type veth peer name rtvlan1 && ip link set rtvlan up && "
		  "ip link set rtvlan1 up && ip addr add 10.9.5.1/24 dev rtvlan && "
		  "ip neigh replace 10.9.5.2 lladdr 02:00:00:00:05:02 dev rtvlan");
	init(&cfg);
	neigh_queue_init(&nq, &nl);
	q.netdev = if_nametoindex("rtvlan");
	memcpy(q.dgid, to, 16);
	assert_int_equal(neigh_resolve(&nq, &q, from, 0, why), 0);
	assert_memory_equal(q.mac, mac, 6);
	assert_int_equal(q.ifindex, q.netdev);
	netns_run("ip link del rtvlan");
}

static void netport_init__no_such_netdev(void **state)
{
	struct ctl_port cfg = {.netdev = "nonesuch0"};

	assert_int_equal(netport_init(&p, 2, &cfg, false, &nl, &shared, why), -ENODEV);
	assert_non_null(strstr(why, "port 3"));
	assert_non_null(strstr(why, "nonesuch0"));
}

static void netport_static_neigh__beside_a_netdev(void **state)
{
	struct ctl_neigh neigh = {.mac = {2, 3, 4, 5, 6, 7}};
	struct ctl_gid gid = {.vid = 0};
	struct ctl_port cfg = {.neighs = &neigh, .nneighs = 1, .gids = &gid, .ngids = 1};
	uint8_t mac[6];

	memcpy(neigh.gid, extra4, 16);
	memcpy(gid.gid, extra4, 16);
	init(&cfg);
	memset(&neigh, 0, sizeof(neigh)); /* copied */
	assert_int_equal(netport_static_neigh(&p, extra4, mac), 0);
	assert_int_equal(mac[5], 7);
	assert_int_equal(netport_static_neigh(&p, ours4, mac), -ENOENT);
	refresh();
	assert_true(find4(extra4) > 0); /* static: the kernel does not have it, it stays */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			netport_init__takes_the_netdevs_own, setup, teardown),
		cmocka_unit_test_setup_teardown(
			netport_refresh__addresses_come_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(
			netport_refresh__mtu_and_its_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(netport_refresh__memory_is_short, setup, teardown),
		cmocka_unit_test_setup_teardown(netport_refresh__link_down_and_up, setup, teardown),
		cmocka_unit_test_setup_teardown(
			netport_set_down__whatever_the_link_says, setup, teardown),
		cmocka_unit_test_setup_teardown(
			netport_refresh__netdev_vanishes_and_returns, setup, teardown),
		cmocka_unit_test_setup_teardown(netport_refresh__mac_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(
			netport_refresh__vlan_netdevs_come_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(
			neigh_resolve__by_the_vlans_netdev, setup, teardown),
		cmocka_unit_test_setup_teardown(netport_init__no_such_netdev, setup, teardown),
		cmocka_unit_test_setup_teardown(
			netport_static_neigh__beside_a_netdev, setup, teardown),
	};

	return cmocka_run_group_tests_name("netport", tests, netns_setup, netns_teardown);
}
