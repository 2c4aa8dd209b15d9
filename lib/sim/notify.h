/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file notify.h
 * The Fast CNPs of a switch (draft-xiao-rtgwg-rocev2-fast-cnp): where RED would mark a packet over
 * IPv6, the switch itself at once sends a CNP to the packet's source instead of leaving that to the
 * receiver, at most one per flow and interval. A packet answered in this way is not marked.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

struct buffer_pool;
struct icrc_ops;
struct sim_buffer;

/** Flows remembered (a power of two). Two that share a slot may get more CNPs. */
#define NOTIFY_FLOWS 1024u

/** The option that simulated switches write. */
#define NOTIFY_OPTION 0x9Eu

struct sim_notify {
	uint64_t interval; /* ns between two for a flow; 0: the switch sends none */
	const struct icrc_ops *icrc;
	uint8_t address[16]; /* of the switch */
	uint64_t sent;
	struct notify_flow {
		uint64_t key; /* 0: no flow yet */
		uint64_t at;
	} flow[NOTIFY_FLOWS];
};

/** Prepares @p n, for switch number @p number. */
void notify_init(
	struct sim_notify *n, uint64_t interval, const struct icrc_ops *icrc, uint16_t number);

/** The 64-bit prefix of all switches' addresses. */
extern const uint8_t notify_prefix[16];

/** RED would mark @p b.
 *  @param answer  receives the Fast CNP for its source; NULL: it had one recently, or there is no
 *  memory
 *  @return false: mark it. */
bool notify_marked(struct sim_notify *n, struct buffer_pool *pool, const struct sim_buffer *b,
	uint64_t now, struct sim_buffer **answer);

#endif
