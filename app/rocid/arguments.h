/* SPDX-License-Identifier: BSD-3-Clause */
/** @file arguments.h  rocid's command line. */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include <stdbool.h>
#include "options.h"

/** Sets everything to its default. */
void options_init(struct options *o);

/**
 * Reads argv[1..argc), rocid's own arguments, and the configuration files that they name. An option
 * on the command line replaces all of its entries in the files.
 * @param why  receives a sentence that names what is wrong
 * @return 0 or -EINVAL. With --check-config errors in the files are printed and counted in `faults`
 * instead.
 */
int options_parse(struct options *o, int argc, char *argv[], char why[VALUE_MAX * 2]);

/** @return true when @p argument is an option of rocid's own, as opposed to one of EAL. */
bool options_is_own(const char *argument);

/**
 * Replaces ports' names by numbers, when the ports are known. @param number returns the port of a
 * name, -1 if there is none
 * @param why     receives a sentence that names what is wrong
 * @return 0 or -EINVAL.
 */
int options_resolve(struct options *o, int (*number)(void *arg, const char *name), void *arg,
	char why[VALUE_MAX * 2]);

/** Prints what `rocid --help` prints. */
void options_help(void);

#endif
