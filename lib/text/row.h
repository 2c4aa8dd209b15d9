/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file row.h
 * Builds a JSON object member by member: a row of a table, whose columns have names.
 */
#ifndef ROW_H
#define ROW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct row {
	json_t *object;
	bool failed; /* memory is short */
};

void row_begin(struct row *r);

void put_int(struct row *r, const char *column, int64_t value);

/** Puts "0x" and at least @p digits hexadecimal digits. */
void put_hex(struct row *r, const char *column, uint64_t value, int digits);

/** Puts null if @p value is not finite, which JSON cannot express. */
void put_real(struct row *r, const char *column, double value);

void put_text(struct row *r, const char *column, const char *value);

void put_mac(struct row *r, const char *column, const uint8_t mac[6]);

void put_bool(struct row *r, const char *column, bool value);

/** Takes ownership of @p value, which is NULL when memory is short. */
void put_json(struct row *r, const char *column, json_t *value);

/** @return the object, NULL when memory is short. */
json_t *row_end(struct row *r);

#endif
