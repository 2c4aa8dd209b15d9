/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles changes of the kernel's network and of devices: see refresh_port(). */
#include "news.h"
#include <rte_common.h>
#include <stdlib.h>
#include "cm/manager.h"
#include "config/config.h"
#include "config/ctl_parts.h"
#include "list.h"
#include "net/announce.h"
#include "net/net.h"
#include "net/netport.h"
#include "net/rtnl.h"
#include "verbs/dest.h"
#include "verbs/device.h"
#include "verbs/group.h"
#include "worker.h"

/* --- the port's device --------------------------------------------------------------- */

/* A port without its device is down, even if its netdev is up.  @return NETPORT_WENT_* or 0. */
static unsigned read_device(struct ctl *ctl, uint32_t i)
{
	const struct ctl_devices *d = ctl->devices;

	ctl->net->closed[i] = d && !d->open(d->arg, i);
	return net_take_use(ctl->net, i);
}

/* --- the owner of the port's device ------------------------------------------------------ */

static void tell_owner(struct ctl *ctl, uint32_t i, unsigned what)
{
	unsigned news = 0;

	if (what & NETPORT_MAC_CHANGED)
		news |= CTL_NETDEV_MAC;
	if (what & NETPORT_REPLACED)
		news |= CTL_NETDEV_REPLACED;
	if (what & NETPORT_GONE)
		news |= CTL_NETDEV_GONE;
	if (what & NETPORT_VLANS)
		news |= CTL_NETDEV_VLANS;
	net_tell_owner(ctl->net, i, news);
}

/* The port's device may have been replaced.  @return @p what, the changes of the netdev, combined
 * with those of the device. */
static unsigned with_device(struct ctl *ctl, uint32_t i, unsigned what)
{
	const unsigned went = NETPORT_WENT_UP | NETPORT_WENT_DOWN;
	unsigned device = read_device(ctl, i);

	/* Up and down cancel each other. */
	return device && (what & went) ? what & ~went : what | device;
}

/* --- addresses, announced to the link ---------------------------------------------------- */

static void announce(struct ctl *ctl, uint32_t i, const struct gid_table *before)
{
	if (!before)
		return;
	announce_changes(ctl->net->announce_fd, &ctl->net->port[i].gids, before);
	worker_grace(ctl->dp);
	free((void *)before);
}

/* --- the order of it all ---------------------------------------------------------------- */

/* Reads the netdev, notifies the device's owner, reads the device, announces addresses, updates
 * what depends on them, and tells programs last. */
static void refresh_port(struct ctl *ctl, uint32_t i)
{
	const struct gid_table *before;
	unsigned what = netport_refresh(&ctl->net->port[i], &ctl->net->rtnl, &before);

	net_look_again(ctl->net, i);
	if (!what)
		return;
	tell_owner(ctl, i, what);
	what = with_device(ctl, i, what);
	announce(ctl, i, before);
	dests_touch_port(ctl, i);
	groups_join_again(ctl, i);
	connections_addresses_changed(ctl, i);
	port_tell(ctl, i, what);
}

/* --- triggers ------------------------------------------------------------------------------ */

static void neighbour_changed(void *arg, uint32_t ifindex, const uint8_t gid[16])
{
	dests_touch_neigh(arg, ifindex, gid);
}

static void news_ready(struct watch *w)
{
	struct ctl *ctl = container_of(w, struct news, watch)->ctl;
	unsigned what = rtnl_take_news(&ctl->net->rtnl, neighbour_changed, ctl);

	if (what & (RTNL_NEWS_ROUTES | RTNL_NEWS_LOST))
		dests_touch_all(ctl);
	if (!(what & (RTNL_NEWS_LINKS | RTNL_NEWS_LOST)))
		return;
	for (uint32_t i = 0; i < ctl->net->nports; i++)
		refresh_port(ctl, i);
}

int news_open(struct news *n, struct ctl *ctl)
{
	n->ctl = ctl;
	n->watch = (struct watch){.fd = rtnl_fd(&ctl->net->rtnl), .ready = news_ready};
	return loop_watch(ctl->loop, &n->watch);
}

/* @return milliseconds until the next read of stale ports, -1: none are stale. */
static int refresh_stale(struct ctl *ctl, uint64_t now_ms)
{
	struct net *net = ctl->net;

	if (!net->look_again_ms)
		return -1;
	if (now_ms < net->look_again_ms)
		return (int)(net->look_again_ms - now_ms);
	net->look_again_ms = 0;
	net->look_again_wait = RTE_MIN(2 * net->look_again_wait, LOOK_AGAIN_MAX_MS);
	for (uint32_t i = 0; i < net->nports; i++)
		if (net->port[i].stale)
			refresh_port(ctl, i);
	if (net->look_again_ms)
		return (int)net->look_again_wait;
	net->look_again_wait = LOOK_AGAIN_MS;
	return -1;
}

/* @return milliseconds until the next call is due, -1: never. */
static int look_after_devices(struct ctl *ctl, uint64_t now_ms)
{
	const struct ctl_devices *d = ctl->devices;
	int wait = d ? d->look(d->arg, now_ms) : -1;

	for (uint32_t i = 0; d && i < ctl->net->nports; i++) {
		if (d->open(d->arg, i) != ctl->net->closed[i])
			continue;
		port_tell(ctl, i, read_device(ctl, i));
		groups_join_again(ctl, i);
	}
	return wait;
}

int news_poll(struct ctl *ctl, uint64_t now_ms)
{
	int stale = refresh_stale(ctl, now_ms);
	int devices = look_after_devices(ctl, now_ms);

	return loop_sooner(stale, devices);
}
