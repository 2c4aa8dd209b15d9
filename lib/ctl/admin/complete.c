/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/complete.h"
#include <stdio.h>
#include <string.h>
#include "admin/form.h"
#include "admin/inject_qp.h"
#include "json_text.h"
#include "limits.h"
#include "row.h"
#include "text/fault.h"

/** A line that is being completed, split into words. */
struct typed {
	char line[ADMIN_LINE_MAX];
	struct admin_words words; /* those before the one to complete */
	struct admin_word last;	  /* that one; empty after a blank */
};

static void take_apart(struct typed *t, const char *line)
{
	snprintf(t->line, sizeof(t->line), "%s", line);
	admin_words(&t->words, t->line);
	t->last = (struct admin_word){t->line + strlen(t->line), 0};
	if (t->words.open)
		t->last = t->words.word[--t->words.n];
}

/** Where a line is in a form. */
struct place {
	enum admin_part part; /* what comes next */
	struct admin_word word;
	const char *rest; /* of the form, after it */
	unsigned args;	  /* parsed */
	struct argument arg[ADMIN_WORDS];
	unsigned pair; /* number of words of pairs typed */
};

static void end_word(const struct admin_word *w)
{
	w->at[w->len] = '\0'; /* a blank, or the end of the line */
}

/* @return whether @p form begins with the complete words of @p t. */
static bool find_place(struct ctl *ctl, const char *form, const struct typed *t, struct place *p)
{
	char why[ABI_SENTENCE_MAX];

	p->args = 0;
	p->pair = 0;
	for (unsigned i = 0;; i++) {
		const struct admin_word *w = &t->words.word[i];

		p->part = admin_form_next(&form, &p->word);
		p->rest = form;
		if (i == t->words.n)
			return true;
		if (p->part == ADMIN_PAIRS) {
			p->pair = t->words.n - i;
			return true;
		}
		if (p->part == ADMIN_LINE)
			return true;
		if (p->part == ADMIN_ARG) {
			end_word(w);
			p->arg[p->args].word = w->at;
			if (admin_arg_parse(ctl, admin_arg_kind(p->word.at, p->word.len), p->arg,
				    p->args++, why))
				return false;
		} else if (p->part != ADMIN_WORD || !admin_word_is(w, &p->word, false)) {
			return false;
		}
	}
}

/* @return whether a row before row @p n offers the same word as @p p: "show" begins many. */
static bool offered_before(
	admin_table row, struct ctl *ctl, unsigned n, const struct typed *t, const struct place *p)
{
	for (unsigned i = 0; i < n; i++) {
		struct place q;

		if (find_place(ctl, row(i)->form, t, &q) && q.part == p->part &&
			admin_word_is(&q.word, &p->word, false))
			return true;
	}
	return false;
}

static json_t *offer(const char *word, size_t len, const char *help)
{
	struct row row;

	row_begin(&row);
	put_json(&row, "word", json_stringn(word, len));
	put_text(&row, "help", help);
	return row_end(&row);
}

static json_t *offer_kind(const struct admin_arg_kind *kind, const struct admin_word *word)
{
	char help[ADMIN_VALUE_MAX * 2];

	snprintf(help, sizeof(help), "%.*s: %s", (int)word->len, word->at, kind->help);
	return offer("", 0, help);
}

/* The next value of the argument at @p p. */
static bool next_value(
	struct ctl *ctl, struct place *p, struct document_cursor *at, json_t **element)
{
	const struct admin_arg_kind *kind = admin_arg_kind(p->word.at, p->word.len);
	char value[ADMIN_VALUE_MAX];

	if (kind->choices) {
		const char *choice = kind->choices[at->index];

		if (choice)
			*element = offer(choice, strlen(choice), kind->help);
		at->index++;
		return choice;
	}
	if (kind->next) {
		if (!kind->next(ctl, p->arg, p->args, at, value))
			return false;
		*element = offer(value, strlen(value), kind->help);
		return true;
	}
	if (at->index++)
		return false;
	*element = offer_kind(kind, &p->word);
	return true;
}

/* The columns of a list are the members of its first element. */
static bool next_column(struct ctl *ctl, const struct document_section *s, const struct place *p,
	struct document_cursor *at, json_t **element)
{
	struct document_cursor first = {0};
	json_t *row = NULL;
	const char *name;
	json_t *value;
	uint32_t i = 0;

	if (!s->next(ctl, p->arg, &first, &row))
		return false;
	json_object_foreach(row, name, value)
	{
		if (i++ == at->index)
			*element = offer(name, strlen(name), "a column");
	}
	json_decref(row);
	return at->index++ < i;
}

