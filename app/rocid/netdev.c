/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a port when its netdev changes under it; on the control thread. */
#include <stdio.h>
#include <string.h>
#include <rte_ethdev.h>
#include "daemon.h"
#include "headers.h"
#include "packet.h"

static void say(const struct daemon_port *p, const char *what)
{
	fprintf(stderr, "rocid: %s: %s\n", p->info.netdev, what);
}

/* The packet socket of a netdev that was deleted is tied to nothing, whatever has the name now. */
static int open_again(struct daemon *d, uint32_t port, char why[VALUE_MAX * 2])
{
	struct daemon_port *p = &d->port[port];
	uint16_t ethdev;
	int err;

	port_close_live(d->dp, port);
	for (unsigned q = 0; q < WORKER_MAX; q++) {
		linkemu_detach(p->emu[q]);
		p->emu[q] = NULL;
	}
	packet_stop(d, port);
	if (p->open) {
		port_close(d->dp, port);
		packet_remove(d, port);
		p->open = false;
	}
	share_unguard(&p->guard);
	err = packet_create(d, p->info.netdev, &ethdev, &p->gso, why);
	if (err)
		return err;
	p->open = true;
	p->info.ethdev = ethdev;
	err = share_guard(&p->guard, p->info.netdev, p->gso, why, VALUE_MAX * 2);
	err = err ? err : port_open_live(d->dp, port, &p->info, why);
	if (err)
		return err;
	daemon_watch(d, port);
	return packet_start(d, port) ?: daemon_impair(d, port);
}

static void replaced(struct daemon *d, uint32_t port)
{
	struct daemon_port *p = &d->port[port];
	char why[VALUE_MAX * 2] = "no memory for its emulated link: give EAL more with -m MB";

	if (!p->packet)
		say(p, "it is a new netdev of the old name: start rocid again to use it");
	else if (open_again(d, port, why))
		say(p, why);
	else
		say(p, "it is back: the port goes on");
}

/* A port of our own must receive what is for its netdev's new MAC. */
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
		say(p, "the kernel refused to join a multicast group on it or on a VLAN of it: "
		       "raise net.ipv4.igmp_max_memberships, net.core.optmem_max or rocid's limit "
		       "of open files");
	if (p->tap) { /* which makes a new netdev by itself */
		if (what & CTL_NETDEV_MAC) {
			set_filter(p, netdev->mac);
			tap_remember_mac(p->tap, netdev->mac);
		}
		return;
	}
	if (what & CTL_NETDEV_GONE)
		say(p, "it is gone: its port is down until there is a netdev of that name again");
	if (what & CTL_NETDEV_REPLACED)
		replaced(d, port);
	if (what & CTL_NETDEV_VLANS)
		guard_vlans(p, netdev);
}

static void say_refused(const struct daemon_port *p)
{
	char text[VALUE_MAX];

	snprintf(text, sizeof(text),
		"it refuses frames of %u bytes: the other end of this veth has a smaller MTU; `ip "
		"link set DEV mtu "
		"%u` there at least",
		p->unstick.shortest, p->unstick.shortest - ETH_HLEN);
	say(p, text);
}

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
		next = packet_look(p, now_ms);
		wait = wait < 0 || next < wait ? next : wait;
		if (!known && unstick_refused(&p->unstick, now_ms, UNSTICK_TOLD_MS))
			say_refused(p);
	}
	d->look_ms = now_ms + (uint64_t)(wait < 0 ? 0 : wait);
	return wait;
}
