/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file eal.h
 * Starts DPDK's environment, quietly: its messages become one sentence when it fails.
 */
#ifndef EAL_H
#define EAL_H

#include "options.h"

/**
 * Runs rte_eal_init() with @p argv, to which are added what rocid wants and the user did not
 * say: as many cores as workers, few messages, and a file prefix of its own, made of the socket's
 * path, so that several daemons run side by side.
 * @param why  receives a sentence that says what to do when this fails
 * @return 0, -EINVAL for a wrong argument, another negative errno.
 */
int eal_start(int argc, char *argv[], const struct options *o, char why[VALUE_MAX * 2]);

/** Undoes eal_start(), and removes the directory that EAL leaves behind if its name was ours. */
void eal_stop(void);

#endif
