/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <net/if.h>
#include <sys/socket.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <rte_ethdev.h>
#include "limits.h"
#include "rxwake.h"
#include "worker.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif

struct found {
	unsigned count;
	int fd[WORKER_MAX];
};

static bool is(const struct port_info *info, const char *driver)
{
	return !strcmp(info->driver, driver);
}

/* Whether @p fd is a packet or XDP socket bound to netdev @p ifindex. */
static bool stands_on(int fd, unsigned ifindex)
{
	union {
		struct sockaddr sa;
		struct sockaddr_ll packet;
		struct sockaddr_xdp xdp;
	} addr = {0};
	socklen_t len = sizeof(addr);

	if (getsockname(fd, &addr.sa, &len))
		return false;
	switch (addr.sa.sa_family) {
	case AF_PACKET:
		return addr.packet.sll_ifindex == (int)ifindex;
	case AF_XDP:
		return addr.xdp.sxdp_ifindex == ifindex;
	default:
		return false;
	}
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* The drivers do not tell their sockets, but the kernel tells which of ours are on the netdev. A
 * driver opens those of its queues one after the other, so they have ascending numbers. */
static void find_sockets(unsigned ifindex, struct found *f)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;

	f->count = 0;
	while (dir && (e = readdir(dir))) {
		int fd = atoi(e->d_name);

		if (!stands_on(fd, ifindex))
			continue;
		if (f->count < WORKER_MAX)
			f->fd[f->count] = fd;
		f->count++;
	}
	if (dir)
		closedir(dir);
	if (f->count <= WORKER_MAX)
		qsort(f->fd, f->count, sizeof(f->fd[0]), by_number);
}

/* One socket a queue, or we do not know which is which. */
static bool by_socket(struct dataplane *dp, uint32_t index, const struct port_info *info)
{
	unsigned ifindex = if_nametoindex(info->netdev);
	struct found f;

	if (!ifindex)
		return false;
	find_sockets(ifindex, &f);
	if (f.count != info->rx_queues)
		return false;
	for (uint16_t q = 0; q < info->rx_queues; q++)
		if (port_wakes(dp, index, q, PORT_WAKE_FD, f.fd[q]))
			return false;
	return true;
}

static enum port_wake by_interrupt(
	struct dataplane *dp, uint32_t index, const struct port_info *info)
{
	/* Its descriptor is readable while frames wait, unasked: there is no such call. */
	enum port_wake wake = is(info, "net_tap") ? PORT_WAKE_FD : PORT_WAKE_INTERRUPT;

	for (uint16_t q = 0; q < info->rx_queues; q++) {
		int fd = rte_eth_dev_rx_intr_ctl_q_get_fd(info->ethdev, q);

		if (fd < 0)
			return PORT_WAKE_NOT;
		if (wake == PORT_WAKE_INTERRUPT && rte_eth_dev_rx_intr_enable(info->ethdev, q))
			return PORT_WAKE_NOT;
		if (port_wakes(dp, index, q, wake, fd))
			return PORT_WAKE_NOT;
	}
	return wake;
}

static enum port_wake install(struct dataplane *dp, uint32_t index, const struct port_info *info)
{
	if (is(info, "net_ring")) /* a worker receives by a queue what it sends by it */
		return PORT_WAKE_SELF;
	if (is(info, "net_af_packet") || is(info, "net_af_xdp"))
		return by_socket(dp, index, info) ? PORT_WAKE_FD : PORT_WAKE_NOT;
	return info->interrupts ? by_interrupt(dp, index, info) : PORT_WAKE_NOT;
}

enum port_wake rxwake_install(
	struct dataplane *dp, uint32_t index, const struct port_info *info, bool held)
{
	enum port_wake wake = PORT_WAKE_NOT;

	if (dp->idle == IDLE_ADAPTIVE && !held)
		wake = install(dp, index, info);
	/* All queues or none; those that have no descriptor are told here. */
	for (uint16_t q = 0; wake < PORT_WAKE_FD && q < info->rx_queues; q++)
		port_wakes(dp, index, q, wake, -1);
	return wake;
}

const char *rxwake_name(enum port_wake wake)
{
	static const char *const name[] = {
		[PORT_WAKE_NOT] = "by looking each 2 ms",
		[PORT_WAKE_SELF] = "by itself",
		[PORT_WAKE_FD] = "by its socket",
		[PORT_WAKE_INTERRUPT] = "by interrupt",
	};

	return name[wake];
}
