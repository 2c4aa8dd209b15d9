/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>
#include <rte_dev.h>
#include "eal_test.h"
#include "patience.h"
#include "rig.h"

/* Of the ACK timeout, 8.6 s, eight times: the test may be paused meanwhile. It does not wait for
 * one: what follows a lost packet is refused as out of sequence, so both are sent again. */
#define PATIENT 21

static struct dataplane *dp;
static char why[ABI_SENTENCE_MAX];

static int up_workers(uint32_t n)
{
	dp = dataplane_create(n, SOCKET_ID_ANY);
	for (uint32_t i = 0; i < n; i++)
		worker_create(dp, i, SOCKET_ID_ANY);
	return !dp || !dp->worker[n - 1];
}

static int up(void **state)
{
	return up_workers(1);
}

static int up_two(void **state)
{
	return up_workers(2);
}

static int down(void **state)
{
	for (uint32_t i = 0; i < dp->nworkers; i++)
		worker_destroy(dp->worker[i]);
	dataplane_destroy(dp);
	return 0;
}

/* Makes a virtual device and opens it with `mtu`. */
static int open_vdev(const char *name, const char *args, uint16_t mtu, struct port_info *info)
{
	uint16_t ethdev;

	assert_int_equal(rte_eal_hotplug_add("vdev", name, args), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(name, &ethdev), 0);
	assert_int_equal(port_probe(ethdev, info, why), 0);
	return port_open(dp, 0, mtu, info, why);
}

static void port_open__any_vdev(void **state)
{
	struct port_info info;

	assert_int_equal(open_vdev("net_null0", "", 0, &info), 0);
	assert_string_equal(info.driver, "net_null");
	assert_string_equal(info.netdev, "");
	assert_int_equal(info.mtu, 1500);
	assert_int_equal(dp->nports, 1);
	assert_true(dp->worker[0]->port[0].rx);
	port_close(dp, 0);
	rte_eal_hotplug_remove("vdev", "net_null0");
	assert_int_equal(open_vdev("net_null0", "", 4200, &info), 0);
	assert_int_equal(info.mtu, 4200);
	port_close(dp, 0);
	rte_eal_hotplug_remove("vdev", "net_null0");
}

/* As with AF_XDP, whose buffers are a page. */
static void port_open__an_mtu_that_the_buffers_hold(void **state)
{
	struct port_info info;

	dp->mbuf_room = MBUF_ROOM_PAGE;
	assert_int_equal(open_vdev("net_null0", "", 4200, &info), -EINVAL);
	assert_non_null(strstr(why, "at most 3694"));
	assert_int_equal(port_open(dp, 0, 3694, &info, why), 0);
	assert_int_equal(info.mtu, 3694);
	port_close(dp, 0);
	rte_eal_hotplug_remove("vdev", "net_null0");
}

static void port_open__memif_takes_an_mtu_that_its_buffers_hold(void **state)
{
	struct port_info info;
	char args[128];

	snprintf(args, sizeof(args), "role=server,socket=rocid-unit-%d", (int)getpid());
	assert_int_equal(open_vdev("net_memif0", args, 4200, &info), -EINVAL);
	assert_non_null(strstr(why, "bsize=4608"));
	assert_int_equal(port_open(dp, 0, 1500, &info, why), 0);
	port_close(dp, 0);
	rte_eal_hotplug_remove("vdev", "net_memif0");
	/* another name: the driver keeps the first one's socket open */
	snprintf(args, sizeof(args), "role=server,bsize=4608,socket=rocid-unit-b%d", (int)getpid());
	assert_int_equal(open_vdev("net_memif0", args, 4200, &info), 0);
	assert_int_equal(info.mtu, 4200);
	port_close(dp, 0);
	rte_eal_hotplug_remove("vdev", "net_memif0");
}

