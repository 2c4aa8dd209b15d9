/* SPDX-License-Identifier: BSD-3-Clause */
/** @file parse.h  Text -> scenario. */
#ifndef PARSE_H
#define PARSE_H

#include <stdbool.h>
#include <stdio.h>

struct scenario;

/** A value that replaces one of the text: `--set switch.kmin=5K`. */
struct setting {
	const char *statement;
	const char *name;
	const char *value;
	bool used;
};

/**
 * Reads a scenario. @param name the file, for errors @param settings @p n values that replace those
 * of the text
 * @param why       receives "NAME:LINE: sentence"
 * @return 0 or -EINVAL
 */
int parse_scenario(struct scenario *s, const char *name, const char *text, struct setting *settings,
	unsigned n, char *why, size_t size);

/** Writes the statements and their settings. */
void parse_help(FILE *f);

#endif
