/* SPDX-License-Identifier: BSD-3-Clause */
/* In a network name space of its own, on its loopback netdev. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <cmocka.h>
#include <rte_ethdev.h>
#include "eal_test.h"
#include "limits.h"
#include "patience.h"
#include "share.h"

/* The kernel's answer to a datagram for port 4791: 0, or ECONNREFUSED for ICMP. It comes at once;
 * only where none is @p expected, little time must do. */
static int answer(int family, bool expected)
{
	struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons(4791)};
	struct sockaddr_in6 in6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(4791), .sin6_addr = in6addr_loopback};
	struct timeval patience = {
		.tv_sec = expected ? PATIENCE_S : 0, .tv_usec = expected ? 0 : 200000};
	int fd = socket(family, SOCK_DGRAM, 0);
	char c;
	int err;

	in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_int_equal(family == AF_INET ? connect(fd, (struct sockaddr *)&in4, sizeof(in4))
					   : connect(fd, (struct sockaddr *)&in6, sizeof(in6)),
		0);
	assert_int_equal(send(fd, "x", 1, 0), 1);
	assert_int_equal(recv(fd, &c, 1, 0), -1);
	err = errno == EAGAIN ? 0 : errno;
	close(fd);
	return err;
}

static void share_is_device__not_what_a_kernel_made_up(void **state)
{
	assert_false(share_is_device("lo"));
	assert_false(share_is_device("nodev0"));
}

static void share_guard__kernel_no_longer_answers(void **state)
{
	struct share_guard g, h;
	char why[256] = "";

	assert_int_equal(answer(AF_INET, true), ECONNREFUSED);
	assert_int_equal(answer(AF_INET6, true), ECONNREFUSED);
	assert_int_equal(share_guard(&g, "lo", why, sizeof(why)), 0);
	assert_int_equal(answer(AF_INET, false), 0);
	assert_int_equal(answer(AF_INET6, false), 0);
	assert_int_equal(share_guard(&h, "lo", why, sizeof(why)), -EADDRINUSE);
	assert_non_null(strstr(why, "4791 of netdev lo is taken"));
	share_unguard(&g);
	share_unguard(&g);
	assert_int_equal(answer(AF_INET, true), ECONNREFUSED);
}

static void share_guard_whole__accepts_super_frames(void **state)
{
	struct share_guard g;
	char why[256] = "";

	assert_int_equal(share_guard(&g, "lo", why, sizeof(why)), 0);
	for (int whole = 0; whole < 2; whole++) {
		for (unsigned i = 0; i < 2; i++) {
			int on = -1;
			socklen_t size = sizeof(on);

			assert_int_equal(getsockopt(g.fd[i], IPPROTO_UDP, UDP_GRO, &on, &size), 0);
			assert_int_equal(on, whole);
		}
		share_guard_whole(&g);
	}
	share_unguard(&g);
}

static void share_guard__no_such_netdev(void **state)
{
	struct share_guard g;
	char why[256] = "";

	assert_true(share_guard(&g, "nodev0", why, sizeof(why)) < 0);
	assert_int_equal(g.fd[0], -1);
	assert_non_null(strstr(why, "nodev0"));
}

/* All kinds of netdevs are guarded against the same; any kind will do. */
static void share_guard_vlans__follows_the_list(void **state)
{
	static struct share_vlans v;
	uint32_t lo[2] = {if_nametoindex("lo"), 0x7FFFFFFF};
	struct share_guard other;
	char why[256] = "";
	int fd;

	assert_int_equal(share_guard_vlans(&v, lo, 2, why, sizeof(why)), 0);
	assert_int_equal(v.count, 1); /* there is no second one, or no longer */
	assert_int_equal(answer(AF_INET, false), 0);
	assert_int_equal(answer(AF_INET6, false), 0);
	fd = v.guard[0].fd[0];
	assert_int_equal(share_guard_vlans(&v, lo, 1, why, sizeof(why)), 0);
	assert_int_equal(v.guard[0].fd[0], fd); /* never open meanwhile */
	assert_int_equal(share_guard_vlans(&v, NULL, 0, why, sizeof(why)), 0);
	assert_int_equal(v.count, 0);
	assert_int_equal(answer(AF_INET, true), ECONNREFUSED);
	assert_int_equal(share_guard(&other, "lo", why, sizeof(why)), 0);
	assert_int_equal(share_guard_vlans(&v, lo, 1, why, sizeof(why)), -EADDRINUSE);
	assert_non_null(strstr(why, "netdev lo"));
	assert_int_equal(v.count, 0);
	share_unguard(&other);
}

static void share_create__mtu_of_lo_is_cut_to_a_frame(void **state)
{
	uint16_t ethdev;
	char why[256] = "";
	struct rte_mempool *pool = rte_pktmbuf_pool_create(
		"share", 63, 0, 0, RTE_PKTMBUF_HEADROOM + MBUF_ROOM, SOCKET_ID_ANY);
	const struct rte_eth_conf conf = {0};

	assert_non_null(pool);
	assert_int_equal(share_create("lo", 2, &ethdev, why, sizeof(why)), 0);
	assert_int_equal(rte_eth_dev_configure(ethdev, 2, 2, &conf), 0);
	/* the driver refuses buffers that are smaller than its frames */
	for (uint16_t q = 0; q < 2; q++)
		assert_int_equal(
			rte_eth_rx_queue_setup(ethdev, q, 64, SOCKET_ID_ANY, NULL, pool), 0);
	assert_int_equal(rte_eth_dev_close(ethdev), 0);
}

static void share_create__no_such_netdev(void **state)
{
	uint16_t ethdev;
	char why[256] = "";

	assert_true(share_create("nodev0", 1, &ethdev, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "no netdev nodev0"));
}

static int bring_lo_up(void)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	int err = ioctl(fd, SIOCSIFFLAGS, &ifr);

	close(fd);
	return err;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share_is_device__not_what_a_kernel_made_up),
		cmocka_unit_test(share_guard__kernel_no_longer_answers),
		cmocka_unit_test(share_guard_whole__accepts_super_frames),
		cmocka_unit_test(share_guard__no_such_netdev),
		cmocka_unit_test(share_guard_vlans__follows_the_list),
		cmocka_unit_test(share_create__mtu_of_lo_is_cut_to_a_frame),
		cmocka_unit_test(share_create__no_such_netdev),
	};

	if (unshare(CLONE_NEWNET) || bring_lo_up()) {
		fprintf(stderr, "share_test: needs root for a network name space\n");
		return 77;
	}
	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
