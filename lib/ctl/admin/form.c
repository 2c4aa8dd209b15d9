/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include "admin/form.h"

#define BLANKS " \t\r"

void admin_words(struct admin_words *w, char *line)
{
	*w = (struct admin_words){0};
	for (char *p = line + strspn(line, BLANKS); *p; p += strspn(p, BLANKS)) {
		size_t len = strcspn(p, BLANKS);

		w->more = w->n == ADMIN_WORDS;
		if (w->more)
			return;
		w->word[w->n++] = (struct admin_word){p, len};
		p += len;
		w->open = !*p;
	}
}

enum admin_part admin_form_next(const char **form, struct admin_word *word)
{
	const char *at = *form;
	size_t len = strcspn(at, " ");

	*word = (struct admin_word){(char *)(uintptr_t)at, len};
	*form = at + len + (at[len] == ' ');
	if (!len)
		return ADMIN_END;
	if (len == 3 && !memcmp(at, "...", 3))
		return ADMIN_PAIRS;
	if (len == 4 && !memcmp(at, "LINE", 4))
		return ADMIN_LINE;
	return isupper((unsigned char)*at) ? ADMIN_ARG : ADMIN_WORD;
}

bool admin_word_is(const struct admin_word *w, const struct admin_word *text, bool begins)
{
	return (begins ? w->len <= text->len : w->len == text->len) &&
	       !memcmp(w->at, text->at, w->len);
}

bool admin_form_begins(const char *form, const char *line)
{
	struct admin_words w;
	struct admin_word part;

	admin_words(&w, (char *)(uintptr_t)line);
	for (unsigned i = 0; i < w.n; i++) {
		enum admin_part kind = admin_form_next(&form, &part);

		if (kind != ADMIN_ARG &&
			!(kind == ADMIN_WORD && admin_word_is(&w.word[i], &part, true)))
			return false;
	}
	return true;
}

bool admin_form_fits(
	const char *form, const struct admin_words *w, struct admin_word arg[], unsigned *pairs)
{
	static char nothing[] = "";
	struct admin_word part;
	unsigned args = 0;

	*pairs = w->n;
	for (unsigned i = 0;; i++) {
		bool there = i < w->n;

		switch (admin_form_next(&form, &part)) {
		case ADMIN_END:
			return !there && !w->more;
		case ADMIN_PAIRS:
			*pairs = i;
			return !w->more;
		case ADMIN_LINE:
			arg[args] = (struct admin_word){there ? w->word[i].at : nothing, 0};
			arg[args].len = strlen(arg[args].at);
			return true;
		case ADMIN_ARG:
			if (!there)
				return false;
			arg[args++] = w->word[i];
			break;
		case ADMIN_WORD:
			if (!there || !admin_word_is(&w->word[i], &part, false))
				return false;
		}
	}
}
