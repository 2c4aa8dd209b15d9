/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <numa.h>
#include <numaif.h>
#include "memory/numa.h"

void place_memory(void *base, size_t size, int node)
{
	struct bitmask *nodes;

	if (node < 0 || numa_available() < 0 || node > numa_max_node())
		return;
	nodes = numa_allocate_nodemask();
	numa_bitmask_setbit(nodes, (unsigned)node);
	/* The policy belongs to the memfd, so it also applies to the application's mapping. */
	mbind(base, size, MPOL_PREFERRED, nodes->maskp, nodes->size + 1, 0);
	numa_free_nodemask(nodes);
}
