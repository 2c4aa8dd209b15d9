/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file table.h
 * rocid's documents for people: a list of objects becomes a table with a column for each member,
 * an object a line for each member. What a document holds is rocid's business.
 */
#ifndef TABLE_H
#define TABLE_H

#include <jansson.h>
#include <stdio.h>

/** Prints all sections of @p document; more than one get their names as headings. */
void table_print(const json_t *document, FILE *f);

#endif
