/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/form.h
 * Forms of commands, and lines that follow them. A form is words with one blank between them:
 *
 *     qps        this very word
 *     QPN        an argument of the kind of that name (admin/arg.c)
 *     LINE       last only: all that follows, blanks too, or nothing
 *     ...        last only: any number of pairs COLUMN VALUE; a list keeps the elements whose
 *                members have these values
 *
 * Pure.
 */
#ifndef ADMIN_FORM_H
#define ADMIN_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include "admin/arg.h"

/** A word of a line or of a form; nothing ends it. */
struct admin_word {
	char *at;
	size_t len;
};

struct admin_words {
	unsigned n;
	bool open; /* the last one may go on: no blank follows it */
	bool more; /* than fit */
	struct admin_word word[ADMIN_WORDS];
};

/** Finds the words of @p line, which stays as it is and must outlive @p w. */
void admin_words(struct admin_words *w, char *line);

/** What a word of a form is. */
enum admin_part {
	ADMIN_END, /* there is none: the form has ended */
	ADMIN_WORD,
	ADMIN_ARG,
	ADMIN_LINE,
	ADMIN_PAIRS,
};

/** Takes the next word off @p form, which then is the rest. */
enum admin_part admin_form_next(const char **form, struct admin_word *word);

/** @return whether @p w is the word @p text, or with @p begins whether @p text begins with it. */
bool admin_word_is(const struct admin_word *w, const struct admin_word *text, bool begins);

/** @return whether each word of @p line is how the word at its place of @p form begins, or stands
 *  for an argument. */
bool admin_form_begins(const char *form, const char *line);

/**
 * @param arg    receives the words that are arguments, which are not ended yet
 * @param pairs  receives the number of the first word of the pairs, w->n without any
 * @return whether @p w follows @p form from its first word to its last.
 */
bool admin_form_fits(
	const char *form, const struct admin_words *w, struct admin_word arg[], unsigned *pairs);

#endif
