/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sockets.h
 * The sockets that a driver of DPDK has opened on a netdev: it does not tell them, but the kernel
 * tells what ours are.
 */
#ifndef SOCKETS_H
#define SOCKETS_H

#include "limits.h"

/**
 * Finds this process's sockets of @p domain (AF_PACKET, AF_XDP) on netdev @p ifindex, in the order
 * of its queues: a driver opens them one after the other, so they have ascending numbers. An XDP
 * socket does not tell where it is: all are found.
 * @return their number; the first WORKER_MAX are in @p fd.
 */
unsigned sockets_find(int domain, unsigned ifindex, int fd[WORKER_MAX]);

#endif
