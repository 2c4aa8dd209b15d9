/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file tap.h
 * A kernel netdev for a port that rocid owns (decision 0000.1, "own"): the kernel sends and
 * receives on it all non-RoCE traffic, so its addresses, ARP, neighbour discovery, routes and
 * programs work on the port as if it had a driver. A separate thread makes the system calls.
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
	uint16_t ethdev; /* the source of the netdev's link state */
	int socket;	 /* NUMA node; -1: any */
	struct exception *exception;
	struct worker *worker; /* worker 0: sends the kernel's frames, and may sleep; NULL: it is
				* not woken */
};

/**
 * Creates the netdev, up, and starts its thread. A deleted netdev is created again, with its MAC
 * but without its addresses.
 * @param index  of the port, for names
 * @param why    receives a sentence that says what to do when this fails
 * @return 0 or a negative errno.
 */
int tap_create(struct tap **out, uint32_t index, const struct tap_config *cfg, char *why,
	unsigned why_size);

/** Records the netdev's new MAC, in case it must be created again. Any thread. */
void tap_remember_mac(struct tap *t, const uint8_t mac[6]);

/** Stops the thread and removes the netdev. The buffers stay: tap_destroy(). NULL is allowed. */
void tap_stop(struct tap *t);

/** Frees @p t, which was stopped, once no port and no ring has a buffer of it. */
void tap_destroy(struct tap *t);

#endif
