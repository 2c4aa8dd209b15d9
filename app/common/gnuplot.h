/* SPDX-License-Identifier: BSD-3-Clause */
/** @file gnuplot.h  Runs gnuplot. */
#ifndef GNUPLOT_H
#define GNUPLOT_H

#include <stdbool.h>
#include <stdio.h>

/** @return whether gnuplot is in PATH. */
bool gnuplot_found(void);

/** Starts gnuplot, which reads what is written to the file.  @return NULL with errno */
FILE *gnuplot_open(void);

/** Begins a plot: an SVG in the file @p path. */
void gnuplot_svg(FILE *f, const char *path);

/** Ends gnuplot. @return whether it succeeded */
bool gnuplot_close(FILE *f);

#endif
