/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/net.h
 * The daemon's ports, and news of their network from the kernel. Control thread.
 */
#ifndef NET_NET_H
#define NET_NET_H

#include <stdbool.h>
#include <stdint.h>
#include "config/config.h"
#include "net/neigh.h"
#include "net/netport.h"

/* Pause before a port that could not be read is read again: the first, and the maximum. */
#define LOOK_AGAIN_MS	  100u
#define LOOK_AGAIN_MAX_MS 5000u

struct net {
	struct rtnl rtnl;
	struct neigh_queue neighs;
	int announce_fd; /* announce_open() */
	struct netport port[PORT_MAX];
	bool disabled[PORT_MAX]; /* ports that an administrator disabled */
	bool closed[PORT_MAX];	 /* ports without a device (ctl_devices.open) */
	uint32_t nports;
	uint64_t look_again_ms;		   /* when to read stale ports again; 0: none is stale */
	uint32_t look_again_wait;	   /* the next pause */
	ctl_netdev_changed netdev_changed; /* NULL: nobody is notified */
	void *netdev_arg;
};

/** Sets up the ports of @p cfg.  @return 0, or a negative errno with a sentence; call net_close()
 *  in either case. */
int net_open(struct net *net, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX]);

/** Publishes to the workers whether any port has an algorithm that uses telemetry. */
void net_telemetry(const struct net *net, struct port_table *table);

/** Withdraws the GID tables from workers and frees everything. */
void net_close(struct net *net, struct dataplane *dp);

/** If port @p i is stale, schedules another read, because the kernel reports each change only once.
 */
void net_look_again(struct net *net, uint32_t i);

/** Enables or disables port @p i according to `disabled` and `closed`.
 *  @return NETPORT_WENT_* or 0. */
unsigned net_take_use(struct net *net, uint32_t i);

/** Notifies the owner of port @p i of CTL_NETDEV_* @p news. */
void net_tell_owner(struct net *net, uint32_t i, unsigned news);

#endif
