/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports that wake a worker which sleeps: in a network name space of its own, on lo. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <cmocka.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include "eal_test.h"
#include "patience.h"
#include "rxwake.h"
#include "share.h"
#include "worker_impl.h"

#define FRAMES	  200
#define ETHERTYPE 0x88B5 /* for experiments: dropped and counted */

static struct dataplane *dp;
static uint16_t ethdev;
static struct port_info info;

static void up(uint32_t nworkers, const char *netdev)
{
	char why[ABI_SENTENCE_MAX] = "";

	dp = dataplane_create(nworkers, SOCKET_ID_ANY);
	assert_non_null(dp);
	dp->idle = IDLE_ADAPTIVE;
	for (uint32_t i = 0; i < nworkers; i++)
		assert_non_null(worker_create(dp, i, SOCKET_ID_ANY));
	assert_int_equal(port_probe(ethdev, &info, why), 0);
	strcpy(info.netdev, netdev);
	if (port_open(dp, 0, 0, &info, why))
		fail_msg("%s", why);
}

static void down(void)
{
	port_close(dp, 0);
	assert_int_equal(rte_eal_hotplug_remove("vdev", "net_af_packet_lo"), 0);
	for (uint32_t i = 0; i < dp->nworkers; i++)
		worker_destroy(dp->worker[i]);
	dataplane_destroy(dp);
}

static void bring_up(const char *netdev)
{
	struct ifreq ifr = {.ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	strcpy(ifr.ifr_name, netdev);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &ifr), 0);
	close(fd);
}

static int packet_socket(const char *netdev, bool receives)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET,
		.sll_protocol = receives ? htons(ETH_P_ALL) : 0,
		.sll_ifindex = (int)if_nametoindex(netdev)};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void *run(void *arg)
{
	worker_run(arg);
	return NULL;
}

static uint64_t word(const uint64_t *of)
{
	return __atomic_load_n(of, __ATOMIC_RELAXED);
}

/* The kernel sends frames while the worker is fast asleep; each wakes it. */
static void wakes_for_frames(const char *netdev)
{
	struct ethhdr frame = {
		.h_dest = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, .h_proto = htons(ETHERTYPE)};
	struct worker *w = dp->worker[0];
	const uint64_t *dropped = &w->core.count.drop[DROP_NOT_ROCE];
	int fd = packet_socket(netdev, false);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, w), 0);
	for (unsigned i = 0; i < FRAMES; i++) {
		time_t end = patience_begin();
		uint64_t before;

		while (!atomic_load(&w->sleeper.waker.asleep))
			sched_yield();
		usleep(i % 4 * 100);
		before = word(dropped);
		assert_int_equal(send(fd, &frame, sizeof(frame), 0), sizeof(frame));
		while (word(dropped) == before) {
			if (patience_over(end))
				fail_msg("frame %u wakes nobody", i);
			sched_yield();
		}
	}
	assert_true(word(&w->stats.sleeps) > FRAMES / 10);
	assert_true(word(&w->stats.sleeps) < 20 * FRAMES); /* not by looking each 2 ms */
	worker_stop(w);
	pthread_join(thread, NULL);
	close(fd);
}

static void rxwake_install__packet_socket(void **state)
{
	char why[256] = "";

	assert_int_equal(share_create("lo", 1, &ethdev, why, sizeof(why)), 0);
	up(1, "lo");
	assert_int_equal(rxwake_install(dp, 0, &info, false), PORT_WAKE_FD);
	wakes_for_frames("lo");
	down();
}

/* Which socket is which queue's is not known when there is another: then no queue is waited for. */
static void rxwake_install__one_socket_too_many(void **state)
{
	char why[256] = "";
	int other;

	assert_int_equal(share_create("lo", 2, &ethdev, why, sizeof(why)), 0);
	up(2, "lo");
	other = packet_socket("lo", true);
	assert_int_equal(rxwake_install(dp, 0, &info, false), PORT_WAKE_NOT);
	assert_int_equal(dp->worker[1]->port[0].wake, PORT_WAKE_NOT);
	close(other);
	assert_int_equal(
		rxwake_install(dp, 0, &info, true), PORT_WAKE_NOT); /* a link that delays */
	assert_int_equal(rxwake_install(dp, 0, &info, false), PORT_WAKE_FD);
	assert_int_equal(dp->worker[0]->port[0].wake, PORT_WAKE_FD);
	assert_int_equal(dp->worker[1]->port[0].wake, PORT_WAKE_FD);
	down();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rxwake_install__packet_socket),
		cmocka_unit_test(rxwake_install__one_socket_too_many),
	};

	if (unshare(CLONE_NEWNET)) {
		fprintf(stderr, "SKIP: no network name space: run as root\n");
		return 77;
	}
	bring_up("lo");
	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
