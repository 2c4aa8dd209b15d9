/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <libmnl/libmnl.h>
#include "net/rtnl.h"
#include "netns.h"
#include "patience.h"

static const uint8_t ours4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 0, 1};
static const uint8_t peer4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 0, 2};
static const uint8_t nobody4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 0, 77};
static const uint8_t far4[16] = {[10] = 0xFF, [11] = 0xFF, 198, 51, 100, 1};
static const uint8_t gateway4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 0, 2};
static const uint8_t ours6[16] = {0x20, 1, 0xd, 0xb8, 0, 9, [15] = 1};
static const uint8_t peer6[16] = {0x20, 1, 0xd, 0xb8, 0, 9, [15] = 2};
static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 0x99};

static struct rtnl nl;
static uint32_t ifindex;

static int setup(void **state)
{
	assert_int_equal(rtnl_open(&nl), 0);
	ifindex = if_nametoindex(NETNS_OURS);
	return 0;
}

static int teardown(void **state)
{
	rtnl_close(&nl);
	return 0;
}

static void rtnl_link_get__veth(void **state)
{
	struct rtnl_link link;

	assert_int_equal(rtnl_link_get(&nl, NETNS_OURS, &link), 0);
	assert_int_equal(link.ifindex, ifindex);
	assert_int_equal(link.mtu, 1500);
	assert_true(link.up);
	assert_int_equal(link.mac[0] & 1, 0);
	assert_int_equal(rtnl_link_get(&nl, "nonesuch0", &link), -ENODEV);
	assert_int_equal(rtnl_link_get(&nl, "lo", &link), 0);
	assert_false(link.up); /* new namespace: down */
}

static void rtnl_vlans__of_one_netdev(void **state)
{
	struct rtnl_vlan vlan[4];

	assert_int_equal(rtnl_vlans(&nl, ifindex, vlan, 4), 0); /* a veth's link is its peer */
	if (system("ip link add link " NETNS_OURS " name rtv5 type vlan id 5 2>/dev/null"))
		skip(); /* this kernel has no VLAN netdevs */
	assert_int_equal(rtnl_vlans(&nl, ifindex, vlan, 4), 0); /* it is down */
	netns_run("ip link set rtv5 up");
	netns_run(
		"ip link add link " NETNS_OURS " name rtv6 type vlan id 6 && ip link set rtv6 up");
	assert_int_equal(rtnl_vlans(&nl, ifindex, vlan, 4), 2);
	assert_int_equal(vlan[0].ifindex, if_nametoindex("rtv5"));
	assert_int_equal(vlan[0].vid, 5);
	assert_int_equal(vlan[1].vid, 6);
	assert_int_equal(rtnl_vlans(&nl, ifindex, vlan, 1), 1);
	assert_int_equal(rtnl_vlans(&nl, vlan[0].ifindex, vlan, 4), 0);
	netns_run("ip link del rtv5; ip link del rtv6");
}

static void rtnl_addresses__of_one_netdev(void **state)
{
	uint8_t gid[16][16];
	int n = rtnl_addresses(&nl, ifindex, gid, 16);

	assert_true(n >= 2); /* the link-local one may be tentative still */
	assert_memory_equal(gid[0], ours4, 16);
	assert_true(!memcmp(gid[1], ours6, 16) || !memcmp(gid[2], ours6, 16));
	assert_int_equal(rtnl_addresses(&nl, ifindex, gid, 1), 1);
	assert_true(rtnl_addresses(&nl, 9999, gid, 16) <= 0);
}

/* So many parts of answers are read before netdevs stop to come and go. */
static unsigned restless;

ssize_t __real_mnl_socket_recvfrom(const struct mnl_socket *s, void *buf, size_t size);
ssize_t __wrap_mnl_socket_recvfrom(const struct mnl_socket *s, void *buf, size_t size);

ssize_t __wrap_mnl_socket_recvfrom(const struct mnl_socket *s, void *buf, size_t size)
{
	ssize_t n = __real_mnl_socket_recvfrom(s, buf, size);

	if (!restless)
		return n;
	restless--;
	netns_run(if_nametoindex("rtx") ? "ip link del rtx" : "ip link add rtx type veth");
	return n;
}

static int list_while_restless(unsigned parts)
{
	struct rtnl_vlan vlan[4];
	int n;

	restless = parts;
	n = rtnl_vlans(&nl, ifindex, vlan, 4);
	restless = 0;
	return n;
}

static void asks_and_is_answered(void)
{
	struct rtnl_link link;

	assert_int_equal(rtnl_link_get(&nl, NETNS_OURS, &link), 0);
	assert_int_equal(link.ifindex, ifindex);
	assert_int_equal(rtnl_link_get(&nl, "nonesuch0", &link), -ENODEV);
	assert_int_equal(list_while_restless(0), 0);
}

/* A list so long that the kernel makes it in parts, of netdevs that come and go: it is made again,
 * and who asks next gets his own answer. */
static void rtnl_vlans__while_netdevs_come_and_go(void **state)
{
	netns_run("for i in $(seq 100); do ip link add rtm$i type veth; done");
	assert_int_equal(list_while_restless(1), 0);
	asks_and_is_answered();
	assert_int_equal(list_while_restless(1000), -EINTR);
	asks_and_is_answered();
	netns_run("for i in $(seq 100); do ip link del rtm$i; done");
}

