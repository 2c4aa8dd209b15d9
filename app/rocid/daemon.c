/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "arguments.h"
#include "bits.h"
#include "burst.h"
#include "daemon.h"
#include "ctl.h"
#include "exception.h"
#include "gso/gso.h"
#include "inbox.h"
#include "interrupts.h"
#include "option_links.h"
#include "packet.h"
#include "refuse.h"
#include "ringpair.h"
#include "rxwake.h"
#include "sigbus.h"
#include "signals.h"
#include "steer.h"
#include "tap.h"
#include "uaccess.h"

/* --- ports ---------------------------------------------------------------------------- */

/* The impairment of a ring pair is that of its two ports, unless --impair names them. */
static void impair_pair(struct options *o, const uint16_t ethdev[2], uint32_t pair)
{
	for (unsigned side = 0; side < 2; side++) {
		if (ethdev[side] >= PORT_MAX || o->impaired[ethdev[side]])
			continue;
		o->links->impair[ethdev[side]] = o->links->pair[pair];
		o->impaired[ethdev[side]] = true;
	}
}

static int make_ports(struct daemon *d, struct options *o, char why[VALUE_MAX * 2])
{
	struct gsoport *gso;
	uint16_t ethdev[2];
	int err;

	for (uint32_t i = 0; i < o->nshares; i++) {
		if (o->share[i].port != PORT_NEW)
			continue;
		err = packet_create(d, o->share[i].netdev, ethdev, &gso, why);
		if (err)
			return err;
		o->share[i].port = ethdev[0];
		d->port[ethdev[0]].packet = true;
		d->port[ethdev[0]].gso = gso;
	}
	for (uint32_t i = 0; i < o->npairs; i++) {
		err = ringpair_create(i, (uint16_t)o->workers, SOCKET_ID_ANY, ethdev);
		if (err)
			return refuse_in(why, VALUE_MAX * 2, err,
				"out of memory for a ring pair (%s): give EAL more with -m MB",
				strerror(-err));
		d->npairs = i + 1;
		impair_pair(o, ethdev, i);
	}
	return 0;
}

/* By the name of its ethdev, or of the netdev on which a packet socket is opened. */
static int find_port(void *arg, const char *name)
{
	const struct daemon *d = arg;

	for (uint32_t i = 0; i < d->nports; i++)
		if (!strcmp(d->port[i].info.name, name))
			return (int)i;
	for (uint32_t i = 0; i < d->opt->nshares; i++)
		if (d->opt->share[i].port < d->nports && !strcmp(d->opt->share[i].netdev, name))
			return (int)d->opt->share[i].port;
	return -1;
}

static int probe_ports(struct daemon *d, struct options *o, char why[VALUE_MAX * 2])
{
	uint16_t ethdev;
	int err;

	RTE_ETH_FOREACH_DEV(ethdev)
	{
		if (ethdev >= PORT_MAX || d->nports == PORT_MAX)
			return refuse_in(why, VALUE_MAX * 2, -E2BIG,
				"too many ports, more than %u: allow fewer with -a or --no-pci",
				PORT_MAX);
		err = port_probe(ethdev, &d->port[d->nports++].info, why);
		if (err)
			return err;
	}
	if (!d->nports)
		return refuse_in(why, VALUE_MAX * 2, -ENODEV,
			"there is no port: name one with --share IFNAME, --ring-pair, or EAL's "
			"--vdev net_memif0 or -a PCI_ADDRESS (bind that NIC with dpdk-devbind.py)");
	if (o->highest_port >= (int)d->nports)
		return refuse_in(why, VALUE_MAX * 2, -EINVAL,
			"%s names port %d, but the last of the %u ports is port %u", o->highest_by,
			o->highest_port, d->nports, d->nports - 1);
	return options_resolve(o, find_port, d, why);
}

static int share_ports(struct daemon *d, struct options *o, char why[VALUE_MAX * 2])
{
	for (uint32_t i = 0; i < o->nshares; i++) {
		struct daemon_port *p = &d->port[o->share[i].port];
		int err;

		if (p->shared)
			return refuse_in(why, VALUE_MAX * 2, -EINVAL, "--share names port %u twice",
				o->share[i].port);
		packet_describe(p, o->share[i].netdev);
		err = share_guard(&p->guard, p->info.netdev, why, VALUE_MAX * 2);
		if (err)
			return err;
		packet_guard(d, p);
		p->shared = true;
	}
	return 0;
}

/* --- workers and their queues --------------------------------------------------------- */

