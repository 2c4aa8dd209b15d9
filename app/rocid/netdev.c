/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a port when its netdev changes; on the control thread. */
#include <stdio.h>
#include <string.h>
#include <rte_ethdev.h>
#include "cc.h"
#include "daemon.h"
#include "gso/gso.h"
#include "headers.h"
#include "packet.h"
#include "tap.h"

static void say(const struct daemon_port *p, const char *what)
{
	fprintf(stderr, "rocid: %s: %s\n", p->info.netdev, what);
}

/* Destroys what open_port() created. */
static void close_port(struct daemon *d, uint32_t port)
{
	struct daemon_port *p = &d->port[port];

	port_close_live(d->dp, port);
	for (unsigned q = 0; q < WORKER_MAX; q++) {
		linkemu_detach(p->emu[q]);
		p->emu[q] = NULL;
	}
	packet_stop(d, port);
	port_close(d->dp, port);
	packet_remove(d, port);
	share_unguard(&p->guard);
	p->open = false;
}

/* Only a port that accepts Fast CNPs, or telemetry, is to receive IPv6 packets with options
 * (FCN-14). */
static void take_options(const struct daemon *d, uint32_t port)
{
	const struct port *p = &d->dp->ports->port[port];
	const struct cc_config *cc = p->cc;

	gsoport_options(d->port[port].gso, p->switches || (cc && cc->ops->wants_hops));
}

/* Another driver than before may have opened it (packet_create()). */
static int describe(struct daemon_port *p, char why[VALUE_MAX * 2])
{
	char netdev[IF_NAMESIZE];
	int err;

	memcpy(netdev, p->info.netdev, sizeof(netdev));
	err = port_probe(p->info.ethdev, &p->info, why);
	packet_describe(p, netdev);
	return err;
}

/* Opens the device of a closed port. If this fails nothing of it is left. */
static int open_device(struct daemon *d, uint32_t port, char why[VALUE_MAX * 2])
{
	struct daemon_port *p = &d->port[port];
	/* First the step that may fail for a long time and is cheapest, because it is retried. */
	int err = share_guard(&p->guard, p->info.netdev, why, VALUE_MAX * 2);

	err = err ? err : packet_create(d, p->info.netdev, &p->info.ethdev, &p->gso, why);
	if (err) {
		share_unguard(&p->guard);
		return err;
	}
	packet_guard(d, p);
	err = describe(p, why);
	err = err ? err : port_open_live(d->dp, port, &p->info, why);
	if (err) {
		rte_eth_dev_close(p->info.ethdev);
		packet_remove(d, port);
		share_unguard(&p->guard);
	}
	p->open = !err;
	if (!err)
		take_options(d, port);
	return err;
}

/* Objects in front of the queues must exist before the workers use them. */
static int open_port(struct daemon *d, uint32_t port, char why[VALUE_MAX * 2])
{
	int err = open_device(d, port, why);

	if (err)
		return err;
	daemon_watch(d, port);
	if (!linkemu_fits(
		    &d->port[port].impair, d->port[port].info.rx_queues, why, VALUE_MAX * 2)) {
		close_port(d, port);
		return -EINVAL;
	}
	err = packet_start(d, port) ?: daemon_impair(d, port);
	if (err) {
		snprintf(why, VALUE_MAX * 2,
			"no memory for its queues or its emulated link: give EAL more with -m MB");
		close_port(d, port);
	} else {
		port_use_live(d->dp, port);
	}
	return err;
}

/* The interval between attempts to open a port: the process that holds its UDP port, for example,
 * may end. */
#define AGAIN_MS 1000u

/* Reports once why it does not open. @return milliseconds after which to try again. */
static int open_again(struct daemon *d, uint32_t port, uint64_t now_ms)
{
	struct daemon_port *p = &d->port[port];
	char why[VALUE_MAX * 2];

	if (!p->again_ms)
		p->again_ms = now_ms + AGAIN_MS;
	if (now_ms >= p->again_ms) {
		p->again_ms = now_ms + AGAIN_MS;
		if (!open_port(d, port, why))
			say(p, "it is back: the port continues");
	}
	return (int)(p->again_ms - now_ms);
}

