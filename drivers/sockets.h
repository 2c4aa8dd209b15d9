/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sockets.h
 * The sockets that a DPDK driver has opened on a netdev: the driver does not expose them, but the
 * kernel lists those of this process.
 */
#ifndef SOCKETS_H
#define SOCKETS_H

#include "limits.h"

/**
 * Finds this process's sockets of @p domain (AF_PACKET, AF_XDP) on netdev @p ifindex, in the order
 * of its queues: a driver opens them in order, so their numbers ascend. An XDP socket does not
 * reveal its netdev: all are found.
 * @return their number; the first WORKER_MAX are in @p fd.
 */
unsigned sockets_find(int domain, unsigned ifindex, int fd[WORKER_MAX]);

#endif