/* With fewer queues at the peer, frames would arrive twice. */
static void port_open__memif_needs_as_many_queues_as_its_peer(void **state)
{
	struct port_info info;
	char args[128];

	snprintf(args, sizeof(args), "role=server,socket=rocid-unit-q%d", (int)getpid());
	assert_int_equal(open_vdev("net_memif0", args, 1500, &info), -EINVAL);
	assert_non_null(strstr(why, "--queues 0,2"));
	info.peer_queues = 1;
	assert_int_equal(port_open(dp, 0, 1500, &info, why), -EINVAL);
	info.peer_queues = 2;
	assert_int_equal(port_open(dp, 0, 1500, &info, why), 0);
	assert_int_equal(info.rx_queues, 2);
	port_close(dp, 0);
	rte_eal_hotplug_remove("vdev", "net_memif0");
}

static void port_open__netdev_decides_its_mtu(void **state)
{
	struct port_info info;

	if (geteuid())
		skip();
	assert_int_equal(open_vdev("net_af_packet0", "iface=lo", 4200, &info), -EINVAL);
	assert_non_null(strstr(why, "ip link set lo mtu 4200"));
	assert_int_equal(port_open(dp, 0, 0, &info, why), 0);
	assert_string_equal(info.netdev, "lo");
	port_close(dp, 0);
	rte_eal_hotplug_remove("vdev", "net_af_packet0");
}

static void port_open__too_few_queues(void **state)
{
	struct port_info info;

	if (geteuid())
		skip();
	assert_int_equal(open_vdev("net_af_packet0", "iface=lo,qpairs=1", 0, &info), -EINVAL);
	assert_non_null(strstr(why, "1 transmit queues for 2 workers"));
	rte_eal_hotplug_remove("vdev", "net_af_packet0");
	assert_int_equal(open_vdev("net_af_packet0", "iface=lo,qpairs=2", 0, &info), 0);
	assert_true(dp->worker[1]->port[0].rx);
	assert_int_equal(dp->worker[1]->port[0].queue, 1);
	port_close(dp, 0);
	rte_eal_hotplug_remove("vdev", "net_af_packet0");
}

/* A device that cannot filter by group takes all while there are groups, and not for ever; one that
 * did so already continues. */
static void port_set_groups__takes_all_meanwhile(void **state)
{
	uint8_t mac[1][6] = {{1, 0, 0x5E, 1, 2, 3}};
	struct port_info info;
	uint16_t ethdev;

	assert_int_equal(open_vdev("net_ring0", "", 0, &info), 0);
	ethdev = dp->ethdev[0];
	rte_eth_allmulticast_disable(ethdev);
	for (unsigned i = 0; i < 2; i++) {
		port_set_groups(dp, 0, mac, 1);
		port_set_groups(dp, 0, mac, 1);
		assert_int_equal(rte_eth_allmulticast_get(ethdev), 1);
		port_set_groups(dp, 0, mac, 0);
		assert_int_equal(rte_eth_allmulticast_get(ethdev), 0);
	}
	rte_eth_allmulticast_enable(ethdev);
	port_set_groups(dp, 0, mac, 1);
	port_set_groups(dp, 0, mac, 0);
	assert_int_equal(rte_eth_allmulticast_get(ethdev), 1);
	port_close(dp, 0);
	rte_eal_hotplug_remove("vdev", "net_ring0");
}

/* Two QPs over both ports, under a worker that runs; the first message has arrived. */
static void connected_up(struct rig *r, struct rig_qp q[2])
{
	rig_up(r, 1);
	r->ack_timeout = PATIENT;
	rig_qp_up(r, &q[0], 1, 0);
	rig_qp_up(r, &q[1], 2, 0);
	rig_connect(r, &q[0], &q[1], 0, false);
	rig_connect(r, &q[1], &q[0], 1, false);
	rig_start(r);
	rig_write(&q[0], &q[1], 100);
	assert_int_equal(rig_poll(&q[0]), 0);
}

static void connected_down(struct rig *r, struct rig_qp q[2])
{
	rig_stop(r);
	rig_qp_down(r, &q[0], 1);
	rig_qp_down(r, &q[1], 2);
	rig_down(r);
}

