/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file eal.h
 * Starts DPDK's environment, quietly: its messages become one sentence when it fails.
 */
#ifndef EAL_H
#define EAL_H

#include "options.h"

/** EAL arguments that a command line may have, the program's name included. */
#define EAL_COMMAND_MAX	  256
#define EAL_ARGUMENTS_MAX (EAL_COMMAND_MAX + EAL_ENTRIES_MAX + 8)

/** The arguments of rte_eal_init(). */
struct eal_arguments {
	int argc;
	char *argv[EAL_ARGUMENTS_MAX];
	bool quiet;	 /* EAL's messages are off */
	bool own_prefix; /* its --file-prefix is ours */
	bool own_cores;	 /* its -l is ours: */
	char cpus[128];	 /* this one, empty: EAL's choice */
	char prefix[64];
};

/**
 * Combines the arguments of the command line, @p argv, those of the configuration files, and
 * rocid's defaults: as many cores as workers, few messages, and a file prefix derived from the
 * socket's path, so that several daemons can run on one host.
 * @return 0, or -E2BIG.
 */
int eal_arguments(const struct options *o, int argc, char *argv[], struct eal_arguments *a);

/** Whether each -m is a number.  @return 0, or -EINVAL with a sentence. */
int eal_check_memory(int argc, char *const argv[], char why[VALUE_MAX * 2]);

/**
 * Runs rte_eal_init() with eal_arguments().
 * @param why  receives a sentence that says what to do when this fails
 * @return 0, -EINVAL for a wrong argument, another negative errno.
 */
int eal_start(int argc, char *argv[], const struct options *o, char why[VALUE_MAX * 2]);

/** Undoes eal_start(), and removes the directory that EAL leaves behind if rocid chose its name. */
void eal_stop(void);

#endif
