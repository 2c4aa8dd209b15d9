/* SPDX-License-Identifier: BSD-3-Clause */
/* The events that sessions get of the network: links and addresses of a real netdev. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>
#include "fixture.h"
#include "net/rtnl.h"
#include "patience.h"

static struct client c, other;

static int setup(void **state)
{
	struct test_daemon *d = *state;

	config_veth_second(d);
	/* The last change of a test to the link is over when the next test begins. */
	netns_run("timeout 60 sh -c 'until ip link show " NETNS_OURS
		  " | grep -q LOWER_UP.*state\\ UP; do sleep 0.1; done'");
	daemon_run(d);
	client_open(d, &c);
	client_open(d, &other);
	return 0;
}

static int teardown(void **state)
{
	client_close(&c);
	client_close(&other);
	return daemon_teardown(state);
}

/* Which types have come so far; all of them are of port 2. */
static uint32_t seen[2];

static void take(const struct client *s, uint32_t *types, int timeout)
{
	struct pollfd p = {.fd = s->async, .events = POLLIN};
	struct abi_event ev;

	if (poll(&p, 1, timeout) != 1)
		return;
	assert_int_equal(recv(s->async, &ev, sizeof(ev), 0), sizeof(ev));
	assert_int_equal(ev.handle, 2);
	assert_true(ev.type < 32);
	*types |= 1u << ev.type;
}

/* Waits until both sessions have received @p type. */
static void expect(uint32_t type)
{
	time_t end = patience_begin();

	while (!patience_over(end)) { /* others may come before it */
		take(&c, &seen[0], seen[0] >> type & 1 ? 0 : 50);
		take(&other, &seen[1], seen[1] >> type & 1 ? 0 : 50);
		if (seen[0] & seen[1] & 1u << type)
			return;
	}
	assert_true(seen[0] >> type & 1);
	assert_true(seen[1] >> type & 1);
}

/* All events have arrived when none comes for a while, and no address becomes usable any more: the
 * kernel takes up to two seconds for that after a link has come up. */
static void settle(void)
{
	struct pollfd p[] = {{c.async, POLLIN, 0}, {other.async, POLLIN, 0}};

	netns_run(
		"while ip addr show dev " NETNS_OURS " up | grep LOWER_UP -A9 | grep -q tentative; "
		"do sleep 0.1; done");
	while (poll(p, 2, 300)) {
		take(&c, &seen[0], 0);
		take(&other, &seen[1], 0);
	}
	memset(seen, 0, sizeof(seen));
}

static uint32_t port_state(uint32_t port)
{
	struct abi_query_port in = {.port = port};
	struct abi_port_attr attr;

	client_must(c.sock, ABI_QUERY_PORT, &in, sizeof(in), &attr, sizeof(attr));
	return attr.state;
}

/* proves EVT-05 */
static void port_event__link(void **state)
{
	settle();
	assert_int_equal(port_state(2), 4);
	netns_run_peer("ip link set " NETNS_PEER " down"); /* the cable */
	expect(ABI_EVENT_PORT_ERR);
	assert_false(seen[0] >> ABI_EVENT_PORT_ACTIVE & 1);
	assert_int_equal(port_state(2), 1);
	assert_int_equal(port_state(1), 4);
	settle();
	netns_run_peer("ip link set " NETNS_PEER " up");
	expect(ABI_EVENT_PORT_ACTIVE);
	take(&c, &seen[0], 300);
	assert_int_equal(seen[0], 1u << ABI_EVENT_PORT_ACTIVE);
	assert_int_equal(port_state(2), 4);
	settle();
	netns_run("ip link set " NETNS_OURS " down");
	expect(ABI_EVENT_PORT_ERR);
	settle();
	netns_run("ip link set " NETNS_OURS " up");
	expect(ABI_EVENT_PORT_ACTIVE);
}

/* So often the kernel does not tell. */
static atomic_uint silent;

int __real_rtnl_link_get(struct rtnl *nl, const char *name, struct rtnl_link *link);
int __wrap_rtnl_link_get(struct rtnl *nl, const char *name, struct rtnl_link *link);

int __wrap_rtnl_link_get(struct rtnl *nl, const char *name, struct rtnl_link *link)
{
	unsigned left = atomic_load(&silent);

	if (!left)
		return __real_rtnl_link_get(nl, name, link);
	atomic_store(&silent, left - 1);
	return -ENOBUFS;
}

