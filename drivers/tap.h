/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file tap.h
 * A kernel netdev beside a port that rocid owns (design.md 1, "own"): the kernel sends and receives
 * on it everything that is not RoCE, so its addresses, ARP, neighbour discovery, routes and
 * programs work on the port as if it had a driver. A thread of its own makes the system calls.
 */
#ifndef TAP_H
#define TAP_H

#include <stdint.h>
#include <net/if.h>
#include "exception.h"
#include "worker.h"

struct tap;

struct tap_config {
	char name[IFNAMSIZ]; /* of the netdev */
	uint8_t mac[6];	     /* both of the port */
	uint16_t mtu;
	uint16_t ethdev; /* whose link state the netdev has */
	int socket;	 /* NUMA node; -1: any */
	struct exception *exception;
	struct worker *worker; /* 0: sends what the kernel sends, and may sleep; NULL: not told */
};

/**
 * Makes the netdev, up, and starts its thread. One that somebody deletes is made again, with its
 * MAC but without its addresses.
 * @param index  of the port, for names
 * @param why    receives a sentence that says what to do when this fails
 * @return 0 or a negative errno.
 */
int tap_create(struct tap **out, uint32_t index, const struct tap_config *cfg, char *why,
	unsigned why_size);

/** Tells that the netdev has another MAC, in case it must be made again. Any thread. */
void tap_remember_mac(struct tap *t, const uint8_t mac[6]);

/** Stops the thread; the netdev goes. The buffers stay: tap_destroy(). NULL is harmless. */
void tap_stop(struct tap *t);

/** Frees @p t, which was stopped, when no port and no ring has a buffer of it. */
void tap_destroy(struct tap *t);

#endif
