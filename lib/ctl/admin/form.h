/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/form.h
 * Forms of commands, and matching lines against them. A form consists of words separated by single
 * blanks:
 *
 *     qps        this word literally
 *     QPN        an argument of the kind of that name (admin/arg.c)
 *     LINE       last only: the rest of the line including blanks, may be empty
 *     ...        last only: any number of pairs COLUMN VALUE, which select the elements of a list
 *                with these values
 *
 * Pure.
 */
#ifndef ADMIN_FORM_H
#define ADMIN_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include "admin/arg.h"

/** A word of a line or of a form; not terminated. */
struct admin_word {
	char *at;
	size_t len;
};

struct admin_words {
	unsigned n;
	bool open; /* the last one may be incomplete: no blank follows it */
	bool more; /* the line has more words than fit */
	struct admin_word word[ADMIN_WORDS];
};

/** Finds the words of @p line, which is not modified and must outlive @p w. */
void admin_words(struct admin_words *w, char *line);

/** The kinds of words in a form. */
enum admin_part {
	ADMIN_END, /* the end of the form */
	ADMIN_WORD,
	ADMIN_ARG,
	ADMIN_LINE,
	ADMIN_PAIRS,
};

/** Takes the next word from @p form, and advances @p form past it. */
enum admin_part admin_form_next(const char **form, struct admin_word *word);

/** @return whether @p w is the word @p text, or with @p begins whether @p text begins with it. */
bool admin_word_is(const struct admin_word *w, const struct admin_word *text, bool begins);

/** @return whether each word of @p line is a prefix of the corresponding word of @p form, or an
 *  argument. */
bool admin_form_begins(const char *form, const char *line);

/**
 * @param arg    receives the words that are arguments, not terminated
 * @param pairs  receives the index of the first word of the pairs, w->n if there are none
 * @return whether all words of @p w match @p form.
 */
bool admin_form_fits(
	const char *form, const struct admin_words *w, struct admin_word arg[], unsigned *pairs);

#endif
