/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file plot.h
 * Plots by gnuplot.
 */
#ifndef PLOT_H
#define PLOT_H

struct row;
struct side;

/** Ends the program with a sentence unless gnuplot can be run. */
void plot_check(void);

/** Plots into @p file: the rows against their size, or one row's distribution of latency. */
void plot_draw(const char *file, const struct side *s, const struct row *row, unsigned rows);

#endif
