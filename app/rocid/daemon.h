/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file daemon.h
 * What a running rocid consists of, in the order in which it is made and the reverse of which
 * it is taken down.
 */
#ifndef DAEMON_H
#define DAEMON_H

#include <stdatomic.h>
#include <stdio.h>
#include "ctl.h"
#include "options.h"
#include "port.h"
#include "share.h"
#include "steer.h"
#include "tap.h"
#include "unstick.h"
#include "worker.h"

/** A port and what stands around it. */
struct daemon_port {
	struct port_info info;
	struct linkemu *emu[WORKER_MAX]; /* of each receive queue; NULL: none */
	struct linkemu_config impair;	 /* what they are told, or will be when it is open again */
	struct share_guard guard;
	struct share_vlans vlans;
	bool packet;	     /* packet_create() made it */
	struct gsoport *gso; /* with --gso */
	bool open;	     /* its device is there */
	uint64_t again_ms;   /* when to try again to open it; 0: it failed just now */
	bool shared;	     /* info.netdev lends its addresses */
	struct tap *tap;     /* info.netdev then is it; NULL: none */
	struct steer steer;
	enum port_wake wake;
	struct unstick unstick; /* of a packet socket */
};

struct daemon {
	const struct options *opt;
	struct dataplane *dp;
	struct ctl *ctl;
	_Atomic bool launch_failed; /* the control thread waits in vain */
	uint32_t nports;
	uint32_t npairs; /* ring pairs made */
	struct daemon_port port[PORT_MAX];
	struct ctl_devices devices;
	uint64_t look_ms; /* when to look after packet sockets again */
};

/**
 * Makes ports, workers and the control socket after eal_start(). Nothing is undone when this
 * fails: call daemon_down(). @p opt gets the numbers of the ports that are made here, and outlives
 * @p d.
 * @param why  receives a sentence that says what to do when this fails
 * @return 0; -EINTR when a signal came meanwhile; -EINVAL when an argument names something that
 * does not exist; another negative errno.
 */
int daemon_up(struct daemon *d, struct options *opt, char why[VALUE_MAX * 2]);

/** Told by the control thread what happened to the netdev of port @p port. @param arg  d */
void daemon_netdev_changed(
	void *arg, uint32_t port, unsigned what, const struct ctl_netdev *netdev);

/** Has packet sockets that are stuck go on (unstick.h), and opens again what could not be opened.
 *  Called by the control thread.
 *  @param arg  the struct daemon
 *  @return milliseconds until it wants to be called again; -1: never. */
int daemon_look(void *arg, uint64_t now_ms);

/** Has sleeping workers learn of what port @p i receives. */
void daemon_watch(struct daemon *d, uint32_t i);

/** Has administrators see the ports of @p d through @p devices. */
void devices_init(struct ctl_devices *devices, struct daemon *d);

/** Puts the emulated link of port @p i, if it has one, in front of its queues.
 *  @return 0 or -ENOMEM. */
int daemon_impair(struct daemon *d, uint32_t i);

/** Runs the workers, the first on the calling thread, and the control thread, until SIGINT,
 *  SIGTERM or SIGHUP.  @return 0 or a negative errno with a sentence in @p why. */
int daemon_run(struct daemon *d, char why[VALUE_MAX * 2]);

/** Takes down what daemon_up() made, as far as it came. */
void daemon_down(struct daemon *d);

/** Prints what runs, and where to go from here. */
void banner_print(const struct daemon *d);

/** Prints all counters as --stats-on-exit asks. The workers have stopped and still exist. */
void stats_print(const struct daemon *d, FILE *f);

#endif
