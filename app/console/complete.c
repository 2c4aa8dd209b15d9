/* SPDX-License-Identifier: BSD-3-Clause */
#include "complete.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ask.h"
#include "console.h"
#include "row.h"

#define LINE_WIDTH 80u
#define GAP	   2u
/* This many words are listed one per line, with their help. */
#define WITH_HELP 24u

static const char *word_of(const json_t *offers, size_t i)
{
	const char *word = json_string_value(json_object_get(json_array_get(offers, i), "word"));

	return word ? word : "";
}

static const char *help_of(const json_t *offers, size_t i)
{
	const char *help = json_string_value(json_object_get(json_array_get(offers, i), "help"));

	return help ? help : "";
}

/* --- asking ----------------------------------------------------------------------------- */

static const char *skip_blanks(const char *p)
{
	return p + strspn(p, " \t");
}

static bool begins_with_word(const char *line, const char *word, const char **rest)
{
	size_t len = strlen(word);

	if (strncmp(line, word, len) || !isblank((unsigned char)line[len]))
		return false;
	*rest = skip_blanks(line + len);
	return true;
}

/* `watch 2` and `help` are followed by another command. */
static const char *inner_line(const char *line)
{
	const char *rest;
	const char *p;

	line = skip_blanks(line);
	if (begins_with_word(line, "help", &rest))
		return rest;
	if (!begins_with_word(line, "watch", &rest))
		return line;
	p = rest + strspn(rest, "0123456789.");
	return p > rest && isblank((unsigned char)*p) ? skip_blanks(p) : rest;
}

static json_t *offer(const char *word, const char *help)
{
	struct row r;

	row_begin(&r);
	put_text(&r, "word", word);
	put_text(&r, "help", help);
	return row_end(&r);
}

/* The console's own commands are first words. */
static void add_own(json_t *offers, const char *line, const char *inner)
{
	const char *name, *help;

	if (inner[strcspn(inner, " \t")])
		return;
	for (unsigned i = 0; (name = console_command(i, &help)); i++)
		if (line == inner && !strncmp(name, inner, strlen(inner)))
			json_array_append_new(offers, offer(name, help));
}

static int by_word(const void *a, const void *b)
{
	const json_t *const *x = a, *const *y = b;
	const char *s = json_string_value(json_object_get(*x, "word"));
	const char *t = json_string_value(json_object_get(*y, "word"));

	return strcmp(s ? s : "", t ? t : "");
}

/* @return a new list, sorted, without duplicates; consumes @p offers. */
static json_t *sort(json_t *offers)
{
	size_t n = json_array_size(offers);
	json_t **all = calloc(n + 1, sizeof(*all));
	json_t *sorted = json_array();

	for (size_t i = 0; all && i < n; i++)
		all[i] = json_array_get(offers, i);
	if (all && n)
		qsort(all, n, sizeof(*all), by_word);
	for (size_t i = 0; all && i < n; i++)
		if (!i || by_word(&all[i - 1], &all[i]))
			json_array_append(sorted, all[i]);
	free(all);
	json_decref(offers);
	return sorted;
}

json_t *complete_ask(const char *socket, const char *line)
{
	const char *begin = skip_blanks(line);
	const char *inner = inner_line(line);
	char question[CONSOLE_LINE + sizeof("complete ")];
	char why[ASK_WHY];
	json_t *document = NULL;
	json_t *offers;
	int fd = ask_connect(socket, why);

	if (fd >= 0) {
		snprintf(question, sizeof(question), "complete %s", inner);
		document = ask(fd, question, why);
		close(fd);
	}
	offers = json_incref(json_object_get(document, "completions"));
	json_decref(document);
	if (!json_is_array(offers)) {
		json_decref(offers);
		offers = json_array();
	}
	add_own(offers, begin, inner);
	return sort(offers);
}

/* --- using ------------------------------------------------------------------------------ */

size_t complete_word(const char *line)
{
	size_t at = strlen(line);

	while (at && !isblank((unsigned char)line[at - 1]))
		at--;
	return at;
}

size_t complete_text(const json_t *offers, size_t typed, char *text, size_t size)
{
	size_t n = json_array_size(offers);
	const char *first = word_of(offers, 0);
	size_t common = strlen(first);
	size_t len;

	for (size_t i = 1; i < n; i++) {
		const char *word = word_of(offers, i);
		size_t k = 0;

		while (k < common && word[k] == first[k])
			k++;
		common = k;
	}
	if (!n || common < typed || !*first)
		return 0;
	len = common - typed;
	if (len + 2 > size)
		return 0;
	memcpy(text, first + typed, len);
	if (n == 1 && first[common - 1] != '=') /* a value follows without a blank */
		text[len++] = ' ';
	text[len] = '\0';
	return len;
}

static void print_columns(const json_t *offers, size_t n, unsigned width, FILE *f)
{
	unsigned columns = LINE_WIDTH / (width + GAP) ? LINE_WIDTH / (width + GAP) : 1;
	size_t rows = (n + columns - 1) / columns;

	for (size_t r = 0; r < rows; r++) {
		for (size_t i = r; i < n; i += rows)
			fprintf(f, "%-*s", i + rows < n ? (int)(width + GAP) : 0,
				word_of(offers, i));
		fputc('\n', f);
	}
}

static void print_with_help(const json_t *offers, size_t n, unsigned width, FILE *f)
{
	for (size_t i = 0; i < n; i++) {
		if (*help_of(offers, i))
			fprintf(f, "%-*s%s\n", *word_of(offers, i) ? (int)(width + GAP) : 0,
				word_of(offers, i), help_of(offers, i));
		else
			fprintf(f, "%s\n", word_of(offers, i));
	}
}

void complete_print(const json_t *offers, FILE *f)
{
	size_t all = json_array_size(offers);
	size_t n = all < COMPLETE_SHOWN ? all : COMPLETE_SHOWN;
	unsigned width = 0;
	bool helps = false;

	for (size_t i = 0; i < n; i++) {
		if (strlen(word_of(offers, i)) > width)
			width = (unsigned)strlen(word_of(offers, i));
		/* omit the help if it is the same for all */
		helps |= *help_of(offers, i) &&
			 (all == 1 || strcmp(help_of(offers, i), help_of(offers, !i)));
	}
	if (n <= WITH_HELP && helps)
		print_with_help(offers, n, width, f);
	else
		print_columns(offers, n, width, f);
	if (all > n)
		fprintf(f, "... and %zu more\n", all - n);
}
