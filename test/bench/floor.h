/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file floor.h
 * What no transport on this machine can be faster than: payload from memory copied into a packet
 * with its ICRC made in the same pass, through net_ring, ICRC checked, copied into memory. A work
 * entry of 64 bytes is read and one of 64 bytes is written a message. No state, no ACK, no look-up.
 *
 * The receiver reads the packet twice, as a real one has to: nothing of it may reach memory before
 * its ICRC is known to be good.
 */
#ifndef FLOOR_H
#define FLOOR_H

#include <stddef.h>
#include <stdint.h>

/** The cost of one call. */
struct floor_cost {
	double tx_ns; /* a message */
	double rx_ns;
};

/** Makes a net_ring port of its own, after host_start(). @p bytes of memory on each side, in huge
 *  pages where the machine gives them. Ends the program when it cannot. */
void floor_open(size_t bytes);
void floor_close(void);

/** Moves @p messages of @p size bytes between places of the first @p set bytes that are chosen at
 *  random; rounded up to whole bursts. */
struct floor_cost floor_run(size_t size, size_t set, unsigned long messages);

#endif
