/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file host.h
 * A simulated machine: one real transport core with its tables and ports. It sends complete frames
 * with their ICRC, and parses received ones like those of a real port.
 */
#ifndef HOST_H
#define HOST_H

#include "ah.h"
#include "core.h"
#include "drop_log.h"
#include "mr.h"
#include "qp_table.h"
#include "srq_table.h"
#include "tables.h"

struct sim_link;

#define HOST_PORTS 2u

/** Indices of a simulated port's GID table. */
enum host_gid {
	HOST_GID_IPV4,	 /* ::ffff:10.<id, high byte>.<port>.<id, low byte> */
	HOST_GID_IPV6,	 /* fd00:: and the same three bytes */
	HOST_GID_ROCEV1, /* fe80:: and the same three bytes */
	HOST_GIDS,
	HOST_GID_VLAN = HOST_GIDS, /* the same three kinds again, in VLAN HOST_VID */
	HOST_GIDS_ALL = 2 * HOST_GIDS
};

#define HOST_VID 291u

struct sim_host {
	struct core core;
	struct qp_table qps;
	struct srq_table srqs;
	struct mr_table mrs;
	struct ah_table ahs;
	struct mcast_table mcasts;
	struct flow_table flows;
	struct port_table ports;
	struct drop_log drops;
	struct gid_table gids[HOST_PORTS];
	volatile uint32_t faults; /* faults of application memory; a test may increment it */
	uint16_t id;
	unsigned burst;			  /* packets requested per core_tx(), 1..BURST */
	struct sim_link *out[HOST_PORTS]; /* NULL: not connected, frames are lost */
	struct sim_link *loop;		  /* for packets to the host itself */
	uint64_t paused_until;		  /* host_pause() */
	uint64_t sent;
	uint64_t unsealed; /* packets dropped because application memory faulted */
	uint8_t tx[BURST][FRAME_MAX];
} CACHE_ALIGNED;

/** @param id  1..65534, unique among hosts that can reach each other: MAC 02:00:00:<id, high
 *  byte>:<port>:<id, low byte> */
void host_init(struct sim_host *h, uint16_t id, const struct icrc_ops *icrc, uint64_t now);

/** @return the id of the host with @p mac. */
static inline uint16_t host_of_mac(const uint8_t mac[6])
{
	return (uint16_t)(mac[3] << 8 | mac[5]);
}

/** @return the address vector of a path from @p from to @p to, both at port @p port. */
struct path_spec host_path(
	const struct sim_host *from, const struct sim_host *to, unsigned port, enum host_gid gid);

/** Parses a frame as a worker does. @p p has its port and queue; pass it to core_rx() before any
 * other call on @p c. */
enum drop host_parse(const struct core *c, struct pkt *p, const uint8_t *frame, size_t len);

/** Receives one frame on port @p port. */
void host_frame(struct sim_host *h, uint8_t *frame, size_t len, unsigned port, uint64_t now);

/** Receives all frames that have arrived on @p l, in bursts, on port @p port. */
void host_receive(struct sim_host *h, struct sim_link *l, unsigned port, uint64_t now);

/** Sends all packets for which the links have room, then runs the timers. */
void host_turn(struct sim_host *h, uint64_t now);

/** Suspends the host's worker until @p until, as on a shared machine: arriving frames wait, and
 *  timers expire meanwhile (decision 0000.3, "Pauses"). */
void host_pause(struct sim_host *h, uint64_t until);

/** @return when host_turn() has work to do; @p now for immediately. */
uint64_t host_deadline(const struct sim_host *h, uint64_t now);

#endif
