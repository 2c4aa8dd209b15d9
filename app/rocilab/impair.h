/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file impair.h
 * Impairments of the cables on which hosts send: frames that an `impair` statement names are lost,
 * duplicated or delayed. Located between a NIC and its switch.
 */
#ifndef IMPAIR_H
#define IMPAIR_H

#include "buffer.h"
#include "engine.h"
#include "scenario.h"
#include "wire.h"

struct lab;

/** Of one host. */
struct lab_impair {
	struct sim_sink in;
	struct sim_sink *to;
	struct lab *lab;
	struct sim_event due; /* of the held frame that is due first */
	struct buffer_fifo held[FRAME_KINDS];
};

/** @return whether the scenario has any impairment. */
bool impair_any(const struct scenario *s);

/** Inserts itself in front of @p to. @return the sink for the wire */
struct sim_sink *impair_plug(struct lab_impair *i, struct lab *lab, struct sim_sink *to);

#endif
