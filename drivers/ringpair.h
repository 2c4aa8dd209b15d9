/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ringpair.h
 * Two net_ring ports of this process, connected to each other: a link without a NIC. linkemu.h
 * impairs it.
 */
#ifndef RINGPAIR_H
#define RINGPAIR_H

#include <stdint.h>

/** Packets that fit into one direction and queue. */
#define RINGPAIR_DEPTH 512u

/**
 * Creates pair @p number with @p queues queues per port. Port B receives on queue i what port A
 * sends on queue i.
 * @param ethdev  receives the two ethdev port ids
 * @return 0 or a negative errno.
 */
int ringpair_create(unsigned number, uint16_t queues, int socket, uint16_t ethdev[2]);

/** Frees the rings of pair @p number and the packets in them; its ports have been closed. */
void ringpair_destroy(unsigned number, uint16_t queues);

#endif
