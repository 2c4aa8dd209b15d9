/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ether.h>
#include "number.h"
#include "port.h"
#include "refuse.h"
#include "uaccess.h"
#include "worker_impl.h"

#define MEMIF_BUFFER 2048u /* unless its devargs say otherwise */

static uint16_t netdev_mtu(const char *netdev)
{
	struct ifreq ifr = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return 0;
	memcpy(ifr.ifr_name, netdev, IFNAMSIZ);
	err = ioctl(fd, SIOCGIFMTU, &ifr);
	close(fd);
	if (err || ifr.ifr_mtu <= 0)
		return 0;
	return ifr.ifr_mtu < UINT16_MAX ? (uint16_t)ifr.ifr_mtu : UINT16_MAX;
}

/* net_ring and others have no address. Use a locally administered one derived from the process and
 * the port: two daemons on one link must differ. */
static void read_mac(struct port_info *info)
{
	static const uint8_t none[6];
	struct rte_ether_addr addr = {{0}};
	pid_t pid = getpid();

	rte_eth_macaddr_get(info->ethdev, &addr);
	memcpy(info->mac, addr.addr_bytes, 6);
	if (memcmp(info->mac, none, 6))
		return;
	info->mac[0] = 0x02;
	info->mac[1] = 'R';
	info->mac[2] = (uint8_t)(pid >> 16);
	info->mac[3] = (uint8_t)(pid >> 8);
	info->mac[4] = (uint8_t)pid;
	info->mac[5] = (uint8_t)info->ethdev;
}

int port_probe(uint16_t ethdev, struct port_info *info, char why[ABI_SENTENCE_MAX])
{
	struct rte_eth_dev_info dev;
	int err;

	memset(info, 0, sizeof(*info));
	info->ethdev = ethdev;
	rte_eth_dev_get_name_by_port(ethdev, info->name);
	err = rte_eth_dev_info_get(ethdev, &dev);
	if (err)
		return refuse(why, err, "port %u (%s) does not answer (%s): unplug or replace it",
			ethdev, info->name, strerror(-err));
	snprintf(info->driver, sizeof(info->driver), "%s", dev.driver_name);
	if (dev.if_index)
		if_indextoname(dev.if_index, info->netdev);
	info->socket = rte_eth_dev_socket_id(ethdev);
	read_mac(info);
	return 0;
}

/* Some virtual devices carry frames of any length but have no MTU (memif): then the requested one
 * applies, and the peer has to agree. */
static int set_mtu(const struct port_info *info, uint16_t mtu, bool configured,
	const struct rte_eth_dev_info *dev, char why[ABI_SENTENCE_MAX])
{
	int err;

	if (!mtu || configured)
		return 0;
	err = rte_eth_dev_set_mtu(info->ethdev, mtu);
	if (!err || err == -ENOTSUP)
		return 0;
	return refuse(why, err,
		"port %u (%s) refuses MTU %u (its longest frame is %u bytes): ask for a smaller "
		"one with --mtu %u,BYTES",
		info->ethdev, info->name, mtu, dev->max_rx_pktlen, info->ethdev);
}

static int read_mtu(struct port_info *info, uint16_t wanted, char why[ABI_SENTENCE_MAX])
{
	if (info->netdev[0])
		info->mtu = netdev_mtu(info->netdev);
	else if (wanted)
		info->mtu = wanted;
	else
		rte_eth_dev_get_mtu(info->ethdev, &info->mtu);
	if (!info->mtu)
		return refuse(why, -ENODEV, "port %u (%s): cannot read its MTU: use another port",
			info->ethdev, info->name);
	return 0;
}

/* The AF_XDP driver reports every error as "invalid", even a missing capability. */
static int no_rx_queue(const struct dataplane *dp, const struct port_info *info, uint16_t q,
	int err, char why[ABI_SENTENCE_MAX])
{
	if (!strcmp(info->driver, "net_af_xdp") && geteuid())
		return refuse(why, -EPERM,
			"port %u (%s) cannot open its AF_XDP socket: it needs CAP_NET_RAW, "
			"CAP_NET_ADMIN, CAP_SYS_ADMIN and CAP_IPC_LOCK; see PERMISSIONS in "
			"rocid(8)",
			info->ethdev, info->name);
	return refuse(why, err,
		"port %u (%s) cannot set up receive queue %u (%s): give it frames of at most %u "
		"bytes (AF_PACKET: framesz=2048, or use --share)",
		info->ethdev, info->name, q, strerror(-err), dp->mbuf_room);
}

