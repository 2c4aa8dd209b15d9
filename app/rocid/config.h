/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file config.h
 * The configuration file, rocid.conf(5): sections of `name = value` entries, read by rte_cfgfile.
 *
 * That passes over lines without '=' in silence, cuts long names and values, and knows no line
 * numbers; config_lines() looks at the text first, so that no line of the user's is lost.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include "options.h"
#include "report.h"

/** Where a section's head or an entry stands. */
struct config_lines {
	unsigned count;
	unsigned *number; /* of each, in the file's order, from 1; free() */
};

/**
 * Tells @p r of each line of @p f, which is called @p path, that rte_cfgfile would not take as it
 * is meant.
 * @return 0 or -ENOMEM.
 */
int config_lines(FILE *f, const char *path, struct config_lines *lines, struct report *r);

/**
 * Sets what @p path says, and tells @p r what is wrong with it.
 * @param given  by rows of options_at(): what the command line says, which the file does not touch
 */
void config_read(struct options *o, const char *path, const bool *given, struct report *r);

#endif
