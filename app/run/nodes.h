/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file nodes.h
 * Character nodes below /dev/infiniband, which programs look for (UCX) although libibverbs.so.1
 * opens none: in a mount namespace of this process and its children. One thread.
 */
#ifndef NODES_H
#define NODES_H

#include <stdbool.h>

#define NODES_WHY 256

/** How a process gets a mount namespace. */
enum nodes_means {
	NODES_ROOT, /* by CAP_SYS_ADMIN */
	NODES_USER, /* in a user namespace with the same user and group */
};

/** @return by which means nodes_make() would work for this process. */
enum nodes_means nodes_means(void);

/**
 * Moves the caller to a mount namespace of its own, in which /dev/infiniband has uverbs0 to
 * uverbs@p devices - 1 and rdma_cm, and the rest of /dev is as it was: entries that the system adds
 * to /dev itself later do not appear, those in its folders do.
 * @return 0, or a negative errno and a sentence: the process may have a namespace then, but its
 * /dev is unchanged.
 */
int nodes_make(unsigned devices, char why[NODES_WHY]);

#endif
