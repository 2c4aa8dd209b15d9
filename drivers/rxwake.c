/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <net/if.h>
#include <sys/socket.h>
#include <rte_ethdev.h>
#include "gso/gso.h"
#include "limits.h"
#include "rxwake.h"
#include "sockets.h"
#include "worker.h"

static bool is(const struct port_info *info, const char *driver)
{
	return !strcmp(info->driver, driver);
}

/* One socket per queue; otherwise it is not known which queue a packet is for. */
static bool by_socket(
	struct dataplane *dp, uint32_t index, const struct port_info *info, int domain)
{
	unsigned ifindex = if_nametoindex(info->netdev);
	int fd[WORKER_MAX];

	if (!ifindex || sockets_find(domain, ifindex, fd) != info->rx_queues)
		return false;
	for (uint16_t q = 0; q < info->rx_queues; q++)
		if (port_wakes(dp, index, q, PORT_WAKE_FD, fd[q]))
			return false;
	return true;
}

static enum port_wake by_interrupt(
	struct dataplane *dp, uint32_t index, const struct port_info *info)
{
	for (uint16_t q = 0; q < info->rx_queues; q++) {
		int fd = rte_eth_dev_rx_intr_ctl_q_get_fd(info->ethdev, q);

		if (fd < 0 || rte_eth_dev_rx_intr_enable(info->ethdev, q) ||
			port_wakes(dp, index, q, PORT_WAKE_INTERRUPT, fd))
			return PORT_WAKE_NOT;
	}
	return PORT_WAKE_INTERRUPT;
}

static enum port_wake install(struct dataplane *dp, uint32_t index, const struct port_info *info)
{
	if (is(info, "net_ring")) /* a worker receives on a queue what it sends on it */
		return PORT_WAKE_SELF;
	if (is(info, "net_af_packet") || is(info, GSOPORT_DRIVER))
		return by_socket(dp, index, info, AF_PACKET) ? PORT_WAKE_FD : PORT_WAKE_NOT;
	if (is(info, "net_af_xdp"))
		return by_socket(dp, index, info, AF_XDP) ? PORT_WAKE_FD : PORT_WAKE_NOT;
	return info->interrupts ? by_interrupt(dp, index, info) : PORT_WAKE_NOT;
}

enum port_wake rxwake_install(
	struct dataplane *dp, uint32_t index, const struct port_info *info, bool held)
{
	enum port_wake wake = PORT_WAKE_NOT;

	if (dp->idle == IDLE_ADAPTIVE && !held)
		wake = install(dp, index, info);
	/* All queues or none; those without a descriptor are reported here. */
	for (uint16_t q = 0; wake < PORT_WAKE_FD && q < info->rx_queues; q++)
		port_wakes(dp, index, q, wake, -1);
	return wake;
}

const char *rxwake_name(enum port_wake wake)
{
	static const char *const name[] = {
		[PORT_WAKE_NOT] = "by a check every 2 ms",
		[PORT_WAKE_SELF] = "by itself",
		[PORT_WAKE_FD] = "through its socket",
		[PORT_WAKE_INTERRUPT] = "by interrupt",
	};

	return name[wake];
}
