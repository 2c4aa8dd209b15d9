/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch.h
 * A switch with output queues. Each port has two classes: CNPs and acknowledgements leave before
 * data, and only data are marked. It forwards by the number of the host in the destination MAC
 * (host.h), and forgets frames to others.
 */
#ifndef SWITCH_H
#define SWITCH_H

#include "aqm.h"
#include "meter.h"
#include "wire.h"

enum switch_class {
	CLASS_CONTROL, /* CNPs, ACKs and NAKs: first */
	CLASS_DATA,
	SWITCH_CLASSES
};

struct switch_counters {
	uint64_t frames; /* that the port was to send */
	uint64_t marked;
	uint64_t dropped; /* the queue was full */
};

struct switch_queue {
	struct buffer_fifo fifo;
	struct aqm aqm;
};

struct switch_port {
	struct sim_switch *sw;
	struct sim_sink in;
	struct sim_wire out;
	struct switch_queue queue[SWITCH_CLASSES];
	struct switch_counters count;
	struct sim_meter meter; /* of CLASS_DATA */
};

struct sim_switch {
	struct buffer_pool *pool;
	/** A fault: the frame @p b is lost when it comes in. NULL: none is */
	bool (*lose)(void *arg, const struct sim_buffer *b);
	void *arg; /* of `lose` */
	struct switch_port *port;
	unsigned ports;
	const uint16_t *way; /* host number -> port; SWITCH_NO_WAY */
	uint32_t ways;
	uint64_t lost; /* frames to hosts without a way, and those that `lose` took */
};
#define SWITCH_NO_WAY UINT16_MAX

/**
 * @param port  @p ports ports, the caller's memory
 * @param way   port by host number, @p ways of them; may be filled in later
 */
void switch_init(struct sim_switch *s, struct buffer_pool *pool, struct switch_port *port,
	unsigned ports, const uint16_t *way, uint32_t ways);

/** Connects port @p index by @p wire to @p to; frames for the port go to its `in`. */
void switch_plug(struct sim_switch *s, unsigned index, struct sim_engine *e,
	const struct wire_config *wire, const struct aqm_config *aqm, uint64_t seed,
	struct sim_sink *to);

/** @return the BTH opcode of the frame @p b of @p len bytes; SWITCH_NO_CODE: it is not RoCE. */
int switch_opcode(const uint8_t *b, size_t len);
#define SWITCH_NO_CODE (-1)

/** @return the class of a frame with that opcode. */
enum switch_class switch_class_of(int code);

#endif
