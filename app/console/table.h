/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file table.h
 * rocid's documents for people: a list of objects becomes a table with one column per member, an
 * object one line per member, whatever rocid puts into the document.
 */
#ifndef TABLE_H
#define TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/** Prints all sections of @p document; if there are several, their names are headings. Numbers of
 * bytes (members called bytes, length or *_bytes) are given in the unit that fits. */
void table_print(const json_t *document, FILE *f);

/** The same, with the increase per second of objects' members: @p rates has one object per section
 * (watch.h). */
void table_print_rates(const json_t *document, const json_t *rates, FILE *f);

/** Prints an answer: unchanged, on one line, with @p json; the answer to `metrics` as OpenMetrics;
 * others as tables. */
void answer_print(const json_t *document, bool json, FILE *f);

#endif
