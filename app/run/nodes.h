/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file nodes.h
 * Character nodes below /dev/infiniband, which programs look for (UCX) although libibverbs.so.1
 * opens none: in a mount namespace of this process and its children. One thread.
 */
#ifndef NODES_H
#define NODES_H

#define NODES_WHY  256
#define NODES_EXIT 125 /* exit status, as env(1) has it for failures of its own */

/**
 * Moves the caller to a mount namespace of its own, in which /dev/infiniband has uverbs0 to
 * uverbs@p devices - 1 and rdma_cm, and the rest of /dev is as it was: entries that the system adds
 * to /dev itself later do not appear, those in its folders do. Without the right to have it alone,
 * the namespace comes with a user namespace, in which user and group are the same; exits with a
 * sentence if the kernel refuses that once the namespace exists.
 * @return 0, or a negative errno and a sentence: the process may have a namespace then, but its
 * /dev is unchanged.
 */
int nodes_make(unsigned devices, char why[NODES_WHY]);

#endif