/* Workers take the lcores in order, the main one first, as run.c launches them. */
static void find_nodes(struct dataplane *dp)
{
	unsigned next = rte_get_next_lcore((unsigned)-1, 1, 0);

	dp->node[0] = (int)rte_lcore_to_socket_id(rte_get_main_lcore());
	for (uint32_t i = 1; i < dp->nworkers; i++) {
		dp->node[i] = (int)rte_lcore_to_socket_id(next);
		next = rte_get_next_lcore(next, 1, 0);
	}
}

static int make_workers(struct daemon *d, struct options *o, char why[VALUE_MAX * 2])
{
	int socket = d->port[0].info.socket;
	uint32_t mbufs =
		inbox_frames(o->workers) + GROUP_HELD + 4 * BURST + d->nports * 2 * PORT_DESC;

	if (o->workers > rte_lcore_count())
		return refuse_in(why, VALUE_MAX * 2, -EINVAL,
			"--workers %u needs as many lcores, but EAL has %u: see -l", o->workers,
			rte_lcore_count());
	d->dp = dataplane_create(o->workers, socket);
	if (!d->dp)
		return refuse_in(why, VALUE_MAX * 2, -ENOMEM,
			"no memory for the tables: give EAL more with -m MB");
	find_nodes(d->dp);
	for (uint32_t i = 0; i < PORT_MAX; i++)
		if (o->impaired[i])
			mbufs += o->links->impair[i].spread ? 2 * LINKEMU_HELD : LINKEMU_HELD;
	mbufs += o->ntaps * 2 * EXCEPTION_RING; /* up and spent */
	d->dp->mbufs = mbufs;
	for (uint32_t i = 0; i < d->nports; i++)
		if (!strcmp(d->port[i].info.driver, "net_af_xdp")) {
			d->dp->mbuf_room = MBUF_ROOM_PAGE;
			d->dp->mbufs += AF_XDP_FILL;
		}
	d->dp->idle = o->idle;
	if (o->icrc)
		d->dp->icrc = o->icrc;
	if (o->idle == IDLE_ADAPTIVE && worker_can_sleep())
		return refuse_in(why, VALUE_MAX * 2, -ENOSYS,
			"workers cannot sleep on this kernel (epoll_pwait2() needs Linux 5.11): "
			"use --idle yield");
	for (uint32_t i = 0; i < o->workers; i++)
		if (!worker_create(d->dp, i, socket))
			return refuse_in(why, VALUE_MAX * 2, -ENOMEM,
				"no memory for the %u packet buffers of worker %u: give EAL more "
				"with -m MB (about %u are needed)",
				mbufs, i, mbufs * o->workers / 200 + 16);
	return 0;
}

void daemon_watch(struct daemon *d, uint32_t i)
{
	const struct options *o = d->opt;
	struct daemon_port *p = &d->port[i];
	/* A current setting may end, and the one from the start may return. */
	bool holds = linkemu_holds(&o->links->impair[i]) || linkemu_holds(&p->impair);

	p->wake = rxwake_install(d->dp, i, &p->info, o->impaired[i] && holds);
}

int daemon_impair(struct daemon *d, uint32_t i)
{
	struct daemon_port *p = &d->port[i];

	if (!d->opt->impaired[i])
		return 0;
	for (uint16_t q = 0; q < p->info.rx_queues; q++) {
		p->emu[q] = linkemu_attach(p->info.ethdev, q, &p->impair);
		if (!p->emu[q])
			return -ENOMEM;
	}
	return linkemu_join(p->emu, p->info.rx_queues);
}

/* The largest Ethernet MTU that allows path MTU 2048 (mtu_of_ethernet()): what MBUF_ROOM_PAGE
 * holds.
 */
#define MTU_PAGE 4191

/* The limit of a shared netdev's MTU: path MTU 4096 needs buffers for it. */
static uint32_t netdev_mtu_max(const struct dataplane *dp)
{
	return dp->mbuf_room < MBUF_ROOM ? MTU_PAGE : SHARE_MTU_MAX;
}

static int open_ports(struct daemon *d, struct options *o, char why[VALUE_MAX * 2])
{
	for (uint32_t i = 0; i < d->nports; i++) {
		struct daemon_port *p = &d->port[i];
		int err;

		p->info.peer_queues = o->queues[i];
		err = port_open(d->dp, i, o->mtu[i], &p->info, why);
		if (err)
			return err == -EINVAL ? -EIO : err;
		p->open = true;
		p->impair = o->links->impair[i];
		if (d->dp->mbuf_room < MBUF_ROOM && p->info.mtu > MTU_PAGE)
			p->info.mtu = MTU_PAGE; /* ctl's upper limit, whatever the netdev says */
		steer_install(&p->steer, p->info.ethdev, p->info.rx_queues);
		daemon_watch(d, i);
		if (!linkemu_fits(&p->impair, p->info.rx_queues, why, VALUE_MAX * 2))
			return -EINVAL;
		if ((p->packet && packet_start(d, i)) || daemon_impair(d, i))
			return refuse_in(why, VALUE_MAX * 2, -ENOMEM,
				"no memory for port %u or its emulated link: give EAL more with -m "
				"MB",
				i);
	}
	return 0;
}

