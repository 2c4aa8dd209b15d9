/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file daemon.h
 * The parts of a running rocid, in the order in which they are created; they are destroyed in
 * reverse order.
 */
#ifndef DAEMON_H
#define DAEMON_H

#include <stdatomic.h>
#include <stdio.h>
#include "options.h"
#include "port.h"
#include "share.h"
#include "steer.h"
#include "linkemu.h"
#include "unstick.h"

struct gsoport;
struct json_t;
struct rib;
struct row;
struct tap;

/** A port and its attachments. */
struct daemon_port {
	struct port_info info;
	struct linkemu *emu[WORKER_MAX]; /* of each receive queue; NULL: none */
	struct linkemu_config impair;	 /* their configuration, or the one to apply when it is open
					  * again */
	struct share_guard guard;
	struct share_vlans vlans;
	bool packet;	     /* packet_create() made it */
	struct gsoport *gso; /* with --gso */
	bool open;	     /* its device is open */
	uint64_t again_ms;   /* when to try again to open it; 0: it failed just now */
	bool shared;	     /* info.netdev provides its addresses */
	struct tap *tap;     /* info.netdev is then this one; NULL: none */
	struct steer steer;
	enum port_wake wake;
	struct unstick unstick; /* of a packet socket */
};

struct daemon {
	const struct options *opt;
	struct dataplane *dp;
	struct ctl *ctl;
	_Atomic bool launch_failed; /* the control thread must not wait */
	uint32_t nports;
	uint32_t npairs; /* ring pairs made */
	struct daemon_port port[PORT_MAX];
	struct rib *rib[IPOIB_NETDEVS_MAX]; /* NULL: not started */
	struct ctl_devices devices;
	uint64_t look_ms; /* when to check packet sockets again */
};

/**
 * Creates ports, workers and the control socket after eal_start(). Nothing is undone if this fails:
 * call daemon_down(). @p opt gets the numbers of the ports that are created here, and outlives @p
 * d.
 * @param why  receives a sentence that says what to do when this fails
 * @return 0; -EINTR if a signal arrived meanwhile; -EINVAL if an argument names something that does
 * not exist; another negative errno.
 */
int daemon_up(struct daemon *d, struct options *opt, char why[VALUE_MAX * 2]);

/** Called by the control thread with news of port @p port's netdev. @param arg d */
void daemon_netdev_changed(
	void *arg, uint32_t port, unsigned what, const struct ctl_netdev *netdev);

/** Unblocks packet sockets that are stuck (unstick.h), and retries ports that could not be opened.
 * Called by the control thread. @param arg the struct daemon @return milliseconds until the next
 * call; -1: never. */
int daemon_look(void *arg, uint64_t now_ms);

/** Makes port @p i wake sleeping workers when it receives. */
void daemon_watch(struct daemon *d, uint32_t i);

/** Lets administrators see the ports of @p d through @p devices. */
void devices_init(struct ctl_devices *devices, struct daemon *d);

/** Sums the counters of the port's emulated link over its queues. */
void devices_count_link(const struct daemon_port *p, struct linkemu_counters *sum);

/** Puts the same counters into @p row, by their names. */
void devices_put_link(struct row *row, const struct daemon_port *p);

/** Starts the netdevs of IP over InfiniBand, which need the control thread.
 *  @return 0 or a negative errno with a sentence. */
int daemon_start_ribs(struct daemon *d, char why[VALUE_MAX * 2]);

/** Describes the i-th netdev to administrators. @param arg d  @return false after the last. */
bool ribs_show(void *arg, uint32_t i, struct json_t **element);

/** Asks these netdevs to end; daemon_end_ribs() waits for that once no session is left. */
void daemon_stop_ribs(struct daemon *d);
void daemon_end_ribs(struct daemon *d);

/** Puts the emulated link of port @p i, if it has one, in front of its queues.
 *  @return 0 or -ENOMEM. */
int daemon_impair(struct daemon *d, uint32_t i);

/** Runs the workers, the first on the calling thread, and the control thread, until SIGINT,
 *  SIGTERM or SIGHUP.  @return 0 or a negative errno with a sentence in @p why. */
int daemon_run(struct daemon *d, char why[VALUE_MAX * 2]);

/** Destroys everything that daemon_up() created, even if it failed halfway. */
void daemon_down(struct daemon *d);

/** Prints what is running, and the next steps for the user. */
void banner_print(const struct daemon *d);

/** Prints all counters as --stats-on-exit asks. The workers have stopped and still exist. */
void stats_print(const struct daemon *d, FILE *f);

#endif
