/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file watch.h
 * A command again and again, as watch(1) does it, with what grew meanwhile, a second.
 */
#ifndef WATCH_H
#define WATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include "ask.h"
#include "limits.h"

struct watch {
	const char *socket; /* the applications' */
	bool json;	    /* a document a line, with its rates as member "per_second" */
	FILE *out;
	int in;	      /* a terminal: a key ends it; else it is not looked at */
	bool signals; /* Ctrl-C is no key */
	int stop;     /* readable: end; -1: nothing tells */
	/* watch_parse() */
	double seconds; /* between two askings */
	unsigned count; /* of askings; 0: for ever */
	char command[ADMIN_LINE_MAX];
};

/** Reads `[SECONDS] [--count N] COMMAND`.  @return 0, or -1 with a sentence. */
int watch_parse(struct watch *w, const char *line, char why[ASK_WHY]);

/** Asks and prints: on a terminal each time in the place of the last. @return 0, or -1 with a
 *  sentence. */
int watch_run(struct watch *w, char why[ASK_WHY]);

/**
 * What grew from @p before to @p now, a second: for each section that is an object, the members
 * that are whole numbers and are larger now.
 * @param seconds  between the two
 * @return an object of objects, to be given up with json_decref().
 */
json_t *watch_rates(const json_t *before, const json_t *now, double seconds);

#endif
