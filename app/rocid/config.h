/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file config.h
 * The configuration file, rocid.conf(5): sections of `name = value` entries, read by rte_cfgfile.
 *
 * rte_cfgfile silently skips lines without '=', truncates long names and values, and has no line
 * numbers; config_lines() checks the text first, so that no line is lost.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stdio.h>
#include "report.h"

struct options;

/** The line numbers of sections' heads and entries. */
struct config_lines {
	unsigned count;
	unsigned *number; /* of each, in the file's order, from 1; free() */
};

/**
 * Reports to @p r each line of @p f, named @p path, that rte_cfgfile would misread.
 * @return 0 or -ENOMEM.
 */
int config_lines(FILE *f, const char *path, struct config_lines *lines, struct report *r);

/**
 * Applies the file @p path, and reports its errors to @p r. @param given by rows of options_at():
 * options of the command line, which the file does not change
 */
void config_read(struct options *o, const char *path, const bool *given, struct report *r);

#endif