static int setup_queues(
	const struct dataplane *dp, const struct port_info *info, char why[ABI_SENTENCE_MAX])
{
	uint16_t nrx = PORT_DESC;
	uint16_t ntx = PORT_DESC;
	unsigned socket = (unsigned)info->socket; /* SOCKET_ID_ANY is -1 */
	int err = rte_eth_dev_adjust_nb_rx_tx_desc(info->ethdev, &nrx, &ntx);

	if (err)
		return refuse(why, err, "port %u (%s) accepts no queue length: use another port",
			info->ethdev, info->name);
	for (uint16_t q = 0; q < info->rx_queues; q++) {
		err = rte_eth_rx_queue_setup(
			info->ethdev, q, nrx, socket, NULL, dp->worker[q]->pool);
		if (err)
			return no_rx_queue(dp, info, q, err, why);
	}
	for (uint16_t q = 0; q < info->tx_queues; q++) {
		err = rte_eth_tx_queue_setup(info->ethdev, q, ntx, socket, NULL);
		if (err)
			return refuse(why, err,
				"port %u (%s) cannot set up transmit queue %u (%s): give it more "
				"queues, or start rocid with fewer --workers",
				info->ethdev, info->name, q, strerror(-err));
	}
	return 0;
}

static bool is_memif(const struct port_info *info)
{
	return !strcmp(info->driver, "net_memif");
}

/* DPDK's memif polls and fills all of its own queues, also those that the peer does not have: they
 * overlap the first one's ring, so frames arrive twice or are torn. There is no way to find
 * out how many the peer has. */
static int check_memif_queues(
	const struct dataplane *dp, const struct port_info *info, char why[ABI_SENTENCE_MAX])
{
	if (!is_memif(info) || dp->nworkers == 1 || info->peer_queues == dp->nworkers)
		return 0;
	return refuse(why, -EINVAL,
		"port %u (%s) has a queue for each of %u workers, and its peer must have as many: "
		"if so, say --queues %u,%u, otherwise --workers 1",
		info->ethdev, info->name, dp->nworkers, info->ethdev, dp->nworkers);
}

/* memif splits a frame over several of its buffers if one is too small, but DPDK 22.11's sender
 * then leaves the "next" flag in the ring and counts one slot too few: a later frame is joined with
 * others and the ring overruns. So one buffer must hold the longest frame. */
static int check_memif(const struct port_info *info, uint16_t mtu,
	const struct rte_eth_dev_info *dev, char why[ABI_SENTENCE_MAX])
{
	const struct rte_devargs *devargs = rte_dev_devargs(dev->device);
	const char *bsize = devargs && devargs->args ? strstr(devargs->args, "bsize=") : NULL;
	unsigned frame = RTE_MIN(mtu + 0u + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN, FRAME_MAX);
	uint64_t buffer = MEMIF_BUFFER;

	if (bsize) {
		bsize += strlen("bsize=");
		take_number(&bsize, 10, UINT16_MAX, &buffer);
	}
	if (!is_memif(info) || buffer >= frame)
		return 0;
	return refuse(why, -EINVAL,
		"port %u (%s) has buffers of %" PRIu64
		" bytes, too small for frames of MTU %u: add "
		"bsize=%u to its --vdev, on both sides",
		info->ethdev, info->name, buffer, mtu, MBUF_ROOM);
}

/* Real devices do. The descriptors of virtual ones change with their peer, or become readable
 * before the driver sees the frame (net_tap learns of it by a signal). */
static bool can_interrupt(const struct rte_eth_dev_info *dev)
{
	return strcmp(rte_bus_name(rte_dev_bus(dev->device)), "vdev");
}

