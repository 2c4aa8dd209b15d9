/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file complete.h
 * What a line may become: rocid's answer to `complete LINE` (the words of its commands, the numbers
 * of its objects), and the console's own commands.
 */
#ifndef COMPLETE_H
#define COMPLETE_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/** Offers that are listed; more are counted. */
#define COMPLETE_SHOWN 100u

/**
 * @param socket  the applications' socket
 * @return a list of {"word", "help"} for the last word of @p line, sorted, each word once; empty
 * when nothing is known or nobody answers. Ends with json_decref().
 */
json_t *complete_ask(const char *socket, const char *line);

/** Where in @p line its last word begins: at its end, behind a blank. */
size_t complete_word(const char *line);

/**
 * Writes what can be typed for the user: what all of @p offers begin with, beyond the @p typed
 * bytes that are there, and a blank when there is only one.
 * @return its length, 0 for nothing.
 */
size_t complete_text(const json_t *offers, size_t typed, char *text, size_t size);

/** Prints @p offers: words in columns, or with their help when there are few. */
void complete_print(const json_t *offers, FILE *f);

#endif
