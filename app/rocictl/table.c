/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include "bits.h"
#include "table.h"

#define COLUMNS	 32
#define CELL_MAX 64
#define GAP	 2

struct column {
	const char *name;
	int width;
	bool numeric;
};

/* The text of @p value, in @p cell where it is not text already. */
static const char *cell_text(const json_t *value, char cell[CELL_MAX])
{
	switch (json_typeof(value)) {
	case JSON_STRING:
		return json_string_value(value)[0] ? json_string_value(value) : "-";
	case JSON_INTEGER:
		snprintf(cell, CELL_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return cell;
	case JSON_REAL:
		snprintf(cell, CELL_MAX, "%g", json_real_value(value));
		return cell;
	case JSON_TRUE:
		return "yes";
	case JSON_FALSE:
		return "no";
	default:
		return "-";
	}
}

static int width_of(const char *text)
{
	return (int)strlen(text);
}

static void widen(struct column *c, const json_t *value)
{
	char cell[CELL_MAX];
	int width = value ? width_of(cell_text(value, cell)) : 1;

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

/* Numbers stand to the right, text to the left; no blanks at the line's end. */
static void print_cell(FILE *f, const struct column *c, const char *text, bool last)
{
	if (c->numeric)
		fprintf(f, "%*s%*s", c->width, text, last ? 0 : GAP, "");
	else
		fprintf(f, "%-*s", last ? 0 : c->width + GAP, text);
}

static void print_heads(FILE *f, const struct column *column, unsigned n)
{
	for (unsigned c = 0; c < n; c++) {
		char head[CELL_MAX];
		size_t i;

		for (i = 0; column[c].name[i] && i < sizeof(head) - 1; i++)
			head[i] = (char)toupper((unsigned char)column[c].name[i]);
		head[i] = '\0';
		print_cell(f, &column[c], head, c + 1 == n);
	}
	fputc('\n', f);
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
		for (unsigned c = 0; c < n; c++) {
			const json_t *value = json_object_get(row, column[c].name);
			char cell[CELL_MAX];

			print_cell(f, &column[c], value ? cell_text(value, cell) : "-", c + 1 == n);
		}
		fputc('\n', f);
	}
}

static void print_object(FILE *f, json_t *object)
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
		widen(&values, value);
	}
	json_object_foreach(object, name, value)
	{
		print_cell(f, &names, name, false);
		print_cell(f, &values, cell_text(value, cell), true);
		fputc('\n', f);
	}
}

void table_print(const json_t *document, FILE *f)
{
	bool headings = json_object_size(document) > 1;
	bool first = true;
	const char *name;
	json_t *section;

	json_object_foreach((json_t *)document, name, section)
	{
		char cell[CELL_MAX];

		if (headings)
			fprintf(f, "%s%s:\n", first ? "" : "\n", name);
		first = false;
		if (json_is_array(section))
			print_list(f, name, section);
		else if (json_is_object(section))
			print_object(f, section);
		else
			fprintf(f, "%s: %s\n", name, cell_text(section, cell));
	}
}