/* @p done: what to say then. */
static void reopen(struct daemon *d, uint32_t port, const char *done)
{
	struct daemon_port *p = &d->port[port];
	char why[VALUE_MAX * 2];

	if (p->open)
		close_port(d, port);
	if (!open_port(d, port, why)) {
		say(p, done);
		return;
	}
	say(p, why);
	p->again_ms = 0;
	d->look_ms = 0;
}

/* The packet socket of a deleted netdev is bound to nothing, even if another netdev has the name
 * now. */
static void replaced(struct daemon *d, uint32_t port)
{
	const struct daemon_port *p = &d->port[port];

	if (p->packet)
		reopen(d, port, "it is back: the port continues");
	else
		say(p, "it is a new netdev with the old name: restart rocid to use it");
}

/* A port that rocid owns must receive frames for its netdev's new MAC. */
static void set_filter(const struct daemon_port *p, const uint8_t mac[6])
{
	struct rte_ether_addr addr;

	memcpy(addr.addr_bytes, mac, 6);
	if (rte_eth_dev_default_mac_addr_set(p->info.ethdev, &addr))
		rte_eth_promiscuous_enable(p->info.ethdev);
}

static void guard_vlans(struct daemon_port *p, const struct ctl_netdev *netdev)
{
	char why[VALUE_MAX * 2];

	if (share_guard_vlans(&p->vlans, netdev->vlan, netdev->nvlans, why, sizeof(why)))
		say(p, why);
}

void daemon_netdev_changed(void *arg, uint32_t port, unsigned what, const struct ctl_netdev *netdev)
{
	struct daemon *d = arg;
	struct daemon_port *p = &d->port[port];

	if (what & CTL_NETDEV_UNJOINED)
		say(p, "the kernel refused to join a multicast group on it or on one of its VLANs: "
		       "raise net.ipv4.igmp_max_memberships, net.core.optmem_max or rocid's limit "
		       "of open files");
	if (p->tap) { /* which creates a new netdev by itself */
		if (what & CTL_NETDEV_MAC) {
			set_filter(p, netdev->mac);
			tap_remember_mac(p->tap, netdev->mac);
		}
		return;
	}
	if (what & CTL_NETDEV_GONE)
		say(p, "it has disappeared: its port is down until a netdev of that name exists "
		       "again");
	if (what & CTL_NETDEV_REPLACED)
		replaced(d, port);
	if (what & CTL_NETDEV_VLANS)
		guard_vlans(p, netdev);
	if (what & CTL_NETDEV_SWITCHES)
		take_options(d, port);
}

static void say_refused(const struct daemon_port *p)
{
	char text[VALUE_MAX];

	snprintf(text, sizeof(text),
		"it refuses frames of %u bytes: the other end of this veth has a smaller MTU: run "
		"`ip link set DEV mtu %u` there, or more",
		p->unstick.shortest, p->unstick.shortest - ETH_HLEN);
	say(p, text);
}

#define REOPENED                                                                            \
	"the kernel passed on no more frames, most likely by a bug of Linux after a frame " \
	"with UDP fragmentation offload: the port was reopened; --gso=no avoids this"

int daemon_look(void *arg, uint64_t now_ms)
{
	struct daemon *d = arg;
	int wait = -1;

	if (now_ms < d->look_ms)
		return (int)(d->look_ms - now_ms);
	for (uint32_t i = 0; i < d->nports; i++) {
		struct daemon_port *p = &d->port[i];
		bool known = unstick_refused(&p->unstick, now_ms, UNSTICK_TOLD_MS);
		int next;

		if (!p->packet)
			continue;
		if (p->open && packet_stuck(p, now_ms))
			reopen(d, i, REOPENED);
		next = p->open ? packet_look(p, now_ms) : open_again(d, i, now_ms);
		wait = wait < 0 || next < wait ? next : wait;
		if (!known && unstick_refused(&p->unstick, now_ms, UNSTICK_TOLD_MS))
			say_refused(p);
	}
	d->look_ms = now_ms + (uint64_t)(wait < 0 ? 0 : wait);
	return wait;
}
