/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file floor.h
 * A lower bound for the cost of any transport on this machine. The payload is copied from memory
 * into a packet, with its ICRC computed in the same pass; the packet goes through net_ring; its
 * ICRC is checked, and the payload is copied to memory. Per message, one 64-byte work entry is read
 * and one is written. There is no state, no ACK and no lookup.
 *
 * The receiver reads the packet twice, as a real one must: no byte may reach memory before the ICRC
 * is known to be good.
 */
#ifndef FLOOR_H
#define FLOOR_H

#include <stddef.h>
#include <stdint.h>

/** The cost of one call. */
struct floor_cost {
	double tx_ns; /* per message */
	double rx_ns;
};

/** Creates a net_ring port of its own; call it after host_start(). Each side has @p bytes of
 *  memory, in huge pages where the machine has them. Ends the program on failure. */
void floor_open(size_t bytes);
void floor_close(void);

/** Moves @p messages, rounded up to whole bursts, of @p size bytes between random places in the
 *  first @p set bytes. */
struct floor_cost floor_run(size_t size, size_t set, unsigned long messages);

#endif