/* The link goes down once, and no news of it come again. */
static void port_event__link_while_the_kernel_is_busy(void **state)
{
	settle();
	atomic_store(&silent, 4);
	netns_run("ip link set " NETNS_OURS " down");
	expect(ABI_EVENT_PORT_ERR);
	assert_int_equal(atomic_load(&silent), 0);
	settle();
	netns_run("ip link set " NETNS_OURS " up");
	expect(ABI_EVENT_PORT_ACTIVE);
}

/* proves EVT-05 */
static void port_event__addresses(void **state)
{
	settle();
	netns_run("ip addr add 10.9.0.44/24 dev " NETNS_OURS);
	expect(ABI_EVENT_GID_CHANGE);
	settle();
	netns_run("ip addr del 10.9.0.44/24 dev " NETNS_OURS);
	expect(ABI_EVENT_GID_CHANGE);
	assert_int_equal(seen[0], 1u << ABI_EVENT_GID_CHANGE); /* and nothing else */
}

/* proves EVT-05: an MTU that changes the path MTU: the port is active (again), as an adapter's
 * would be; not while it is down. */
static void port_event__mtu(void **state)
{
	settle();
	netns_run("ip link set " NETNS_OURS " mtu 2200");
	expect(ABI_EVENT_PORT_ACTIVE);
	settle();
	netns_run("ip link set " NETNS_OURS " mtu 2300"); /* 2048 still */
	take(&c, &seen[0], 300);
	assert_int_equal(seen[0], 0);
	netns_run("ip link set " NETNS_OURS " mtu 1500");
	expect(ABI_EVENT_PORT_ACTIVE);
	assert_int_equal(seen[0], 1u << ABI_EVENT_PORT_ACTIVE);
	settle();
	netns_run_peer("ip link set " NETNS_PEER " down");
	expect(ABI_EVENT_PORT_ERR);
	settle();
	netns_run("ip link set " NETNS_OURS " mtu 2200");
	take(&c, &seen[0], 300);
	assert_false(seen[0] >> ABI_EVENT_PORT_ACTIVE & 1);
	netns_run("ip link set " NETNS_OURS " mtu 1500");
	netns_run_peer("ip link set " NETNS_PEER " up");
	expect(ABI_EVENT_PORT_ACTIVE);
}

/* proves EVT-05, EVT-06: of all that happens to a netdev, only events of RoCE are raised. */
static void port_event__no_others(void **state)
{
	const uint32_t roce =
		1u << ABI_EVENT_PORT_ACTIVE | 1u << ABI_EVENT_PORT_ERR | 1u << ABI_EVENT_GID_CHANGE;
	uint32_t all = 0;

	settle();
	netns_run(
		"ip link set " NETNS_OURS " mtu 4200 && ip link set " NETNS_OURS " alias x && "
		"ip link set " NETNS_OURS " txqueuelen 77 && ip link set " NETNS_OURS " mtu 1500");
	netns_run("ip link set " NETNS_OURS " address 02:00:00:00:00:33");
	expect(ABI_EVENT_GID_CHANGE); /* the link-local one is made of the MAC */
	netns_run("ip link set " NETNS_OURS " down && ip addr add 10.9.0.45/24 dev " NETNS_OURS
		  " && ip link set " NETNS_OURS " up && ip addr del 10.9.0.45/24 dev " NETNS_OURS);
	netns_run_peer("ip link set " NETNS_PEER " down && ip link set " NETNS_PEER " up");
	all |= seen[0] | seen[1];
	for (int i = 0; i < 50; i++)
		take(&c, &all, 20);
	assert_int_equal(all & ~roce, 0);
}

/* An address on another netdev raises no event. */
static void port_event__other_netdevs(void **state)
{
	settle();
	netns_run("ip addr add 10.77.0.1/24 dev lo && ip link set lo up");
	netns_run("ip addr del 10.77.0.1/24 dev lo");
	take(&c, &seen[0], 300);
	assert_int_equal(seen[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(port_event__link, setup, teardown),
		cmocka_unit_test_setup_teardown(
			port_event__link_while_the_kernel_is_busy, setup, teardown),
		cmocka_unit_test_setup_teardown(port_event__addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(port_event__mtu, setup, teardown),
		cmocka_unit_test_setup_teardown(port_event__no_others, setup, teardown),
		cmocka_unit_test_setup_teardown(port_event__other_netdevs, setup, teardown),
	};

	return cmocka_run_group_tests_name(
		"port_event", tests, netns_daemon_setup, netns_daemon_teardown);
}
