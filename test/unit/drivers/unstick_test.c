/* SPDX-License-Identifier: BSD-3-Clause */
/* In a network name space of its own, on a veth whose other end takes 1500 bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>
#include <linux/if_packet.h>
#include <rte_ethdev.h>
#include "eal_test.h"
#include "patience.h"
#include "share.h"
#include "unstick.h"

#define ETHERTYPE 0x88B5 /* for experiments */
#define LONG	  4170u
#define SHORT	  100u

static struct rte_mempool *pool;
static uint16_t ethdev;
static struct unstick u;
static uint64_t now_ms;
static int other_end;

static void up(void)
{
	const struct rte_eth_conf conf = {0};
	char why[256] = "";

	assert_int_equal(share_create("va", 1, &ethdev, why, sizeof(why)), 0);
	assert_int_equal(rte_eth_dev_configure(ethdev, 1, 1, &conf), 0);
	assert_int_equal(rte_eth_rx_queue_setup(ethdev, 0, 64, SOCKET_ID_ANY, NULL, pool), 0);
	assert_int_equal(rte_eth_tx_queue_setup(ethdev, 0, 64, SOCKET_ID_ANY, NULL), 0);
	assert_int_equal(rte_eth_dev_start(ethdev), 0);
	memset(&u, 0, sizeof(u));
	unstick_watch(&u, "va");
	assert_int_equal(u.queues, 1);
	now_ms = 1000000;
}

static void down(void)
{
	unstick_forget(&u);
	assert_int_equal(rte_eth_dev_stop(ethdev), 0);
	assert_int_equal(rte_eth_dev_close(ethdev), 0);
	share_remove("va");
}

/* Returns whether the ring had room. Its last byte tells the frame from others. */
static bool put(unsigned len, uint8_t mark)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *data;

	assert_non_null(m);
	data = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)len);
	assert_non_null(data);
	if (!data) /* the compiler does not know that the assertion ends the test */
		return false;
	memset(data, 0, len);
	memset(data, 0xFF, 6);
	data[6] = 2;
	data[12] = ETHERTYPE >> 8;
	data[13] = ETHERTYPE & 0xFF;
	data[len - 1] = mark;
	if (rte_eth_tx_burst(ethdev, 0, &m, 1) == 1)
		return true;
	rte_pktmbuf_free(m);
	return false;
}

static void look(unsigned times)
{
	while (times--) {
		int wait = unstick_poll(&u, now_ms);

		assert_in_range(wait, 1, 500);
		now_ms += (uint64_t)wait;
	}
}

