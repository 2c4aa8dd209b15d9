/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rxwake.h
 * How a worker that sleeps learns of frames, by kind of port (port.h, enum port_wake): a packet
 * socket can be waited for, a NIC interrupts, a ring pair is filled by the worker itself, and some
 * ports have no means.
 */
#ifndef RXWAKE_H
#define RXWAKE_H

#include "port.h"

/**
 * Determines how port @p index of @p dp, which is open, wakes its workers, and makes them wait for
 * it. Without any means (or if one fails) they check periodically.
 * @param info  of the port; its netdev is that of a shared one
 * @param held  frames are held back on their way to the worker (linkemu.h): it must poll
 * @return the means; the same for all queues.
 */
enum port_wake rxwake_install(
	struct dataplane *dp, uint32_t index, const struct port_info *info, bool held);

/** @return a few words about @p wake for the banner. */
const char *rxwake_name(enum port_wake wake);

#endif
