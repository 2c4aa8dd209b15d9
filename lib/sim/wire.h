/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wire.h
 * One direction of a cable whose sender is asked for the next frame when the last bit of the one
 * before has left: a NIC or a switch port decides as late as it can.
 */
#ifndef WIRE_H
#define WIRE_H

#include "buffer.h"
#include "engine.h"
#include "list.h"

/** Preamble, FCS and gap: bytes that a frame takes on the wire besides its own. */
#define WIRE_OVERHEAD 24u
/** Bytes of the FCS, which frames here do not have. */
#define WIRE_FCS 4u

/** The other end. */
struct sim_sink {
	/** @p b has arrived, and is the receiver's. */
	void (*receive)(struct sim_sink *to, struct sim_buffer *b, uint64_t now);
};

struct wire_config {
	uint64_t rate_bps;
	uint64_t delay_ns;
};

struct sim_wire {
	struct sim_engine *engine;
	struct sim_event idle;	  /* the last bit leaves */
	struct sim_event arrival; /* of the oldest frame on the way */
	struct buffer_fifo way;
	struct wire_config cfg;
	uint64_t idle_ps; /* picoseconds, so that a busy wire loses none */
	/** The sender. @return the next frame to send; NULL: none now */
	struct sim_buffer *(*pull)(struct sim_wire *w, uint64_t now);
	/** The sender's: no other frame waits, so it need not be asked when this one has left. */
	bool quiet;
	struct sim_sink *to;
	/** Sees each frame when its first bit leaves. NULL: nobody looks */
	void (*see)(void *arg, const struct sim_buffer *b, uint64_t now);
	void *see_arg;
	uint64_t frames;
	uint64_t bytes; /* WIRE_OVERHEAD included */
};

void wire_init(struct sim_wire *w, struct sim_engine *e, const struct wire_config *cfg,
	struct sim_buffer *(*pull)(struct sim_wire *w, uint64_t now), struct sim_sink *to);

/** @return whether the sender will be asked when the frame that leaves has left. */
static inline bool wire_busy(const struct sim_wire *w)
{
	return w->idle.due != SIM_NEVER;
}

/** The sender may have something to send: if the wire is idle, it is asked now. */
void wire_kick(struct sim_wire *w, uint64_t now);

#endif