static void rtnl_route_get__kinds(void **state)
{
	struct rtnl_route r;

	assert_int_equal(rtnl_route_get(&nl, ours4, peer4, ifindex, &r), 0);
	assert_int_equal(r.type, RTNL_ROUTE_UNICAST);
	assert_int_equal(r.ifindex, ifindex);
	assert_memory_equal(r.nexthop, peer4, 16);
	assert_int_equal(rtnl_route_get(&nl, ours6, peer6, ifindex, &r), 0);
	assert_memory_equal(r.nexthop, peer6, 16);
	netns_run("ip route add 198.51.100.0/24 via 10.9.0.2");
	assert_int_equal(rtnl_route_get(&nl, ours4, far4, ifindex, &r), 0);
	assert_memory_equal(r.nexthop, gateway4, 16);
	netns_run("ip route del 198.51.100.0/24");
}

static int look(const uint8_t gid[16], uint8_t mac[6])
{
	int err;

	WAIT_UNTIL((err = rtnl_neigh_get(&nl, ifindex, gid, mac)) != -EINPROGRESS);
	return err;
}

static void rtnl_neigh_use__resolves(void **state)
{
	const uint8_t *const dst[] = {peer4, peer6};
	uint8_t mac[6];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(rtnl_neigh_get(&nl, ifindex, dst[i], mac), -ENOENT);
		assert_int_equal(rtnl_neigh_use(&nl, ifindex, dst[i]), 0);
		assert_int_equal(look(dst[i], mac), 0);
		assert_memory_equal(mac, peer_mac, 6);
	}
}

static void rtnl_neigh_use__nobody_there(void **state)
{
	uint8_t mac[6];

	assert_int_equal(rtnl_neigh_use(&nl, ifindex, nobody4), 0);
	assert_int_equal(look(nobody4, mac), -EHOSTUNREACH);
}

/* How often take() got the peer's address. */
static void count_peer(void *arg, uint32_t index, const uint8_t gid[16])
{
	unsigned *count = arg;

	*count += index == ifindex && !memcmp(gid, peer4, 16);
}

static unsigned take(unsigned *count)
{
	return rtnl_take_news(&nl, count_peer, count);
}

/* All news of a command, and those of a moment after it. */
static unsigned news_of(const char *command, unsigned *count)
{
	struct pollfd pfd = {.fd = rtnl_fd(&nl), .events = POLLIN};
	unsigned what = 0;

	*count = 0;
	while (poll(&pfd, 1, 300))
		take(count);
	*count = 0;
	netns_run(command);
	assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
	do
		what |= take(count);
	while (poll(&pfd, 1, 300));
	assert_int_equal(take(count), 0);
	return what;
}

static void rtnl_take_news__says_of_what(void **state)
{
	unsigned count;

	/* No news but those of the commands: no address becomes usable, no neighbour is in doubt.
	 */
	netns_run("while ip addr show dev " NETNS_OURS " | grep -q tentative; do sleep 0.1; done");
	netns_run(
		"ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:99 nud permanent dev " NETNS_OURS);
	assert_true(news_of("ip addr add 10.9.1.1/24 dev " NETNS_OURS, &count) & RTNL_NEWS_LINKS);
	assert_true(news_of("ip addr del 10.9.1.1/24 dev " NETNS_OURS, &count) & RTNL_NEWS_LINKS);
	assert_int_equal(
		news_of("ip route add 198.51.100.0/24 via 10.9.0.2", &count), RTNL_NEWS_ROUTES);
	assert_int_equal(news_of("ip route del 198.51.100.0/24", &count), RTNL_NEWS_ROUTES);
	assert_int_equal(count, 0);
	assert_int_equal(news_of("ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:98 nud permanent "
				 "dev " NETNS_OURS,
				 &count),
		0);
	assert_int_equal(count, 1);
	assert_int_equal(news_of("ip neigh del 10.9.0.2 dev " NETNS_OURS, &count), 0);
	assert_true(count > 0);
}

/* Each neighbour that is reported brings news of another. */
static void more_news(void *arg, uint32_t index, const uint8_t gid[16])
{
	unsigned *count = arg;
	char command[80];

	if (++*count >= 300)
		return;
	snprintf(command, sizeof(command),
		"ip neigh replace 10.9.0.2 lladdr 02:00:00:00:01:%02x dev " NETNS_OURS,
		*count % 256);
	netns_run(command);
}

/* Messages that arrive as fast as they are read do not keep their reader for ever. */
static void rtnl_take_news__ends(void **state)
{
	unsigned count = 0;

	netns_run("ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:98 dev " NETNS_OURS);
	rtnl_take_news(&nl, more_news, &count);
	assert_in_range(count, 2, 299);
	count = 0;
	take(&count); /* what was left */
	assert_true(count > 0);
	netns_run("ip neigh del 10.9.0.2 dev " NETNS_OURS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rtnl_link_get__veth, setup, teardown),
		cmocka_unit_test_setup_teardown(rtnl_vlans__of_one_netdev, setup, teardown),
		cmocka_unit_test_setup_teardown(rtnl_addresses__of_one_netdev, setup, teardown),
		cmocka_unit_test_setup_teardown(
			rtnl_vlans__while_netdevs_come_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(rtnl_route_get__kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(rtnl_neigh_use__resolves, setup, teardown),
		cmocka_unit_test_setup_teardown(rtnl_neigh_use__nobody_there, setup, teardown),
		cmocka_unit_test_setup_teardown(rtnl_take_news__says_of_what, setup, teardown),
		cmocka_unit_test_setup_teardown(rtnl_take_news__ends, setup, teardown),
	};

	return cmocka_run_group_tests_name("rtnl", tests, netns_setup, netns_teardown);
}
