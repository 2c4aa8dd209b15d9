/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file measure.h
 * Measures the speed of the demo's connection. A measurement runs for a fixed time, so that a slow
 * machine sends fewer messages instead of prolonging the demo; its result decides nothing.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include "endpoint.h"

/** Keeps messages of @p len bytes in flight and prints their number, as @p name. */
void measure_bandwidth(
	struct endpoint *e, enum roci_wr_opcode opcode, const char *name, uint32_t len);

/** SENDs in both directions, with measure_echo() on the other side; prints half of a round trip. */
void measure_latency(struct endpoint *e, uint32_t len);

/** Returns received messages until one has immediate data. Notifies @p fd when it is ready and when
 * it is done. */
void measure_echo(struct endpoint *e, int fd, uint32_t len);

#endif
