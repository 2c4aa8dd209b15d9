/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file table.h
 * rocid's documents for people: a list of objects becomes a table with a column for each member,
 * an object a line for each member. What a document holds is rocid's business.
 */
#ifndef TABLE_H
#define TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/** Prints all sections of @p document; more than one get their names as headings. Numbers of bytes
 *  (members called bytes, length or *_bytes) are given in the unit that fits. */
void table_print(const json_t *document, FILE *f);

/** The same, with what members of objects grew a second: @p rates has an object for each section
 *  (watch.h). */
void table_print_rates(const json_t *document, const json_t *rates, FILE *f);

/** Prints an answer: as it is, on one line, with @p json; the answer to `metrics` as OpenMetrics;
 *  others as tables. */
void answer_print(const json_t *document, bool json, FILE *f);

#endif
