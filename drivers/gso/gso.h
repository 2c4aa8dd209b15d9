/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file gso/gso.h
 * A port on a kernel netdev by packet sockets that send and receive many frames at a time (run.h),
 * while DPDK's own AF_PACKET port handles one. It is a DPDK ethdev that stores nothing (net_ring),
 * whose callbacks send and receive on the calling worker's thread.
 */
#ifndef GSO_H
#define GSO_H

#include <stdbool.h>
#include <stdint.h>

/** Its port_info.driver. */
#define GSOPORT_DRIVER "packet_gso"

struct gsoport;
struct port;
struct port_info;
struct rte_eth_stats;
struct rte_mempool;

/**
 * Opens the sockets, one for each of @p queues, on netdev @p netdev, and creates the ethdev.
 * Control thread, like all functions here.
 * @param ethdev  receives the port id
 * @param why     receives a sentence that says what to do when this fails
 * @return NULL with errno set if it fails.
 */
struct gsoport *gsoport_create(
	const char *netdev, uint16_t queues, uint16_t *ethdev, char *why, unsigned why_size);

/** Whether IPv6 packets with a Destination Options header are received as well; initially not. NULL
 *  is allowed. Control thread. */
void gsoport_options(const struct gsoport *g, bool on);

/** Sets driver and MAC in @p info, which port_probe() filled: only the netdev has them. */
void gsoport_describe(const struct gsoport *g, struct port_info *info);

/**
 * Starts sending and receiving on each queue q, into buffers of @p pool[q]. The ethdev must be open
 * and not used by any worker yet; callbacks that are added later see the frames received here.
 * @param port  trials (trial.h) to its addresses are answered
 * @param asks  runs of frames are sent only to peers that answer trials; otherwise to all
 * @return 0 or -ENOMEM.
 */
int gsoport_start(
	struct gsoport *g, struct rte_mempool *const pool[], const struct port *port, bool asks);

/** Removes the callbacks, before port_close(); NULL, or a port without callbacks, is allowed. No
 * worker uses the port any more. */
void gsoport_stop(struct gsoport *g);

/** Frees everything, including the ethdev, which port_close() has closed; NULL is allowed. */
void gsoport_destroy(struct gsoport *g);

/** Replaces the ethdev's counters by those counted since gsoport_create(). @param g the struct
 * gsoport */
void gsoport_count(void *g, struct rte_eth_stats *stats);

/** Counts since gsoport_create(). */
struct gsoport_runs {
	uint64_t sent, trials, answers;
};

void gsoport_runs(const struct gsoport *g, struct gsoport_runs *r);

/**
 * Frames that the netdev refused, not counting those that failed for another reason.
 * @param shortest  receives the length, from the Ethernet header, of the shortest since the last
 *  call; 0: none, or only parts of runs
 * @param passed    receives that of the longest that was sent since then, not in a run
 * @return how many since the last call
 */
uint64_t gsoport_refused(struct gsoport *g, uint32_t *shortest, uint32_t *passed);

/**
 * Checks whether a queue is stuck. A super-frame that struct virtio_net_hdr cannot describe, such
 * as UDP fragmentation (UFO) from a virtual machine on the same bridge, makes the kernel take a
 * slot and never return it: for lack of that slot it drops every later frame. Only new sockets
 * help.
 * @return true if at two checks in a row, GSOPORT_LOOK_MS apart, frames had been dropped although
 * no slot was filled and no frame was taken.
 */
bool gsoport_stuck(struct gsoport *g, uint64_t now_ms);

#define GSOPORT_LOOK_MS 500u

#endif
