/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include "bits.h"
#include "json_text.h"
#include "openmetrics.h"
#include "table.h"

#define COLUMNS	 32
#define CELL_MAX 64 /* at least JSON_TEXT_MAX */
#define GAP	 2

/* A column of sentences, which is wider, is printed below its row, wrapped. */
#define CELL_WIDE 60
#define LINE	  92
#define INDENT	  4

struct column {
	const char *name;
	int width;
	bool numeric;
};

static bool is_bytes(const char *name)
{
	size_t len = strlen(name);

	return !strcmp(name, "length") || (len >= 5 && !strcmp(name + len - 5, "bytes"));
}

/* At least three digits, no fraction if it is a whole number of units. */
static void bytes_text(json_int_t n, char cell[CELL_MAX])
{
	static const char *const unit[] = {"", " KiB", " MiB", " GiB", " TiB"};
	double v = (double)n;
	unsigned u = 0;

	for (; v >= 1024 && u < ARRAY_SIZE(unit) - 1; u++)
		v /= 1024;
	snprintf(cell, CELL_MAX, "%.*f%s", n % (json_int_t)(1ull << 10 * u) ? 1 : 0, v, unit[u]);
}

/* The text of member @p name, in @p cell if it is not a string. */
static const char *cell_text(const char *name, const json_t *value, char cell[CELL_MAX])
{
	if (json_is_integer(value) && is_bytes(name)) {
		bytes_text(json_integer_value(value), cell);
		return cell;
	}
	if (json_is_string(value) && !json_string_length(value))
		return "-";
	return json_text(value, cell);
}

static int width_of(const char *text)
{
	return (int)strlen(text);
}

static void widen(struct column *c, const json_t *value)
{
	char cell[CELL_MAX];
	int width = width_of(cell_text(c->name, value, cell));

	if (width > c->width)
		c->width = width;
}

/* Columns are the members of the first row. */
static unsigned measure(const json_t *rows, struct column column[COLUMNS])
{
	json_t *first = json_array_get(rows, 0);
	unsigned n = 0;
	const char *name;
	json_t *value;
	size_t i;

	json_object_foreach(first, name, value)
	{
		if (n == COLUMNS)
			break;
		column[n++] = (struct column){name, width_of(name), json_is_number(value)};
	}
	json_array_foreach(rows, i, value)
	{
		for (unsigned c = 0; c < n; c++)
			widen(&column[c], json_object_get(value, column[c].name));
	}
	return n;
}

/* Numbers are right-aligned, text is left-aligned; no trailing blanks. */
static void print_cell(FILE *f, const struct column *c, const char *text, bool last)
{
	if (c->numeric)
		fprintf(f, "%*s%*s", c->width, text, last ? 0 : GAP, "");
	else
		fprintf(f, "%-*s", last ? 0 : c->width + GAP, text);
}

static bool is_prose(const struct column *c)
{
	return !c->numeric && c->width > CELL_WIDE;
}

/* Where the first line of @p text ends: at a blank; in a list without blanks, after a comma. */
static size_t line_end(const char *text)
{
	if (strlen(text) <= LINE)
		return strlen(text);
	for (size_t end = LINE; end; end--)
		if (text[end] == ' ')
			return end;
	for (size_t end = LINE; end; end--)
		if (text[end - 1] == ',')
			return end;
	return LINE; /* a word longer than a line */
}

/* Prints @p text in lines that are indented by @p indent blanks. */
static void print_prose(FILE *f, const char *text, int indent)
{
	while (*text) {
		size_t end = line_end(text);

		fprintf(f, "%*s%.*s\n", indent, "", (int)end, text);
		text += end;
		text += strspn(text, " ");
	}
}

/* The last column in the row itself. */
static unsigned last_column(const struct column *column, unsigned n)
{
	unsigned last = 0;

	for (unsigned c = 0; c < n; c++)
		if (!is_prose(&column[c]))
			last = c;
	return last;
}

