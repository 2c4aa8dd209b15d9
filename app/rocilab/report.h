/* SPDX-License-Identifier: BSD-3-Clause */
/** @file report.h  The results of a run. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>

struct expectation;
struct lab;

/** Prints everything that was measured; of many ports, those with the longest queues, or with @p
 * all_ports all that had a queue. */
void report_run(const struct lab *l, bool all_ports);

/** Prints a line for each expectation, with the command that repeats it if @p command is not NULL.
 *  @return how many were not met */
unsigned report_expectations(const struct lab *l, const char *command);

/** @return the measured value of @p e. */
double report_value(const struct lab *l, const struct expectation *e);

#endif
