/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port.h
 * Opens any ethdev for the workers: queues, buffers, MTU. Control thread, before the workers
 * run.
 */
#ifndef PORT_H
#define PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <net/if.h>
#include <rte_ethdev.h>
#include "abi_ctl.h"

struct dataplane;

/** What was found out about a port when it was opened. */
struct port_info {
	uint16_t ethdev;
	char name[RTE_ETH_NAME_MAX_LEN];
	char driver[32];
	/** Kernel netdev of the same name space behind the port (AF_PACKET, AF_XDP, tap, mlx5);
	 *  empty: none. */
	char netdev[IFNAMSIZ];
	uint8_t mac[6]; /* made up when the device has none */
	uint16_t mtu;	/* Ethernet, bytes */
	uint16_t rx_queues;
	uint16_t tx_queues;
	bool rss;	     /* the device spreads packets over its receive queues by their flow */
	bool interrupts;     /* its queues may be asked to, set by port_open() */
	uint32_t speed_mbps; /* 0: unknown */
	int socket;	     /* NUMA node; -1: any */
};

/**
 * Looks at ethdev @p ethdev without touching it: name, driver, netdev, MAC, NUMA node.
 * @param why  receives a sentence that says what to do when this fails
 * @return 0 or a negative errno.
 */
int port_probe(uint16_t ethdev, struct port_info *info, char why[ABI_SENTENCE_MAX]);

/**
 * Configures and starts the ethdev of @p info as port @p index of @p dp, whose workers exist:
 * each gets a queue of its own where the device has them, else worker 0 receives for all.
 * @param mtu  Ethernet MTU wanted, 0: as the device is. Refused where a netdev decides.
 * @param why  receives a sentence that says what to do when this fails
 * @return 0 or a negative errno.
 */
int port_open(struct dataplane *dp, uint32_t index, uint16_t mtu, struct port_info *info,
	char why[ABI_SENTENCE_MAX]);

/** How a sleeping worker learns that a frame has come. */
enum port_wake {
	PORT_WAKE_NOT,	     /* it does not: it looks every WORKER_SLICE_MAX_NS at most */
	PORT_WAKE_SELF,	     /* frames come from this worker alone */
	PORT_WAKE_FD,	     /* a descriptor tells, unasked */
	PORT_WAKE_INTERRUPT, /* a descriptor tells, once rte_eth_dev_rx_intr_enable() was called */
};

/**
 * Says how queue @p queue of port @p index wakes its worker; PORT_WAKE_NOT until then. The worker
 * does not run yet.
 * @param fd  of PORT_WAKE_FD and PORT_WAKE_INTERRUPT; stays the caller's
 * @return 0 or a negative errno.
 */
int port_wakes(struct dataplane *dp, uint32_t index, uint16_t queue, enum port_wake wake, int fd);

/**
 * Has port @p index let the frames for the @p n group MACs @p mac through, or those of all groups
 * when its filter is too small (MC-02). A port that knows no filter lets all through. Control
 * thread.
 */
void port_set_groups(struct dataplane *dp, uint32_t index, uint8_t (*mac)[6], uint32_t n);

/** Reads the counters of port @p index. Control thread. @return 0 or a negative errno. */
int port_stats(const struct dataplane *dp, uint32_t index, struct rte_eth_stats *stats);

/** @return the buffers into which queue @p queue of each port receives. */
struct rte_mempool *port_pool(const struct dataplane *dp, uint16_t queue);

/** Stops and closes what port_open() opened; the workers have stopped, or port_close_live() was
 * called. */
void port_close(struct dataplane *dp, uint32_t index);

/**
 * Has the running workers leave port @p index alone, and waits until they do: what they send on it
 * is lost. Its device may then be closed. Control thread.
 */
void port_close_live(struct dataplane *dp, uint32_t index);

/**
 * Has the running workers throw away and count what comes in by port @p index and what they would
 * send by it, or no longer; waits until they do. Control thread.
 */
void port_set_down(struct dataplane *dp, uint32_t index, bool down);

/**
 * port_open() of the device of @p info in the place of one that port_close_live() took from the
 * running workers, which leave it alone until port_use_live(). When it fails nothing is attached or
 * started. Control thread.
 */
int port_open_live(
	struct dataplane *dp, uint32_t index, struct port_info *info, char why[ABI_SENTENCE_MAX]);

/** Has the running workers use port @p index, now that all stands in front of its queues that is to
 *  stand there. Control thread. */
void port_use_live(struct dataplane *dp, uint32_t index);

#endif
