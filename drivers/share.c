/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include "headers.h"
#include "limits.h"
#include "share.h"

/* Frames of the AF_PACKET ring, each direction: it must hold the windows of several QPs while a
 * thread is paused for some milliseconds. */
#define RING_FRAMES	2048u
#define RING_FRAMES_MIN 256u /* some windows */
#define FRAMES_A_BLOCK	8u   /* of MBUF_ROOM: whole pages */

static void device_name(char name[RTE_ETH_NAME_MAX_LEN], const char *netdev)
{
	snprintf(name, RTE_ETH_NAME_MAX_LEN, "net_af_packet_%s", netdev);
}

/* The driver locks its rings in memory; without CAP_IPC_LOCK the limit is 8 MiB. */
static bool may_lock(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0);

	if (p == MAP_FAILED)
		return false;
	munmap(p, size);
	return true;
}

static size_t rings_size(unsigned frames)
{
	return (size_t)2 * frames * MBUF_ROOM;
}

static unsigned ring_frames(uint16_t queues)
{
	unsigned frames = RING_FRAMES;

	while (frames > RING_FRAMES_MIN && !may_lock(queues * rings_size(frames)))
		frames /= 2;
	return frames;
}

int share_create(
	const char *netdev, uint16_t queues, uint16_t *ethdev, char *why, unsigned why_size)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	char args[256];
	int err;

	if (!if_nametoindex(netdev)) {
		snprintf(why, why_size, "there is no netdev %s: `ip link` lists them", netdev);
		return -ENODEV;
	}
	/* RoCE frames are at most MBUF_ROOM long, whatever the netdev's MTU is now or later. */
	device_name(name, netdev);
	snprintf(args, sizeof(args), "iface=%s,qpairs=%u,framesz=%u,blocksz=%u,framecnt=%u", netdev,
		queues, MBUF_ROOM, FRAMES_A_BLOCK * MBUF_ROOM, ring_frames(queues));
	err = rte_eal_hotplug_add("vdev", name, args);
	if (err || rte_eth_dev_get_port_by_name(name, ethdev)) {
		snprintf(why, why_size,
			"cannot open a packet socket on netdev %s: run as root or with "
			"CAP_NET_RAW; its rings are locked in memory (ulimit -l, CAP_IPC_LOCK)",
			netdev);
		return err ? err : -ENODEV;
	}
	return 0;
}

void share_remove(const char *netdev)
{
	char name[RTE_ETH_NAME_MAX_LEN];

	device_name(name, netdev);
	rte_eal_hotplug_remove("vdev", name);
}

/* Exactly as many frames as ring_frames() chose: a mapping of any other size is refused. */
bool share_map(struct share_rings *r, int fd)
{
	for (r->frames = RING_FRAMES; r->frames >= RING_FRAMES_MIN; r->frames /= 2) {
		size_t size = rings_size(r->frames);
		void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (map == MAP_FAILED)
			continue;
		r->rx = map;
		r->tx = r->rx + size / 2;
		return true;
	}
	return false;
}

void share_unmap(const struct share_rings *r)
{
	munmap(r->rx, rings_size(r->frames));
}

bool share_is_device(const char *netdev)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq ifr = {.ifr_data = (void *)&info};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool on_bus;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", netdev);
	on_bus = fd >= 0 && !ioctl(fd, SIOCETHTOOL, &ifr) && info.bus_info[0];
	if (fd >= 0)
		close(fd);
	return on_bus;
}

static int guard_socket(int family, const char *netdev)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog filter = {.len = 1, .filter = &drop};
	const struct sockaddr_in6 in6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(UDP_PORT_ROCEV2)};
	const struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons(UDP_PORT_ROCEV2)};
	bool v6 = family == AF_INET6;
	int one = 1;
	int err;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	/* The device first, so that other netdevs' port 4791 stays free. The filter before bind, so
	 * that nothing is ever queued. */
	if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, netdev, (socklen_t)strlen(netdev)) ||
		setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ||
		(v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one))) ||
		(v6 ? bind(fd, (const struct sockaddr *)&in6, sizeof(in6))
		    : bind(fd, (const struct sockaddr *)&in4, sizeof(in4)))) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int share_guard(struct share_guard *g, const char *netdev, char *why, unsigned why_size)
{
	static const int family[2] = {AF_INET, AF_INET6};

	g->fd[0] = g->fd[1] = -1;
	for (unsigned i = 0; i < 2; i++) {
		int fd = guard_socket(family[i], netdev);

		if (fd == -EAFNOSUPPORT) /* a kernel without IPv6 does not answer to it either */
			continue;
		if (fd < 0) {
			share_unguard(g);
			snprintf(why, why_size,
				fd == -ENODEV ? "there is no netdev %s: `ip link` lists them"
				: fd == -EADDRINUSE
					? "UDP port 4791 of netdev %s is taken: stop the "
					  "other rocid or "
					  "soft-RoCE (`rdma link show`) on it"
					: "cannot bind UDP port 4791 of netdev %s: run "
					  "as root or with "
					  "CAP_NET_RAW",
				netdev);
			return fd;
		}
		g->fd[i] = fd;
	}
	return 0;
}

void share_guard_whole(const struct share_guard *g)
{
	const int one = 1;

	for (unsigned i = 0; i < 2; i++)
		setsockopt(g->fd[i], IPPROTO_UDP, UDP_GRO, &one, sizeof(one));
}

void share_unguard(struct share_guard *g)
{
	for (unsigned i = 0; i < 2; i++) {
		if (g->fd[i] >= 0)
			close(g->fd[i]);
		g->fd[i] = -1;
	}
}

static int find_guard(const struct share_vlans *v, uint32_t ifindex)
{
	for (unsigned i = 0; i < v->count; i++)
		if (v->ifindex[i] == ifindex)
			return (int)i;
	return -1;
}

/* @return 0, even if the netdev has disappeared, or a negative errno. */
static int guard_vlan(struct share_vlans *v, uint32_t ifindex, char *why, unsigned why_size)
{
	char netdev[IF_NAMESIZE];
	int err;

	if (!if_indextoname(ifindex, netdev))
		return 0;
	err = share_guard(&v->guard[v->count], netdev, why, why_size);
	if (!err)
		v->ifindex[v->count++] = ifindex;
	return err == -ENODEV ? 0 : err;
}

int share_guard_vlans(
	struct share_vlans *v, const uint32_t *ifindex, unsigned n, char *why, unsigned why_size)
{
	struct share_vlans old = *v;
	int err = 0;

	v->count = 0;
	for (unsigned i = 0; i < n; i++) {
		int known = find_guard(&old, ifindex[i]);

		if (known < 0) {
			err = guard_vlan(v, ifindex[i], why, why_size) ?: err;
			continue;
		}
		v->guard[v->count] = old.guard[known];
		v->ifindex[v->count++] = ifindex[i];
	}
	for (unsigned i = 0; i < old.count; i++)
		if (find_guard(v, old.ifindex[i]) < 0)
			share_unguard(&old.guard[i]);
	return err;
}
