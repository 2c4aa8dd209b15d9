/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/net.h
 * The ports of the daemon and what the kernel tells of its network. Control thread.
 */
#ifndef NET_NET_H
#define NET_NET_H

#include <stdbool.h>
#include <stdint.h>
#include "config/config.h"
#include "net/neigh.h"
#include "net/netport.h"

/* Until a port that could not be read is read again: at first, and in the end. */
#define LOOK_AGAIN_MS	  100u
#define LOOK_AGAIN_MAX_MS 5000u

struct net {
	struct rtnl rtnl;
	struct neigh_queue neighs;
	int announce_fd; /* announce_open() */
	struct netport port[PORT_MAX];
	bool disabled[PORT_MAX]; /* ports that an administrator set down */
	bool closed[PORT_MAX];	 /* ports without a device (ctl_devices.open) */
	uint32_t nports;
	uint64_t look_again_ms;		   /* when to read ports that are stale again; 0: none is */
	uint32_t look_again_wait;	   /* how long it is until then the next time */
	ctl_netdev_changed netdev_changed; /* NULL: nobody wants to know */
	void *netdev_arg;
};

/** Sets up the ports of @p cfg.  @return 0, or a negative errno with a sentence; net_close() then,
 *  too. */
int net_open(struct net *net, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX]);

/** Leaves workers without GID tables, and frees all. */
void net_close(struct net *net, struct dataplane *dp);

/** Port @p i may be stale: has it read again in a moment, because news come once. */
void net_look_again(struct net *net, uint32_t i);

/** Takes port @p i out of use or into it, as `disabled` and `closed` say.
 *  @return NETPORT_WENT_* or 0. */
unsigned net_take_use(struct net *net, uint32_t i);

/** Tells who made port @p i of CTL_NETDEV_* @p news. */
void net_tell_owner(struct net *net, uint32_t i, unsigned news);

#endif
