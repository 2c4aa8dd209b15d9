/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wire.h
 * One direction of a cable that pulls: it asks the sender for the next frame when the last bit of
 * the previous one has left, so that a NIC or a switch port decides as late as possible.
 */
#ifndef WIRE_H
#define WIRE_H

#include "buffer.h"
#include "engine.h"
#include "list.h"

/** Preamble, FCS and gap: wire bytes per frame besides its own. */
#define WIRE_OVERHEAD 24u
/** Bytes of the FCS, which simulated frames do not contain. */
#define WIRE_FCS 4u

/** The receiving end. */
struct sim_sink {
	/** @p b has arrived and now belongs to the receiver. */
	void (*receive)(struct sim_sink *to, struct sim_buffer *b, uint64_t now);
};

struct wire_config {
	uint64_t rate_bps;
	uint64_t delay_ns;
};

struct sim_wire {
	struct sim_engine *engine;
	struct sim_event idle;	  /* the last bit has left */
	struct sim_event arrival; /* of the oldest frame under way */
	struct buffer_fifo way;
	struct wire_config cfg;
	uint64_t idle_ps; /* in picoseconds, so that a busy wire loses no time to rounding */
	/** Asks the sender. @return the next frame to send; NULL: none now */
	struct sim_buffer *(*pull)(struct sim_wire *w, uint64_t now);
	/** Set by the sender: no other frame waits, so it need not be asked after this one. */
	bool quiet;
	struct sim_sink *to;
	/** Sees each frame when its first bit leaves; may be NULL. */
	void (*see)(void *arg, const struct sim_buffer *b, uint64_t now);
	void *see_arg;
	uint64_t frames;
	uint64_t bytes; /* WIRE_OVERHEAD included */
};

void wire_init(struct sim_wire *w, struct sim_engine *e, const struct wire_config *cfg,
	struct sim_buffer *(*pull)(struct sim_wire *w, uint64_t now), struct sim_sink *to);

/** @return whether the sender will be asked when the current frame has left. */
static inline bool wire_busy(const struct sim_wire *w)
{
	return w->idle.due != SIM_NEVER;
}

/** The sender may have something to send: an idle wire asks it now. */
void wire_kick(struct sim_wire *w, uint64_t now);

#endif
