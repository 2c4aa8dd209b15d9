/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/congestion.h"
#include "net/net.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "loop/loop.h"
#include "net/announce.h"
#include "refuse.h"
#include "worker.h"

int net_open(struct net *net, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX])
{
	struct port_table *table = cfg->dp->ports;
	int err = rtnl_open(&net->rtnl);

	net->netdev_changed = cfg->netdev_changed;
	net->netdev_arg = cfg->netdev_arg;
	net->look_again_wait = LOOK_AGAIN_MS;
	net->announce_fd = announce_open();
	if (err)
		return refuse(why, err, "rocid cannot use rtnetlink: %s", strerror(-err));
	neigh_queue_init(&net->neighs, &net->rtnl);
	if (!cfg->nports || cfg->nports > PORT_MAX)
		return refuse(
			why, -EINVAL, "rocid serves 1 to %u ports, not %u", PORT_MAX, cfg->nports);
	for (uint32_t i = 0; i < cfg->nports; i++) {
		net->nports = i + 1;
		err = netport_init(&net->port[i], i, &cfg->port[i], cfg->rocev1, &net->rtnl,
			&table->port[i], why);
		if (err)
			return err;
		net_look_again(net, i);
		net_tell_owner(net, i,
			(net->port[i].nvlans ? CTL_NETDEV_VLANS : 0) |
				(congestion_options(net->port[i].congestion) ? CTL_NETDEV_SWITCHES
									     : 0));
	}
	table->count = cfg->nports;
	net_telemetry(net, table);
	return 0;
}

void net_telemetry(const struct net *net, struct port_table *table)
{
	bool any = false;

	for (uint32_t i = 0; i < net->nports; i++)
		any |= congestion_header(net->port[i].congestion) != 0;
	atomic_store(&table->telemetry, any);
}

void net_close(struct net *net, struct dataplane *dp)
{
	const struct gid_table *old[PORT_MAX];

	for (uint32_t i = 0; i < net->nports; i++)
		old[i] = netport_withdraw(&net->port[i]);
	worker_grace(dp);
	for (uint32_t i = 0; i < net->nports; i++) {
		free((void *)old[i]);
		netport_destroy(&net->port[i]);
	}
	rtnl_close(&net->rtnl);
	if (net->announce_fd >= 0)
		close(net->announce_fd);
}

void net_look_again(struct net *net, uint32_t i)
{
	if (net->port[i].stale && !net->look_again_ms)
		net->look_again_ms = loop_now_ms() + net->look_again_wait;
}

unsigned net_take_use(struct net *net, uint32_t i)
{
	return netport_set_down(&net->port[i], net->disabled[i] || net->closed[i]);
}

void net_tell_owner(struct net *net, uint32_t i, unsigned news)
{
	const struct netport *p = &net->port[i];
	struct ctl_netdev now = {.nvlans = p->nvlans};

	if (!news || !net->netdev_changed)
		return;
	memcpy(now.mac, p->mac, 6);
	for (uint32_t k = 0; k < p->nvlans; k++)
		now.vlan[k] = p->vlan[k].ifindex;
	net->netdev_changed(net->netdev_arg, i, news, &now);
}