static void print_heads(FILE *f, const struct column *column, unsigned n)
{
	for (unsigned c = 0; c < n; c++) {
		char head[CELL_MAX];
		size_t i;

		for (i = 0; column[c].name[i] && i < sizeof(head) - 1; i++)
			head[i] = (char)toupper((unsigned char)column[c].name[i]);
		head[i] = '\0';
		if (!is_prose(&column[c]))
			print_cell(f, &column[c], head, c == last_column(column, n));
	}
	fputc('\n', f);
}

static void print_row(FILE *f, const json_t *row, const struct column *column, unsigned n)
{
	unsigned last = last_column(column, n);
	char cell[CELL_MAX];

	for (unsigned c = 0; c < n; c++) {
		const json_t *value = json_object_get(row, column[c].name);

		if (!is_prose(&column[c]))
			print_cell(
				f, &column[c], cell_text(column[c].name, value, cell), c == last);
	}
	fputc('\n', f);
	for (unsigned c = 0; c < n; c++) {
		const json_t *value = json_object_get(row, column[c].name);

		const char *text = cell_text(column[c].name, value, cell);

		if (is_prose(&column[c]) && strcmp(text, "-") != 0)
			print_prose(f, text, INDENT);
	}
}

static void print_list(FILE *f, const char *name, const json_t *rows)
{
	struct column column[COLUMNS];
	unsigned n = measure(rows, column);
	json_t *row;
	size_t i;

	if (!json_array_size(rows)) {
		fprintf(f, "no %s\n", name);
		return;
	}
	print_heads(f, column, n);
	json_array_foreach(rows, i, row)
	{
		print_row(f, row, column, n);
	}
}

/* Members that grew are followed by the rate. */
static void print_object(FILE *f, json_t *object, const json_t *rates)
{
	struct column names = {"", 0, false}, values = {"", 0, true};
	char cell[CELL_MAX];
	const char *name;
	json_t *value;

	json_object_foreach(object, name, value)
	{
		if (width_of(name) > names.width)
			names.width = width_of(name);
		values.numeric &= json_is_number(value);
		values.name = name;
		widen(&values, value);
	}
	json_object_foreach(object, name, value)
	{
		const char *text = cell_text(name, value, cell);
		const json_t *rate = json_object_get(rates, name);

		print_cell(f, &names, name, false);
		if (width_of(text) > CELL_WIDE) {
			fputc('\n', f);
			print_prose(f, text, INDENT);
			continue;
		}
		print_cell(f, &values, text, !rate);
		if (rate)
			fprintf(f, "+%.*f/s", json_real_value(rate) < 10 ? 1 : 0,
				json_real_value(rate));
		fputc('\n', f);
	}
}

void table_print_rates(const json_t *document, const json_t *rates, FILE *f)
{
	bool headings = json_object_size(document) > 1;
	bool first = true;
	const char *name;
	json_t *section;

	json_object_foreach((json_t *)(uintptr_t)document, name, section)
	{
		char cell[CELL_MAX];

		if (headings)
			fprintf(f, "%s%s:\n", first ? "" : "\n", name);
		first = false;
		if (json_is_array(section))
			print_list(f, name, section);
		else if (json_is_object(section))
			print_object(f, section, json_object_get(rates, name));
		else if (headings)
			fprintf(f, "%s\n", cell_text(name, section, cell));
		else
			fprintf(f, "%s: %s\n", name, cell_text(name, section, cell));
	}
}

void answer_print(const json_t *document, bool json, FILE *f)
{
	const json_t *metrics = json_object_get(document, "metrics");

	if (json) {
		json_dumpf(document, f, JSON_COMPACT);
		fputc('\n', f);
	} else if (metrics) {
		openmetrics_print(metrics, f);
	} else {
		table_print(document, f);
	}
}

void table_print(const json_t *document, FILE *f)
{
	table_print_rates(document, NULL, f);
}
