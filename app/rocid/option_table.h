/* SPDX-License-Identifier: BSD-3-Clause */
/** @file option_table.h  The table of rocid's options. */
#ifndef OPTION_TABLE_H
#define OPTION_TABLE_H

#include <stdbool.h>
#include "values.h"

struct options;

/** The section of an option in a configuration file, and its heading in --help. */
enum option_section {
	SECTION_APPLICATIONS,
	SECTION_PORTS, /* [ports]: options that create ports, or apply to all */
	SECTION_PORT,  /* [port NAME]: options that begin with PORT on the command line */
	SECTION_WORKERS,
	SECTION_START,
	SECTION_MAX
};

/** Maximum number of rows. */
#define OPTION_ROWS_MAX 96u

struct option_row {
	const char *name;
	int argument; /* as getopt's has_arg */
	enum option_section section;
	bool many; /* may be given several times */
	struct value_type type;
	const char *value; /* its name in --help */
	const char *help;
};

/** @return the row of option @p name, without dashes, or NULL. */
const struct option_row *options_find(const char *name);

/** @return the i-th row, NULL after the last. */
const struct option_row *options_at(unsigned i);

/** @return the name of a section without brackets. */
const char *options_section(enum option_section section);

/**
 * Sets option @p name (without dashes) to @p value, "" if it has none. @param why receives what is
 * wrong, without the location
 * @return 0 or -EINVAL.
 */
int options_set(struct options *o, const char *name, const char *value, char why[VALUE_MAX]);

#endif
