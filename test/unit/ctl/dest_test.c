/* SPDX-License-Identifier: BSD-3-Clause */
/* Live QPs follow what the kernel knows: the MACs in a QP's template, and whether it loops back. */
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "config/parts.h"
#include "daemon.h"
#include "loop/loop.h"
#include "net/net.h"
#include "netns.h"
#include "patience.h"
#include "qp.h"
#include "verbs/dest.h"

static const uint8_t peer4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 0, 2};
static const uint8_t far4[16] = {[10] = 0xFF, [11] = 0xFF, 198, 51, 100, 1};
static const uint8_t own4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 0, 1};

static struct client c;
static uint32_t pd, cq;

static int group_setup(void **state)
{
	netns_setup(state);
	return daemon_group_setup(state);
}

static int group_teardown(void **state)
{
	daemon_group_teardown(state);
	return netns_teardown(state);
}

static int setup(void **state)
{
	struct test_daemon *d = *state;

	daemon_config(d);
	memset(d->cfg.port, 0, sizeof(d->cfg.port));
	strcpy(d->cfg.port[0].netdev, NETNS_OURS);
	d->cfg.nports = 1;
	d->cfg.application_macs = true; /* some tests make destinations by MAC */
	daemon_run(d);
	client_open(d, &c);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	return 0;
}

static int teardown(void **state)
{
	client_close(&c);
	return daemon_teardown(state);
}

/* A QP in RTR whose peer is @p dgid.  @return its path, which the control thread writes: the
 * workers do not run. */
static const struct path *connect_qp(
	struct test_daemon *d, const uint8_t dgid[16], const uint8_t dmac[6])
{
	struct abi_create_qp_reply qp = client_qp(&c, pd, cq);
	struct abi_modify_qp m = {.handle = qp.handle,
		.mask = ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS,
		.attr = {.qp_state = ABI_QPS_INIT, .port = 1}};