static int configure(const struct dataplane *dp, uint16_t mtu, struct port_info *info,
	char why[ABI_SENTENCE_MAX])
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info dev;
	const uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
	bool fits;
	int err = rte_eth_dev_info_get(info->ethdev, &dev);

	if (err)
		return refuse(why, err,
			"port %u (%s) has disappeared: restart rocid when it is back", info->ethdev,
			info->name);
	if (dev.max_tx_queues < dp->nworkers)
		return refuse(why, -EINVAL,
			"port %u (%s) has %u transmit queues for %u workers: give it more queues, "
			"or start rocid with fewer --workers",
			info->ethdev, info->name, dev.max_tx_queues, dp->nworkers);
	err = check_memif(info, mtu, &dev, why);
	if (!err)
		err = check_memif_queues(dp, info, why);
	if (err)
		return err;
	fits = mtu && mtu <= dev.max_mtu && (uint64_t)mtu + overhead <= dev.max_rx_pktlen;
	conf.rxmode.mtu = fits ? mtu : 0;
	info->interrupts = dp->idle == IDLE_ADAPTIVE && can_interrupt(&dev);
	conf.intr_conf.rxq = info->interrupts;
	info->rx_queues = (uint16_t)RTE_MIN(dev.max_rx_queues, dp->nworkers);
	info->tx_queues = (uint16_t)dp->nworkers;
	if (info->rx_queues > 1) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_UDP & dev.flow_type_rss_offloads;
		info->rss = conf.rx_adv_conf.rss_conf.rss_hf;
		if (!info->rss)
			conf.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
	}
	err = rte_eth_dev_configure(info->ethdev, info->rx_queues, info->tx_queues, &conf);
	if (err)
		return refuse(why, err,
			"port %u (%s) refuses its configuration (%s): use another port",
			info->ethdev, info->name, strerror(-err));
	err = setup_queues(dp, info, why);
	return err ? err : set_mtu(info, mtu, fits, &dev, why);
}

static void attach(struct dataplane *dp, uint32_t index, const struct port_info *info)
{
	dp->ethdev[index] = info->ethdev;
	for (uint16_t i = 0; i < dp->nworkers; i++) {
		struct worker_port *p = &dp->worker[i]->port[index];

		p->ethdev = info->ethdev;
		p->queue = i;
		p->rx = i < info->rx_queues;
		p->fragile = is_memif(info);
		p->spreads = info->rx_queues > 1 && info->rx_queues == dp->nworkers;
	}
}

