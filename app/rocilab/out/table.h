/* SPDX-License-Identifier: BSD-3-Clause */
/** @file table.h  Reads the CSV files of a run, for plots. */
#ifndef TABLE_H
#define TABLE_H

#include <stdbool.h>
#include <stddef.h>

#define TABLE_COLUMNS 9u
#define TABLE_NAME    24u
#define TABLE_SERIES  64u

/** Rows of numbers; a cell without one is 0. Column 1, which may be a name, is in `series`. */
struct table {
	double *cell; /* TABLE_COLUMNS per row */
	size_t rows, room;
	/** The distinct names in column 1 of the rows with the first time stamp, in order; every
	 *  later time stamp has the same ones. */
	char series[TABLE_SERIES][TABLE_NAME];
	unsigned nseries;
};

/** Reads the file @p path. @return false with errno */
bool table_read(struct table *t, const char *path);
void table_free(struct table *t);

static inline double table_at(const struct table *t, size_t row, unsigned column)
{
	return t->cell[row * TABLE_COLUMNS + column];
}

/** @return the mean of @p column over the rows of series @p i. */
double table_mean(const struct table *t, unsigned column, unsigned i);

/** Sorts the rows by @p column. */
void table_sort(struct table *t, unsigned column);

#endif
