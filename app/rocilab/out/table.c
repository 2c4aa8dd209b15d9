/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "table.h"

#define LINE_SIZE 512u

static double *new_row(struct table *t)
{
	double *row;

	if (t->rows == t->room) {
		size_t room = t->room ? 2 * t->room : 1024;
		double *cell = realloc(t->cell, room * TABLE_COLUMNS * sizeof(*cell));

		if (!cell)
			return NULL;
		t->cell = cell;
		t->room = room;
	}
	row = &t->cell[t->rows++ * TABLE_COLUMNS];
	memset(row, 0, TABLE_COLUMNS * sizeof(*row));
	return row;
}

/* The names of the first moment are the series. */
static void take_name(struct table *t, const char *name)
{
	/* Events of one queue pair on a wire may be of the same moment. */
	for (unsigned i = 0; i < t->nseries; i++)
		if (!strcmp(t->series[i], name))
			return;
	if (t->rows > TABLE_SERIES || table_at(t, t->rows - 1, 0) != table_at(t, 0, 0))
		return;
	snprintf(t->series[t->nseries++], TABLE_NAME, "%s", name);
}

static bool read_line(struct table *t, char *line)
{
	double *row = new_row(t);
	char *next = line, *cell;

	for (unsigned i = 0; row && i < TABLE_COLUMNS && (cell = strsep(&next, ",\n")); i++) {
		row[i] = strtod(cell, NULL);
		if (i == 1)
			take_name(t, cell);
	}
	return row != NULL;
}

bool table_read(struct table *t, const char *path)
{
	FILE *f = fopen(path, "r");
	char line[LINE_SIZE];
	bool ok = f != NULL;

	memset(t, 0, sizeof(*t));
	if (f && !fgets(line, sizeof(line), f)) { /* the head */
		errno = ENODATA;
		ok = false;
	}
	while (ok && fgets(line, sizeof(line), f))
		ok = read_line(t, line);
	if (f)
		fclose(f);
	if (!ok)
		table_free(t);
	return ok;
}

void table_free(struct table *t)
{
	free(t->cell);
	t->cell = NULL;
	t->rows = 0;
}

double table_mean(const struct table *t, unsigned column, unsigned i)
{
	double sum = 0;
	size_t n = 0;

	for (size_t r = i; r < t->rows; r += t->nseries) {
		sum += table_at(t, r, column);
		n++;
	}
	return n ? sum / (double)n : 0;
}

static int by_column(const void *a, const void *b, void *column)
{
	double x = ((const double *)a)[*(const unsigned *)column];
	double y = ((const double *)b)[*(const unsigned *)column];

	return (x > y) - (x < y);
}

void table_sort(struct table *t, unsigned column)
{
	if (t->rows)
		qsort_r(t->cell, t->rows, TABLE_COLUMNS * sizeof(*t->cell), by_column, &column);
}