/* Configures and starts the device. */
static int start(const struct dataplane *dp, uint16_t mtu, struct port_info *info,
	char why[ABI_SENTENCE_MAX])
{
	struct rte_eth_link link = {0};
	int err = configure(dp, mtu, info, why);

	if (!err)
		err = read_mtu(info, mtu, why);
	if (err)
		return err;
	err = rte_eth_dev_start(info->ethdev);
	if (err == -EPERM && !is_memif(info)) /* which reports it if there is no server */
		return refuse(why, err,
			"port %u (%s) is not allowed to set its netdev's flags: run rocid as root "
			"or with CAP_NET_ADMIN",
			info->ethdev, info->name);
	if (err)
		return refuse(why, err, "port %u (%s) does not start (%s): %s", info->ethdev,
			info->name, strerror(-err),
			is_memif(info) ? "start the side with role=server first"
				       : "read its driver's messages with --log-level=pmd:info");
	if (!rte_eth_link_get_nowait(info->ethdev, &link) &&
		link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		info->speed_mbps = link.link_speed;
	return 0;
}

/* Drivers write as much into a buffer as their MTU allows, not as much as fits. */
static int check_room(const struct dataplane *dp, const struct port_info *info, uint16_t mtu,
	char why[ABI_SENTENCE_MAX])
{
	const uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN;

	if (RTE_MIN(mtu + overhead, FRAME_MAX) <= dp->mbuf_room)
		return 0;
	return refuse(why, -EINVAL,
		"port %u (%s) cannot have MTU %u: packet buffers hold %u bytes if there is an "
		"AF_XDP port, so ask for at most %u",
		info->ethdev, info->name, mtu, dp->mbuf_room, dp->mbuf_room - overhead);
}

int port_open(struct dataplane *dp, uint32_t index, uint16_t mtu, struct port_info *info,
	char why[ABI_SENTENCE_MAX])
{
	int err;

	if (mtu && info->netdev[0])
		return refuse(why, -EINVAL,
			"port %u (%s) has the MTU of netdev %s: use `ip link set %s mtu %u` "
			"instead of "
			"--mtu",
			info->ethdev, info->name, info->netdev, info->netdev, mtu);
	err = check_room(dp, info, mtu, why);
	if (!err)
		err = start(dp, mtu, info, why);
	if (err)
		return err;
	attach(dp, index, info);
	dp->nports = index + 1;
	for (uint32_t i = 0; i < dp->nworkers; i++)
		dp->worker[i]->nports = index + 1;
	return 0;
}

void port_close_live(struct dataplane *dp, uint32_t index)
{
	for (uint32_t i = 0; i < dp->nworkers; i++)
		atomic_fetch_or_explicit(
			&dp->worker[i]->port[index].shut, SHUT_CLOSED, memory_order_release);
	worker_grace(dp); /* every round that began before the store has ended */
}

void port_set_down(struct dataplane *dp, uint32_t index, bool down)
{
	for (uint32_t i = 0; i < dp->nworkers; i++) {
		_Atomic uint8_t *shut = &dp->worker[i]->port[index].shut;

		if (down)
			atomic_fetch_or_explicit(shut, SHUT_DOWN, memory_order_relaxed);
		else
			atomic_fetch_and_explicit(shut, (uint8_t)~SHUT_DOWN, memory_order_relaxed);
	}
	worker_grace(dp);
}

int port_open_live(
	struct dataplane *dp, uint32_t index, struct port_info *info, char why[ABI_SENTENCE_MAX])
{
	int err = start(dp, 0, info, why);

	if (!err)
		attach(dp, index, info);
	return err;
}

void port_use_live(struct dataplane *dp, uint32_t index)
{
	for (uint32_t i = 0; i < dp->nworkers; i++)
		atomic_fetch_and_explicit(&dp->worker[i]->port[index].shut, (uint8_t)~SHUT_CLOSED,
			memory_order_release);
	for (uint32_t i = 0; i < dp->nworkers; i++)
		worker_wake(dp->worker[i]); /* events before the worker watched the descriptor were
					     * missed */
}

/* The device cannot filter by group. If it already received all multicast, as for a tap, leave it
 * so. */
static void take_all_groups(struct dataplane *dp, uint32_t index)
{
	if (rte_eth_allmulticast_get(dp->ethdev[index]) != 1)
		dp->allmulti[index] = !rte_eth_allmulticast_enable(dp->ethdev[index]);
}

void port_set_groups(struct dataplane *dp, uint32_t index, uint8_t (*mac)[6], uint32_t n)
{
	if (index >= dp->nports)
		return;
	if (rte_eth_dev_set_mc_addr_list(dp->ethdev[index], (struct rte_ether_addr *)mac, n) && n) {
		take_all_groups(dp, index);
	} else if (dp->allmulti[index]) {
		dp->allmulti[index] = false;
		rte_eth_allmulticast_disable(dp->ethdev[index]);
	}
}

void port_close(struct dataplane *dp, uint32_t index)
{
	rte_eth_dev_stop(dp->ethdev[index]);
	rte_eth_dev_close(dp->ethdev[index]);
	dp->ethdev[index] = RTE_MAX_ETHPORTS; /* another port may soon get its number */
	dp->allmulti[index] = false;
}

int port_stats(const struct dataplane *dp, uint32_t index, struct rte_eth_stats *stats)
{
	int err = rte_eth_stats_get(dp->ethdev[index], stats);

	if (!err && dp->count[index])
		dp->count[index](dp->count_arg[index], stats);
	return err;
}

struct rte_mempool *port_pool(const struct dataplane *dp, uint16_t queue)
{
	return dp->worker[queue]->pool;
}
