/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file interrupts.h
 * The end of EAL's interrupt thread.
 */
#ifndef INTERRUPTS_H
#define INTERRUPTS_H

/**
 * From now on EAL's interrupt thread runs no handler and no alarm, until the process ends. To be
 * called before ports are closed: DPDK's memif frees what a handler of that thread may be using,
 * and leaves its listener registered, in memory that rte_eal_cleanup() unmaps. Main thread.
 */
void interrupts_stop(void);

#endif
