/* SPDX-License-Identifier: BSD-3-Clause */
/** @file memory/numa.h  Memory on the NUMA node of the worker that uses it most. */
#ifndef MEMORY_NUMA_H
#define MEMORY_NUMA_H

#include <stddef.h>

/**
 * Requests NUMA node @p node for the untouched pages of a shared mapping, whether this process or
 * an application touches them first. A preference only: if the node has no memory, or a container
 * forbids mbind(), the pages come from elsewhere.
 * @param base  page-aligned
 * @param node  -1: anywhere
 */
void place_memory(void *base, size_t size, int node);

#endif
