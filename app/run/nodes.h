/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file nodes.h
 * Character nodes below /dev/infiniband, which programs look for (UCX) although libibverbs.so.1
 * opens none. One thread.
 */
#ifndef NODES_H
#define NODES_H

#include "namespace.h"

/**
 * Creates /dev/infiniband with uverbs0 to uverbs@p devices - 1 and rdma_cm in the mount namespace
 * of namespace_enter(); the rest of /dev does not change (shadow.h).
 * @return 0, or a negative errno and a sentence: /dev is unchanged then.
 */
int nodes_make(unsigned devices, char why[WHY_MAX]);

#endif
