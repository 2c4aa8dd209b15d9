/* SPDX-License-Identifier: BSD-3-Clause */
/* In a network name space of its own: a netdev, its thread and the rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include "eal_test.h"
#include "patience.h"
#include "ringpair.h"
#include "tap.h"

#define PROTOCOL 0x88B5 /* for experiments: the kernel itself sends none */

static uint16_t ethdev[2];
static struct exception *x;
static struct tap *tap;
static int packets = -1; /* socket on the netdev */
static char why[512];

static struct tap_config config(const char *name)
{
	struct tap_config c = {
		.mac = {2, 0, 0, 0, 0, 0x51},
		.mtu = 2000,
		.ethdev = ethdev[0],
		.socket = SOCKET_ID_ANY,
		.exception = x,
	};

	strcpy(c.name, name);
	return c;
}

static void open_socket(void)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
		.sll_protocol = htons(PROTOCOL),
		.sll_ifindex = (int)if_nametoindex("rtap")};
	struct timeval patience = {.tv_sec = PATIENCE_S};

	packets = socket(AF_PACKET, SOCK_RAW, htons(PROTOCOL));
	assert_true(packets >= 0);
	assert_int_equal(bind(packets, (struct sockaddr *)&at, sizeof(at)), 0);
	setsockopt(packets, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
}

static int up(void **state)
{
	struct tap_config c;

	x = exception_create(0, SOCKET_ID_ANY);
	assert_non_null(x);
	c = config("rtap");
	assert_int_equal(tap_create(&tap, 0, &c, why, sizeof(why)), 0);
	open_socket();
	return 0;
}

static int down(void **state)
{
	close(packets);
	tap_stop(tap);
	exception_destroy(x);
	tap_destroy(tap);
	assert_int_equal(if_nametoindex("rtap"), 0);
	return 0;
}

static struct ifreq ask(unsigned long what)
{
	struct ifreq ifr = {.ifr_name = "rtap"};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(ioctl(fd, what, &ifr), 0);
	close(fd);
	return ifr;
}

static struct ethhdr header(uint8_t last)
{
	struct ethhdr h = {.h_dest = {2, 0, 0, 0, 0, 0x51}, .h_source = {2, 0, 0, 0, 0, last}};

	h.h_proto = htons(PROTOCOL);
	return h;
}

static void tap_create__mac_mtu_and_up(void **state)
{
	assert_memory_equal(ask(SIOCGIFHWADDR).ifr_hwaddr.sa_data, "\x02\0\0\0\0\x51", 6);
	assert_int_equal(ask(SIOCGIFMTU).ifr_mtu, 2000);
	assert_true(ask(SIOCGIFFLAGS).ifr_flags & IFF_UP);
}

static void tap_create__name_is_taken(void **state)
{
	struct tap_config c = config("lo");
	struct tap *other;

	assert_true(tap_create(&other, 1, &c, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "--tap PORT=NAME"));
	tap_stop(other);
	tap_destroy(other);
	strcpy(c.name, "rtap"); /* another rocid's */
	assert_true(tap_create(&other, 1, &c, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "--tap PORT=NAME"));
	tap_stop(other);
	tap_destroy(other);
}

/* Next frame of the test's own, among those that the kernel sends of itself. */
static struct rte_mbuf *next_down(void)
{
	time_t end = patience_begin();
	struct rte_mbuf *m;

	while (!patience_over(end)) {
		while (!rte_ring_dequeue(x->down, (void **)&m)) {
			const struct ethhdr *h = rte_pktmbuf_mtod(m, const struct ethhdr *);

			if (h->h_proto == htons(PROTOCOL))
				return m;
			rte_pktmbuf_free(m);
		}
		usleep(10000);
	}
	fail_msg("no frame comes down");
	return NULL;
}

