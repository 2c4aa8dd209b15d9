/* SPDX-License-Identifier: BSD-3-Clause */
/* Live QPs follow what the kernel knows: the MACs in a QP's template, and whether it loops back. */
#include <time.h>
#include <unistd.h>
#include <stdio.h>
#include "config/ctl_parts.h"
#include "fixture.h"
#include "hash.h"
#include "headers.h"
#include "loop/loop.h"
#include "net/net.h"
#include "patience.h"
#include "qp.h"
#include "qp_table.h"
#include "verbs/dest.h"
#include "verbs/objects.h"

static const uint8_t peer4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 0, 2};
static const uint8_t far4[16] = {[10] = 0xFF, [11] = 0xFF, 198, 51, 100, 1};
static const uint8_t own4[16] = {[10] = 0xFF, [11] = 0xFF, 10, 9, 0, 1};

static struct client c;
static uint32_t pd, cq;

static int setup(void **state)
{
	struct test_daemon *d = *state;

	config_veth_alone(d);
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

/* A neighbour of RoCE alone is checked and kept, though the kernel sends nothing there. */
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

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* @return the CPU time of rounds in each of which one of @p n destinations is due. */
static uint64_t rounds_with_one_due(struct ctl *ctl, unsigned n)
{
	static const uint8_t nexthop[16];
	static struct dest *made[16384];
	struct dest_key key = {.sgid = 1, .given = {2, 1}};
	uint64_t begin;

	assert_true(n <= sizeof(made) / sizeof(made[0]));
	memcpy(key.dgid, peer4, sizeof(peer4));
	for (unsigned i = 0; i < n; i++) {
		memcpy(key.given + 2, &i, sizeof(i));
		made[i] = dest_get(ctl, &key);
		assert_non_null(made[i]);
		made[i]->query.ifindex = 1000 + i;
	}
	dests_touch_port(ctl, 0);
	for (unsigned i = 0; i < n; i++) /* more than enough */
		dests_poll(ctl, loop_now_ms());
	begin = cpu_ns();
	for (unsigned i = 0; i < 512; i++) {
		struct dest *d = made[i * 64 % n];

		d->checked_ms = 0;
		dests_touch_neigh(ctl, d->query.ifindex, nexthop);
		assert_int_equal(dests_poll(ctl, loop_now_ms()), -1);
		assert_true(d->checked_ms != 0);
	}
	begin = cpu_ns() - begin;
	for (unsigned i = 0; i < n; i++)
		dest_release(made[i]);
	return begin;
}

/* Those that are due are found among many without looking at all. */
static void dests_poll__finds_what_is_due(void **state)
{
	struct test_daemon *d = *state;
	uint64_t few, many;

	daemon_pause(d);
	few = rounds_with_one_due(d->ctl, 64);
	many = rounds_with_one_due(d->ctl, 16384);
	daemon_resume(d);
	print_message("few: %llu us, many: %llu us\n", (unsigned long long)few / 1000,
		(unsigned long long)many / 1000);
	assert_true(many < 4 * few + 20000000);
}

/* @return the bucket that @p d is in. */
static unsigned bucket_of(const struct dests *all, const struct dest *d)
{
	for (unsigned i = 0; i < DEST_BUCKETS; i++)
		for (const struct list *n = all->bucket[i].next; n != &all->bucket[i]; n = n->next)
			if (n == &d->node)
				return i;
	fail();
	return 0;
}

static unsigned fullest_bucket(const struct dests *all)
{
	unsigned most = 0, fullest = 0;

	for (unsigned i = 0; i < DEST_BUCKETS; i++) {
		unsigned n = 0;

		for (const struct list *at = all->bucket[i].next; at != &all->bucket[i];
			at = at->next)
			n++;
		if (n > most) {
			most = n;
			fullest = i;
		}
	}
	return fullest;
}

/* A program that chose its destinations so that they share a bucket of one daemon finds them
 * scattered in another one. */
static void dest_get__buckets_depend_on_the_seed(void **state)
{
	enum {
		MANY = 8192
	};
	static struct dest *made[MANY];
	struct dest_key key = {.sgid = 1, .given = {2, 1}}, same[MANY / 512];
	struct test_daemon *d = *state;
	struct dests *all = d->ctl->objects->dests;
	unsigned fullest, n = 0, scattered = 0;

	daemon_pause(d);
	assert_true(all->seed->factor[0] && all->seed->factor[HASH_WORDS]);
	memcpy(key.dgid, peer4, sizeof(peer4));
	for (unsigned i = 0; i < MANY; i++) {
		memcpy(key.given + 2, &i, sizeof(i));
		made[i] = dest_get(d->ctl, &key);
	}
	fullest = fullest_bucket(all);
	for (unsigned i = 0; i < MANY && n < sizeof(same) / sizeof(same[0]); i++)
		if (bucket_of(all, made[i]) == fullest)
			same[n++] = made[i]->key;
	for (unsigned i = 0; i < MANY; i++)
		dest_release(made[i]);
	assert_true(n >= MANY / DEST_BUCKETS); /* whatever the seed of this run */
	for (unsigned i = 0; i < HASH_WORDS; i++)
		all->seed->factor[i] = all->seed->factor[i] * 0x9E3779B97F4A7C15u + i + 1;
	for (unsigned i = 0; i < n; i++)
		made[i] = dest_get(d->ctl, &same[i]);
	for (unsigned i = 1; i < n; i++)
		scattered += bucket_of(all, made[i]) != bucket_of(all, made[0]);
	for (unsigned i = 0; i < n; i++)
		dest_release(made[i]);
	assert_true(scattered > 0);
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
		cmocka_unit_test_setup_teardown(dests_poll__finds_what_is_due, setup, teardown),
		cmocka_unit_test_setup_teardown(
			dest_get__buckets_depend_on_the_seed, setup, teardown),
	};

	return cmocka_run_group_tests_name(
		"dest", tests, netns_daemon_setup, netns_daemon_teardown);
}
