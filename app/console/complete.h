/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file complete.h
 * Completions of a line: rocid's answer to `complete LINE` (the words of its commands, the numbers
 * of its objects), and the console's own commands.
 */
#ifndef COMPLETE_H
#define COMPLETE_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/** Completions that are listed; further ones are counted. */
#define COMPLETE_SHOWN 100u

/**
 * @param socket  the applications' socket
 * @return a list of {"word", "help"} for the last word of @p line, sorted, each word once; empty if
 * there are none or rocid does not answer. Release it with json_decref().
 */
json_t *complete_ask(const char *socket, const char *line);

/** @return where the last word of @p line begins: at its end, after a blank. */
size_t complete_word(const char *line);

/**
 * Writes the common beginning of all @p offers after the @p typed bytes, and a blank if there is
 * only one.
 * @return its length, 0 for nothing.
 */
size_t complete_text(const json_t *offers, size_t typed, char *text, size_t size);

/** Prints @p offers: words in columns, or with their help if there are few. */
void complete_print(const json_t *offers, FILE *f);

#endif
