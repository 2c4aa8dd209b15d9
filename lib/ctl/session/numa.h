/* SPDX-License-Identifier: BSD-3-Clause */
/** @file session/numa.h  Memory on the NUMA node of the worker that uses it most. */
#ifndef SESSION_NUMA_H
#define SESSION_NUMA_H

#include <stddef.h>

/**
 * Asks for the pages of a shared mapping, of which none has been touched yet, on NUMA node @p node;
 * whoever touches them first, this process or an application, gets them there. A wish: without
 * memory there, or where a container forbids mbind(), they come from elsewhere.
 * @param base  of whole pages
 * @param node  -1: anywhere
 */
void place_memory(void *base, size_t size, int node);

#endif
