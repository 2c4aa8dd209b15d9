/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file exception.h
 * The way of what is not RoCE between a port that rocid owns and the kernel (design.md 1, "own"). A
 * thread that is no worker makes the system calls (drivers/tap.c); workers and that thread meet in
 * rings. A full ring loses frames, as a link would.
 */
#ifndef EXCEPTION_H
#define EXCEPTION_H

#include <stdint.h>
#include <rte_ring.h>

/** Frames that wait in one ring: a burst of TCP, and buffers that the receive queues do not miss.
 */
#define EXCEPTION_RING 512u

struct exception {
	struct rte_ring *up; /* from the port, for the kernel: all workers -> the kernel's thread */
	/** from the kernel, for the port: the kernel's thread -> worker 0. Their buffers come from
	 * a pool of which only that thread takes. */
	struct rte_ring *down;
	/** buffers of `up` to be freed: the kernel's thread -> worker 0. Pools are the workers'
	 * alone: one who is stopped in the midst of giving a buffer back makes all others wait. */
	struct rte_ring *spent;
};

/** Makes the rings of port @p index on NUMA node @p socket.  @return NULL when memory is short. */
struct exception *exception_create(uint32_t index, int socket);

/** Frees @p x and what is in its rings; nobody uses it any more. NULL is harmless. */
void exception_destroy(struct exception *x);

#endif