static void tap__kernel_sends(void **state)
{
	struct ethhdr h = header(1);
	uint8_t frame[1000];
	struct rte_mbuf *m;

	memset(frame, 0x5A, sizeof(frame));
	memcpy(frame, &h, sizeof(h));
	for (unsigned i = 0; i < 5; i++) {
		frame[20] = (uint8_t)i;
		assert_int_equal(send(packets, frame, sizeof(frame) - i, 0), sizeof(frame) - i);
	}
	for (unsigned i = 0; i < 5; i++) {
		m = next_down();
		frame[20] = (uint8_t)i;
		assert_int_equal(rte_pktmbuf_data_len(m), sizeof(frame) - i);
		assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *), frame, sizeof(frame) - i);
		rte_pktmbuf_free(m);
	}
}

static void pass_up(struct rte_mempool *pool, uint8_t number)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct ethhdr h = header(number);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, 100), &h, sizeof(h));
	assert_int_equal(rte_ring_enqueue(x->up, m), 0);
}

static void tap__kernel_receives(void **state)
{
	struct rte_mempool *pool =
		rte_pktmbuf_pool_create("tap_test", 15, 0, 0, 2048, SOCKET_ID_ANY);
	struct rte_mbuf *m = NULL;
	uint8_t got[200];

	assert_non_null(pool);
	for (uint8_t i = 1; i < 4; i++)
		pass_up(pool, i);
	for (uint8_t i = 1; i < 4; i++) {
		assert_int_equal(recv(packets, got, sizeof(got), 0), 100);
		assert_int_equal(got[11], i);
	}
	for (unsigned i = 0; i < 3; i++) {
		WAIT_UNTIL(!rte_ring_empty(x->spent));
		assert_int_equal(rte_ring_dequeue(x->spent, (void **)&m), 0);
		rte_pktmbuf_free(m);
	}
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	rte_mempool_free(pool);
}

static bool has_link(void)
{
	return ask(SIOCGIFFLAGS).ifr_flags & IFF_RUNNING;
}

static void wait_for_flag(bool wanted)
{
	WAIT_UNTIL(has_link() == wanted);
	assert_int_equal(has_link(), wanted);
}

static void tap__carrier_is_the_ports_link(void **state)
{
	wait_for_flag(true);
	assert_int_equal(rte_eth_dev_set_link_down(ethdev[0]), 0);
	wait_for_flag(false);
	assert_int_equal(rte_eth_dev_set_link_up(ethdev[0]), 0);
	wait_for_flag(true);
}

static void tap__deleted_one_comes_back(void **state)
{
	unsigned index = if_nametoindex("rtap");
	unsigned now = 0;

	assert_int_equal(system("ip link set rtap address 02:00:00:00:00:52"), 0);
	tap_remember_mac(tap, (const uint8_t *)"\x02\0\0\0\0\x52");
	assert_int_equal(system("ip link del rtap"), 0);
	WAIT_UNTIL((now = if_nametoindex("rtap")) && now != index);
	assert_int_not_equal(now, 0);
	WAIT_UNTIL(ask(SIOCGIFFLAGS).ifr_flags & IFF_UP);
	assert_memory_equal(ask(SIOCGIFHWADDR).ifr_hwaddr.sa_data, "\x02\0\0\0\0\x52", 6);
	close(packets);
	open_socket();
	tap__kernel_sends(state);
}

int main(void)
{
	const struct rte_eth_conf conf = {0};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tap_create__mac_mtu_and_up, up, down),
		cmocka_unit_test_setup_teardown(tap_create__name_is_taken, up, down),
		cmocka_unit_test_setup_teardown(tap__kernel_sends, up, down),
		cmocka_unit_test_setup_teardown(tap__kernel_receives, up, down),
		cmocka_unit_test_setup_teardown(tap__carrier_is_the_ports_link, up, down),
		cmocka_unit_test_setup_teardown(tap__deleted_one_comes_back, up, down),
	};

	if (unshare(CLONE_NEWNET) || access("/dev/net/tun", R_OK | W_OK)) {
		fprintf(stderr,
			"tap_test: needs root for a network name space, and /dev/net/tun\n");
		return 77;
	}
	eal_test_start();
	assert_int_equal(ringpair_create(0, 1, SOCKET_ID_ANY, ethdev), 0);
	assert_int_equal(rte_eth_dev_configure(ethdev[0], 1, 1, &conf), 0);
	assert_int_equal(rte_eth_dev_set_link_up(ethdev[0]), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