/* The values of column @p name, including duplicates. */
static bool next_of_column(struct ctl *ctl, const struct document_section *s, const struct place *p,
	const struct admin_word *name, struct document_cursor *at, json_t **element)
{
	char text[JSON_TEXT_MAX];
	json_t *row = NULL;
	const char *value;

	if (!s->next(ctl, p->arg, at, &row))
		return false;
	end_word(name);
	value = json_text(json_object_get(row, name->at), text);
	*element = offer(value, strlen(value), name->at);
	json_decref(row);
	return true;
}

static bool next_of_pairs(struct ctl *ctl, const struct admin_command *c, struct typed *t,
	const struct place *p, struct document_cursor *at, json_t **element)
{
	if (p->pair % 2)
		return next_of_column(
			ctl, c->show[0], p, &t->words.word[t->words.n - 1], at, element);
	return next_column(ctl, c->show[0], p, at, element);
}

/* The words after `inject qp QPN FAULT`, whose choices begin after "none". */
static bool next_fault_word(const struct place *p, struct document_cursor *at, json_t **element)
{
	struct fault_word w;

	if (!fault_word_next((unsigned)p->arg[1].number + 1, &at->index, &w))
		return false;
	*element = offer(w.word, strlen(w.word), w.help);
	return true;
}

/* The next offer of row @p c. */
static bool next_of_row(struct ctl *ctl, const struct admin_command *c, struct typed *t,
	struct place *p, struct document_cursor *at, json_t **element)
{
	switch (p->part) {
	case ADMIN_WORD:
		if (at->index++)
			return false;
		*element = offer(p->word.at, p->word.len, *p->rest ? "" : c->help);
		return true;
	case ADMIN_ARG:
		return next_value(ctl, p, at, element);
	case ADMIN_PAIRS:
		return next_of_pairs(ctl, c, t, p, at, element);
	case ADMIN_LINE:
		return c->run == admin_inject && next_fault_word(p, at, element);
	default:
		return false;
	}
}

/* at->asker: the row of the table; the rest is next_of_row()'s. */
bool complete_next(admin_table row, struct ctl *ctl, const struct argument arg[],
	struct document_cursor *at, json_t **element)
{
	const struct admin_command *c;
	struct typed t;
	struct place p;

	for (; (c = row(at->asker)); *at = (struct document_cursor){.asker = at->asker + 1}) {
		take_apart(&t, arg[0].word);
		if (t.words.more || !find_place(ctl, c->form, &t, &p))
			continue;
		if (!at->index && offered_before(row, ctl, at->asker, &t, &p))
			continue;
		if (next_of_row(ctl, c, &t, &p, at, element))
			return true;
	}
	return false;
}

bool complete_keep(const struct argument arg[], const json_t *element)
{
	const char *word = json_string_value(json_object_get(element, "word"));
	struct typed t;

	take_apart(&t, arg[0].word);
	return word && !strncmp(word, t.last.at, t.last.len);
}

/* --- help ------------------------------------------------------------------------------- */

/* @return whether a command that `help` lists for @p line has an argument of @p kind. */
static bool is_used(admin_table row, const struct admin_arg_kind *kind, const char *line)
{
	const struct admin_command *c;

	for (unsigned i = 0; (c = row(i)); i++) {
		const char *form = c->form;
		struct admin_word word;
		enum admin_part part;

		while ((part = admin_form_next(&form, &word)) != ADMIN_END)
			if (part == ADMIN_ARG && admin_arg_kind(word.at, word.len) == kind &&
				admin_form_begins(c->form, line))
				return true;
	}
	return false;
}

/* at->index: of the kinds. */
bool complete_argument(
	admin_table row, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct row out;
	const struct admin_arg_kind *kind;
	char choices[ADMIN_VALUE_MAX * 2] = "";
	size_t len = 0;

	do
		kind = admin_arg_kind_at(at->index++);
	while (kind && !is_used(row, kind, arg[0].word));
	if (!kind)
		return false;
	for (unsigned i = 0; kind->choices && kind->choices[i] && len < sizeof(choices); i++)
		len += (size_t)snprintf(choices + len, sizeof(choices) - len, "%s%s",
			len ? " | " : "", kind->choices[i]);
	row_begin(&out);
	put_text(&out, "argument", kind->name);
	put_text(&out, "is", kind->help);
	put_text(&out, "values", choices);
	*element = row_end(&out);
	return true;
}
