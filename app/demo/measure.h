/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file measure.h
 * How fast the demo's connection is. A measurement runs for a fixed time, so that a slow
 * machine makes fewer messages and not a longer demo; nothing is judged by its result.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include "endpoint.h"

/** Keeps messages of @p len bytes under way and prints how many there were, as @p name. */
void measure_bandwidth(
	struct endpoint *e, enum roci_wr_opcode opcode, const char *name, uint32_t len);

/** SENDs to and fro, with measure_echo() on the other side; prints half of a round trip. */
void measure_latency(struct endpoint *e, uint32_t len);

/** Sends back what comes until a message has immediate data. Tells @p fd when it is ready and
 *  when it is done. */
void measure_echo(struct endpoint *e, int fd, uint32_t len);

#endif