static int make_tap(struct daemon *d, const struct option_tap *o, char why[VALUE_MAX * 2])
{
	struct daemon_port *p = &d->port[o->port];
	struct tap_config cfg = {
		.mtu = p->info.mtu,
		.ethdev = p->info.ethdev,
		.socket = p->info.socket,
	};
	int err;

	if (p->shared || !strcmp(p->info.driver, "net_af_packet"))
		return refuse_in(why, VALUE_MAX * 2, -EINVAL,
			"--tap %u: that port already has the kernel's netdev %s: use --share",
			o->port, p->info.netdev);
	cfg.exception = exception_create(o->port, p->info.socket);
	if (!cfg.exception)
		return refuse_in(why, VALUE_MAX * 2, -ENOMEM,
			"out of memory for the tap netdev: give EAL more with -m MB");
	d->dp->exception[o->port] = cfg.exception;
	cfg.worker = d->dp->worker[0];
	if (o->netdev[0])
		memcpy(cfg.name, o->netdev, sizeof(cfg.name));
	else
		snprintf(cfg.name, sizeof(cfg.name), "roci%u", o->port);
	memcpy(cfg.mac, p->info.mac, 6);
	err = tap_create(&p->tap, o->port, &cfg, why, VALUE_MAX * 2);
	if (err)
		return err == -EINVAL ? -EIO : err;
	memcpy(p->info.netdev, cfg.name, sizeof(p->info.netdev));
	/* Groups that the kernel joins; a device that cannot filter passes them anyway. */
	rte_eth_allmulticast_enable(p->info.ethdev);
	return 0;
}

static int make_taps(struct daemon *d, struct options *o, char why[VALUE_MAX * 2])
{
	int err = 0;

	for (uint32_t i = 0; i < o->ntaps && !err; i++)
		err = make_tap(d, &o->tap[i], why);
	return err;
}

/* --- control -------------------------------------------------------------------------- */

static void fill_port(
	const struct dataplane *dp, struct ctl_port *to, const struct daemon_port *from)
{
	if (from->shared || from->tap)
		snprintf(to->netdev, sizeof(to->netdev), "%s", from->info.netdev);
	memcpy(to->mac, from->info.mac, 6);
	to->eth_mtu = from->packet ? netdev_mtu_max(dp) : from->info.mtu;
	to->speed_mbps = from->info.speed_mbps;
}

static bool has_pkey(const struct options *o, uint32_t port, uint32_t index, uint16_t pkey)
{
	for (uint32_t i = 0; i < o->npkeys; i++)
		if (o->pkey[i].port == port &&
			(o->pkey[i].pkey.index == index || o->pkey[i].pkey.pkey == pkey))
			return true;
	return false;
}

/* The P_Keys of netdevs of IP over InfiniBand enter the tables of their ports. Entry 0 is 0xFFFF.
 */
static int add_pkeys(struct options *o, char why[VALUE_MAX * 2])
{
	for (uint32_t i = 0; i < o->nipoibs; i++) {
		const struct option_ipoib *n = &o->ipoib[i];
		uint32_t at = 1;

		if (n->pkey == 0xFFFF || has_pkey(o, n->port, UINT32_MAX, n->pkey))
			continue;
		while (at < PKEY_MAX && has_pkey(o, n->port, at, n->pkey))
			at++;
		if (at == PKEY_MAX || o->npkeys == STATIC_MAX)
			return refuse_in(why, VALUE_MAX * 2, -EINVAL,
				"--ipoib: the P_Key table of port %u is full: remove a --pkey",
				n->port);
		o->pkey[o->npkeys++] = (struct option_pkey){
			.port = n->port, .pkey = {.index = at, .pkey = n->pkey}};
	}
	return 0;
}

