/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file fabric.h
 * Hosts and links under one virtual clock. Time jumps from one event to the next; nothing depends
 * on the machine that runs the simulation.
 */
#ifndef FABRIC_H
#define FABRIC_H

#include <stdbool.h>
#include <stdint.h>

struct sim_host;
struct sim_link;

#define FABRIC_HOSTS 16u
#define FABRIC_LINKS 64u

/** A connected link, which delivers to a host's port. */
struct fabric_plug {
	struct sim_link *link;
	struct sim_host *to;
	unsigned port;
};

struct fabric {
	uint64_t now; /* nanoseconds */
	unsigned hosts;
	unsigned plugs;
	struct sim_host *host[FABRIC_HOSTS];
	struct fabric_plug plug[FABRIC_LINKS];
};

void fabric_init(struct fabric *f, uint64_t now);

void fabric_add(struct fabric *f, struct sim_host *h);

/** Connects @p l from port @p from_port of @p from to port @p to_port of @p to; for a host
 *  connected to itself, @p l is the loopback. */
void fabric_plug(struct fabric *f, struct sim_link *l, struct sim_host *from, unsigned from_port,
	struct sim_host *to, unsigned to_port);

/** @return when the next event is due: f->now for immediately, SIM_NEVER for never. */
uint64_t fabric_next(const struct fabric *f);

/**
 * Advances to the next event, but not beyond @p until: delivers frames, then gives each host its
 * turn.
 * @return false when no event was left up to @p until; the clock is then there.
 */
bool fabric_step(struct fabric *f, uint64_t until);

#endif
