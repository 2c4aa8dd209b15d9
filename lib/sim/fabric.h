/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file fabric.h
 * Hosts and the links between them under one virtual clock. Time jumps from one happening to
 * the next; nothing depends on the machine it runs on.
 */
#ifndef FABRIC_H
#define FABRIC_H

#include "host.h"

#define FABRIC_HOSTS 16u
#define FABRIC_LINKS 64u

/** A link that is plugged in: what comes out of it goes to a port of a host. */
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

/** Leads @p l from port @p from_port of @p from to port @p to_port of @p to; a host that is
 *  linked to itself gets a loopback. */
void fabric_plug(struct fabric *f, struct sim_link *l, struct sim_host *from, unsigned from_port,
	struct sim_host *to, unsigned to_port);

/** @return when the next thing happens, f->now when at once, SIM_NEVER when nothing will. */
uint64_t fabric_next(const struct fabric *f);

/**
 * Goes to the next happening, but not beyond @p until: frames arrive, then each host has its
 * turn.
 * @return false when nothing was left to happen up to @p until; the clock is there then.
 */
bool fabric_step(struct fabric *f, uint64_t until);

#endif