/* Whether the other end gets frame @p mark, when it was sent: veth hands over at once, or soon. */
static bool arrives(uint8_t mark, bool expected)
{
	const struct timeval patience = {
		.tv_sec = expected ? PATIENCE_S : 0, .tv_usec = expected ? 0 : 100000};
	uint8_t frame[LONG];
	ssize_t n;

	setsockopt(other_end, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	while ((n = recv(other_end, frame, sizeof(frame), 0)) > 0)
		if (frame[n - 1] == mark)
			return true;
	return false;
}

static void unstick_poll__nothing_is_refused(void **state)
{
	up();
	assert_true(put(SHORT, 1));
	assert_int_equal(unstick_poll(&u, now_ms), 500);
	assert_true(arrives(1, true));
	assert_int_equal(u.count, 0);
	assert_int_equal(unstick_refused(&u, now_ms, 5000), 0);
	down();
}

static void unstick_poll__what_waits_behind_a_refused_frame_leaves(void **state)
{
	up();
	assert_true(put(LONG, 1));
	assert_true(put(SHORT, 2));
	assert_true(put(SHORT, 3));
	assert_false(arrives(3, false)); /* or there is nothing to test */
	look(3);
	assert_true(arrives(2, true));
	assert_true(arrives(3, true));
	assert_int_equal(u.count, 1);
	assert_int_equal(unstick_refused(&u, now_ms, 5000), LONG);
	/* the next is known at the first look */
	assert_true(put(LONG, 4));
	assert_true(put(SHORT, 5));
	look(1);
	assert_true(arrives(5, true));
	assert_int_equal(u.count, 2);
	/* a longer one goes with it; a shorter one that is refused too needs its own proof */
	assert_true(put(LONG - 1000, 6));
	assert_true(put(LONG, 7));
	assert_true(put(SHORT, 8));
	look(2);
	assert_int_equal(u.count, 2);
	look(1);
	assert_true(arrives(8, true));
	assert_int_equal(u.count, 4);
	assert_int_equal(unstick_refused(&u, now_ms, 5000), LONG - 1000);
	assert_int_equal(unstick_refused(&u, now_ms + 4000, 5000), LONG - 1000);
	assert_int_equal(unstick_refused(&u, now_ms + 5000, 5000), 0);
	down();
}

/* Nobody knows then which frame is the head. */
static void unstick_poll__the_ring_is_full(void **state)
{
	unsigned n = 0;

	up();
	assert_true(put(LONG, 1));
	while (put(SHORT, 2))
		assert_in_range(++n, 1, 4096);
	look(3);
	assert_int_equal(u.count, 1);
	assert_true(put(SHORT, 3));
	assert_true(arrives(3, true));
	down();
}

static void unstick_poll__a_refused_frame_that_is_taken_later_stays(void **state)
{
	up();
	assert_true(put(LONG, 1));
	look(2);
	assert_int_equal(system("ip link set vb mtu 4300"), 0);
	look(3);
	assert_true(arrives(1, true));
	assert_int_equal(u.count, 0);
	assert_int_equal(system("ip link set vb mtu 1500"), 0);
	down();
}

/* veth drops frames to an end that is down. The kernel stops sending once it knows of that,
 * which it checks once per second. */
static void unstick_poll__the_other_end_is_down(void **state)
{
	up();
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(system("ip link set vb down && ip link set vb up &&"
					"ip link set vb down"),
			0);
		put(SHORT, 1);
		look(8);
		assert_int_equal(u.count, 0);
		assert_int_equal(unstick_refused(&u, now_ms, 60000), 0);
		assert_int_equal(system("ip link set vb up"), 0);
	}
	down();
}

/* It refuses frames of any length, now and then: that is no netdev of a smaller MTU. */
static void unstick_tell__a_queue_that_is_full(void **state)
{
	struct unstick t = {0};

	unstick_tell(&t, 3, 1082, 70, 1000);
	unstick_tell(&t, 0, 0, 1082, 1500); /* as long, and it passed */
	unstick_tell(&t, 3, 1082, 70, 2000);
	assert_int_equal(unstick_refused(&t, 2000, UNSTICK_TOLD_MS), 0);
	unstick_tell(&t, 1, 1082, 1082, 2500);
	assert_int_equal(unstick_refused(&t, 2500, UNSTICK_TOLD_MS), 0);
	unstick_tell(&t, 1, 1082, 0, 3000);
	unstick_tell(&t, 0, 0, 1081, 3500);
	unstick_tell(&t, 1, 1082, 70, 4000);
	assert_int_equal(unstick_refused(&t, 4000, UNSTICK_TOLD_MS), 1082);
	assert_int_equal(t.count, 9);
}

static int listen_at(const char *netdev)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETHERTYPE),
		.sll_ifindex = (int)if_nametoindex(netdev)};
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETHERTYPE));
	int size = 8 << 20;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)))
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	return fd;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unstick_poll__nothing_is_refused),
		cmocka_unit_test(unstick_poll__what_waits_behind_a_refused_frame_leaves),
		cmocka_unit_test(unstick_poll__the_ring_is_full),
		cmocka_unit_test(unstick_poll__a_refused_frame_that_is_taken_later_stays),
		cmocka_unit_test(unstick_poll__the_other_end_is_down),
		cmocka_unit_test(unstick_tell__a_queue_that_is_full),
	};

	if (unshare(CLONE_NEWNET) ||
		system("ip link add va mtu 4300 type veth peer name vb mtu 1500 &&"
		       "ip link set va up && ip link set vb up")) {
		fprintf(stderr, "SKIP: no network name space with a veth: run as root\n");
		return 77;
	}
	other_end = listen_at("vb");
	eal_test_start();
	pool = rte_pktmbuf_pool_create(
		"unstick", 255, 0, 0, RTE_PKTMBUF_HEADROOM + MBUF_ROOM, SOCKET_ID_ANY);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
