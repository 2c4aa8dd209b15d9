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

/** The properties of a port, found when it was opened. */
struct port_info {
	uint16_t ethdev;
	char name[RTE_ETH_NAME_MAX_LEN];
	char driver[32];
	/** Kernel netdev of the port in the same name space (AF_PACKET, AF_XDP, tap, mlx5); empty:
	 * none. */
	char netdev[IFNAMSIZ];
	uint8_t mac[6]; /* generated if the device has none */
	uint16_t mtu;	/* Ethernet, bytes */
	uint16_t rx_queues;
	uint16_t tx_queues;
	uint16_t peer_queues; /* memif: that the peer has, set before port_open(); 0: unknown */
	bool rss;	      /* the device spreads packets over its receive queues by their flow */
	bool interrupts;      /* its queues support interrupts, set by port_open() */
	uint32_t speed_mbps;  /* 0: unknown */
	int socket;	      /* NUMA node; -1: any */
};

/**
 * Looks at ethdev @p ethdev without touching it: name, driver, netdev, MAC, NUMA node.
 * @param why  receives a sentence that says what to do when this fails
 * @return 0 or a negative errno.
 */
int port_probe(uint16_t ethdev, struct port_info *info, char why[ABI_SENTENCE_MAX]);

/**
 * Configures and starts the ethdev of @p info as port @p index of @p dp, whose workers exist: each
 * gets its own queue if the device has enough, otherwise worker 0 receives for all.
 * @param mtu  Ethernet MTU to set, 0: the device's. Refused if a netdev determines it.
 * @param why  receives a sentence that says what to do when this fails
 * @return 0 or a negative errno.
 */
int port_open(struct dataplane *dp, uint32_t index, uint16_t mtu, struct port_info *info,
	char why[ABI_SENTENCE_MAX]);

/** How a sleeping worker learns that a frame has arrived. */
enum port_wake {
	PORT_WAKE_NOT,	     /* it does not: it checks at least every WORKER_SLICE_MAX_NS */
	PORT_WAKE_SELF,	     /* frames come only from this worker */
	PORT_WAKE_FD,	     /* a descriptor becomes readable by itself */
	PORT_WAKE_INTERRUPT, /* a descriptor becomes readable after rte_eth_dev_rx_intr_enable() */
};

/**
 * Says how queue @p queue of port @p index wakes its worker; PORT_WAKE_NOT until then. The worker
 * does not run yet.
 * @param fd  of PORT_WAKE_FD and PORT_WAKE_INTERRUPT; stays the caller's
 * @return 0 or a negative errno.
 */
int port_wakes(struct dataplane *dp, uint32_t index, uint16_t queue, enum port_wake wake, int fd);

/**
 * Makes port @p index accept frames for the @p n group MACs @p mac, or those of all groups if its
 * filter is too small (MC-02). A port without a filter accepts all. Control thread.
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
 * Makes the running workers stop using port @p index, and waits until they have: packets that they
 * send on it are lost. Its device may then be closed. Control thread.
 */
void port_close_live(struct dataplane *dp, uint32_t index);

/**
 * Makes the running workers discard and count all packets that port @p index receives or would
 * send, or ends that; waits until they do. Control thread.
 */
void port_set_down(struct dataplane *dp, uint32_t index, bool down);

/**
 * port_open() of the device of @p info in place of one that port_close_live() took from the running
 * workers, which do not use it until port_use_live(). If it fails nothing is attached or started.
 * Control thread.
 */
int port_open_live(
	struct dataplane *dp, uint32_t index, struct port_info *info, char why[ABI_SENTENCE_MAX]);

/** Makes the running workers use port @p index, after everything in front of its queues has been
 * set up. Control thread. */
void port_use_live(struct dataplane *dp, uint32_t index);

#endif
