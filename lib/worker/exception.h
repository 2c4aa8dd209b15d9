/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file exception.h
 * The path of non-RoCE frames between a port that rocid owns and the kernel (decision 0000.1,
 * "own"). A separate thread makes the system calls (drivers/tap.c); workers exchange frames with it
 * through rings. A full ring loses frames, as a link would.
 */
#ifndef EXCEPTION_H
#define EXCEPTION_H

#include <stdint.h>
#include <rte_ring.h>

/** Frames that wait in one ring: a burst of TCP, and a number of buffers that the receive queues
 * can spare.
 */
#define EXCEPTION_RING 512u

struct exception {
	struct rte_ring *up; /* from the port, for the kernel: all workers -> the kernel's thread */
	/** from the kernel, for the port: the kernel's thread -> worker 0. Their buffers come from
	 * a pool that only that thread allocates from. */
	struct rte_ring *down;
	/** buffers of `up` to be freed: the kernel's thread -> worker 0. Only workers use their
	 * pools: a thread that is preempted while it returns a buffer makes all others wait. */
	struct rte_ring *spent;
};

/** Makes the rings of port @p index on NUMA node @p socket. @return NULL if memory is short. */
struct exception *exception_create(uint32_t index, int socket);

/** Frees @p x and the frames in its rings; nobody uses it any more. NULL is allowed. */
void exception_destroy(struct exception *x);

#endif