static uint64_t stalled(const struct rig *r)
{
	return __atomic_load_n(&r->dp->worker[0]->stats.tx_stalled, __ATOMIC_RELAXED);
}

/* Frames that came while the port was closed woke nobody to any use. */
static void use_wakes_a_sleeper(struct rig *r)
{
	struct waker *k = &r->dp->worker[0]->sleeper.waker;
	int fd = k->fd;
	uint64_t wakes;

	k->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	atomic_store(&k->asleep, true);
	port_use_live(r->dp, 0);
	atomic_store(&k->asleep, false);
	assert_int_equal(read(k->fd, &wakes, sizeof(wakes)), sizeof(wakes));
	close(k->fd);
	k->fd = fd;
}

/* While workers run: packets sent meanwhile are lost, and sent again once the device is back.
 * The administrator's settings of the port stay. */
static void port_close_live__and_open_again(void **state)
{
	static struct rig_qp q[2];
	struct rig r;

	connected_up(&r, q);
	port_close_live(r.dp, 0);
	rig_write(&q[0], &q[1], 200);
	WAIT_UNTIL(stalled(&r));
	assert_true(stalled(&r));
	assert_int_equal(rte_eth_dev_stop(r.ethdev[0]), 0);
	port_set_down(r.dp, 0, true);
	assert_int_equal(port_open_live(r.dp, 0, &r.info[0], why), 0);
	assert_int_equal(r.dp->worker[0]->port[0].shut, SHUT_CLOSED | SHUT_DOWN);
	use_wakes_a_sleeper(&r);
	assert_int_equal(r.dp->worker[0]->port[0].shut, SHUT_DOWN);
	port_set_down(r.dp, 0, false);
	rig_write(&q[0], &q[1], 200);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(rig_poll(&q[0]), 0);
	connected_down(&r, q);
}

static uint64_t dropped(const struct rig *r)
{
	return __atomic_load_n(&r->dp->worker[0]->stats.port_down, __ATOMIC_RELAXED);
}

/* Packets in both directions are lost and counted, and no old one turns up later. */
static void port_set_down__loses_both_directions(void **state)
{
	static struct rig_qp q[2];
	uint64_t sent;
	struct rig r;

	connected_up(&r, q);
	assert_int_equal(dropped(&r), 0);
	port_set_down(r.dp, 1, true); /* where it arrives */
	rig_write(&q[0], &q[1], 200);
	WAIT_UNTIL(dropped(&r) >= 1);
	assert_true(dropped(&r) >= 1);
	port_set_down(r.dp, 0, true); /* and where it leaves */
	sent = dropped(&r);
	for (unsigned i = 0; i < 2; i++)
		rig_write(&q[0], &q[1], 200);
	WAIT_UNTIL(dropped(&r) >= sent + 2);
	assert_true(dropped(&r) >= sent + 2);
	port_set_down(r.dp, 0, false);
	port_set_down(r.dp, 1, false);
	rig_write(&q[0], &q[1], 200);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(rig_poll(&q[0]), 0);
	connected_down(&r, q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(port_open__any_vdev, up, down),
		cmocka_unit_test_setup_teardown(port_open__an_mtu_that_the_buffers_hold, up, down),
		cmocka_unit_test_setup_teardown(
			port_open__memif_takes_an_mtu_that_its_buffers_hold, up, down),
		cmocka_unit_test_setup_teardown(port_open__netdev_decides_its_mtu, up, down),
		cmocka_unit_test_setup_teardown(port_open__too_few_queues, up_two, down),
		cmocka_unit_test_setup_teardown(
			port_open__memif_needs_as_many_queues_as_its_peer, up_two, down),
		cmocka_unit_test_setup_teardown(port_set_groups__takes_all_meanwhile, up, down),
		cmocka_unit_test(port_close_live__and_open_again),
		cmocka_unit_test(port_set_down__loses_both_directions),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
