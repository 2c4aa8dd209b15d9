/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file interrupts.h
 * The end of EAL's interrupt thread.
 */
#ifndef INTERRUPTS_H
#define INTERRUPTS_H

/**
 * From now on EAL's interrupt thread runs no handler and no alarm, until the process ends. To be
 * called before ports are closed: DPDK's memif frees what its handlers use, and leaves its freed
 * listener among the sources that the thread looks through at each event. Main thread.
 */
void interrupts_stop(void);

#endif