	client_must(c.sock, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
	m.mask = ABI_QP_STATE | ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN |
		 ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER;
	m.attr = (struct abi_qp_attr){.qp_state = ABI_QPS_RTR,
		.path_mtu = 1024,
		.ah = {.port = 1, .is_global = 1, .hop_limit = 1, .sgid_index = 1}};
	memcpy(m.attr.ah.dgid, dgid, 16);
	memcpy(m.attr.ah.dmac, dmac, 6);
	client_must(c.sock, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
	return &atomic_load(&d->dp->qps->slot[QPN_SLOT(qp.qpn)])->path;
}

static const uint8_t any[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

/* Commands of the control thread see to it that its writes are seen here. */
static bool after_a_command(void)
{
	struct answer a;

	return !client_call(c.sock, ABI_QUERY_DEVICE, NULL, 0, -1, &a);
}

static void expect(const struct path *p, unsigned at, const char *mac)
{
	WAIT_UNTIL(after_a_command() && !memcmp(p->hdr + at, mac, 6));
	if (!memcmp(p->hdr + at, mac, 6))
		return;
	print_error("%02x:%02x:%02x:%02x:%02x:%02x\n", p->hdr[at], p->hdr[at + 1], p->hdr[at + 2],
		p->hdr[at + 3], p->hdr[at + 4], p->hdr[at + 5]);
	assert_memory_equal(p->hdr + at, mac, 6);
}

static void expect_local(const struct path *p, bool local)
{
	WAIT_UNTIL(after_a_command() && p->local == local);
	assert_int_equal(p->local, local);
}

/* A17.4.2: nobody tells us; our kernel asks, and sees from whom the answer comes. */
static void dest__peer_gets_another_mac(void **state)
{
	const struct path *p = connect_qp(*state, peer4, any);
	const struct path *q = connect_qp(*state, peer4, any);

	expect(p, ETH_DST, "\x02\0\0\0\0\x99");
	netns_run_peer("ip link set " NETNS_PEER " address 02:00:00:00:00:77");
	netns_run("ip neigh flush dev " NETNS_OURS); /* sooner than by its own clocks */
	expect(p, ETH_DST, "\x02\0\0\0\0\x77");
	expect(q, ETH_DST, "\x02\0\0\0\0\x77");
	netns_run("ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:55 dev " NETNS_OURS);
	expect(p, ETH_DST, "\x02\0\0\0\0\x55");
	netns_run("ip neigh del 10.9.0.2 dev " NETNS_OURS);
	expect(p, ETH_DST, "\x02\0\0\0\0\x77");
	netns_run_peer("ip link set " NETNS_PEER " address 02:00:00:00:00:99");
	netns_run("ip neigh flush dev " NETNS_OURS);
	expect(p, ETH_DST, "\x02\0\0\0\0\x99");
}

/* proves ETH-11 */
static void dest__own_netdev_gets_another_mac(void **state)
{
	const struct path *p = connect_qp(*state, peer4, any);
	const struct path *given = connect_qp(*state, peer4, (const uint8_t *)"\x02\0\0\0\0\x98");
	const struct path *self = connect_qp(*state, own4, any);

	netns_run("ip link set " NETNS_OURS " address 02:00:00:00:00:31");
	expect(p, ETH_SRC, "\x02\0\0\0\0\x31");
	expect(p, ETH_DST, "\x02\0\0\0\0\x99");
	expect(given, ETH_SRC, "\x02\0\0\0\0\x31");
	expect(given, ETH_DST, "\x02\0\0\0\0\x98"); /* what the application gave is its own */
	expect(self, ETH_SRC, "\x02\0\0\0\0\x31");
	expect(self, ETH_DST, "\x02\0\0\0\0\x31");
	assert_true(self->local);
}

/* The next hop changes with the routes. */
static void dest__route_changes(void **state)
{
	const struct path *p;

	netns_run("ip neigh replace 10.9.0.3 lladdr 02:00:00:00:00:33 nud permanent dev " NETNS_OURS
		  " && ip route add 198.51.100.0/24 via 10.9.0.2");
	p = connect_qp(*state, far4, any);
	expect(p, ETH_DST, "\x02\0\0\0\0\x99");
	netns_run("ip route replace 198.51.100.0/24 via 10.9.0.3");
	expect(p, ETH_DST, "\x02\0\0\0\0\x33");
	netns_run("ip route del 198.51.100.0/24"); /* nowhere: the last one holds */
	expect(p, ETH_DST, "\x02\0\0\0\0\x33");
	netns_run("ip route add 198.51.100.0/24 via 10.9.0.2");
	expect(p, ETH_DST, "\x02\0\0\0\0\x99");
	netns_run("ip route del 198.51.100.0/24 && ip neigh del 10.9.0.3 dev " NETNS_OURS);
}

/* The peer's address becomes one of ours, and the peer's again. */
static void dest__address_moves_here(void **state)
{
	const struct path *p = connect_qp(*state, peer4, any);

	assert_false(p->local);
	netns_run_peer("ip addr del 10.9.0.2/24 dev " NETNS_PEER);
	netns_run("ip addr add 10.9.0.2/24 dev " NETNS_OURS);
	expect_local(p, true);
	assert_memory_equal(p->hdr + ETH_DST, p->hdr + ETH_SRC, 6);
	netns_run("ip addr del 10.9.0.2/24 dev " NETNS_OURS);
	netns_run_peer("ip addr add 10.9.0.2/24 dev " NETNS_PEER);
	expect_local(p, false);
	expect(p, ETH_DST, "\x02\0\0\0\0\x99");
}

/* proves GID-03: a QP whose own address goes keeps its GID, and its packets go where they went. */
static void dest__own_address_goes(void **state)
{
	const struct path *p = connect_qp(*state, peer4, any);

	netns_run("ip addr del 10.9.0.1/24 dev " NETNS_OURS);
	netns_run_peer("ip link set " NETNS_PEER " address 02:00:00:00:00:78");
	netns_run("ip addr add 10.9.0.9/24 dev " NETNS_OURS " && ip neigh flush dev " NETNS_OURS);
	expect(p, ETH_DST, "\x02\0\0\0\0\x78");
	assert_memory_equal(p->hdr + p->l3_off + 12, own4 + 12, 4);
	netns_run_peer("ip link set " NETNS_PEER " address 02:00:00:00:00:99");
	netns_run("ip addr del 10.9.0.9/24 dev " NETNS_OURS
		  " && ip addr add 10.9.0.1/24 dev " NETNS_OURS);
	expect(p, ETH_DST, "\x02\0\0\0\0\x99");
}

/* Whether the kernel's entry for the peer is one that it checked lately. */
static bool kernel_has_checked(void)
{
	FILE *f = popen("ip neigh show 10.9.0.2 dev " NETNS_OURS, "r");
	char line[256] = "";
	bool yes;

	assert_non_null(f);
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	pclose(f);
	yes = strstr(line, "REACHABLE") != NULL;
	return yes;
}

/* What only RoCE talks to is checked and not forgotten, though the kernel sends nothing there. */
static void dest__neighbour_is_kept_fresh(void **state)
{
	const struct path *p = connect_qp(*state, peer4, any);
	bool checked = false;

	expect(p, ETH_DST, "\x02\0\0\0\0\x99");
	netns_run("ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:99 nud stale dev " NETNS_OURS);
	WAIT_UNTIL((checked = kernel_has_checked()));
	assert_true(checked);
}

/* News of the port that do not end, and more destinations than one round looks at: each is looked
 * at after some rounds. */
static void dest__each_has_its_turn(void **state)
{
	struct test_daemon *d = *state;
	uint8_t given[6] = {2, 0, 0, 1};
	const struct path *path[200];

	for (unsigned i = 0; i < 200; i++) {
		given[5] = (uint8_t)i;
		path[i] = connect_qp(d, peer4, given);
	}
	daemon_pause(d);
	memcpy(d->ctl->net->port[0].gids.table.entry[1].mac, "\x02\0\0\0\0\x42", 6);
	for (unsigned round = 0; round < 8 + 200; round++) { /* one is readdressed in each */
		dests_touch_port(d->ctl, 0);
		dests_poll(d->ctl, loop_now_ms());
	}
	for (unsigned i = 0; i < 200; i++)
		assert_memory_equal(path[i]->hdr + ETH_SRC, "\x02\0\0\0\0\x42", 6);
	daemon_resume(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(dest__peer_gets_another_mac, setup, teardown),
		cmocka_unit_test_setup_teardown(dest__own_netdev_gets_another_mac, setup, teardown),
		cmocka_unit_test_setup_teardown(dest__route_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(dest__address_moves_here, setup, teardown),
		cmocka_unit_test_setup_teardown(dest__own_address_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(dest__neighbour_is_kept_fresh, setup, teardown),
		cmocka_unit_test_setup_teardown(dest__each_has_its_turn, setup, teardown),
	};

	return cmocka_run_group_tests_name("dest", tests, group_setup, group_teardown);
}