/* ctl needs a port's static entries to be adjacent. */
static int start_ctl(struct daemon *d, struct options *o, char why[VALUE_MAX * 2])
{
	static struct ctl_gid gid[STATIC_MAX];
	static struct ctl_neigh neigh[STATIC_MAX];
	static struct ctl_pkey pkey[STATIC_MAX];
	struct ctl_config cfg = {
		.dp = d->dp,
		.socket_path = o->socket,
		.socket_mode = o->socket_mode,
		.socket_group = o->socket_group[0] ? o->socket_group : NULL,
		.admin_mode = o->admin_mode,
		.admin_group = o->admin_group[0] ? o->admin_group : NULL,
		.limits = o->limits,
		.rocev1 = o->rocev1,
		.plain_label = o->plain_label,
		.application_faults = o->application_faults,
		.application_macs = o->application_macs,
		.cm = !o->no_cm,
		.cm_rocev1 = o->cm_rocev1,
		.cm_timeout = (uint8_t)o->cm_timeout,
		.cm_retries = (uint8_t)o->cm_retries,
		.no_userfaultfd = o->no_userfaultfd,
		.window = o->window,
		.migrate = o->migrate,
		.shake_ms = o->shake_ms,
		.nports = d->nports,
		.netdev_changed = daemon_netdev_changed,
		.netdev_arg = d,
		.devices = &d->devices,
	};
	uint32_t g = 0;
	uint32_t n = 0;
	uint32_t q = 0;

	int err = add_pkeys(o, why);

	if (err)
		return err;
	memcpy(cfg.device, o->device, sizeof(cfg.device));
	devices_init(&d->devices, d);
	for (uint32_t i = 0; i < d->nports; i++) {
		struct ctl_port *p = &cfg.port[i];

		fill_port(d->dp, p, &d->port[i]);
		p->gids = &gid[g];
		for (uint32_t k = 0; k < o->ngids; k++)
			if (o->gid[k].port == i)
				gid[g++] = o->gid[k].gid;
		p->ngids = (uint32_t)(&gid[g] - p->gids);
		p->neighs = &neigh[n];
		for (uint32_t k = 0; k < o->nneighs; k++)
			if (o->neigh[k].port == i)
				neigh[n++] = o->neigh[k].neigh;
		p->nneighs = (uint32_t)(&neigh[n] - p->neighs);
		p->pkeys = &pkey[q];
		for (uint32_t k = 0; k < o->npkeys; k++)
			if (o->pkey[k].port == i)
				pkey[q++] = o->pkey[k].pkey;
		p->npkeys = (uint32_t)(&pkey[q] - p->pkeys);
		if (o->prioritized[i])
			p->priority = &o->priority[i];
		if (o->congested[i])
			p->congestion = &o->links->congestion[i];
	}
	return ctl_start(&d->ctl, &cfg, why);
}

static int survive_faults(struct daemon *d, struct options *o, char why[VALUE_MAX * 2])
{
	if (sigbus_install() || burst_install())
		return refuse_in(why, VALUE_MAX * 2, -EIO,
			"cannot install handlers for SIGBUS and SIGSEGV: allow sigaction()");
	return 0;
}

int daemon_up(struct daemon *d, struct options *o, char why[VALUE_MAX * 2])
{
	static int (*const step[])(struct daemon *, struct options *, char[]) = {
		make_ports,
		probe_ports,
		share_ports,
		make_workers,
		open_ports,
		make_taps,
		survive_faults,
		start_ctl,
	};
	int err;

	memset(d, 0, sizeof(*d));
	d->opt = o;
	for (uint32_t i = 0; i < PORT_MAX; i++)
		d->port[i].guard = (struct share_guard){{-1, -1}};
	for (unsigned i = 0; i < ARRAY_SIZE(step); i++) {
		if (signals_asked())
			return -EINTR;
		err = step[i](d, o, why);
		if (err)
			return err;
	}
	return 0;
}

void daemon_down(struct daemon *d)
{
	ctl_destroy(d->ctl);
	interrupts_stop();
	for (uint32_t i = 0; i < d->nports; i++) {
		struct daemon_port *p = &d->port[i];

		signals_stopping("the driver of port", i + 1);
		tap_stop(p->tap);
		for (unsigned q = 0; q < WORKER_MAX; q++)
			linkemu_detach(p->emu[q]);
		gsoport_stop(p->gso);
		if (p->open)
			port_close(d->dp, i);
		gsoport_destroy(p->gso);
		share_unguard(&p->guard);
		share_guard_vlans(&p->vlans, NULL, 0, NULL, 0);
	}
	signals_stopping("the remaining ports", 0);
	for (uint32_t i = 0; i < d->npairs; i++)
		ringpair_destroy(i, (uint16_t)d->opt->workers);
	for (uint32_t i = 0; d->dp && i < PORT_MAX; i++)
		exception_destroy(d->dp->exception[i]);
	for (uint32_t i = 0; i < PORT_MAX; i++)
		tap_destroy(d->port[i].tap);
	for (uint32_t i = 0; d->dp && i < d->dp->nworkers; i++)
		worker_destroy(d->dp->worker[i]);
	dataplane_destroy(d->dp);
}
