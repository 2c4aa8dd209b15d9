/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file eal_options.h
 * The EAL arguments that a configuration file may hold, in its section [eal]: EAL's own names.
 */
#ifndef EAL_OPTIONS_H
#define EAL_OPTIONS_H

#include <stdbool.h>

struct eal_option {
	const char *name;  /* of one letter: -x, otherwise --name */
	bool value;	   /* it has a value, otherwise the file says yes or no */
	bool many;	   /* it may be given several times */
	const char *group; /* options of one group are synonyms */
};

/** @return the option @p name, without dashes, or NULL. */
const struct eal_option *eal_option_find(const char *name);

/** @return the i-th, NULL after the last. */
const struct eal_option *eal_option_at(unsigned i);

/** @return the option that @p argument is: "-l", "-l1", "--lcores", "--lcores=1"; NULL: none. */
const struct eal_option *eal_option_of(const char *argument);

/** @return the value of argument @p i if it is option @p name, otherwise NULL. */
const char *eal_option_value(int argc, char *const argv[], int i, const char *name);

/** @return whether @p device, of -a, is a PCI address, as opposed to a device of another bus. */
bool eal_option_is_pci(const char *device);

#endif
