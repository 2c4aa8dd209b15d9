/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file interrupts.h
 * The end of EAL's interrupt thread.
 */
#ifndef INTERRUPTS_H
#define INTERRUPTS_H

/**
 * Keeps EAL's interrupt thread from running handlers and alarms until the process ends. Call it
 * before ports are closed: DPDK's memif frees objects that a handler of that thread may be using,
 * and leaves its listener registered, in memory that rte_eal_cleanup() unmaps. Main thread.
 */
void interrupts_stop(void);

#endif
