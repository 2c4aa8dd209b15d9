/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file gsoport.h
 * A port on a netdev of the kernel's by packet sockets that take and give many frames at a time
 * (gso.h), where DPDK's own AF_PACKET port takes one. An ethdev of DPDK's that keeps nothing
 * (net_ring), whose callbacks send and receive on the thread of the worker that calls.
 */
#ifndef GSOPORT_H
#define GSOPORT_H

#include <stdbool.h>
#include <stdint.h>
#include "port.h"

/** What port_info.driver says of it. */
#define GSOPORT_DRIVER "packet_gso"

struct gsoport;
struct rte_eth_stats;
struct rte_mempool;

/**
 * Opens the sockets, one for each of @p queues, on netdev @p netdev, and makes the ethdev. Control
 * thread, as all here.
 * @param ethdev  receives the port id
 * @param why     receives a sentence that says what to do when this fails
 * @return NULL with errno set when it fails.
 */
struct gsoport *gsoport_create(
	const char *netdev, uint16_t queues, uint16_t *ethdev, char *why, unsigned why_size);

/** Puts into @p info, which port_probe() filled, what only the netdev knows: driver and MAC. */
void gsoport_describe(const struct gsoport *g, struct port_info *info);

/**
 * Has queue q send and receive, into buffers of @p pool[q]. Its ethdev is open, no worker uses the
 * port yet; callbacks that are added later see what it received.
 * @return 0 or -ENOMEM.
 */
int gsoport_start(struct gsoport *g, struct rte_mempool *const pool[]);

/** Takes the callbacks away again, before port_close(); also of NULL, or when none are there. No
 *  worker uses the port any more. */
void gsoport_stop(struct gsoport *g);

/** Frees all, the ethdev too, which port_close() has closed; also of NULL. */
void gsoport_destroy(struct gsoport *g);

/** Puts what was counted since gsoport_create() in the place of what the ethdev knows.
 *  @param g  the struct gsoport */
void gsoport_count(void *g, struct rte_eth_stats *stats);

/**
 * Frames that the netdev refused, not counting those that failed for another reason.
 * @param shortest  receives the length, from the Ethernet header, of the shortest since the last
 *  call; 0: none, or only parts of runs
 * @param passed    receives that of the longest that was sent since then, not in a run
 * @return how many since the last call
 */
uint64_t gsoport_refused(struct gsoport *g, uint32_t *shortest, uint32_t *passed);

#endif
