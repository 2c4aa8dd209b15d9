/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file report.h
 * Results for people and for programs: perftest's columns, or one JSON document.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdio.h>
#include <stdint.h>
#include "measure.h"
#include "shape.h"

struct histogram;
struct plan;
struct side;

/** The result for one size: that of the client, and with --bidirectional the sum of both ends. */
struct row {
	uint32_t size;
	struct shape shape;
	double figure[FIGURE_COUNT];
	double sent, received, lost; /* plan_counts_lost(): messages, from the first to the last */
};

/** @return the combined result of @p s and its other end. */
struct row report_row(const struct side *s);

/** @return payload in 1e9 bits per second. */
double report_gbps(const struct row *r);

/** @return messages in 1e6 per second. */
double report_mpps(const struct row *r);

/** Prints the parameters and the columns' names. */
void report_head(FILE *f, const struct side *s);

/** Prints a line of the table. */
void report_line(FILE *f, const struct plan *plan, const struct row *r);

/** Prints the JSON document of all rows; with the distribution of latency if @p trip is given. */
void report_json(FILE *f, const struct side *s, const struct row row[], unsigned rows,
	const struct histogram *trip);

#endif
