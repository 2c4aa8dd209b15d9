/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch.h
 * An output-queued switch with a shared buffer. Each port has two classes: CNPs and
 * acknowledgements leave before data, and only data are marked and paused (pfc.h). It forwards by
 * the host number in the destination MAC (host.h), chooses among several ports by a hash of the IP
 * addresses and the UDP source port (ECMP), and drops frames to unknown hosts.
 */
#ifndef SWITCH_H
#define SWITCH_H

#include "aqm.h"
#include "meter.h"
#include "pfc.h"
#include "wire.h"

struct sim_notify;

enum switch_class {
	CLASS_CONTROL, /* CNPs, ACKs and NAKs: highest priority */
	CLASS_DATA,
	SWITCH_CLASSES
};

struct switch_counters {
	uint64_t frames; /* frames for the port */
	uint64_t marked;
	uint64_t dropped; /* the queue or the buffer was full */
};

/** The ports that lead to a host: `next[first]` and following. */
struct switch_way {
	uint32_t first;
	uint16_t ports; /* 0: unreachable */
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
	struct pfc_ingress ingress;
	struct buffer_fifo said; /* PFC frames waiting to leave */
	bool held;		 /* the other end has paused data */
	struct sim_meter meter;	 /* of CLASS_DATA */
};

struct sim_switch {
	struct buffer_pool *pool;
	struct switch_memory memory;
	uint64_t used;		   /* bytes in use */
	struct sim_notify *notify; /* to send Fast CNPs; NULL: it sends none */
	struct switch_port *port;
	unsigned ports;
	const struct switch_way *way; /* by host number */
	uint32_t ways;
	const uint16_t *next;
	uint32_t salt; /* of the hash, so that successive switches decide independently */
	uint64_t lost; /* frames to unreachable hosts */
};

/** @param port  @p ports ports, provided by the caller */
void switch_init(
	struct sim_switch *s, struct buffer_pool *pool, struct switch_port *port, unsigned ports);

/** @param way   by host number, @p ways of them; may be filled in later
 *  @param next  port numbers, which @p way refers to */
void switch_route(
	struct sim_switch *s, const struct switch_way *way, uint32_t ways, const uint16_t *next);

/** Connects port @p index to @p to by @p wire; frames for the port go to its `in`. */
void switch_plug(struct sim_switch *s, unsigned index, struct sim_engine *e,
	const struct wire_config *wire, const struct aqm_config *aqm, uint64_t seed,
	struct sim_sink *to);

/** @return the BTH opcode of the @p len bytes of frame @p b; SWITCH_NO_CODE: not RoCE. */
int switch_opcode(const uint8_t *b, size_t len);
#define SWITCH_NO_CODE (-1)

/** @return a hash of @p salt and of the addresses and UDP source port of frame @p b. */
uint32_t switch_hash(const uint8_t *b, size_t len, uint32_t salt);

/** @return the class of a frame with opcode @p code. */
enum switch_class switch_class_of(int code);

#endif
