/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file watch.h
 * Repeats a command, like watch(1), with increases per second.
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
	bool json;	    /* one document per line, with its rates as member "per_second" */
	FILE *out;
	int in;	      /* a terminal: a key ends it; otherwise it is not read */
	bool signals; /* Ctrl-C is not a key */
	int stop;     /* readable: end; -1: none */
	/* watch_parse() */
	double seconds; /* between two requests */
	unsigned count; /* of requests; 0: forever */
	char command[ADMIN_LINE_MAX];
};

/** Reads `[SECONDS] [--count N] COMMAND`.  @return 0, or -1 with a sentence. */
int watch_parse(struct watch *w, const char *line, char why[ASK_WHY]);

/** Sends requests and prints: on a terminal each answer replaces the last. @return 0, or -1 with a
 * sentence. */
int watch_run(struct watch *w, char why[ASK_WHY]);

/**
 * Increases per second from @p before to @p now: for each section that is an object, the members
 * that are whole numbers and are larger now. @param seconds between the two @return an object of
 * objects, to be released with json_decref().
 */
json_t *watch_rates(const json_t *before, const json_t *now, double seconds);

#endif
