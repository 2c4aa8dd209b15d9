/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file telemetry.h
 * The records of switches on the path (ioam.h), for QPs whose port has an algorithm that uses them
 * (cc.h): requests and responses carry a trace, ACKs return the newest that the QP has received.
 *
 * The shell calls these for frames of RoCEv2 over IPv6 of ports with such an algorithm: after
 * core_seal(), and for those that frame_parse() refuses with DROP_IP_NEXT_HEADER. To all others
 * telemetry costs nothing.
 */
#ifndef TELEMETRY_H
#define TELEMETRY_H

#include "cc.h"
#include "core.h"

struct ioam;
struct qp;

/** @return bytes by which core_telemetry_tx() makes the frame of @p t longer. */
unsigned core_telemetry_room(const struct core *c, const struct txd *t);

/**
 * Adds telemetry to the frame of @p t, @p len bytes, that core_seal() has completed. Before
 * t->frame there must be room for the core_telemetry_room() bytes that the frame grows by, which
 * must not be 0; on return t->frame is where the frame begins.
 * @return its length.
 */
uint16_t core_telemetry_tx(struct core *c, struct txd *t, uint16_t len);

/** Like core_rx(), for the packet @p pkt, from whose frame ioam_pop() has removed the telemetry
 *  @p t. Multicast packets with telemetry are dropped. */
void core_telemetry_rx(struct core *c, const struct pkt *pkt, const struct ioam *t, uint64_t now,
	uint16_t *verdict);

/** @return bytes that telemetry adds to each packet with data of @p qp: 0 if the port has no room
 *  for them, because its MTU was larger when the QP was connected. */
uint32_t telemetry_bytes(const struct core *c, const struct qp *qp);

/** @return whether the algorithm of port @p port needs telemetry: it takes none otherwise
 *  (CA17-16). */
static inline bool core_telemetry_port(const struct core *c, unsigned port)
{
	const struct cc_config *cfg =
		atomic_load_explicit(&c->cfg.ports->port[port].cc, memory_order_acquire);

	return cfg && cfg->ops->wants_hops;
}

/** @return whether there are ports that telemetry may leave and arrive by. */
static inline bool core_telemetry(const struct core *c)
{
	return c->telemetry;
}

#endif
